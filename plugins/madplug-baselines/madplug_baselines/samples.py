"""How often a model is asked, and how its answers are counted."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from madplug import Agent, ComponentError, Decision, DecisionProtocol, Message, Options, Turn, TurnOrder, Vote, count
from madplug_prompting.ties import Tie, break_tie, has_clear_lead, leaders

if TYPE_CHECKING:
    from madplug import Debate

Number = Annotated[int, Field(ge=1, le=100_000)]
MOST_BY_TOKENS = 10_000
"""No debate is worth more samples than this; a bound where a model reports next to no tokens."""
MOST_IDLE = 3
"""Turns in a row that used no tokens, after which none is expected to."""


class Matchable(TurnOrder):
    """Orders whose number of turns can follow another cell's debate of the same sample."""

    asked: str
    """The option with the number."""

    def __init__(self, options: Any = None, **values: Any) -> None:
        super().__init__(options, **values)
        self.gives = frozenset({"budget"}) if self.follows else frozenset()

    def number(self) -> int | str | None:
        """The number of turns, "matched", or None."""
        value: int | str | None = getattr(self.options, self.asked)
        return value

    @property
    def follows(self) -> bool:
        """Whether the number of turns can follow another cell's debate: the run file does not say it."""
        return not isinstance(self.number(), int)

    def check(self, cell: Any) -> Iterable[str]:
        """`matched` needs a cell to be matched to."""
        if self.number() == "matched" and cell.match is None:
            yield (f'{self.asked} = "matched" takes the calls of another cell; name it with '
                   'match = {cell = "...", by = "calls"}')

    def warn(self, cell: Any) -> Iterable[str]:
        """The tokens of a decision cannot be held back: they are known once it has been made."""
        if self.follows and (cell.match or {}).get("by") == "tokens" and (asked := cell.decision.calls(cell.plan)):
            yield (f"{cell.decision.full_name} makes up to {count(asked, 'call')} that come on top of the tokens of "
                   f"'{cell.match['cell']}'; by = \"calls\" reckons with them")

    def by_tokens(self, debate: Debate) -> bool:
        """Whether the budget is the matched debate's tokens."""
        return self.follows and debate.matched is not None and (debate.cell.match or {}).get("by") == "tokens"

    def size(self, debate: Debate, otherwise: int) -> int:
        """How many turns: as many as the option says, or as fit into the matched debate's calls."""
        number = self.number()
        if isinstance(number, int):
            return number
        if debate.matched is not None:
            return self.within(debate.cell, debate.matched.calls)
        if number == "matched":
            raise ComponentError(f'{self.name}: {self.asked} = "matched", and this cell is matched to no other')
        return otherwise

    def within(self, cell: Any, calls: int) -> int:
        """The most turns with which a debate, its decision included, makes no more than this many calls; at least one.
        """
        def worst(turns: int) -> int:
            order = type(self)(self.options.model_copy(update={self.asked: turns}))
            calls: int = replace(cell, turns=order).worst_calls(scored=False)
            return calls

        return max(1, bisect_right(range(calls + 1), calls, lo=1, key=worst) - 1)

    def until_spent(self, debate: Debate) -> Iterator[int]:
        """Numbers from 0 while the matched debate's tokens are not used up; stops when several turns used none."""
        assert debate.matched is not None
        budget = debate.matched.tokens.prompt + debate.matched.tokens.completion
        spent = before = idle = 0
        for number in range(MOST_BY_TOKENS):
            yield number
            before, spent = spent, debate.spent.prompt + debate.spent.completion
            idle = idle + 1 if spent == before else 0  # a request that was refused used none, and the next one may
            if spent >= budget or idle == MOST_IDLE:
                return


class SamplesOptions(Options):
    """How many."""

    samples: Number | Literal["matched"] | None = Field(default=None, description=(
        'how many samples; "matched": until the calls or tokens of the cell named in `match` are used up; '
        "default: as many where the cell has a `match`, else one for each agent"))


class Samples(Matchable):
    """Independent samples, all at the same time, each by an agent of its own.

    Sample i is asked of agent i, so that it is the very request, and with shared completions the very reply, that
    the same style gets from agent i in the first round of a debate. The cell's models take turns, and beyond the
    agents that were cast, so do their personas. One for each agent unless `samples` says otherwise, or as many as the
    cell it is matched to made calls. With `by = "tokens"` they follow one after the other until that cell's tokens are
    used up, which the last one exceeds.
    """

    name = "samples"
    moves = frozenset({"draft"})
    source = "Wang et al. 2023 (self-consistency)"
    asked = "samples"
    seats = True
    Options = SamplesOptions

    def check(self, cell: Any) -> Iterable[str]:
        """Agents have no effect on matched samples that are all asked alike, and rounds only take more samples than the
        budget may allow; a recorded run file still has them.
        """
        yield from super().check(cell)
        recorded = "debate.turns" in cell.settings and "debate.paradigm" not in cell.settings  # every slot spelled out
        written = "debate.agents" in cell.settings and not recorded
        alike = cell.casting is None and all(maker.full_name == "personas.none" for maker in cell.personas)
        follows = self.follows and cell.match is not None
        if follows and cell.rounds > 1 and "debate.rounds" in cell.settings and not recorded:
            yield (f"debate.rounds: {cell.rounds} rounds have a sample each at least, however little "
                   f"'{cell.match['cell']}' used; leave out rounds, or match")
        if written and alike and follows:
            yield (f"debate.agents changes nothing: there are as many samples as the {cell.match['by']} of "
                   f"'{cell.match['cell']}' allow; leave out agents, or match")

    def waves(self, debate: Debate) -> Iterator[Sequence[Turn]]:
        """One wave of all samples; by tokens, a wave for each."""
        cast, models = debate.agents, debate.models
        if self.by_tokens(debate):
            yield from ([Turn(sampler(cast, models, i), "draft")] for i in self.until_spent(debate))
        else:
            yield [Turn(sampler(cast, models, i), "draft") for i in range(self.size(debate, otherwise=len(cast)))]

    def steps(self, agents: int, round: int) -> int:
        """One."""
        return 1

    def turns(self, agents: int, round: int) -> int:
        """The number, where it is known."""
        number = self.number()
        return number if isinstance(number, int) else agents


def sampler(cast: Sequence[Agent], models: Sequence[str], number: int) -> Agent:
    """The agent that gives a sample: the one that was cast, or one beyond these."""
    if number < len(cast):
        return cast[number]
    like, nth = cast[number % len(cast)], number // len(cast)
    name = like.persona.name
    bare = name.removesuffix(f" {like.id + 1}")  # "Participant 1" goes on with the samples' own numbers
    name = f"{name}, sample {nth + 1}" if bare == name else f"{bare} {number + 1}"
    return replace(like, id=number, persona=replace(like.persona, name=name),
                   model=models[number % len(models)] if models else like.model)


class StepsOptions(Options):
    """How many."""

    messages: Number | Literal["matched"] | None = Field(default=None, description=(
        'messages a round; "matched": until the calls or tokens of the cell named in `match` are used up; '
        "default: as many where the cell has a `match`, else one"))


class Steps(Matchable):
    """One agent improves its own solution repeatedly.

    One message a round unless `messages` says otherwise, or as many as the cell it is matched to made calls.
    """

    name = "steps"
    moves = frozenset({"improve"})
    source = "Becker et al. 2025 (MALLM), the ablation baseline of its code"
    asked = "messages"
    Options = StepsOptions

    def check(self, cell: Any) -> Iterable[str]:
        """One agent writes all messages."""
        yield from super().check(cell)
        yield from silent(1, cell, "debate.turns.messages or debate.rounds")

    def waves(self, debate: Debate) -> Iterator[Sequence[Turn]]:
        """A wave for each message."""
        numbers = self.until_spent(debate) if self.by_tokens(debate) else range(self.size(debate, otherwise=1))
        yield from ([Turn(debate.agents[0], "improve")] for _ in numbers)

    def turns(self, agents: int, round: int) -> int:
        """The number, where it is known."""
        number = self.number()
        return number if isinstance(number, int) else 1


class RefinementOptions(Options):
    """How many."""

    samples: int = Field(default=3, ge=1, le=10_000, description="independent first answers")
    refinements: int = Field(default=1, ge=0, le=10_000, description="answers that are written in view of all of them")


def silent(asked: int, cell: Any, option: str) -> Iterable[str]:
    """Refuse agents that would never be asked. asked: how many are. option: what says how often."""
    if cell.wanted > asked:
        yield (f"{count(asked, 'agent')} of {cell.wanted} would be asked; set debate.agents to {asked}, and how many "
               f"answers there are by {option}")


class Refinement(TurnOrder):
    """Independent samples, and then refinements that read all of them.

    Both are asked of the agents in turn: sample i is the first answer of agent i. samples + refinements calls in the
    one round, in two waves.
    """

    name = "refinement"
    moves = frozenset({"draft", "improve"})
    source = "Smit et al. 2024, DebateLLM (ensemble refinement)"
    Options = RefinementOptions

    def check(self, cell: Any) -> Iterable[str]:
        """There are no more agents than turns of a wave."""
        return silent(max(self.options.samples, self.options.refinements), cell, "debate.turns.samples")

    def waves(self, debate: Debate) -> Iterator[Sequence[Turn]]:
        """A wave of the samples, and one of the refinements."""
        for move, number in (("draft", self.options.samples), ("improve", self.options.refinements)):
            if number:
                yield [Turn(debate.agents[i % len(debate.agents)], move) for i in range(number)]

    def turns(self, agents: int, round: int) -> int:
        """All of them."""
        return int(self.options.samples + self.options.refinements)

    def steps(self, agents: int, round: int) -> int:
        """The samples, and the refinements if there are any."""
        return 1 + int(self.options.refinements > 0)


def samples_of(debate: Debate) -> list[Message]:
    """Every message of a voter, even several of one agent."""
    voters = {agent.id for agent in debate.voters}
    return [m for m in debate.transcript.messages if m.agent in voters and m.round > 0]


class MostCommonOptions(Options):
    """How a tie is broken."""

    tie: Tie = Field(default="first", description=(
        "which of several most common answers wins: the one given first, a seeded random one, none, or the "
        "first alphabetically"))
    moves: tuple[str, ...] = Field(default=(), description=(
        "count the messages with one of these moves only; default, and where there are none of them: all"))


class MostCommon(DecisionProtocol):
    """The answer that most samples give; those that could not be read do not count.

    Every message of a voter counts, even several of one agent, but for those that give no answer by design, such as a
    review. The rule is met when one answer has more votes than any other, and more than there are samples that could
    not be read; a tie is reported as one, and `tie` says how it is broken.
    """

    name = "most_common"
    source = "Wang et al. 2023 (self-consistency)"
    Options = MostCommonOptions

    def at_end(self, debate: Debate) -> Decision:
        """Count."""
        every = [m for m in samples_of(debate) if m.answers]
        said = [m for m in every if m.move in self.options.moves] or every
        votes = tuple(Vote(m.agent or 0, {m.key: 1} if m.key else {}, valid=m.key is not None) for m in said)
        counts = Counter(m.key for m in said if m.key)
        if not counts:
            return Decision(None, votes=votes, reason=f"none of {len(said)} samples could be read")
        best = leaders(counts)
        reason = f"{counts[best[0]]} of {counts.total()} readable samples, of {len(said)}"
        key = break_tie(debate, best, self.options.tie, "baselines.most_common:tie")
        return Decision(key, scores=dict(counts), votes=votes, tie=len(best) > 1,
                        agreed=has_clear_lead(counts, len(said) - counts.total()), reason=reason)


class Last(DecisionProtocol):
    """The last answer.

    When the last message cannot be read, the latest that can is taken as a fallback. Turns that give no answer by
    design, such as a review, do not count.
    """

    name = "last"
    source = "Becker et al. 2025 (MALLM), the ablation baseline of its code"

    def at_end(self, debate: Debate) -> Decision:
        """Find the last answer."""
        said = [m for m in samples_of(debate) if m.answers]
        read = [m for m in said if m.key]
        if not read:
            return Decision.undecided("no message gave an answer that could be read")
        last, current = read[-1], read[-1] is said[-1]
        return Decision(last.key, answer=last.answer, agreed=current, fallback=not current,
                        reason="" if current else "the last message could not be read")
