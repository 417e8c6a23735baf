"""Tables as rows of text, and the same rows for a terminal, Markdown, LaTeX and HTML."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from madplug import columns, dollars
from madplug_report.escape import distinct, in_html, in_latex, in_markdown, line
from madplug_report.reading import ACCURACY

NOTHING = "–"
_TIGHT = r"\footnotesize\setlength{\tabcolsep}{3pt}"
NAME = 60
"""At most this many characters of a cell's name are shown in a terminal."""
LONG = 40
"""A LaTeX table with more rows runs over several pages, and a terminal shows no more of them."""
_TEXT_WIDTH = 120
"""In characters: about one and a half times the width of a page's text, to which such a table is scaled."""
_SMALL = r"\scriptsize\setlength{\tabcolsep}{3pt}"
_SMALL_WIDTH = 85
"""In characters at this size, for a table over several pages, which cannot be scaled."""
_FITTED = r"""\sbox0{%%
%s}%%
\ifdim\wd0>\textwidth\resizebox{\textwidth}{!}{\usebox0}\else\usebox0\fi"""


@dataclass(frozen=True)
class Table:
    """A table: what it is about, its head, its rows. The first column is text, the others are numbers."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    wide: frozenset[str] = frozenset()
    """Columns that a page of paper has no room for."""
    spans: Sequence[tuple[str, int]] = ()
    """A line above the head, for LaTeX and HTML: texts, and over how many columns each stands."""
    below: Sequence[str] = ()
    """With `spans`, the head below them, in place of `head`."""
    strong: frozenset[tuple[int, int]] = frozenset()
    """Rows and columns of the fields that stand out."""
    notes: Sequence[str] = ()
    """Sentences below the table."""


# Outputs

def in_terminal(table: Table, width: int = 0) -> str:
    """In plain columns; long names are shortened, and long tables cut off.

    width: a wider table is split, with its first column repeated; 0 for no limit.
    """
    shown = table.rows[:LONG]
    named = distinct([row[0] for row in shown], NAME) if table.head[0] == "cell" else [line(row[0]) for row in shown]
    rows = [[name, *map(line, row[1:])] for name, row in zip(named, shown, strict=True)]
    head = [*map(line, table.head)]
    parts = [columns([[row[i] for i in part] for row in rows], [head[i] for i in part])
             for part in _parts([head, *rows], width)]
    more = len(table.rows) - len(shown)
    said = [f"... {more} more rows: see --output and --json"] if more else []
    return "\n\n".join(parts) + "".join(f"\n{line(text)}" for text in (*said, *table.notes))


def _parts(rows: Sequence[Sequence[str]], width: int) -> list[list[int]]:
    """The columns of each part of a table, the first one in every part."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    parts, used = [[0]], widths[0]
    for i, own in enumerate(widths[1:], 1):
        if width and used + 2 + own > width and len(parts[-1]) > 1:
            parts.append([0])
            used = widths[0]
        parts[-1].append(i)
        used += 2 + own
    return parts


def markdown(table: Table) -> str:
    """As a pipe table."""
    rule = ["---", *["---:"] * (len(table.head) - 1)]
    head = [in_markdown(text) for text in table.head]
    rows = [[f"**{in_markdown(text)}**" if (y, x) in table.strong else in_markdown(text)
             for x, text in enumerate(row)] for y, row in enumerate(table.rows)]
    lines = "\n".join("| " + " | ".join(row) + " |" for row in (head, rule, *rows))
    return lines + "".join(f"\n\n{in_markdown(text)}" for text in table.notes)


def latex(table: Table) -> str:
    """For `booktabs` and `graphicx`, and for `longtable` where it is long; without columns for which it has no room.

    A table too wide for a page is split, with its first column repeated, and scaled to the width of the text.
    """
    long = len(table.rows) > LONG
    parts = _latex_parts(table, _SMALL_WIDTH if long else _TEXT_WIDTH)
    notes = in_latex(". ".join([table.title, *table.notes]))
    if long:
        more = f"{in_latex(table.title)}, continued"
        return "\n\n".join(_longtable(table, part, more if k else notes) for k, part in enumerate(parts))
    fitted = "\n\\par\\medskip\n".join(_FITTED % _tabular(table, part) for part in parts)
    return f"\\begin{{table}}\n\\centering{_TIGHT}\n\\caption{{{notes}}}\n{fitted}\n\\end{{table}}"


def _latex_parts(table: Table, width: int) -> list[list[int]]:
    """The columns of each part that is not wider than so many characters; columns below one text stay together.

    The parts are about equally wide.
    """
    rows = [table.below or table.head, *table.rows]
    blocks, at = [], 0
    for _, wide in table.spans or [("", 1)] * len(table.head):
        columns = [i for i in range(at, at + wide) if table.head[i] not in table.wide]
        blocks.append([i for i in columns if i == 0 or any(row[i] != NOTHING for row in table.rows)])
        at += wide
    widths = [sum(2 + max(len(row[i]) for row in rows) for i in block) for block in blocks]
    parts = _packed(blocks, widths, width)
    narrower = (_packed(blocks, widths, limit) for limit in range(widths[0] + max(widths[1:], default=0), width))
    return next((found for found in narrower if len(found) == len(parts)), parts)


def _packed(blocks: Sequence[Sequence[int]], widths: Sequence[int], width: int) -> list[list[int]]:
    """As many blocks of columns in each part as there is room for, after the first column."""
    parts, used = [[0]], widths[0]
    for block, own in zip(blocks[1:], widths[1:], strict=True):
        if used + own > width and len(parts[-1]) > 1:
            parts.append([0])
            used = widths[0]
        parts[-1] += block
        used += own
    return parts


def _tabular(table: Table, part: Sequence[int]) -> str:
    body = [r"\toprule", *_latex_head(table, part), r"\midrule", *_latex_rows(table, part), r"\bottomrule"]
    return "\n".join([f"\\begin{{tabular}}{{{_spec(part)}}}", *body, r"\end{tabular}"])


def _longtable(table: Table, part: Sequence[int], caption: str) -> str:
    """A table that runs over pages, each with its head."""
    head = [r"\toprule", *_latex_head(table, part), r"\midrule"]
    return "\n".join([f"{{{_SMALL}\n\\begin{{longtable}}{{{_spec(part)}}}", f"\\caption{{{caption}}} \\\\", *head,
                      r"\endfirsthead", *head, r"\endhead", *_latex_rows(table, part), r"\bottomrule",
                      r"\end{longtable}}"])


def _spec(part: Sequence[int]) -> str:
    return "l" + "r" * (len(part) - 1)


def _latex_rows(table: Table, part: Sequence[int]) -> list[str]:
    return [_latex_row([rf"\textbf{{{in_latex(row[i])}}}" if (y, i) in table.strong else in_latex(row[i])
                        for i in part]) for y, row in enumerate(table.rows)]


def _latex_row(texts: Sequence[str]) -> str:
    return " & ".join(texts) + r" \\"


def _latex_head(table: Table, part: Sequence[int]) -> list[str]:
    """One line, or two with rules between them."""
    if not table.spans:
        return [_latex_row([in_latex(table.head[i]) for i in part])]
    upper, rules, start, at = [], [], 0, 1
    for text, wide in table.spans:
        own = len(set(range(start, start + wide)) & set(part))
        start += wide
        if own:
            upper.append(in_latex(text) if own == 1 else rf"\multicolumn{{{own}}}{{c}}{{{in_latex(text)}}}")
        if own > 1:
            rules.append(rf"\cmidrule(lr){{{at}-{at + own - 1}}}")
        at += own
    return [_latex_row(upper), *([" ".join(rules)] if rules else []),
            _latex_row([in_latex(table.below[i]) for i in part])]


def html(table: Table) -> str:
    """As an HTML table in a box that scrolls."""
    head = "".join(f'<th scope="col">{in_html(text)}</th>' for text in (table.below or table.head))
    upper = "".join(f'<th scope="colgroup" colspan="{wide}">{in_html(text)}</th>' for text, wide in table.spans)
    lines = f"<tr>{upper}</tr><tr>{head}</tr>" if upper else f"<tr>{head}</tr>"
    rows = "\n".join(f'<tr><th scope="row">{in_html(row[0])}</th>' + "".join(
        f"<td{' class=best' if (y, x) in table.strong else ''}>{in_html(t)}</td>" for x, t in enumerate(row[1:], 1))
        + "</tr>" for y, row in enumerate(table.rows))
    notes = "".join(f"<p>{in_html(text)}</p>" for text in table.notes)
    return f'<div class="wide"><table><thead>{lines}</thead>\n<tbody>\n{rows}\n</tbody></table></div>{notes}'


# Values

def label(cell: Mapping[str, Any]) -> str:
    """A cell's name, marked where components saw the references."""
    return f"{cell['label']} (oracle)" if cell["oracle"] else str(cell["label"])


def reached(report: Mapping[str, Any]) -> str:
    """What spending is divided by: right answers, or, of other metrics, scores of 1."""
    return "right" if {cell["metric"] for cell in report["cells"]} <= {ACCURACY, None} else "1"


def mean_std(found: Mapping[str, Any] | None, digits: int = 3) -> str:
    """The mean, and the standard deviation over repeats where there are several."""
    if not found:
        return NOTHING
    return number(found["mean"], digits) + ("" if found["std"] is None else f" ± {number(found['std'], digits)}")


def number(value: float | None, digits: int = 3) -> str:
    """With this many digits after the point."""
    return NOTHING if value is None else f"{value:.{digits}f}"


def money(value: float | None) -> str:
    """US dollars; never nothing where something was paid."""
    return NOTHING if value is None else dollars(value)


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
