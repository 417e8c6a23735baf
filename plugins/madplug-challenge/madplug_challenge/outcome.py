"""The metric: how often answers were challenged, and whether the new ones are better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from madplug import Metric

if TYPE_CHECKING:
    from madplug import Debate


class Outcome(Metric):
    """The outcome of `challenge.final`: the share of challenges, and whether the new answers are better.

    For each setting: `rate`, the share of agents that disagreed; `failed`, the share whose verdict could not be read;
    of the challenges, the shares whose new answer scores `higher`, the `same` or `lower` than the debate's, and whose
    score has `changed`; and
    `plurality`, whether the new answer that most challengers give is right. The last five are left out where no agent
    challenged, and where the question has no reference to compare with. `wrong.shown_right`: whether the answer that
    was meant to be wrong is right, which only happens in a study without `oracle = true`.
    """

    name = "outcome"
    source = "Kaesberg et al. 2025 (Voting or Consensus), section 4.2"

    def score(self, debate: Debate, references: Sequence[str]) -> Mapping[str, float | None] | None:
        """Figures by setting; None for a debate without the phase."""
        settings = debate.notes.get("challenge")
        if not settings or "skipped" in settings:
            return None
        key = debate.decision.key if debate.decision else None
        keys = (debate.answers.canonical(reference, debate.sample) for reference in references)
        right = [reference for reference in keys if reference is not None]
        scores: dict[str, float | None] = {}
        for setting, result in settings.items():
            if "skipped" not in result:
                scores |= {f"{setting}.{name}": value
                           for name, value in _figures(debate, result, key, right).items()}
        return scores


def _figures(debate: Debate, result: Mapping[str, Any], key: str | None,
             right: Sequence[str]) -> dict[str, float | None]:
    """The figures of one setting. key: the debate's answer. right: the references in canonical form."""
    asked, challenges = result["asked"], [r for r in result["agents"] if r["verdict"] == "disagree"]
    judged = challenges if right else []
    gains = [is_right(debate, r["key"], right) - is_right(debate, key, right) for r in judged]
    share = {name: sum(g == gain for g in gains) / len(gains) if gains else None
             for name, gain in (("higher", 1), ("same", 0), ("lower", -1))}
    share["changed"] = sum(g != 0 for g in gains) / len(gains) if gains else None
    plurality = float(is_right(debate, result["new_key"], right)) if judged else None
    meant = {"shown_right": float(is_right(debate, result["key"], right))} if result.get("key") and right else {}
    return {"rate": result["rate"], **meant, "failed": result["failed"] / asked if asked else None, **share,
            "plurality": plurality}


def is_right(debate: Debate, key: str | None, right: Sequence[str]) -> bool:
    """Whether an answer is one of the right ones; no answer is wrong."""
    return key is not None and any(r == key or debate.answers.same(r, key, debate.sample) for r in right)
