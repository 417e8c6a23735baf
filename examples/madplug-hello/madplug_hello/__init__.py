"""A plugin to copy: one component of three kinds, each with options.

Nothing here is registered by being imported. A run file that names `hello.quorum` makes madplug look for the plugin
`hello` (the entry point in pyproject.toml), import this module, and call the functions at its end.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import replace

from pydantic import Field

from madplug import (
    Debate,
    Decision,
    DecisionProtocol,
    Extension,
    Message,
    Options,
    Reply,
    Request,
    Style,
    Turn,
    hookimpl,
)

PROMPT = """{question}
{others}
Answer in at most {words} words. {format}"""


class Quorum(DecisionProtocol):
    """Ends as soon as enough voters give the same answer.

    The answers of the latest round count. After the last round the most frequent one stands as a fallback, so that
    `agreed` is true only where the quorum was reached.
    """

    name = "quorum"

    class Options(Options):
        """Options of `hello.quorum`."""

        share: float = Field(default=0.75, gt=0.5, le=1, description="share of the voters that must give one answer")

    def after_round(self, debate: Debate) -> Decision | None:
        """A decision once the quorum is reached; None lets the debate go on."""
        counts = self._counts(debate)
        for key, votes in counts.items():
            if votes >= self.options.share * len(debate.voters):
                return Decision(key, agreed=True, scores=dict(counts))
        return None

    def at_end(self, debate: Debate) -> Decision:
        """The most frequent answer; of several, the one that was given first."""
        counts = self._counts(debate)
        if not counts:
            return Decision.undecided("no voter gave an answer that could be read")
        key, votes = counts.most_common(1)[0]
        tie = list(counts.values()).count(votes) > 1
        return Decision(key, scores=dict(counts), tie=tie, fallback=True, reason="the quorum was not reached")

    def _counts(self, debate: Debate) -> Counter[str]:
        """How often each answer was given in the latest round; two answers are equal when their keys are."""
        voters = {agent.id for agent in debate.voters}
        said = debate.transcript.of_round(debate.round)
        return Counter(m.key for m in said if m.key is not None and m.agent in voters)


class Brief(Style):
    """Shows the question and what others said, and asks for a short answer."""

    name = "brief"
    moves = frozenset({"draft", "improve"})

    class Options(Options):
        """Options of `hello.brief`."""

        words: int = Field(default=30, ge=1, description="the most words a reply should have")
        prompt: str = Field(default=PROMPT, description="what is sent; {question}, {others}, {words} and {format} (how "
                                                        "to state the answer) are filled in")

    async def respond(self, debate: Debate, turn: Turn, view: Sequence[Message]) -> Reply:
        """One call. `Reply.answer` stays None, so the host reads the answer as the study's answer format says."""
        choices = [f"({letter}) {text}" for letter, text in zip("ABCDEFGHIJ", debate.sample.choices, strict=False)]
        others = [f"{debate.agent(m.agent).persona.name}: {m.content}" for m in view if m.agent is not None]
        values = {"question": "\n".join([debate.sample.question, *choices]), "others": "\n".join(others),
                  "words": str(self.options.words), "format": debate.answers.instruction(debate.sample)}
        completion = await debate.ask(fill(self.options.prompt, values), agent=turn.agent, purpose="discuss")
        return Reply(completion.text, data={"hello": {"words": len(completion.text.split())}})


class LastCall(Extension):
    """Tells every agent when the last round has begun."""

    name = "last_call"

    class Options(Options):
        """Options of `hello.last_call`."""

        text: str = Field(default="This is the last round.", min_length=1, description="the sentence that is added")

    @hookimpl(wrapper=True)
    def madplug_request(self, debate: Debate, request: Request) -> Generator[None, Request, Request]:
        """Around every request: `yield` gives what would be sent, and what is returned is sent instead."""
        request = yield
        if debate.round < debate.rounds or request.purpose != "discuss":
            return request
        return replace(request, messages=(*request.messages, {"role": "user", "content": self.options.text}))


def fill(template: str, values: dict[str, str]) -> str:
    """The template with its placeholders filled in, once.

    Not `str.format`: texts of models and data sets may contain braces, which must stay as they are.
    """
    return re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], found[0]), template)


@hookimpl
def madplug_register_decisions() -> list[type[DecisionProtocol]]:
    """Register the decision protocol."""
    return [Quorum]


@hookimpl
def madplug_register_styles() -> list[type[Style]]:
    """Register the style."""
    return [Brief]


@hookimpl
def madplug_register_extensions() -> list[type[Extension]]:
    """Register the extension."""
    return [LastCall]
