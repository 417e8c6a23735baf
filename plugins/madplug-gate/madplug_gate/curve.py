"""What any threshold of a gate would have reached, and at what price, from debates that were all held."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from madplug import Metric, Picture
from madplug_qa.keys import canonical_references, is_right

if TYPE_CHECKING:
    from madplug import Debate

POINTS = 1000
"""The most points of a curve."""


class Held(NamedTuple):
    """A question that was debated behind an open gate."""

    sure: float
    first: float
    """Whether the first answer is right."""
    last: float
    """Whether the debate's is."""
    first_tokens: float
    tokens: float


def reached(held: Sequence[Held], threshold: float) -> tuple[float, float, float]:
    """Accuracy, tokens of all questions, and the share of questions debated, if what is surer than this stands."""
    debated = [one.sure <= threshold for one in held]
    right = sum(one.last if open_ else one.first for one, open_ in zip(held, debated, strict=True))
    tokens = sum(one.tokens if open_ else one.first_tokens for one, open_ in zip(held, debated, strict=True))
    return right / len(held), tokens, sum(debated) / len(held)


def curve(held: Sequence[Held]) -> list[dict[str, float]]:
    """Every threshold that makes a difference, from no debate to all."""
    thresholds = sorted({0.0, *(one.sure for one in held)})
    step = -(-len(thresholds) // POINTS)
    chosen = [*thresholds[:-1:step], thresholds[-1]]
    rows = ((t, *reached(held, t)) for t in chosen)
    return [dict(zip(("threshold", "accuracy", "tokens", "debated"), row, strict=True)) for row in rows]


class Curve(Metric):
    """How sure the first answer was, whether it was right, whether the debate was, and the tokens of both.

    The figures of a cell have a curve of accuracy against tokens over all thresholds of the gate, from the debates
    that were held: run the study once with `threshold = 1` for all of them. A first answer without a confidence is
    always debated. It needs `gate.behind`, and references.

    Parts: `sure`, `first`, `first_tokens`; where there was a debate also `last` and `tokens`, of the whole debate.
    """

    name = "curve"
    proportion = frozenset({"first", "last"})
    source = "this project's; after DOWN (arXiv 2504.05047)"

    def score(self, debate: Debate, references: Sequence[str]) -> Mapping[str, float | None] | None:
        """The parts, from the notes of the gate."""
        noted, right = debate.notes.get("gate"), canonical_references(debate, references)
        if not noted or not right:
            return None
        parts = {"sure": noted["sure"], "first": float(is_right(debate, noted["key"], right)),
                 "first_tokens": float(noted["first_tokens"])}
        if "tokens" in noted:
            decided = debate.decision.key if debate.decision else None
            parts |= {"last": float(is_right(debate, decided, right)), "tokens": float(noted["tokens"])}
        return parts

    def summarise_figures(self, rows: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
        """The curve, how many debates it is from, and a picture of it."""
        prefix = f"{self.score_name or self.name}."
        parts = ({name.removeprefix(prefix): value for name, value in row["metrics"].items()} for row in rows)
        held = [Held(p.get("sure") or 0.0, p["first"], p["last"], p["first_tokens"], p["tokens"])
                for p in parts if p.get("last") is not None]
        if not held:
            return {}
        points = curve(held)
        picture = Picture(
            "Accuracy against tokens, as the threshold of the gate moves", "line",
            tuple({"tokens": point["tokens"] / len(held), "accuracy": point["accuracy"]} for point in points),
            x="tokens", y="accuracy", caption=f"{len(held)} debates that the gate let pass; tokens per debate")
        return {"debates": len(held), "curve": points, "pictures": [picture]}
