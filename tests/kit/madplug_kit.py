"""A plugin for the host's own tests: one plain component of each kind that a run file needs."""

from __future__ import annotations

import asyncio
import hashlib
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from pydantic import Field

from madplug import (
    AccessError,
    Completion,
    Dataset,
    Extension,
    Metric,
    Model,
    ModelOptions,
    Observer,
    Options,
    Paradigm,
    RefusedError,
    Reply,
    RunPath,
    Sample,
    TransientError,
    Usage,
    Volatile,
    hookimpl,
)
from madplug_testing import LastRound, PlainStyle, SeeAll, SpeakAll, StrippedText


class Hash(Model):
    """Answers with a letter drawn from the request, after a while; writes down each call it is paid for."""

    name = "hash"

    class Options(ModelOptions):
        latency: Annotated[float, Volatile] = Field(default=0.0, ge=0, description="seconds per call")
        letters: str = Field(default="AB", description="what to draw from")
        ledger: Annotated[RunPath | None, Volatile] = Field(default=None, description="a line a call")
        fault: Annotated[str, Volatile] = Field(default="", description="`refuse`, `no_access`, `fail`, `hang...`")
        tokens: Annotated[int, Volatile] = Field(default=10, description="tokens per call")

    async def complete(self, request):
        digest = hashlib.sha256(repr((request.messages, request.seed)).encode()).hexdigest()
        if self.options.fault == "refuse":
            raise RefusedError("400 content filter")
        if self.options.fault == "no_access":
            raise AccessError("401 no such key")
        if self.options.fault.startswith("fail") and digest[:6] not in _tried:
            _tried.add(digest[:6])
            raise TransientError("503 try again", retry_after=0.0)
        if self.options.fault.startswith("hang"):
            await _hang(self.options.fault)
        if self.options.latency:
            await asyncio.sleep(self.options.latency * (0.5 + int(digest[:4], 16) / 65536))
        if self.options.ledger:
            _write(self.options.ledger, digest)
        letters = self.options.letters
        return Completion(letters[int(digest[4:8], 16) % len(letters)], Usage(self.options.tokens, 1))


async def _hang(how):
    while how == "hang stubbornly":
        with suppress(BaseException):
            await asyncio.sleep(1000)
    if how == "hang in a thread":
        await asyncio.to_thread(time.sleep, 1000)
    time.sleep(1000)  # noqa: ASYNC251 - the mistake itself


_tried: set[str] = set()


def _write(ledger: Path, line: str) -> None:
    with ledger.open("a") as file:
        file.write(line + "\n")


class Numbered(Dataset):
    """Questions with a number."""

    name = "numbered"

    class Options(Options):
        size: Annotated[int, Volatile] = Field(default=5, ge=0, description="how many")

    answers = "kit.stripped"

    def samples(self, split=None) -> Iterator[tuple[Sample, tuple[str, ...]]]:
        for i in range(self.options.size):
            yield Sample(f"q{i:04}", f"question {i}?"), ("A",)

    def size(self):
        return self.options.size


class Stripped(StrippedText):
    """The whole reply."""

    name = "stripped"


class Style(PlainStyle):
    """The question and what is visible."""

    name = "plain"
    moves = frozenset({"improve"})

    class Options(Options):
        tone: str = Field(default="", description="a word before the question")


class Turns(SpeakAll):
    """All at the same time."""

    name = "everybody"


class Budgeted(SpeakAll):
    """As often as the matched debate made calls."""

    name = "budgeted"
    gives = frozenset({"budget"})

    def waves(self, debate):
        """All agents over and over."""
        for _ in range(debate.matched.calls):
            yield from super().waves(debate)


class Alone(SpeakAll):
    """One after the other."""

    name = "one_by_one"

    def waves(self, debate):
        for wave in super().waves(debate):
            yield from ([turn] for turn in wave)


class Ear(SeeAll):
    """Everything."""

    name = "everything"

    class Options(Options):
        window: int | None = Field(default=None, ge=1, description="rounds back")


class Last(LastRound):
    """The answer most voters end on."""

    name = "last_round"

    class Options(Options):
        keep: int = Field(default=1, ge=1, le=9, description="rounds to count")


class Needy(LastRound):
    """Needs what nobody gives."""

    name = "needy"
    needs = frozenset({"agreement"})


class Right(Metric):
    """Whether the decision is a reference."""

    name = "right"
    proportion = True

    def score(self, debate, references):
        return float(debate.decision.key in references)


class Graded(Metric):
    """What a model says of the decision."""

    name = "graded"
    proportion = frozenset({"grade"})

    class Options(Options):
        rubric: str = Field(default="", description="prompt: what counts. {answer}")

    def calls(self, plan):
        return 1

    async def score(self, debate, references):
        reply = await debate.ask(f"{self.options.rubric} grade {debate.decision.key}", purpose="grade")
        if reply.text == "C":
            raise ValueError("C is not a grade")
        return {"grade": float(reply.text == "A"), "length": len(reply.text)}


class Pair(Paradigm):
    """Two agents, two rounds."""

    name = "pair"
    debate = {"turns": "kit.everybody", "visibility": {"use": "kit.everything", "window": 2}, "styles": ["kit.plain"],
              "decision": "kit.last_round", "rounds": 2, "agents": 2}


class Shout(Extension):
    """Writes every reply in capitals."""

    name = "shout"

    @hookimpl(wrapper=True)
    def madplug_reply(self, debate, turn, view):
        pending = yield

        async def loud():
            reply = await pending
            return Reply(reply.content.upper() + "!")

        return loud()


class Cry(Observer):
    """An observer that fails."""

    name = "cry"

    def message_recorded(self, event):
        raise RuntimeError("no pencil")


class Starts(Observer):
    """Prints which debate starts."""

    name = "starts"

    def debate_started(self, event):
        print("started", event.debate.sample, file=sys.stderr)


@hookimpl
def madplug_register_components():
    return [Hash, Numbered, Stripped, Style, Turns, Alone, Budgeted, Ear, Last, Needy, Right, Graded, Pair, Shout, Cry,
            Starts]
