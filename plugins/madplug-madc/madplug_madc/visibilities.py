"""Visibilities that put what others said in a chosen order: over everything, or over any other visibility."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from madplug import Agent, Message, Nested, Options, Turn, Visibility
from madplug_madc.order import Strategy, faded, most_consistent, ordered, rotated

if TYPE_CHECKING:
    from madplug import CellFacts, Debate

SOURCE = "MADC 2026, section 3 and Algorithm 1; the authors' code"


class StrategyOptions(Options):
    """Which order, and counted among whom."""

    strategy: Strategy = Field(default="most_last", description=(
        "order of the others' answers; fixed: as they are shown without it, by agent; random: drawn; most_last (MADC) "
        "and most_first: by how often an answer is given; truth_first and truth_last: by whether it is right (needs "
        "oracle = true)"))
    scope: Literal["recipient", "global"] = Field(default="recipient", description=(
        "recipient: counted and drawn among the answers an agent is shown; global: one list of all answers, the same "
        "for all agents, from which an agent's own and what it is not shown are left out"))
    group_equal: bool = Field(default=False, description="show equal answers side by side")
    rotate: bool = Field(default=False, description=(
        "role switching: in each round of exchange after the first, the order is moved on by one more place, so that "
        "another answer comes last"))
    fade: float = Field(default=0.0, ge=0, le=1, description=(
        "power decay: by how much positions lose their weight from one round of exchange to the next; in the k-th, an "
        "answer keeps its place with probability (1 - fade)^(k - 1), and those that do not are shuffled"))


class Arranged(Visibility):
    """Shows what it shows with the others' answers last, in the order of a strategy."""

    source = SOURCE
    Options = StrategyOptions

    def __init__(self, options: Any = None, **values: Any) -> None:
        super().__init__(options, **values)
        if self.options.strategy.startswith("truth"):
            self.needs = frozenset({"references"})

    def warn(self, cell: CellFacts) -> Iterator[str]:
        """Two answers are equally frequent, so counting them does not change their order; one has none."""
        options = self.options
        if cell.wanted == 2 and cell.rounds > 1 and options.strategy != "fixed":
            yield ("each of 2 agents is shown one answer, which has no order: this is the same debate as with "
                   "strategy = \"fixed\"; take 4 agents or more")
        counts = options.strategy in ("most_last", "most_first") and options.scope == "recipient"
        if counts and cell.wanted == 3 and cell.rounds > 1 and not (options.rotate or options.fade):
            yield (f"each of 3 agents is shown two answers, whose order '{options.strategy}' never changes: this is "
                   "the same debate as with strategy = \"fixed\"; take 4 agents or more, or scope = \"global\"")

    @abstractmethod
    def shown(self, debate: Debate, turn: Turn) -> Sequence[Message]:
        """What the agent is shown, before it is put in order."""

    def to_arrange(self, others: Sequence[Message]) -> Sequence[Message]:
        """The others' answers that are put in order: the latest of each, of whatever round.

        Where agents speak one after the other, these are of two rounds. Of answers without an author, those of the
        latest round are.
        """
        latest = {m.agent: m.id for m in others}
        last_round = max((m.round for m in others), default=0)
        return [m for m in others if (m.round == last_round if m.agent is None else m.id == latest[m.agent])]

    def view(self, debate: Debate, turn: Turn) -> Sequence[Message]:
        """What is not to be put in order as it is shown, then the rest in order."""
        shown = self.shown(debate, turn)
        chosen = {m.id: m for m in self.to_arrange(
            [m for m in shown if m.agent != turn.agent.id and m.move != "say"])}
        return [*(m for m in shown if m.id not in chosen), *self.arranged(debate, turn.agent, chosen)]

    def arranged(self, debate: Debate, agent: Agent, chosen: dict[int, Message]) -> list[Message]:
        """Messages by id, in the order of the strategy."""
        among = self.counted(debate, chosen)
        reader = "" if self.options.scope == "global" else f":{agent.id}"
        places = self.places(debate, among, reader)
        exchange = rounds_of_exchange(debate)
        if self.options.rotate:
            places = rotated(places, exchange)
        if self.options.fade and exchange:
            kept = (1 - self.options.fade) ** exchange
            places = faded(places, kept, debate.rng(f"madc.ordered:fade:{debate.round}{reader}"))
        return [chosen[among[i].id] for i in places if among[i].id in chosen]

    def counted(self, debate: Debate, chosen: dict[int, Message]) -> list[Message]:
        """The answers among which is counted: those that are put in order, or those of all agents."""
        if self.options.scope == "recipient":
            return list(chosen.values())
        rounds = {m.round for m in chosen.values()}
        said = [m for m in debate.transcript.messages if m.round in rounds and m.move != "say"]
        last = {m.agent: m.id for m in said}
        return [m for m in said if m.id in chosen or (m.agent is not None and m.id == last[m.agent])]

    def places(self, debate: Debate, among: Sequence[Message], reader: str) -> list[int]:
        """Places of answers in the order of the strategy. reader: sets random orders of several readers apart."""
        options = self.options
        labels = [("unread", m.id) if m.key is None else m.key for m in among]
        if options.scope == "global" and options.strategy in ("most_last", "most_first"):
            return most_consistent(options.strategy, labels, group_equal=options.group_equal)
        right = are_right(debate, among) if options.strategy.startswith("truth") else ()
        rng = debate.rng(f"madc.ordered:{debate.round}{reader}") if options.strategy == "random" else None
        return ordered(options.strategy, labels, right=right, rng=rng, group_equal=options.group_equal)


def rounds_of_exchange(debate: Debate) -> int:
    """How many rounds before this one showed agents other answers: the second was the first, or that of a seed."""
    seeded = any(m.move != "say" for m in debate.transcript.of_round(0))
    return max(0, debate.round - (1 if seeded else 2))


def are_right(debate: Debate, messages: Sequence[Message]) -> list[bool]:
    """By message, whether its answer is right. Reads the references."""
    answers = debate.answers
    keys = [k for k in (answers.canonical(r, debate.sample) for r in debate.references) if k is not None]
    return [m.key is not None and any(answers.same(m.key, k, debate.sample) for k in keys) for m in messages]


class Ordered(Arranged):
    """Every agent sees everything, with the others' latest answers in a chosen order.

    What an agent said itself and what is older comes first, as it was said; then the latest answer of every other
    agent, in the order of the strategy. Equally frequent answers stay in the order of the agents;
    an answer that could not be read is like no other. Random orders depend on the study's seed, the sample,
    the round and, with `scope = "recipient"`, on who reads. Where no answer is right the strategies that
    know are `fixed`. `rotate` (role switching) lets another answer come last in every round, and `fade` (power decay)
    makes positions matter less from round to round.

    Differs from the paper: Algorithm 1 makes one list for all agents and puts the first of the most
    frequent answers at its end, which is `scope = "global"`; the authors' code, which gave the results,
    counts among the answers that an agent is shown. One version of that code loses answers when one could
    not be read; not so here. Role switching and power decay are proposed without saying how; `rotate` and `fade` are
    this project's readings.
    """

    name = "ordered"

    class Options(StrategyOptions):
        """Options of `madc.ordered`: the strategy, and how many rounds are shown."""

        window: int | None = Field(default=None, ge=0, le=10_000, description=(
            "rounds before the current one that are shown; default: all"))

    def shown(self, debate: Debate, turn: Turn) -> Sequence[Message]:
        """Everything within the window."""
        window = self.options.window
        oldest = 0 if window is None else debate.round - window
        return [m for m in debate.transcript.messages if m.round >= oldest or (m.round == 0 and m.agent is None)]


class Order(Arranged):
    """Whatever another visibility shows, with the others' answers in a chosen order.

    Over a sparse graph, for instance, or in groups: `inner` says who sees what, and this in which order it is read.
    As in `madc.ordered`, which is the same over everything, what comes first is as `inner` shows it: the agent's
    own messages, those that no agent wrote, and older answers. Where agents speak one after the other, the latest
    answers of the others are of two rounds. With `rounds = "all"` the others' answers of every round are one list in
    order.
    """

    name = "order"

    class Options(StrategyOptions):
        """Options of `madc.order`: the strategy, and the visibility that it orders."""

        inner: Nested[Visibility] = Field(description="the visibility that says what is shown")
        rounds: Literal["latest", "all"] = Field(default="latest", description=(
            "which answers are put in order: the latest of every other agent, or those of every round, as one list"))

    def shown(self, debate: Debate, turn: Turn) -> Sequence[Message]:
        """What the inner visibility shows."""
        return self.options.inner.view(debate, turn)

    def to_arrange(self, others: Sequence[Message]) -> Sequence[Message]:
        """The others' latest answers, or all."""
        return others if self.options.rounds == "all" else super().to_arrange(others)

    def neighbours(self, debate: Debate, agent: Agent, round: int) -> Sequence[int]:
        """Those of the inner visibility."""
        return self.options.inner.neighbours(debate, agent, round)
