"""How far voters agree, how long it took, how it ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

from pydantic import Field

from madplug import DebateResult, Metric, Options, Picture
from madplug_dynamics.table import Keys, columns, ratio

if TYPE_CHECKING:
    from madplug import Debate


class Agreement(Metric):
    """The share of pairs of voters with equal answers, in each round.

    Parts: `round_1`, `round_2`, ... and `last` (an answer that could not be read equals none), of the rounds in which
    voters answer; of the voters that were asked in the last one, `strength`, the largest share with one answer,
    `strength_parsed`, the same among the answers that could be read, and `unanimous`; `unique_first_answers`,
    how many answers there were in the first round.
    """

    name = "agreement"
    proportion = frozenset({"unanimous"})
    source = "Smit et al. 2024 (DebateLLM); this project's definitions"

    def score(self, debate: Debate, references: Sequence[str]) -> Mapping[str, float | None] | None:
        """Shares by name."""
        table = columns(debate)
        if not table:
            return None
        first, ending = table[min(table)], table[max(table)]
        last = Counter(key for key in ending if key is not None)
        most, voters = max(last.values(), default=0), len(ending)
        return {**{f"round_{k}": pairwise_agreement(keys) for k, keys in table.items()},
                "last": pairwise_agreement(ending),
                "strength": most / voters, "strength_parsed": ratio(most, sum(last.values())),
                "unanimous": float(most == voters),
                "unique_first_answers": float(len({key for key in first if key is not None}))}


class Rounds(Metric):
    """How many rounds there were, including the first."""

    name = "rounds"
    source = "Becker et al. 2025 (MALLM), figure 9"

    def score(self, debate: Debate, references: Sequence[str]) -> float:
        """A whole number."""
        return float(max((m.round for m in debate.transcript.messages), default=0))


class Decided(Metric):
    """How the debate ended.

    Parts, each 1 or 0: `agreed`, the decision protocol's own rule was met (a mean is the paper's decision success
    rate); `answered`, there is an answer at all; `fallback`, a fallback gave it; `tie`.
    """

    name = "decided"
    proportion = True
    source = "Becker et al. 2025 (MALLM), figure 9; Kaesberg et al. 2025 (Voting or Consensus)"

    def score(self, debate: Debate, references: Sequence[str]) -> Mapping[str, float] | None:
        """Facts by name."""
        made = debate.decision
        return None if made is None else {"agreed": float(made.agreed), "answered": float(made.key is not None),
                                          "fallback": float(made.fallback), "tie": float(made.tie)}


class AnswersOptions(Options):
    """Options of `dynamics.answers`."""

    questions: int = Field(default=10, ge=1, le=1000, description="of how many questions, the first of the data set")


class Answers(Metric):
    """How often each answer is given to a question, as a picture for each question.

    Counts every voter's latest answer that could be read, over all repeats; no score is given to a debate. The report
    shows the cells that have the question side by side, such as two models.
    """

    name = "answers"
    source = "MADC 2026, figure 8 (400 samples of a question)"
    Options = AnswersOptions

    def score(self, debate: Debate, references: Sequence[str]) -> None:
        """None: it is about all debates of a question together."""

    def summarise(self, results: Iterable[DebateResult]) -> Mapping[str, Any]:
        """The pictures: bars over the answers."""
        counts: dict[str, Counter[str]] = {}
        for result in results:
            voters = {agent.id for agent in result.agents if agent.persona.votes}
            said = {m.agent: m.key for m in result.messages
                    if m.agent in voters and m.key is not None and not m.retracted}
            counts.setdefault(result.sample.id, Counter()).update(said.values())
        shown = sorted(counts.items())[:self.options.questions]
        return {"pictures": [Picture(
            f"Answers to {sample}", "bars", tuple({"answer": key, "times": n} for key, n in sorted(own.items())[:2000]),
            "answer", "times", caption="Latest answers of voters, all repeats together.") for sample, own in shown]}


def pairwise_agreement(keys: Keys) -> float | None:
    """The share of pairs with equal keys; None for fewer than two voters."""
    pairs = [a is not None and a == b for a, b in combinations(keys, 2)]
    return ratio(sum(pairs), len(pairs))
