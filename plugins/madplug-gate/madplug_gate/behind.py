"""A cheap first stage, a gate, and any debate behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Generator, Iterable, Sequence
from dataclasses import replace
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from madplug import (
    ComponentError,
    Decision,
    DecisionProtocol,
    Message,
    ModelError,
    Nested,
    Options,
    Reply,
    RunPath,
    Turn,
    TurnOrder,
    hookimpl,
    iterate,
    maybe_await,
)
from madplug_gate.features import Classifier, features, question_digest
from madplug_prompting.ties import leaders
from madplug_prompting.tokens import TokenProbabilities, token_probability

if TYPE_CHECKING:
    from madplug import Debate, Setup

STAGE = "gate"
"""The stage of first answers, and the note of a debate with what the gate made of them."""
View = Sequence[Message]


class FirstOptions(Options):
    """How many first answers, and what follows."""

    inner: Nested[TurnOrder] = Field(default="turns.simultaneous", description="the debate behind the gate")  # type: ignore[assignment]
    answers: int = Field(default=1, ge=1, le=1000, description=(
        "agents that answer before the gate, the first of the debate, all at the same time"))


class First(TurnOrder):
    """The first agents answer alone; if the debate goes on, it goes on with their answers as their first turns.

    The first turn of such an agent in round 1 is left out of the debate behind the gate. In round 1 nobody is shown the
    answers of before the gate, so that first answers are independent.
    """

    name = "first"
    source = "DOWN (arXiv 2504.05047)"
    Options = FirstOptions

    def __init__(self, options: Any = None, **values: Any) -> None:
        super().__init__(options, **values)
        self.moves = self.options.inner.moves | {"draft"}

    async def waves(self, debate: Debate) -> AsyncIterator[Sequence[Turn]]:
        """The first stage, and the waves of the debate."""
        if debate.round == 1:
            yield [Turn(agent, "draft", STAGE) for agent in debate.agents[:self.options.answers]]
        left_out = {m.agent for m in debate.transcript.of_round(debate.round) if m.stage == STAGE}
        async for wave in iterate(self.options.inner.waves(debate)):
            first = {turn.agent.id: turn for turn in reversed(wave) if turn.agent.id in left_out}
            left_out -= first.keys()
            if rest := [turn for turn in wave if first.get(turn.agent.id) is not turn]:
                yield rest

    def turns(self, agents: int, round: int) -> int:
        """Those of the debate: first answers take the place of first turns."""
        return self.options.inner.turns(agents, round)

    def steps(self, agents: int, round: int) -> int:
        """Those of the debate, and the first answers."""
        return self.options.inner.steps(agents, round) + int(round == 1)

    def check(self, cell: Any) -> Iterable[str]:
        """There are as many agents, and several first answers where their agreement is the gate."""
        if self.options.answers > cell.wanted:
            yield f"answers = {self.options.answers}, and there are {cell.wanted} agents"
        gate = cell.decision
        if self.options.answers == 1 and isinstance(gate, Behind) and gate.options.by == "agreement" \
                and gate.options.threshold < 1:
            yield "answers = 1: one answer agrees with itself, so that by agreement nothing is debated; ask several"

    @hookimpl(wrapper=True)
    def madplug_view(self, debate: Debate, turn: Turn) -> Generator[None, View, View]:
        """In round 1 first answers are not shown to others."""
        view = yield
        return [m for m in view if debate.round > 1 or m.stage != STAGE or m.agent == turn.agent.id]


class BehindOptions(Options):
    """The gate."""

    inner: Nested[DecisionProtocol] = Field(default="voting.plurality", description="what decides the debate")  # type: ignore[assignment]
    by: Literal["stated", "probability", "agreement", "classifier"] = Field(default="stated", description=(
        "how sure a first answer is: the confidence that it states; the mean probability of its tokens, which the "
        "endpoint has to give; the share of the first answers that are equal; a classifier's probability that a debate "
        "would not turn it from wrong to right"))
    threshold: float = Field(default=0.8, ge=0, le=1, description=(
        "the first answer stands if it is surer than this; 1: every question is debated"))
    classifier: RunPath | None = Field(default=None, description=(
        "for by = \"classifier\": the file that `madplug gate train` wrote"))
    seen: bool = Field(default=False, description=(
        "allow a classifier that was trained on questions of this study, which flatters it"))


class Behind(TokenProbabilities, DecisionProtocol):
    """A first answer that is sure enough stands, and there is no debate; else another protocol decides one.

    Of several first answers the most common one is at the gate, the first of equals, with the mean confidence of those
    who gave it. Without a readable answer, or a confidence, there is a debate. A debate's notes have under `gate` how
    sure the first answer was and what it cost, so that `gate.curve` finds out what any threshold would have done, and
    `madplug decide` decides recorded debates with another gate or threshold without a call. A debate that the new gate
    opens and the recorded one did not was never held: it fails.
    """

    name = "behind"
    source = "DOWN (arXiv 2504.05047); iMAD (arXiv 2511.11306)"
    Options = BehindOptions

    def __init__(self, options: Any = None, **values: Any) -> None:
        super().__init__(options, **values)
        self.needs = frozenset({"confidence"} if self.options.by == "stated" else ())

    @property
    def measures(self) -> bool:
        """Only where probabilities count."""
        return self.options.by == "probability"

    async def measured(self, replied: Awaitable[Reply]) -> Reply:
        """The mean probability of a reply's tokens is its confidence."""
        reply = await super().measured(replied)
        p = reply.data.get("prompting", {}).get("p") if self.measures else None
        return reply if p is None else replace(reply, confidence=min(1.0, p))

    async def after_wave(self, debate: Debate) -> Decision | None:
        """The first answer, if it stands; behind the gate, what the other protocol says."""
        said = [m for m in debate.transcript.messages if m.agent is not None and m.round > 0]
        if any(m.stage != STAGE for m in said):
            decision: Decision | None = await maybe_await(self.options.inner.after_wave(debate))
            return self.debated(debate, decision)
        key, sure = self.at_the_gate(debate, said)
        debate.notes[STAGE] = {"key": key, "sure": sure, "first_tokens": _tokens(debate)}
        stated = self.options.by == "stated"
        if sure is None or any(m.answers and (m.key is None or (stated and m.confidence is None)) for m in said):
            debate.notes[STAGE]["unparsed"] = True
        if key is None or sure is None or sure <= self.options.threshold:
            return None
        return Decision(key, agreed=True, reason=f"the first answer stands: {sure:.3f} > {self.options.threshold:g}")

    async def after_round(self, debate: Debate) -> Decision | None:
        """What the other protocol says. Raises `ModelError` if the recorded gate was shut where this one is open."""
        if debate.recorded and all(m.stage == STAGE for m in debate.transcript.messages if m.agent is not None):
            raise ModelError("this gate is open, and the recorded one was shut: there is no debate to decide; "
                             "run the study with threshold = 1, which records every debate")
        return self.debated(debate, await maybe_await(self.options.inner.after_round(debate)))

    async def at_end(self, debate: Debate) -> Decision:
        """What the other protocol decides."""
        decision: Decision = await maybe_await(self.options.inner.at_end(debate))
        self.debated(debate, decision)
        return decision

    def debated(self, debate: Debate, decision: Decision | None) -> Decision | None:
        """The decision; what the debate has cost is noted with it."""
        if decision is not None and STAGE in debate.notes:
            debate.notes[STAGE] = {**debate.notes[STAGE], "tokens": _tokens(debate)}
        return decision

    def at_the_gate(self, debate: Debate, first: Sequence[Message]) -> tuple[str | None, float | None]:
        """The answer at the gate, and how sure it is."""
        counts = Counter(m.key for m in first if m.key is not None)
        if not counts:
            return None, None
        key = leaders(counts)[0]
        giving = [m for m in first if m.key == key]
        if self.options.by == "agreement":
            return key, len(giving) / len(first)
        if self.options.by == "classifier":
            return key, 1 - self.model().probability(features(debate.sample, first, key))
        found = [token_probability(m) if self.options.by == "probability" else m.confidence for m in giving]
        values = [value for value in found if value is not None]
        return key, fmean(values) if values else None

    def model(self) -> Classifier:
        """The classifier of the file."""
        assert self.options.classifier is not None
        return Classifier.read(self.options.classifier)

    def check(self, cell: Any) -> Iterable[str]:
        """A classifier is a file that can be read, and of use with this gate only."""
        if (self.options.by == "classifier") != (self.options.classifier is not None):
            yield "'classifier' names the file of by = \"classifier\", and of no other gate"
        elif self.options.classifier is not None:
            try:
                self.model()
            except ValueError as error:
                yield f"'classifier': {error}"

    def prepare(self, setup: Setup) -> None:
        """No question may be among those that the classifier was trained on."""
        if self.options.classifier is None or self.options.seen:
            return
        trained = set(self.model().questions)
        both = sum(question_digest(sample) in trained for sample, _ in setup.samples())
        if both:
            raise ComponentError(f"the classifier {self.options.classifier} was trained on {both} questions of this "
                                 "study; take others, or say seen = true")


def _tokens(debate: Debate) -> int:
    return debate.spent.prompt + debate.spent.completion
