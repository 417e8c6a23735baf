"""From the columns of debates to the figures of cells, and to groups of cells that can be compared."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from madplug import Problem, UserError, nearest_or_all
from madplug.study import interval
from madplug_report import statistics as st
from madplug_report.combining import CHANGES
from madplug_report.factors import STUDY, Factors
from madplug_report.reading import ACCURACY, AGREED, DECIDED, FAILED, FALLBACK, UNDECIDED, Debates

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from madplug_report.studies import CellFacts

OUTCOMES = {"agreed": AGREED, "decided": DECIDED, "fallback": FALLBACK, "undecided": UNDECIDED, "failed": FAILED}
_CHALLENGE = re.compile(r"(challenge\.outcome.*\.(\w+))\.rate")
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class Scores:
    """A metric in a cell: by sample the mean over repeats, and by repeat the mean over samples."""

    ids: NDArray[np.intp]
    values: NDArray[np.float64]
    times: NDArray[np.intp]
    """Of how many debates each value is."""
    per_repeat: dict[int, float]

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def mean(self) -> float:
        """Over samples."""
        return float(self.values.mean())

    @property
    def std(self) -> float | None:
        """The sample standard deviation of the repeats' means."""
        return st.mean_and_std(list(self.per_repeat.values()))[1]


@dataclass
class Group:
    """Cells on the same questions and, where a report varies them, the same models: these are compared."""

    levels: dict[str, str]
    cells: list[int]
    metric: str | None = None
    baseline: int | None = None


class Analysis:
    """The figures of every cell, and the groups of cells.

    metrics: the metrics in question, the first that a group has is its own; `LEVEL=METRIC` is the metric of cells
    with this level. baseline: a cell, a level or `FACTOR=LEVEL`. by: the factors that separate groups, in place of the
    model; data sets always do. spread: what the std of an average over cells is of, as in `combining.SPREADS`.
    """

    def __init__(self, debates: Debates, factors: Factors, metrics: Sequence[str] = (), baseline: str | None = None,
                 by: Sequence[str] = (), spread: str = "repeats") -> None:
        self.debates, self.factors, self.spread = debates, factors, spread
        self._cell = np.asarray(debates.cell)
        self._order = np.argsort(self._cell, kind="stable")
        self._starts = np.searchsorted(self._cell[self._order], np.arange(len(debates.cells) + 1))
        self._scores: dict[tuple[str, int], Scores] = {}
        self.groups = self._groups(by)
        self._choose_metrics(metrics)
        self.metric_of = {i: group.metric for group in self.groups for i in group.cells}
        self._choose_baselines(baseline)
        self.cells = [self._figures(i) for i in range(len(debates.cells))]

    # Groups

    def _groups(self, by: Sequence[str]) -> list[Group]:
        """The groups, in the order of their first cells; other models separate them unless nothing else varies."""
        varied = [f for f in self.factors.factors if f.name != STUDY]
        data = [f.name for f in varied if f.is_data]
        models = [f.name for f in varied if f.is_model] if any(not f.is_data and not f.is_model for f in varied) else []
        names = list(dict.fromkeys([*data, *(by or models)]))
        found: dict[tuple[str, ...], Group] = {}
        for i, levels in enumerate(self.factors.of_cell):
            key = tuple("+".join(sorted(levels[name].split("+"))) if name in models else levels[name] for name in names)
            found.setdefault(key, Group(dict(zip(names, key, strict=True)), [])).cells.append(i)
        return list(found.values())

    def _choose_metrics(self, wanted: Sequence[str]) -> None:
        pairs = [text.rpartition("=")[::2] if "=" in text else ("", text) for text in wanted]
        if self.debates.metrics:
            for _, name in pairs:
                self.debates.add_measure(name)
            self._check_metrics(pairs)
        self.asked = list(dict.fromkeys(name for _, name in pairs))
        real = [name if not name.startswith(CHANGES) else None for name in self.asked]
        self.changed = {name: next(filter(None, reversed(real[:i])), None) for i, name in enumerate(self.asked)}
        for group in self.groups:
            mine = [name for level, name in pairs if level and self._has_level(group, level)]
            mine += [name for level, name in pairs if not level]
            group.metric = next((name for name in mine or self._preferred(group) if self._has(group, name)), None)

    def _check_metrics(self, pairs: Sequence[tuple[str, str]]) -> None:
        known = self.debates.metrics
        levels = list(dict.fromkeys(level for f in self.factors.factors for level in f.levels))
        problems = [Problem("--metric", f"no debate has the metric '{name}'{nearest_or_all(name, sorted(known))}")
                    for _, name in pairs if name not in known and not name.startswith(CHANGES)]
        problems += [Problem("--metric", f"no cell has the level '{level}'{nearest_or_all(level, levels)}")
                     for level, _ in pairs if level and level not in levels]
        if problems:
            raise UserError(problems)

    def _has_level(self, group: Group, level: str) -> bool:
        return any(level in self.factors.of_cell[i].values() for i in group.cells)

    def _preferred(self, group: Group) -> list[str]:
        """Accuracy, then whatever is a share in these cells, in the order of the run file."""
        shares = [name for name in self.debates.metrics if name != ACCURACY and self._is_share(group, name)]
        return [ACCURACY, *shares]

    def _has(self, group: Group, name: str) -> bool:
        return name in self.debates.metrics and any(len(self.scores(name, i)) for i in group.cells)

    def _is_share(self, group: Group, name: str) -> bool:
        return all(((s := self.scores(name, i).values) >= 0).all() and (s <= 1).all() for i in group.cells)

    def _choose_baselines(self, wanted: str | None) -> None:
        for group in self.groups:
            measured = [i for i in group.cells if group.metric and len(self.scores(group.metric, i))]
            if wanted is not None:
                named = self._named(wanted)
                measured = [i for i in named if i in measured] or [i for i in named if self._has_data(group, i)]
            group.baseline = next(iter(measured), None)

    def _has_data(self, group: Group, cell: int) -> bool:
        """Whether a cell of another group has the data sets of this one: one model can be compared with several."""
        of_cell, factors = self.factors.of_cell, self.factors.factors
        return all(of_cell[cell][f.name] == of_cell[group.cells[0]][f.name] for f in factors if f.is_data)

    def _named(self, text: str) -> list[int]:
        """The cells that a name or a level is for; of a cell's name, also its counterparts in the other groups."""
        cells, of_cell = self.debates.cells, self.factors.of_cell
        for names in ([c.name for c in cells], self.factors.labels, [c.slug for c in cells]):
            exact = [i for i, name in enumerate(names) if name == text]
            if len(exact) == 1:
                rest = self._rest(exact[0])
                return exact + [i for i in range(len(cells)) if self._rest(i) == rest and i not in exact]
        name, _, level = text.rpartition("=")
        found = [i for i, levels in enumerate(of_cell)
                 if (levels.get(name) == level if name in levels else text in levels.values())]
        if not found:
            known = [*self.factors.labels, *(c.name for c in cells)]
            known += [level for f in self.factors.factors for level in f.levels]
            raise UserError(f"--baseline: there is no cell '{text}'{nearest_or_all(text, dict.fromkeys(known))}")
        return found

    def _rest(self, cell: int) -> dict[str, str]:
        """A cell's levels of what does not separate groups."""
        return {name: level for name, level in self.factors.of_cell[cell].items() if name not in self.groups[0].levels}

    # Columns

    def rows(self, cell: int) -> NDArray[np.intp]:
        """The positions of a cell's debates."""
        return self._order[self._starts[cell]:self._starts[cell + 1]]

    def column(self, name: str, cell: int) -> NDArray[Any]:
        """A column of a cell's debates."""
        return np.asarray(getattr(self.debates, name))[self.rows(cell)]

    def raw(self, metric: str, cell: int) -> NDArray[np.float64]:
        """A metric's values over a cell's debates; NaN where it does not apply."""
        return np.asarray(self.debates.metrics[metric])[self.rows(cell)]

    def scores(self, metric: str, cell: int) -> Scores:
        """A metric in a cell."""
        found = self._scores.get((metric, cell))
        if found is None:
            raw, repeats = self.raw(metric, cell), self.column("repeat", cell)
            known = ~np.isnan(raw)
            raw, repeats = raw[known], repeats[known]
            ids, index, times = np.unique(self.column("sample", cell)[known], return_inverse=True, return_counts=True)
            found = self._scores[metric, cell] = Scores(
                ids, np.bincount(index, raw, len(ids)) / times, times,
                {int(r): float(raw[repeats == r].mean()) for r in np.unique(repeats)})
        return found

    # Cells

    def _figures(self, cell: int) -> dict[str, Any]:
        facts, ends = self.debates.cells[cell], self.column("end", cell)
        n, rounds = len(ends), self.debates.rounds[cell]
        unread, answers = rounds.unread()
        outcomes = {name: int((ends == end).sum()) for name, end in OUTCOMES.items()}
        ran = np.bincount(self.column("rounds_run", cell)[ends != FAILED], minlength=1)
        return {
            "cell": facts.name, "label": self.factors.labels[cell], "factors": dict(self.factors.of_cell[cell]),
            "named": facts.named, "metric": self.metric_of[cell], "oracle": facts.oracle,
            "settings": facts.settings, "match": dict(facts.match), "debates": n,
            "samples": len(np.unique(self.column("sample", cell))),
            "repeats": len(np.unique(self.column("repeat", cell))),
            "undecided": _share(outcomes["undecided"], n), "failed": _share(outcomes["failed"], n),
            "outcomes": outcomes, "metrics": self._metrics(cell), **self._costs(cell),
            "unread": _share(unread, answers), "answers": answers, "flagged": _share(rounds.flagged, rounds.messages),
            "malformed": rounds.malformed, "mixed": sorted(
                name for name, n in Counter(name for name, _ in self.debates.versions[cell]).items() if n > 1),
            "seconds": [float(q) for q in np.quantile(self.column("seconds", cell), QUANTILES)] if n else None,
            "rounds": {int(i): int(ran[i]) for i in np.flatnonzero(ran)},
            "by_round": [r.figures(i) for i, r in enumerate(rounds.rounds, 1) if r.debates],
            "decides": _decides(facts, self.metric_of[cell] or ""), "challenges": list(self._challenges(cell)),
            "places": rounds.places(), "alterations": self.debates.alterations[cell].figures(),
            "judges": rounds.judges, "vote_of_first": rounds.curve() if rounds.pool and rounds.judges else None,
            "figures": facts.figures}

    def _challenges(self, cell: int) -> Iterator[dict[str, Any]]:
        """By setting of `challenge.final` the share of agents that challenge, and its parts by how their answers score.

        Means over the debates in which it is known how they score; where nobody challenges, no answer has to.
        """
        for name in sorted(self.debates.metrics):
            match = _CHALLENGE.fullmatch(name)
            names = {part: f"{match[1]}.{part}" for part in ("higher", "same", "lower")} if match else {}
            if match and all(part in self.debates.metrics for part in names.values()):
                rate, answerable = self.raw(name, cell), self.column("answerable", cell) > 0
                parts = {part: np.where(rate > 0, rate * self.raw(of, cell), rate) for part, of in names.items()}
                known = answerable & ~np.isnan(sum(parts.values()))
                if known.any():
                    yield {"setting": match[2], "rate": float(rate[known].mean()),
                           **{part: float(values[known].mean()) for part, values in parts.items()}}

    def _costs(self, cell: int) -> dict[str, Any]:
        """Means per debate of what was used, whichever cell paid for it."""
        read, cached, written = (self.column(name, cell) for name in ("read", "cached", "written"))
        cost, tokens = self.column("cost", cell), read + written
        return {"calls": _mean(self.column("calls", cell)), "tokens": _mean(tokens), "read": _mean(read),
                "cached": _mean(cached), "written": _mean(written),
                "cost_usd": None if np.isnan(cost).any() else float(cost.sum()),
                "tokens_per_right": self._per_right(cell, tokens), "usd_per_right": self._per_right(cell, cost)}

    def _metrics(self, cell: int) -> dict[str, Any]:
        return {name: self.figure(name, cell) for name in sorted(self.debates.metrics) if len(self.scores(name, cell))}

    def figure(self, metric: str, cell: int) -> dict[str, Any]:
        """Mean, spread and interval as in `summary.json`; `debates` have a value, of `n` samples."""
        scores = self.scores(metric, cell)
        debates, values = int(scores.times.sum()), scores.values
        found, method = interval(
            len(values), scores.mean, float(values.var(ddof=1)) if len(values) > 1 else 0.0, debates=debates,
            proportion=self.debates.proportions[metric], shares=bool((values >= 0).all() and (values <= 1).all()))
        return {"mean": scores.mean, "std": scores.std, "ci95": found, "ci_method": method, "n": len(values),
                "debates": debates, "per_repeat": list(scores.per_repeat.values())}

    def _per_right(self, cell: int, spent: NDArray[Any]) -> float | None:
        """All of what was spent on debates that have a score or failed, for each right answer."""
        metric = self.metric_of[cell]
        if metric is None or not self.debates.proportions.get(metric):
            return None
        scores = self.raw(metric, cell)
        whole = float(spent[~np.isnan(scores) | (self.column("end", cell) == FAILED)].sum())
        right = float(np.nansum(scores))
        return whole / right if right > 0 and not np.isnan(whole) else None


def _decides(facts: CellFacts, metric: str) -> bool:
    """Whether a metric looks at the decision, as far as the study says: `of` of `qa.accuracy` can be somebody else."""
    use, _, rest = metric.partition("#")
    number = rest.partition(".")[0]
    alike = [table for table in facts.resolved.get("metrics") or ()
             if isinstance(table, Mapping) and f"{use}.".startswith(f"{table.get('use')}.")]
    nth = int(number) if number.isdecimal() else 1
    return all(table.get("of", "decision") == "decision" for table in alike[nth - 1:nth])


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _mean(values: NDArray[Any]) -> float | None:
    return float(values.mean()) if len(values) else None
