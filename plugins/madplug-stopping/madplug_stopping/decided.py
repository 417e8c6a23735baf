"""`stopping.decided`: ends a study as soon as it is decided."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from pydantic import Field, model_validator

from madplug import Observer, Options, UserError, nearest, nearest_or_all, open_study
from madplug_stopping.sequences import bounds

if TYPE_CHECKING:
    from madplug import Cell, CellFacts, DebateFinished, DebateStarted, Run
    from madplug.store import Reader

WIDTH = 0.1
"""Of an interval that is narrow enough, unless an option says so."""
GROWTH = 1.05
"""There is another look when so many times more debates have ended."""


class DecidedOptions(Options):
    """Options of `stopping.decided`."""

    metric: str = Field(default="qa.accuracy", description="the score that is looked at, between 0 and 1")
    width: float | None = Field(default=None, gt=0, lt=1, description=(
        "each cell's mean is decided when its interval is no wider than this; 0.1 without a baseline"))
    baseline: str | None = Field(default=None, description=(
        "a cell: each other one is decided when its mean is known to be higher or lower than this cell's"))
    within: float | None = Field(default=None, gt=0, lt=1, description=(
        "a difference from the baseline is decided, too, when it is known to be smaller than this"))
    alpha: float = Field(default=0.05, gt=0, lt=1, description=(
        "the most likely that any of the intervals is wrong at any time; shared out equally among them"))
    least: int = Field(default=20, ge=1, description="questions before the first look")

    @model_validator(mode="after")
    def _has_one_aim(self) -> Any:
        if self.baseline is not None and self.width is not None:
            raise ValueError("set either width or baseline")
        if self.baseline is None and self.within is not None:
            raise ValueError("within is about differences from a baseline: name one")
        return self


class Decided(Observer):
    """Ends a study as soon as its means, or their differences from a baseline, are known well enough.

    A cell whose mean or difference is known gets no further debates; the others go on, and so does the baseline until
    the last of them is decided. A study can be looked at after every question because the intervals are a confidence
    sequence: with a probability of 1 - `alpha` all of them hold at the same time. Only questions that every cell in
    question has finished are counted, in the order in which they were begun and up to the first that any has not, as
    those that take long may be harder. The questions have to come in random order (`shuffle` of a data set) for them to
    stand for others. Of repeats, the first is looked at.
    """

    name = "decided"
    source = "Waudby-Smith & Ramdas 2024, arXiv 2010.09686, section 4.3 (the hedged capital)"
    Options = DecidedOptions
    options: DecidedOptions

    def check(self, cell: CellFacts) -> Iterator[str]:
        """The score is one of a metric of the cell, and the baseline is one of several cells."""
        baseline, cells = self.options.baseline, cell.study_cells
        if baseline is not None and baseline not in cells:
            yield f"baseline: there is no cell '{baseline}'{nearest_or_all(baseline, cells)}"
        elif baseline is not None and len(cells) == 1:
            yield f"baseline: there is no cell beside '{baseline}'"
        metric, known = self.options.metric, cast("Cell", cell).metrics
        if not any(f"{metric}.".startswith(f"{name}.") for name in known):
            yield f"metric: there are cells in which no metric gives '{metric}'{nearest_or_all(metric, known)}"

    def open(self, run: Run) -> None:
        """Look at what earlier runs have left."""
        if run.folder is None:
            raise UserError("it needs a study that is stored in a directory")
        self._folder, self._stop = run.folder, run.stop
        with open_study(run.folder) as study:
            cells = list(study.fact("settings"))
            self._begun = dict.fromkeys(id.sample for id in study.since()[0].debates)
        self._open = [cell for cell in cells if cell != self.options.baseline]
        self._alpha = self.options.alpha / len(self._open)
        self._ended = 0
        self._look()

    def debate_started(self, event: DebateStarted) -> None:
        """Remember the order of the questions."""
        self._begun.setdefault(event.debate.sample)

    def debate_finished(self, event: DebateFinished) -> None:
        """Look again if there is enough that is new."""
        self._ended += 1
        if self._ended >= self._next:
            self._look()

    def _look(self) -> None:
        self._next = self._ended * GROWTH + 1
        with open_study(self._folder) as study:
            scores = self._scores(study)
        for cell in list(self._open):
            values = list(self._values(cell, scores))
            if len(values) < self.options.least or (found := self._interval(cell, values)) is None:
                continue
            self._open.remove(cell)
            others = [self.options.baseline] if self.options.baseline and not self._open else []
            self._stop(f"decided after {len(values):,} questions: {found} ({self.options.metric}, at any time with "
                       f"{1 - self.options.alpha:.0%})", [cell, *others])

    def _scores(self, study: Reader) -> dict[tuple[str, str], float | None]:
        """The scores by cell and question. A failed debate is wrong."""
        metric = self.options.metric
        found: dict[tuple[str, str], float | None] = {}
        for row in study.figures():
            if not row["repeat"]:
                if row["error"] is None and metric not in row["metrics"]:
                    raise UserError(f"metric: no score is called '{metric}'{nearest(metric, row['metrics'])}")
                found[row["cell"], row["sample"]] = score = row["metrics"].get(metric, 0.0)
                if score is not None and not 0 <= score <= 1:
                    raise UserError(f"metric: '{metric}' is {score:g} in a debate, and has to be between 0 and 1")
        return found

    def _values(self, cell: str, scores: Mapping[tuple[str, str], float | None]) -> Iterator[float]:
        """What has to be decided, as numbers between 0 and 1: a difference is moved and halved.

        Up to the first question that is not finished.
        """
        baseline = self.options.baseline
        for sample in self._begun:
            if (cell, sample) not in scores or (baseline is not None and (baseline, sample) not in scores):
                return
            score = scores[cell, sample]
            other = scores[baseline, sample] if baseline is not None else 0.0
            if score is not None and other is not None:
                yield score if baseline is None else (score - other + 1) / 2

    def _interval(self, cell: str, values: Sequence[float]) -> str | None:
        """What is known, in words, if that is enough."""
        options = self.options
        low, high = bounds(values, self._alpha)
        if options.baseline is None:
            return f"{cell} in [{low:.3f}, {high:.3f}]" if high - low <= (options.width or WIDTH) else None
        low, high = 2 * low - 1, 2 * high - 1
        small = options.within is not None and -options.within <= low and high <= options.within
        return f"{cell} - {options.baseline} in [{low:+.3f}, {high:+.3f}]" if low > 0 or high < 0 or small else None
