"""The results of a study as text: its cells and metrics, as wide as the terminal, and what can be concluded."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from madplug import columns, count, dollars
from madplug_read.studies import ORACLE

MOST_PARTS = 6
"""A metric with more figures than this is not shown."""
WIDTH = 120
"""Characters, where there is no terminal."""


def results(summary: Mapping[str, Any]) -> Iterator[str]:
    """The table and the conclusion, as wide as the terminal."""
    width = shutil.get_terminal_size((WIDTH, 24)).columns
    yield summary_table(summary, width)
    if sentence := conclusion(summary):
        yield textwrap.fill(sentence, width) if sys.stdout.isatty() else sentence


def summary_table(summary: Mapping[str, Any], width: int = WIDTH) -> str:
    """The cells of a study with their figures; calls, tokens and cost are means over a cell's debates.

    In the first of these layouts that is narrow enough: a row for each cell, a row for each figure, the same without
    metrics of several figures, a paragraph for each cell. Metrics come first, in the order of the run file. width:
    characters.
    """
    for most in (MOST_PARTS, 0):
        rows, more = summary_rows(summary, most)
        if found := _narrow_enough(rows, width):
            break
    return "\n".join([found or "\n\n".join(map(_paragraph, rows)), *more])


def summary_rows(summary: Mapping[str, Any], most: int = MOST_PARTS) -> tuple[list[dict[str, str]], list[str]]:
    """The figures of each cell by name, and a line for each metric that has more than `most` and is not shown."""
    cells = summary["cells"]
    every = list(dict.fromkeys(name for cell in cells for name in cell["metrics"]))
    parts = Counter(name.rpartition(".")[0] for name in every if name.count(".") > 1)
    many = {whole: n for whole, n in parts.items() if n > most}
    metrics = [name for name in every if name.rpartition(".")[0] not in many]
    more = [f"{whole}: {n} figures in summary.json" for whole, n in many.items()]
    rows = [_row(cell, metrics) for cell in cells]
    unused = [name for name in ("fallback", "USD each") if all(row[name] in ("0", "?") for row in rows)]
    return [{name: text for name, text in row.items() if name not in unused} for row in rows], more


def _row(cell: Mapping[str, Any], metrics: Sequence[str]) -> dict[str, str]:
    debates = max(1, cell["done"] + cell["failed"])
    tokens = (cell["tokens"]["prompt"] + cell["tokens"]["completion"]) / debates
    return {"cell": cell["cell"] + ORACLE * bool(cell["oracle"])
            + (f" ({cell['partial']} partial)" if cell.get("partial") else ""),
            **{name: figure(cell["metrics"].get(name), cell["samples"]) for name in metrics},
            "debates": str(cell["done"] + cell["failed"]),
            "undecided": str(cell["undecided"]), "fallback": str(cell.get("fallback", 0)),
            "failed": str(cell["failed"]), "calls": f"{cell['calls'] / debates:.1f}", "tokens": f"{tokens:.0f}",
            "USD each": "?" if cell["cost_usd"] is None else dollars(cell["cost_usd"] / debates)}


def _narrow_enough(rows: Sequence[Mapping[str, str]], width: int) -> str:
    if not rows:
        return "no cells"
    head = list(rows[0])
    wide = columns([list(row.values()) for row in rows], head)
    turned = columns([[name, *(row[name] for row in rows)] for name in head[1:]], ["", *(row["cell"] for row in rows)])
    return next((text for text in (wide, turned) if max(map(len, text.splitlines())) <= width), "")


def _paragraph(row: Mapping[str, str]) -> str:
    names = [name for name in row if name != "cell"]
    longest = max(map(len, names))
    return "\n".join([row["cell"], *(f"  {name:{longest}}  {row[name]}" for name in names)])


def figure(metric: Mapping[str, Any] | None, samples: int) -> str:
    """A mean with its interval, and how many of these samples have a score, if not all."""
    if metric is None:
        return "-"
    interval = metric.get("ci95")
    return (f"{metric['mean']:.3f}" + (f" [{interval[0]:.2f}, {interval[1]:.2f}]" if interval else "")
            + (f" (n={metric['n']})" if metric["n"] < samples else ""))


def conclusion(summary: Mapping[str, Any]) -> str | None:
    """What can be concluded from the first metric that is a share of right answers, and what not, in a sentence."""
    name = next((n for cell in summary["cells"] for n, m in cell["metrics"].items()
                 if m.get("proportion") and n.count(".") < 2), None)  # "dynamics.decided.tie" is of no answer
    found = [(cell, cell["metrics"][name]) for cell in summary["cells"] if name in cell["metrics"]]
    if name is None or not found:
        return None
    found.sort(key=lambda item: -item[1]["mean"])
    own = [[pair for pair in cell.get("settings", {}).items() if pair[0].startswith("dataset")] for cell, _ in found]
    if any(settings != own[0] for settings in own):
        return "Cells with different data sets have different questions: madplug report compares those with the same."
    least, most = (of(metric["n"] for _, metric in found) for of in (min, max))
    if least < 2:
        few = "" if most < 2 else f" of '{next(cell['cell'] for cell, metric in found if metric['n'] == least)}'"
        return f"One sample{few} says nothing about {name} in general."
    samples = count(least, "sample") if least == most else f"{least:,} to {most:,} samples"
    return " ".join(_sentences(name, found, samples))


def _sentences(name: str, found: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]],
               samples: str) -> Iterator[str]:
    best, metric = found[0]
    low, high = metric["ci95"]
    others = [cell["cell"] for cell, other in found[1:] if other["ci95"][1] >= low]
    if len(found) == 1:
        yield f"{name} lies between {low:.2f} and {high:.2f}, with 95% confidence, from {samples}."
    elif found[-1][1]["mean"] == metric["mean"]:
        yield (f"{name} is the same in {'both' if len(found) == 2 else f'all {len(found)}'} cells: "
               f"{samples} show no difference.")
    elif others:
        whose = f"that of '{others[0]}'" if len(others) == 1 else f"those of {len(others)} other cells"
        alone = found[1][1]["mean"] < metric["mean"]
        yield (f"'{best['cell']}' {'has' if alone else 'is among those with'} the highest {name}, but its "
               f"interval overlaps {whose}: on {samples} these intervals do not tell them apart; "
               "madplug report compares them question by question.")
    else:
        yield f"'{best['cell']}' has the highest {name}, and its interval overlaps no other cell's."
    if any(cell["oracle"] for cell, _ in found):
        yield "Components saw the references, so this is not about models."
