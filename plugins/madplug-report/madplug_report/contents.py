"""The tables of a report: laid out by factors, cell by cell, comparisons, marginal means, other metrics."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from madplug_report.costing import caches, costs, paid, spending
from madplug_report.pivots import METRIC, over
from madplug_report.tables import (
    NOTHING,
    Table,
    interval,
    label,
    mean_std,
    number,
    p_value,
    percent,
    reached,
    signed,
)

STAR = "*"
_STEP = re.compile(r"[._][TF][TF]$")
WORST = " ↓"
FULL = 6
"""Of more columns a terminal shows means alone."""


def tables(report: Mapping[str, Any], most: int | None = None) -> list[Table]:
    """All that have rows. most: how many figures a metric may have to be shown; None for any number."""
    made = [published(report), *(pivot(report, p) for p in report["pivots"]), figures(report), comparisons(report),
            margins(report), matched(report), costs(report), caches(report), paid(report),
            other_metrics(report, most)]
    return [table for table in made if table.rows]


def more_tables(report: Mapping[str, Any]) -> list[Table]:
    """These, and what metrics found about cells as a whole: for pages, which have room."""
    more = (spending(report), of_cells(report))
    return [*tables(report), *(table for table in more if table.rows)]


def pivot(report: Mapping[str, Any], table: Mapping[str, Any], *, compact: bool = False) -> Table:
    """A table by factors; `compact` leaves means alone."""
    parts = [*range(len(table["columns"])), *([None] if table["averages"] else [])]
    head, spans, below = ["cell"], [(", ".join(table["row_factors"]), 1)], [""]
    for k in parts:
        name = "average" if k is None else _column(report, table["columns"][k])
        head += [name] if compact else [f"{name}: mean ± std" if name else "mean ± std", "95%"]
        spans.append((name, 1 if compact else 2))
        below += ["mean"] if compact else ["mean ± std", "95%"]
    rows, strong = [], set()
    for y, line in enumerate(table["fields"]):
        fields = [table["averages"][y] if k is None else line[k] for k in parts]
        texts = [_texts(report, field, compact) for field in fields]
        strong |= {(y, 1 + i * len(t)) for i, (f, t) in enumerate(zip(fields, texts, strict=True)) if f and f["best"]}
        name = table["rows"][y]["label"] or report["metric"] or ""
        rows.append([name, *(text for t in texts for text in t), *_ends(table["rows"][y])])
    named = any(text for text, _ in spans[1:])
    return Table(_pivot_title(report, table), [*head, "undecided", "failed"], rows,
                 spans=[*spans, ("", 1), ("", 1)] if named else (), strong=frozenset(strong),
                 below=[*below, "undecided", "failed"] if named else (), notes=_pivot_notes(report, table))


def _column(report: Mapping[str, Any], column: Mapping[str, Any]) -> str:
    metrics = column["metrics"] if len(report["metrics"]) > 1 else []
    return ", ".join([*([column["label"]] if column["label"] else []), *metrics])


def _texts(report: Mapping[str, Any], field: Mapping[str, Any] | None, compact: bool) -> list[str]:
    if field is None:
        return [NOTHING] if compact else [NOTHING, NOTHING]
    p = field.get("p_holm")
    star = STAR if p is not None and p < report["alpha"] else ""
    part = f" (n={field['n']})" if field.get("debates", 0) > 0 and _partial(report, field) else ""
    star += WORST if report["worst"] and field["worst"] else ""
    return [number(field["mean"]) + star] if compact else [mean_std(field) + star + part, interval(field["ci95"])]


def _of(found: Mapping[str, Any] | None, cell: Mapping[str, Any]) -> str:
    """Of how many samples a figure is, where it leaves out some of the cell's."""
    return f" (n={found['n']})" if found and found["n"] < cell["samples"] else ""


def _partial(report: Mapping[str, Any], field: Mapping[str, Any]) -> bool:
    """Whether the metric leaves out some of the cell's samples."""
    if len(field["cells"]) != 1:
        return False
    return any(c["cell"] == field["cells"][0] and c["samples"] > field["n"] for c in report["cells"])


def _ends(row: Mapping[str, Any]) -> list[str]:
    """The shares of undecided and failed debates of a row."""
    return [percent(row[name] / row["debates"] if row["debates"] else None) for name in ("undecided", "failed")]


def _pivot_title(report: Mapping[str, Any], table: Mapping[str, Any]) -> str:
    by = ", ".join(table["by"].values())
    names = table["column_factors"] if METRIC not in table["column_factors"] else table["row_factors"]
    across = f" by {' and '.join(names)}" if names else ""
    shown = {f["metric"] for line in table["fields"] for f in line if f}
    metric = next(iter(shown)) if len(shown) == 1 else report["metric"] or "metric"
    if METRIC in (*table["row_factors"], *table["column_factors"]):
        metric = "Metrics"
    return f"{metric}{across}" + (f": {by}" if by else "")


def _pivot_notes(report: Mapping[str, Any], table: Mapping[str, Any]) -> list[str]:
    shown = {name for line in table["fields"] for f in line if f for name in f["cells"]}
    bases = [g["baseline"] for g in report["groups"] if g["baseline"] in shown and len(g["cells"]) > 1]
    by_name = {c["cell"]: c for c in report["cells"]}
    several = any(len(f["cells"]) > 1 for line in table["fields"] for f in line if f)
    said = [f"std is {report['spread_of'] if several else 'over repeats'}, 95% over samples"]
    if bases and any(f.get("p_holm") is not None for line in table["fields"] for f in line if f):
        names = "; ".join(dict.fromkeys(label(by_name[b]) for b in bases[:4])) + ("; ..." if len(bases) > 4 else "")
        said.append(f"{STAR} differs from the baseline ({names}): p < {report['alpha']} after Holm")
    if averaged := [*_averaged(table, by_name)]:
        said.append(f"averaged over {', '.join(averaged)}")
    if table["left_out"]:
        said.append(f"without {', '.join(table['left_out'])}")
    if report["worst"]:
        said.append(f"{WORST.strip()} the worst")
    return ["; ".join(said)]


def _averaged(table: Mapping[str, Any], by_name: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """What is averaged over, each with the rows in which it is unless these are all."""
    rows: dict[str, list[str]] = {}
    for row, line in zip(table["rows"], table["fields"], strict=True):
        levels = [[by_name[cell]["factors"] for cell in f["cells"]] for f in line if f]
        for name in dict.fromkeys(name for own in levels for name in over(own)):
            rows.setdefault(name, []).append(row["label"])
    for name, labels in rows.items():
        more = f" and {len(labels) - FULL} more" if len(labels) > FULL else ""
        yield f"{name} ({', '.join(labels[:FULL])}{more})" if len(labels) < len(table["rows"]) else name


def figures(report: Mapping[str, Any]) -> Table:
    """Cell by cell."""
    several = len(report["metrics"]) > 1
    head = ["cell", "debates", "samples × repeats", "undecided", "failed",
            *(["metric", "mean"] if several else [report["metric"] or "metric"]), "95%", "std of repeats", "calls",
            "tokens", f"tokens/{reached(report)}", "unread answers"]
    rows = []
    for cell in report["cells"]:
        found = cell["metrics"].get(cell["metric"]) or {}
        rows.append([label(cell), str(cell["debates"]), f"{cell['samples']} × {cell['repeats']}",
                     percent(cell["undecided"]), percent(cell["failed"]),
                     *([cell["metric"] or NOTHING] if several else []), number(found.get("mean")) + _of(found, cell),
                     interval(found.get("ci95")), number(found.get("std")), number(cell["calls"], 1),
                     number(cell["tokens"], 0), number(cell["tokens_per_right"], 0), percent(cell["unread"])])
    return Table("Cells", head, rows, frozenset({"debates", "unread answers"}))


def comparisons(report: Mapping[str, Any]) -> Table:
    """Every cell against the baseline of its group, on the samples both have."""
    by_name = {cell["cell"]: cell for cell in report["cells"]}
    own = [c for c in report["comparisons"] if c["why"] == "baseline"]
    several = len({c["baseline"] for c in own}) > 1
    head = ["cell", *(["baseline"] if several else []), "samples", "difference", "95%", "relative", "p", "p (Holm)",
            "gained/lost", "Cohen's h", "odds ratio", "detectable", "samples to settle", "undecided", "failed", "test"]
    rows = []
    for c in own:
        cell = by_name[c["cell"]]
        rows.append([label(cell), *([label(by_name[c["baseline"]])] if several else []), str(c["samples"]),
                     signed(c["difference"]), interval(c["ci95"], signed), _relative(c["relative"]), p_value(c["p"]),
                     p_value(c["p_holm"]), f"{c['gained']}/{c['lost']}", signed(c["effects"].get("cohen_h")),
                     number(c["effects"].get("odds_ratio"), 2), number(c["detectable"]),
                     number(c["samples_to_settle"], 0), percent(cell["undecided"]), percent(cell["failed"]),
                     c["test"]])
    base = by_name.get(own[0]["baseline"]) if own else None
    title = "Against the baseline of each group" if several else f"Against {label(base)}" if base else "Comparisons"
    notes = ["gained/lost: samples with a higher and with a lower mean over repeats"
             ] if any(cell["repeats"] > 1 for cell in report["cells"]) and rows else []
    notes += ["interval and test are made by different methods, which can differ near 0.05 and where few samples do"
              ] if any(c["ci95"] and (c["p"] < 0.05) is (c["ci95"][0] <= 0 <= c["ci95"][1]) for c in own) else []
    return Table(title, head, rows, frozenset({"p", "gained/lost", "odds ratio", "detectable", "samples to settle",
                                               "test"}), notes=notes)


def _relative(value: float | None) -> str:
    return NOTHING if value is None else f"{100 * value:+.1f}%".replace("-", "−")


def margins(report: Mapping[str, Any]) -> Table:
    """The mean of each level of a factor, and of each family of levels, over everything else."""
    grouped = any(row["group"] for row in report["marginals"])
    everything = "all" if grouped else ""
    head = ["factor", "level", *(["of"] if grouped else []), "mean ± std", "95%", "settings", "difference", "95% of it",
            "p (Holm)"]
    rows = []
    for row in report["marginals"]:
        name = row["level"] if row["levels"] == [row["level"]] else f"{row['level']} ({len(row['levels'])} levels)"
        of = [", ".join(row["group"].values()) or everything] if grouped else []
        rows.append([row["factor"], name, *of, mean_std(row), interval(row["ci95"]), str(row["settings"]),
                     signed(row["difference"]), interval(row["difference_ci95"], signed), p_value(row["p_holm"])])
    return Table("Marginal means", head, rows,
                 notes=["means over all settings that every level has; differences are from the first level"])


def matched(report: Mapping[str, Any]) -> Table:
    """Cells with another's budget next to that cell."""
    head = ["cell", "matched to", "by", "calls", "its calls", "tokens", "its tokens", "difference", "95%", "p (Holm)",
            "undecided", "failed"]
    by_name = {cell["cell"]: cell for cell in report["cells"]}
    compared = {(c["cell"], c["baseline"]): (c["difference"], c["ci95"], c["p_holm"]) for c in report["comparisons"]}
    for (cell, base), (difference, ci95, p) in [*compared.items()]:
        compared.setdefault((base, cell), (-difference, ci95 and [-ci95[1], -ci95[0]], p))
    rows, over = [], {"calls": False, "tokens": False}
    for cell in report["cells"]:
        other = by_name.get(cell["matched_to"])
        if other is None or None in (cell["calls"], other["calls"]):
            continue  # one of them has no debates yet
        by = cell["match"].get("by", "calls")
        if by in over:
            over[by] |= cell[by] > other[by] * (1.05 if by == "calls" else 1)
        difference, ci95, p = compared.get((cell["cell"], other["cell"]), (None, None, None))
        rows.append([label(cell), label(other), cell["match"].get("by", ""), number(cell["calls"], 1),
                     number(other["calls"], 1), number(cell["tokens"], 0), number(other["tokens"], 0),
                     signed(difference), interval(ci95, signed), p_value(p),
                     percent(cell["undecided"]), percent(cell["failed"])])
    return Table("Matched budgets", head, rows, notes=[
        *["more calls than the budget: of replies that could not be read, of a decision that was made again, with "
          "which either cell has other calls than it was run with, or where not even one answer fits"] * over["calls"],
        *["more tokens than the budget: the last answer of each debate exceeds it, and what a decision asks comes on "
          "top"] * over["tokens"]])


def published(report: Mapping[str, Any]) -> Table:
    """Ours beside a paper's numbers."""
    found = report["published"]
    if not found:
        return Table("Published", [], [])
    rows = []
    for row in found["rows"]:
        std = row["our_std"]
        ours = number(row["ours"]) + ("" if std is None else f" ± {number(std)}")
        theirs = f"{row['theirs']:g}" + ("" if row["their_std"] is None else f" ± {row['their_std']:g}")
        rows.append([row["name"], row["metric"], ours, interval(row["our_ci95"]), theirs, signed(row["difference"]),
                     interval(row["ci95"], signed), row["ci_of"], str(row["samples"])])
    absent, more = found["missing"][:5], len(found["missing"]) - 5
    missing = f"not in this study: {'; '.join(absent)}{f'; and {more:,} more' * (more > 0)}" if absent else ""
    about = ("the interval of a difference is that of our mean alone unless the file says of how many samples theirs "
             "is")
    notes = [text for text in (found["said"], about, *found["notes"], missing) if text]
    head = ["paper's name", "metric", "ours", "95%", "theirs", "difference", "95% of it", "interval of", "samples"]
    return Table(f"Beside {found['source']}", head, rows or [[NOTHING] * len(head)], notes=notes)


def other_metrics(report: Mapping[str, Any], most: int | None = None) -> Table:
    """Means of the other metrics, and of how many samples where a metric leaves some out."""
    every = sorted({name for cell in report["cells"] for name in cell["metrics"] if name != cell["metric"]})
    parts = Counter(name.rpartition(".")[0] for name in every if name.count(".") > 1)
    many = {whole: n for whole, n in parts.items() if most and n > most}
    if many and sum(many.values()) == len(every):  # the shortest is better than an empty table
        del many[min(many, key=lambda whole: many[whole])]
    names = [name for name in every if name.rpartition(".")[0] not in many]
    rows = []
    for cell in report["cells"] if every else ():
        texts = [mean_std(found) + _of(found, cell) for found in (cell["metrics"].get(name) for name in names)]
        rows.append([label(cell), *texts, percent(cell["undecided"]), percent(cell["failed"])])
    steps = any(_STEP.search(name) for name in names)
    return Table("Other metrics", ["cell", *names, "undecided", "failed"], rows, notes=[
        *(f"{whole}: {n} figures, with --output and --json" for whole, n in many.items()),
        *["TT TF FT FF: steps of answers from right (T) or wrong (F), the first letter, to right or wrong, the second; "
          "one that could not be read counts as wrong"]
        * steps])


def of_cells(report: Mapping[str, Any]) -> Table:
    """What metrics found about cells as a whole, from the summary of a finished study."""
    found = [dict(_numbers(cell["figures"])) for cell in report["cells"]]
    names = list(dict.fromkeys(name for numbers in found for name in numbers))
    rows = [[label(cell), *(_plain(numbers.get(name)) for name in names), percent(cell["undecided"]),
             percent(cell["failed"])] for cell, numbers in zip(report["cells"], found, strict=True)]
    head = ["cell", *names, "undecided", "failed"]
    return Table("All debates of a cell together", head, rows if names else [], notes=[
        "a rate here is of everything in all debates together, so that a debate in which more happens counts more; in "
        "the means of the other tables every sample counts the same"])


def _numbers(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _numbers(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield name, value


def _plain(value: float | None) -> str:
    return str(value) if isinstance(value, int) else number(value)
