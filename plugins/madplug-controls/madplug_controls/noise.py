"""Messages of other questions in the place of what the peers say."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from madplug import ComponentError, Extension, Message, Options, RunPath, Turn, UserError, hookimpl
from madplug_replay.pool import debates_of, last_change

if TYPE_CHECKING:
    from madplug import Debate

Pool = Mapping[int, Sequence[tuple[str, str, str | None]]]
"""By round: (sample, content, answer) of each message of an agent."""


class NoiseOptions(Options):
    """Where the messages come from."""

    study: RunPath = Field(description=(
        "a study of the same data: its directory, or its debates as `madplug export` writes them (.jsonl)"))


class Noise(Extension):
    """Shows agents what was said about other questions in the place of what their peers say.

    Each message of a peer is replaced by one that an agent of the recorded study wrote in the same round about another
    question: as many messages, of the same kind and length on average, without a word on the question. Which one is
    drawn from the study's seed, the same for every reader and in every later view. What was said stays on record; the
    messages that were replaced are among a turn's `altered`. An agent's own messages and notes are shown as they are.
    """

    name = "noise"
    source = "arXiv 2605.00914, a controlled study of multi-agent debate (read in notes about it)"
    Options = NoiseOptions

    def check(self, cell: Any) -> Iterator[str]:
        """The recorded study can be read, and is about more than one question."""
        try:
            about = {sample for said in pool_of(self.options.study).values() for sample, _, _ in said}
        except UserError as error:
            yield from (f"'study': {problem}" for problem in error.problems)
            return
        if len(about) < 2:
            yield f"'study': {self.options.study} has messages about {len(about)} questions; it takes two or more"

    @hookimpl(wrapper=True)
    def madplug_view(self, debate: Debate, turn: Turn) -> Generator[None, Sequence[Message], Sequence[Message]]:
        """The view with other messages in it."""
        view = yield
        return [m if m.agent in (None, turn.agent.id) else self.other(debate, m) for m in view]

    def other(self, debate: Debate, message: Message) -> Message:
        """What is shown in the place of a message."""
        pool = pool_of(self.options.study).get(message.round, ())
        rng = debate.rng(f"controls.noise:{message.id}")
        start = rng.randrange(len(pool)) if pool else 0
        found = next((m for m in (*pool[start:], *pool[:start]) if m[0] != debate.sample.id), None)
        if found is None:
            raise ComponentError(f"{self.options.study} says nothing about another question in round {message.round}; "
                                 "record a study with as many rounds")
        _, content, answer = found
        return replace(message, content=content, answer=answer, key=debate.key(answer))


def pool_of(study: Path) -> Pool:
    """The messages of a recorded study. Raises `UserError` if it cannot be read."""
    return _read(study, last_change(study))


@lru_cache(maxsize=4)
def _read(study: Path, changed: int) -> Pool:
    pool: dict[int, list[tuple[str, str, str | None]]] = {}
    for result in debates_of(study):
        for m in result.messages:
            if m.agent is not None and m.answers and m.content.strip() and not m.retracted:
                pool.setdefault(m.round, []).append((result.sample.id, m.content, m.answer))
    return pool
