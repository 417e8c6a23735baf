"""Hints for agents, a kind of component that madplug does not have, and two styles that show what a hint says."""

import re
from abc import abstractmethod
from typing import Annotated

from pydantic import Field

from madplug import Component, Names, Nested, Options, Reply, Style, hookimpl


class Hint(Component):
    """Says something about a question, from outside the debate."""

    kind = "hint"
    plural = "hints"
    label = "hint"
    slot = "hints.NAME"
    how_many = "named"

    @abstractmethod
    def use(self, question):
        """What it says."""


class Count(Hint):
    """Counts the words of the question."""

    name = "count"

    def use(self, question):
        """The number of words."""
        return f"the question has {len(re.findall(r'[A-Za-z]+', question))} words"


class Fact(Hint):
    """Says what the run file gives it to say."""

    name = "fact"

    class Options(Options):
        """Options of `hints.fact`."""

        text: str = Field(description="what it says")

    def use(self, question):
        """The text."""
        return self.options.text


class Informed(Style):
    """Shows the question and what a hint says about it."""

    name = "informed"
    moves = frozenset({"speak", "draft", "improve"})

    class Options(Options):
        """Options of `hints.informed`."""

        hint: Annotated[str, Names("hint")] = Field(description="the hint to use")

    def hint(self, debate):
        """The hint that the option names."""
        return debate.component(Hint, self.options.hint)

    async def respond(self, debate, turn, view):
        """Ask with what the hint says."""
        said = self.hint(debate).use(debate.sample.question)
        prompt = f"{debate.sample.question}\n\nA hint says: {said}\n\n{debate.answers.instruction(debate.sample)}"
        return Reply((await debate.ask(prompt, purpose="discuss", agent=turn.agent)).text)


class Equipped(Informed):
    """Shows what a hint of its own says."""

    name = "equipped"

    class Options(Options):
        """Options of `hints.equipped`."""

        hint: Nested[Hint] = Field(description="the hint to use")

    def hint(self, debate):
        """The hint that is in the options."""
        return self.options.hint


@hookimpl
def madplug_register_components():
    """Register hints."""
    return [Count, Fact]


@hookimpl
def madplug_register_styles():
    """Register styles."""
    return [Informed, Equipped]
