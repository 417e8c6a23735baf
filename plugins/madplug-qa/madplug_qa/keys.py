"""Right or wrong by the study's answer format: one canonical answer equals another, or not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from madplug import ComponentError, Metric, Options
from madplug_prompting.finals import NOTES as FINAL_ANSWERS
from madplug_prompting.finals import answers_decided_on

if TYPE_CHECKING:
    from madplug import Debate


class AccuracyOptions(Options):
    """Options of `qa.accuracy`."""

    of: Literal["decision", "plurality", "agents"] = Field(
        default="decision",
        description="whose answer: the decision's, that of most voters in a round, or each voter's")
    round: int | None = Field(
        default=None, ge=1, description="with 'plurality' or 'agents': the round; unset: the last one in which voters "
                                         "answer, which reviews by design do not")


class Accuracy(Metric):
    """Whether the debate's answer is right.

    The decision's key is compared with the canonical form of every reference, as the study's answer format compares
    them; an undecided debate is wrong. `of` looks at another answer: the one most voters have in a round (the first of
    equals), or every voter's, whose share of right ones is then the score. The figures of a cell also tell the
    accuracy of the decided debates alone, and how many were undecided.

    Differs from the authors' code (MALLM): undecided debates are not dropped from the mean, and letters are compared
    in one form. Without references the metric does not apply.
    """

    name = "accuracy"
    proportion = True
    source = "Becker et al. 2025 (MALLM), section 3.4; Du et al. 2023 (evaluation); Chen et al. 2024 (ReConcile)"
    Options = AccuracyOptions

    def score(self, debate: Debate, references: Sequence[str]) -> float | None:
        """1 if right, 0 if wrong or undecided; a share with `of = "agents"`."""
        right = canonical_references(debate, references)
        if not right:
            return None
        if self.options.of == "decision":
            key = debate.decision.key if debate.decision else None
            return float(is_right(debate, key, right))
        keys = keys_of_round(debate, self.options.round)
        if self.options.of == "plurality":
            said = Counter(key for key in keys if key is not None)
            return float(is_right(debate, next(iter(said.most_common(1)), (None, 0))[0], right))
        return fmean(is_right(debate, key, right) for key in keys) if keys else 0.0

    def summarise_figures(self, rows: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
        """Accuracy of the decided debates, and how many there are."""
        if self.options.of != "decision":
            return {}
        name = self.score_name or self.name
        scored = [(row["decided"], value) for row in rows if (value := row["metrics"].get(name)) is not None]
        decided = [value for is_decided, value in scored if is_decided]
        return {"accuracy_all": fmean(v for _, v in scored), "accuracy_decided": fmean(decided) if decided else None,
                "debates": len(scored), "undecided": len(scored) - len(decided)} if scored else {}


class OracleOptions(Options):
    """Options of `qa.oracle`."""

    rounds: Literal["any", "first", "last"] = Field(
        default="any", description="in which round: any, with every answer given in it, or each voter's last "
                                   "answer of the first or of the last one in which voters answer, which reviews by "
                                   "design do not; final answers that a vote asked for count as given in the last")


class Oracle(Metric):
    """Whether any voter was right: what the best possible choice among the answers would have reached.

    Final answers that a vote asked for are among them. A judge that writes an answer of its own can do better.
    """

    name = "oracle"
    proportion = True
    source = "Smit et al. 2024 (DebateLLM, any_correct_answer)"
    Options = OracleOptions

    def score(self, debate: Debate, references: Sequence[str]) -> float | None:
        """1 if a voter gave a right answer, 0 if none did."""
        right = canonical_references(debate, references)
        if not right:
            return None
        voters = {agent.id for agent in debate.voters}
        keys = {m.key for m in debate.transcript.messages if m.round > 0 and m.agent in voters} \
            if self.options.rounds == "any" else {*keys_of_round(debate, 1 if self.options.rounds == "first" else None)}
        if self.options.rounds != "first" and FINAL_ANSWERS in debate.notes:
            keys |= {answer.key for answer in answers_decided_on(debate)}
        return float(any(is_right(debate, key, right) for key in keys))


def canonical_references(debate: Debate, references: Sequence[str]) -> list[str]:
    """The references' keys. References of which none can be read are a mistake in the study."""
    keys = [debate.answers.canonical(reference, debate.sample) for reference in references]
    right = [key for key in keys if key is not None]
    if references and not right:
        raise ComponentError(f"no reference of sample '{debate.sample.id}' is an answer of the format "
                             f"'{debate.answers.full_name}': {references[0]!r:.80}")
    return right


def is_right(debate: Debate, key: str | None, right: Iterable[str]) -> bool:
    """Whether a key is the same answer as one of the references."""
    return key is not None and any(key == r or debate.answers.same(key, r, debate.sample) for r in right)


def last_round(debate: Debate) -> int:
    """The last round in which a voter was to give an answer."""
    voters = {agent.id for agent in debate.voters}
    return max((m.round for m in debate.transcript.messages if m.agent in voters and m.answers), default=0)


def keys_of_round(debate: Debate, n: int | None) -> list[str | None]:
    """Each voter's key of a round, or of the last one."""
    n = last_round(debate) if n is None else n
    return [row[n - 1] if 0 < n <= len(row) else None for row in debate.transcript.answers(debate.voters)]
