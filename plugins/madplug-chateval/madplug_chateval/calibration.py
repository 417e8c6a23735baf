"""Position calibration: the same pair judged in both orders."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from madplug import DebateResult, Extension, Metric, Sample, Setup, StudyError, hookimpl, iterate, listed
from madplug_chateval.pairs import LabelOptions, pair_of
from madplug_chateval.scores import verdict

if TYPE_CHECKING:
    from madplug import Debate, Sampled

PAPER = "Chan et al. 2024, ChatEval, section 3 (position calibration)"


class Swapped(Extension):
    """Presents every pair a second time with the two replies swapped, so that their order can be calibrated away.

    The id of the second debate is that of the first followed by `~swapped`, `metadata.pair` with the first one's
    id, and its references swapped too. Questions with one answer are presented once. `chateval.calibrated` gives
    the joint verdict of a pair. The number of calls doubles.
    """

    name = "swapped"
    source = PAPER
    Options = LabelOptions

    @hookimpl(wrapper=True)
    def madplug_samples(self, setup: Setup) -> Generator[None, Any, Any]:
        """Each sample, followed by its twin."""
        samples = yield
        return self._doubled(samples)

    async def _doubled(self, samples: Any) -> AsyncIterator[Sampled]:
        samples = await samples if isinstance(samples, Awaitable) else samples
        async for sample, references in iterate(samples):
            yield sample, references
            if pair_of(sample, self.options) is not None:
                yield self.twin(sample), tuple(self._other(sample, reference) for reference in references)

    def twin(self, sample: Sample) -> Sample:
        """The same pair in the other order."""
        metadata = {**sample.metadata, "pair": sample.id}
        if self.options.responses in metadata:
            metadata[self.options.responses] = list(reversed(metadata[self.options.responses]))
            return replace(sample, id=f"{sample.id}~swapped", metadata=metadata)
        return replace(sample, id=f"{sample.id}~swapped", metadata=metadata, choices=sample.choices[::-1])

    def _other(self, sample: Sample, reference: str) -> str:
        """The reference of the twin. Raises `StudyError` for one that is no label, which could not be swapped."""
        labels: tuple[str, str, str] = self.options.labels
        first, second, tie = labels
        found = {_plain(first): second, _plain(second): first, _plain(tie): reference}.get(_plain(reference))
        if found is None:
            raise StudyError(f"chateval.swapped: the reference {reference!r:.40} of sample '{sample.id}' is none of "
                             f"{listed(map(repr, labels))}; say how the references are worded with labels = [...]")
        return found


def calibrated(forward: Sequence[Fraction | float], swapped: Sequence[Fraction | float]) -> tuple[Fraction, Fraction]:
    """The totals of both replies over both debates; `swapped` has the second reply first."""
    first, second = (Fraction(str(x)) for x in forward)
    second_again, first_again = (Fraction(str(x)) for x in swapped)
    return first + first_again, second + second_again


class Calibrated(Metric):
    """The joint verdict of the two debates of a swapped pair: the larger sum wins, equal sums are a tie.

    Figures of the cell: `accuracy` of these verdicts (a pair with a debate that has no scores counts as wrong), the
    share of `ties`, `consistent` (the share of pairs whose debates favour the same reply by themselves),
    `first_favoured` (how often a debate favours the reply it was shown first, excluding ties: half without a position
    bias), and the number of `pairs`. Needs `chateval.swapped`. A single debate has no score.
    """

    name = "calibrated"
    source = PAPER
    Options = LabelOptions

    def score(self, debate: Debate, references: Sequence[str]) -> None:
        """Nothing: it takes two debates."""

    def summarise(self, results: Iterable[DebateResult]) -> Mapping[str, Any]:
        """Join the two debates of each pair."""
        halves: dict[tuple[int, str], dict[bool, DebateResult]] = {}
        for result in results:
            twin = result.sample.metadata.get("pair")
            if twin is not None or pair_of(result.sample, self.options) is not None:
                halves.setdefault((result.repeat, str(twin or result.sample.id)), {})[twin is not None] = result
        pairs = [self._pair(both[False], both[True]) for both in halves.values() if len(both) == 2]
        if not pairs:
            return {}
        judged = [p for p in pairs if p["side"] is not None]
        favoured = [side for p in judged for side in p["shown"] if side != 2]
        return {"accuracy": _share([p["right"] for p in pairs]), "ties": _share([p["side"] == 2 for p in judged]),
                "consistent": _share([p["consistent"] for p in judged]),
                "first_favoured": _share([side == 0 for side in favoured]), "pairs": len(pairs)}

    def _pair(self, forward: DebateResult, swapped: DebateResult) -> dict[str, Any]:
        """The joint verdict of two debates."""
        totals = [r.notes.get("chateval", {}).get("totals") for r in (forward, swapped)]
        if not all(totals):
            return {"side": None, "right": False}
        side = verdict(calibrated(*totals))
        shown = [verdict([Fraction(str(x)) for x in t]) for t in totals]
        right = _plain(self.options.labels[side]) in map(_plain, forward.references)
        return {"side": side, "right": right, "shown": shown, "consistent": shown[0] == (1, 0, 2)[shown[1]]}


def _share(values: Sequence[bool]) -> float | None:
    return sum(values) / len(values) if values else None


def _plain(label: str) -> str:
    return label.strip().casefold()


