"""Votes: agents discuss, then choose among their answers; and plurality, which counts the answers themselves.

`madplug_voting.nominees` finds every voter's final answer; other decisions build on it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from madplug import DecisionProtocol, Metric, hookimpl
from madplug_prompting import prompts
from madplug_voting import ballots
from madplug_voting.ballots import Refused
from madplug_voting.base import Voting, VotingOptions
from madplug_voting.metrics import Alterations, Ballots
from madplug_voting.plurality import Plurality
from madplug_voting.tally import Weights, by_place, by_rank, equal, within

MOST_RANKED = 5
PLACES = ("best", "second best", "third best", "fourth best", "fifth best")


class Simple(Voting):
    """Each agent votes for one answer, and the one with the most votes wins.

    From `vote_round` on there is a vote after every round: the agents' final answers are listed without names,
    each agent sees the task and the list and names one solution, possibly its own. A single leader decides; a tie
    leads to one more round and another vote. After a tie in the last round the first agent's answer is taken as a
    fallback.
    """

    name = "simple"

    class Options(VotingOptions):
        """One number."""

        ask: str = Field(default="Vote for the best solution.", description="prompt: what a ballot is to say")
        reply: str = Field(default="Reply with its number and nothing else.", description=(
            "prompt: the form of a ballot in words. {form}"))

    def read(self, text: str, allowed: Collection[int], voters: int) -> Weights:
        """One number."""
        return equal([ballots.one(text, allowed)])

    def shape(self, numbers: Sequence[int]) -> str:
        """One number."""
        return '{"vote": <number>}' if self.options.structured else "<number>"

    def pattern(self, numbers: Sequence[int]) -> str:
        """One number."""
        return either(numbers)

    def schema(self, numbers: Sequence[int]) -> Mapping[str, Any]:
        """`{"vote": 1}`."""
        return table({"vote": {"type": "integer", "enum": list(numbers)}})


class Approval(Voting):
    """Each agent approves as many answers as it likes, and the one with the most approvals wins.

    Numbers off the list do not count, a repeated one counts once; at least one must be left. Everything else is as with
    `voting.simple`.

    Differs from the released code, where a repeated number counts as often as it occurs.
    """

    name = "approval"

    class Options(VotingOptions):
        """One number or more."""

        ask: str = Field(default="Approve every solution that you find acceptable, at least one.", description=(
            "prompt: what a ballot is to say"))
        reply: str = Field(default="Reply with their numbers, separated by commas, and nothing else, in this form: "
                                           "{form}",
                           description="prompt: the form of a ballot in words. {form}")

    def read(self, text: str, allowed: Collection[int], voters: int) -> Weights:
        """The numbers that are on the list."""
        return equal(ballots.several(text, allowed))

    def shape(self, numbers: Sequence[int]) -> str:
        """As many numbers as one likes."""
        return '{"approve": [<number>, ...]}' if self.options.structured else "<number>, <number>, ..."

    def pattern(self, numbers: Sequence[int]) -> str:
        """Numbers with commas."""
        return rf"{either(numbers)}(, {either(numbers)}){{0,{len(numbers) - 1}}}"

    def schema(self, numbers: Sequence[int]) -> Mapping[str, Any]:
        """`{"approve": [0, 1]}`."""
        return table({"approve": {"type": "array", "items": {"type": "integer", "enum": list(numbers)}, "minItems": 1,
                                  "maxItems": len(numbers)}})


class Ranked(Voting):
    """Each agent ranks up to five answers, and the one with the most points wins.

    The first place is worth as many points as there are voters, but at most five, and each place after it one less.
    A ballot may leave answers out; one that names an answer twice is not valid. Everything else is as with
    `voting.simple`.

    Differs from the prose of the paper, where the sums of the ranks are compared (`score = "sum_of_ranks"`): the same
    only when every ballot ranks everything. Differs from the released code in that it refuses repeated numbers, and
    counts voters only where the code counts neutral agents too.
    """

    name = "ranked"

    class Options(VotingOptions):
        """Numbers in order."""

        score: Literal["points", "sum_of_ranks"] = Field(default="points", description=(
            "what is summed: points by place, where the most win, or the places themselves, where the fewest win"))
        ask: str = Field(default="Rank the solutions, the best one first.", description=(
            "prompt: what a ballot is to say"))
        ask_best: str = Field(default="Rank the five best solutions, the best one first.", description=(
            "prompt: `ask`, where there are more than five solutions"))
        reply: str = Field(default=(
            "Reply with their numbers in this order, separated by spaces, and nothing else, in this form: {form}"),
            description="prompt: the form of a ballot in words. {form}")

    def __init__(self, options: Any = None, **values: Any) -> None:
        super().__init__(options, **values)
        self.lowest_wins = self.options.score == "sum_of_ranks"

    def read(self, text: str, allowed: Collection[int], voters: int) -> Weights:
        """The numbers in order."""
        ranked = ballots.ranking(text, allowed, MOST_RANKED)
        return by_rank(ranked) if self.lowest_wins else by_place(ranked, voters)

    def request(self, numbers: Sequence[int]) -> str:
        """All of them, or the five best."""
        return str(self.options.ask if len(numbers) <= MOST_RANKED else self.options.ask_best)

    def shape(self, numbers: Sequence[int]) -> str:
        """The places in order."""
        places = [f"<number of the {place}>" for place in PLACES[:len(numbers)]]
        return f'{{"ranking": [{", ".join(places)}]}}' if self.options.structured else " ".join(places)

    def pattern(self, numbers: Sequence[int]) -> str:
        """Numbers with spaces."""
        return rf"{either(numbers)}( {either(numbers)}){{0,{min(len(numbers), MOST_RANKED) - 1}}}"

    def schema(self, numbers: Sequence[int]) -> Mapping[str, Any]:
        """`{"ranking": [2, 0, 1]}`."""
        return table({"ranking": {"type": "array", "items": {"type": "integer", "enum": list(numbers)}, "minItems": 1,
                                  "maxItems": min(len(numbers), MOST_RANKED)}})


class Cumulative(Voting):
    """Each agent spreads points over the answers, and the one with the most points wins.

    A ballot gives away exactly `budget` points in whole numbers, or with `exact = false` up to as many. One that gives
    too many is refused, or with `over = "rescale"` reduced to the budget. Everything else is as with `voting.simple`.

    Differs from the prose of the papers, which has up to 25 points (`budget = 25`, `exact = false`), and follows their
    prompts and examples: exactly 10.
    """

    name = "cumulative"

    class Options(VotingOptions):
        """Points by number."""

        budget: int = Field(default=10, ge=1, le=1_000_000, description="points that an agent has")
        exact: bool = Field(default=True, description="all points must be given; false: fewer may be")
        over: Literal["reject", "rescale"] = Field(default="reject", description=(
            "what becomes of a ballot with too many"))
        structured: bool = Field(default=True, description=(
            "ask for a JSON object, and send its schema to models whose replies can be constrained; words are "
            "read too"))
        ask: str = Field(default="Distribute {budget} points among the solutions, more to better ones; {rule}.",
                         description="prompt: what a ballot is to say. {budget}, {rule}")
        rule_exact: str = Field(default="use all of them", description="prompt, `exact`: {rule}")
        rule_up_to: str = Field(default="you need not use all", description="prompt, not `exact`: {rule}")
        reply: str = Field(default=(
            "Reply with the number and the points of a solution on each line and nothing else, in this form:\n{form}"),
            description="prompt: the form of a ballot in words. {form}")
        structure: str = Field(default=(
            "Reply with JSON and nothing else: one object that gives the points of each solution under its number, "
            "in this form: {form}"),
            description="prompt, with `structured`: the form of a ballot, instead of `reply`. {form}")

    def read(self, text: str, allowed: Collection[int], voters: int) -> Weights:
        """Points within the budget."""
        given = ballots.points(text, allowed)
        options = self.options
        weights = within(given, options.budget, exact=options.exact, rescale=options.over == "rescale")
        if weights is None:
            rule = "exactly" if options.exact else "1 to"
            total = sum(given.values())
            raise Refused(f"it gives {total} points in all, and {rule} {options.budget} are to be given")
        return weights

    def request(self, numbers: Sequence[int]) -> str:
        """How many points, and whether all."""
        rule = self.options.rule_exact if self.options.exact else self.options.rule_up_to
        return prompts.fill(self.options.ask, budget=self.options.budget, rule=rule)

    def shape(self, numbers: Sequence[int]) -> str:
        """Points for each number."""
        if self.options.structured:
            return "{" + ", ".join(f'"{number}": <points>' for number in numbers) + "}"
        return "\n".join(f"{number}: <points>" for number in numbers)

    def pattern(self, numbers: Sequence[int]) -> str:
        """A line for each number."""
        return r"\n".join(rf"{n}: [0-9]{{1,6}}" for n in numbers)

    def schema(self, numbers: Sequence[int]) -> Mapping[str, Any]:
        """`{"0": 4, "1": 6}`."""
        amount = {"type": "integer", "minimum": 0, "maximum": self.options.budget}
        return table({str(n): amount for n in numbers})


def either(numbers: Sequence[int]) -> str:
    """A regular expression of one of the numbers."""
    return f"({'|'.join(map(str, numbers))})"


def table(properties: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of a closed object."""
    return {"type": "object", "properties": dict(properties), "required": list(properties),
            "additionalProperties": False}


@hookimpl
def madplug_register_decisions() -> list[type[DecisionProtocol]]:
    """Register five decisions."""
    return [Simple, Approval, Ranked, Cumulative, Plurality]


@hookimpl
def madplug_register_metrics() -> list[type[Metric]]:
    """Register two metrics."""
    return [Alterations, Ballots]
