"""Tools for agents, a kind of component that madplug does not have, and two styles that show what a tool says."""

import re
from abc import abstractmethod
from typing import Annotated

from pydantic import Field

from madplug import Component, Names, Nested, Options, Reply, Style, hookimpl


class Tool(Component):
    """Says something about a question, from outside the debate."""

    kind = "tool"
    plural = "tools"
    label = "tool"
    slot = "tools.NAME"
    how_many = "named"

    @abstractmethod
    def use(self, question):
        """What it says."""


class Count(Tool):
    """Counts the words of the question."""

    name = "count"

    def use(self, question):
        """The number of words."""
        return f"the question has {len(re.findall(r'[A-Za-z]+', question))} words"


class Fact(Tool):
    """Says what the run file gives it to say."""

    name = "fact"

    class Options(Options):
        """Options of `tools.fact`."""

        text: str = Field(description="what it says")

    def use(self, question):
        """The text."""
        return self.options.text


class Informed(Style):
    """Shows the question and what a tool says about it."""

    name = "informed"
    moves = frozenset({"speak", "draft", "improve"})

    class Options(Options):
        """Options of `tools.informed`."""

        tool: Annotated[str, Names("tool")] = Field(description="the tool to use")

    def tool(self, debate):
        """The tool that the option names."""
        return debate.component(Tool, self.options.tool)

    async def respond(self, debate, turn, view):
        """Ask with what the tool says."""
        said = self.tool(debate).use(debate.sample.question)
        prompt = f"{debate.sample.question}\n\nA tool says: {said}\n\n{debate.answers.instruction(debate.sample)}"
        return Reply((await debate.ask(prompt, purpose="discuss", agent=turn.agent)).text)


class Equipped(Informed):
    """Shows what a tool of its own says."""

    name = "equipped"

    class Options(Options):
        """Options of `tools.equipped`."""

        tool: Nested[Tool] = Field(description="the tool to use")

    def tool(self, debate):
        """The tool that is in the options."""
        return self.options.tool


@hookimpl
def madplug_register_components():
    """Register tools."""
    return [Count, Fact]


@hookimpl
def madplug_register_styles():
    """Register styles."""
    return [Informed, Equipped]
