"""The tables of a report, as rows of text; and the same rows for a terminal, Markdown, LaTeX and HTML."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from madplug.text import columns
from madplug_report.escape import distinct, in_html, in_latex, in_markdown, line

NOTHING = "–"
_TIGHT = r"\footnotesize\setlength{\tabcolsep}{3pt}"
NAME = 60
"""At most this many characters of a cell's name are shown in a terminal."""
LONG = 40
"""A LaTeX table with more rows runs over several pages."""


@dataclass(frozen=True)
class Table:
    """A table: what it is about, its head, its rows. The first column is text, the others are numbers."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    wide: frozenset[str] = frozenset()
    """Columns that a page of paper has no room for."""


def tables(report: Mapping[str, Any]) -> list[Table]:
    """All that have rows."""
    made = [figures(report), comparisons(report), matched(report), other_metrics(report)]
    return [table for table in made if table.rows]


def more_tables(report: Mapping[str, Any]) -> list[Table]:
    """These, and what metrics found about cells as a whole: for pages, which have room."""
    whole = of_cells(report)
    return [*tables(report), *([whole] if whole.rows else [])]


def figures(report: Mapping[str, Any]) -> Table:
    """Cell by cell."""
    metric = report["metric"]
    head = ["cell", "debates", "samples × repeats", "undecided", "failed", metric or "metric", "95%", "std of repeats",
            "calls", "tokens", "tokens/right", "unread"]
    rows = []
    for cell in report["cells"]:
        found = cell["metrics"].get(metric) or {}
        rows.append([label(cell), str(cell["debates"]), f"{cell['samples']} × {cell['repeats']}",
                     percent(cell["undecided"]), percent(cell["failed"]), number(found.get("mean")),
                     interval(found.get("ci95")), number(found.get("std")), number(cell["calls"], 1),
                     number(cell["tokens"], 0), number(cell["tokens_per_right"], 0), percent(cell["unread"])])
    return Table("Cells", head, rows, frozenset({"debates", "std of repeats", "unread"}))


def comparisons(report: Mapping[str, Any]) -> Table:
    """Every cell against the baseline, on the samples both have."""
    head = ["cell", "samples", "difference", "95%", "p", "p (Holm)", "gained/lost", "Cohen's h", "odds ratio",
            "detectable", "samples to settle", "undecided", "failed", "test"]
    by_name = {cell["cell"]: cell for cell in report["cells"]}
    rows = []
    for c in report["comparisons"]:
        if c["why"] != "baseline":
            continue
        cell = by_name[c["cell"]]
        rows.append([label(cell), str(c["samples"]), signed(c["difference"]), interval(c["ci95"], signed),
                     p_value(c["p"]), p_value(c["p_holm"]), f"{c['gained']}/{c['lost']}",
                     signed(c["effects"].get("cohen_h")), number(c["effects"].get("odds_ratio"), 2),
                     number(c["detectable"]), number(c["samples_to_settle"], 0),
                     percent(cell["undecided"]), percent(cell["failed"]), c["test"]])
    base = by_name.get(report["baseline"])
    return Table(f"Against {label(base)}" if base else "Comparisons", head, rows,
                 frozenset({"p", "gained/lost", "odds ratio", "detectable", "samples to settle", "test"}))


def matched(report: Mapping[str, Any]) -> Table:
    """Cells with another's budget next to that cell."""
    head = ["cell", "matched to", "by", "calls", "its calls", "tokens", "its tokens", "difference", "95%", "p (Holm)",
            "undecided", "failed"]
    by_name = {cell["cell"]: cell for cell in report["cells"]}
    compared = {(c["cell"], c["baseline"]): c for c in report["comparisons"]}
    rows = []
    for cell in report["cells"]:
        other = by_name.get(cell["matched_to"])
        if other is None:
            continue
        c = compared.get((cell["cell"], other["cell"])) or {}
        rows.append([label(cell), label(other), cell["match"].get("by", ""), number(cell["calls"], 1),
                     number(other["calls"], 1), number(cell["tokens"], 0), number(other["tokens"], 0),
                     signed(c.get("difference")), interval(c.get("ci95"), signed), p_value(c.get("p_holm")),
                     percent(cell["undecided"]), percent(cell["failed"])])
    return Table("Matched budgets", head, rows)


def other_metrics(report: Mapping[str, Any]) -> Table:
    """Means of the other metrics."""
    names = sorted({name for cell in report["cells"] for name in cell["metrics"]} - {report["metric"]})
    rows = []
    for cell in report["cells"] if names else ():
        found = [cell["metrics"].get(name) or {} for name in names]
        rows.append([label(cell), *(number(f.get("mean")) for f in found), percent(cell["undecided"]),
                     percent(cell["failed"])])
    return Table("Other metrics", ["cell", *names, "undecided", "failed"], rows)


def of_cells(report: Mapping[str, Any]) -> Table:
    """What metrics found about cells as a whole, from the summary of a finished study."""
    found = [dict(_numbers(cell["figures"])) for cell in report["cells"]]
    names = list(dict.fromkeys(name for numbers in found for name in numbers))
    rows = [[label(cell), *(_plain(numbers.get(name)) for name in names), percent(cell["undecided"]),
             percent(cell["failed"])] for cell, numbers in zip(report["cells"], found, strict=True)]
    return Table("Cells as their metrics sum them up", ["cell", *names, "undecided", "failed"], rows if names else [])


def _numbers(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _numbers(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield name, value


def _plain(value: float | None) -> str:
    return str(value) if isinstance(value, int) else number(value)


# Outputs

def in_terminal(table: Table) -> str:
    """In plain columns; names that are long are shortened."""
    named = distinct([row[0] for row in table.rows], NAME)
    return columns([[name, *map(line, row[1:])] for name, row in zip(named, table.rows, strict=True)],
                   [*map(line, table.head)])


def markdown(table: Table) -> str:
    """As a pipe table."""
    rule = ["---", *["---:"] * (len(table.head) - 1)]
    rows = [[in_markdown(text) for text in row] for row in (table.head, *table.rows)]
    return "\n".join("| " + " | ".join(row) + " |" for row in (rows[0], rule, *rows[1:]))


def latex(table: Table) -> str:
    """For `booktabs`, and for `longtable` where it is long; without the columns that would not fit on a page."""
    kept = [i for i, name in enumerate(table.head) if name not in table.wide]
    spec = "l" + "r" * (len(kept) - 1)
    head, *rows = [" & ".join(in_latex(row[i]) for i in kept) + r" \\" for row in (table.head, *table.rows)]
    body = "\n".join([r"\toprule", head, r"\midrule", *rows, r"\bottomrule"])
    caption = f"\\caption{{{in_latex(table.title)}}}"
    if len(rows) > LONG:
        return f"{{{_TIGHT}\n\\begin{{longtable}}{{{spec}}}\n{caption} \\\\\n{body}\n\\end{{longtable}}}}"
    return (f"\\begin{{table}}\n\\centering{_TIGHT}\n{caption}\n\\begin{{tabular}}{{{spec}}}\n{body}\n"
            "\\end{tabular}\n\\end{table}")


def html(table: Table) -> str:
    """As an HTML table in a box that scrolls."""
    head = "".join(f'<th scope="col">{in_html(text)}</th>' for text in table.head)
    rows = "\n".join(f'<tr><th scope="row">{in_html(row[0])}</th>' + "".join(f"<td>{in_html(t)}</td>" for t in row[1:])
                     + "</tr>" for row in table.rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>'


# Values

def label(cell: Mapping[str, Any]) -> str:
    """A cell's name, marked where components saw the references."""
    return f"{cell['cell']} (oracle)" if cell["oracle"] else str(cell["cell"])


def number(value: float | None, digits: int = 3) -> str:
    """With this many digits after the point."""
    return NOTHING if value is None else f"{value:.{digits}f}"


def signed(value: float | None) -> str:
    """With its sign."""
    return NOTHING if value is None else f"{value:+.3f}".replace("-", "−")


def percent(value: float | None) -> str:
    """As a percentage."""
    return NOTHING if value is None else f"{100 * value:.1f}%"


def interval(value: Sequence[float] | None, write: Callable[[float], str] = number) -> str:
    """In brackets."""
    return NOTHING if value is None else f"[{write(value[0])}, {write(value[1])}]"


def p_value(value: float | None) -> str:
    """Never zero."""
    return NOTHING if value is None else "<0.0001" if value < 0.0001 else f"{value:.4f}"
