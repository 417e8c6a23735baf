"""The report as text: for a terminal, as Markdown and as LaTeX, and how its figures were computed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from madplug import count
from madplug_report import contents, tables
from madplug_report.combining import METHOD
from madplug_report.escape import in_latex, in_markdown, line

MOST = 6
"""A terminal does not show a metric of more figures than this."""


def headline(report: Mapping[str, Any]) -> str:
    """Which studies, how many debates."""
    names = ", ".join(s["title"] for s in report["studies"])
    debates = sum(s["debates"] for s in report["studies"])
    mark = " (oracle)" if report["oracle"] else ""
    cells = len(report["cells"])
    partial = sum(s["partial"] for s in report["studies"])
    missing = f", {partial} of them partial (an agent failed, and left or got another model)" if partial else ""
    return f"{names}{mark}: {cells} cell{'s' * (cells != 1)}, {debates} debate{'s' * (debates != 1)}{missing}"


def terminal(report: Mapping[str, Any], width: int = 0) -> str:
    """For a terminal of this width; 0 for no limit."""
    parts = [line(headline(report))]
    pivots = [contents.pivot(report, p, compact=len(p["columns"]) > contents.FULL) for p in report["pivots"]
              if p["column_factors"] or p["by"] or p["averaged"]]
    for table in [*pivots, *contents.tables({**report, "pivots": []}, MOST)]:
        title = [] if table.title == "Cells" and not pivots else [line(table.title)]
        parts.append("\n".join([*title, tables.in_terminal(table, width)]))
    said = [f"note: {line(note['text'])}" for note in report["notes"]]
    return "\n\n".join([*parts, "\n".join(said)] if said else parts)


def markdown_file(report: Mapping[str, Any]) -> str:
    """As a file of Markdown."""
    parts = [f"# {in_markdown(headline(report))}", *(f"> {in_markdown(note['text'])}" for note in report["notes"])]
    for table in contents.more_tables(report):
        parts += [f"## {in_markdown(table.title)}", tables.markdown(table)]
    return "\n\n".join([*parts, "## How these figures were made", *map(in_markdown, method(report))]) + "\n"


def latex_file(report: Mapping[str, Any]) -> str:
    """As LaTeX to `\\input`."""
    head = ["needs \\usepackage{booktabs}, graphicx, and longtable for long tables; letters beyond "
            "Latin need LuaLaTeX", headline(report), *(note["text"] for note in report["notes"])]
    parts = ["\n".join(f"% {line(text)}" for text in head)]
    for table in contents.tables(report):
        parts.append(tables.latex(table))
    marks = "\n".join(in_latex(n["text"]) + "." for n in report["notes"] if n["about"] in ("oracle", "unfinished"))
    return "\n\n".join([*parts, marks] if marks else parts) + "\n"


def method(report: Mapping[str, Any]) -> Iterator[str]:
    """How the figures were made, a sentence or two each."""
    yield ("Every share and mean is over all debates, undecided ones included: without an answer a debate is wrong. "
           "One that failed has no score and is in no mean. A cell's mean is over samples, each the mean over its "
           "repeats; the std is the sample standard deviation of the repeats' means, which one repeat does not have.")
    made = sorted({m["ci_method"] for c in report["cells"] for m in c["metrics"].values() if m["ci_method"]}
                  | {c["ci_method"] for c in (*report["comparisons"], *report["marginals"]) if c["ci_method"]})
    yield (f"Intervals are of 95% over samples ({', '.join(made) or 'none could be made'}; bootstraps seeded with "
           f"{report['seed']}): they say how much other samples would change the figure, not other prompts or models.")
    tests = sorted({c["test"] for c in report["comparisons"]})
    margins = sum(row["p"] is not None for row in report["marginals"])
    among = f" (those of marginal means, {METHOD}, over their own {margins})" if margins else ""
    if tests:
        yield (f"Differences are paired, on the samples both cells have. Tests are two-sided ({'; '.join(tests)}), "
               f"corrected after Holm over {count(report['family'], 'comparison')} of cells in this report{among}; an "
               "interval is of one comparison, and made by another method than the test, so that near 0.05, and where "
               "few samples differ, the two can. 'Gained/lost' counts samples of which the cell has the higher or the "
               "lower score; 'detectable' is the least true difference that this many samples show with a power of "
               f"{report['power']:.0%}, 'samples to settle' how many would show one as large as this.")
    yield ("The best of a column or row, in bold, is the highest; of calls, tokens, rounds and seconds the lowest. "
           "Whether more of another metric is better, its description says.")
    per = tables.reached(report)
    yield ("Calls and tokens are means per debate, whichever cell paid for them: cells that share completions count "
           f"them each. 'Tokens/{per}' are all tokens for each {'right answer' if per == 'right' else 'score of 1'}. "
           "'Unread' is the share of voters' answers that could not be read; it separates broken replies from wrong "
           "ones.")
