"""How all charts look: colours that the page can change, text that fits, and warnings on the chart itself."""

from __future__ import annotations

import io
import re
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from madplug.study import replacing
from madplug_report.charts import Chart
from madplug_report.escape import distinct, width
from madplug_report.tables import label

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colours, which people with the common kinds of colour blindness tell apart, made darker or lighter
# until each stands out from the page; the first value is the chart's own, the pair is for light and dark pages.
COLOURS = {
    "text": ("#1b1b1d", "#ececee"), "quiet": ("#5a5a5f", "#a9a9b0"), "grid": ("#d9d9dd", "#3b3b42"),
    "page": ("#fdfdfe", "#17171a"), "warn": ("#9a4a00", "#ffb454"),
    "blue": ("#0072b1", "#56b4e8"), "orange": ("#b36b00", "#e69f01"), "green": ("#00805d", "#2fc49a"),
    "purple": ("#a8487f", "#cf72ab"), "red": ("#c24d00", "#ff8a4c"), "sky": ("#2f87b8", "#9ad4f5"),
    "grey": ("#75757b", "#97979e")}
SERIES = ("blue", "orange", "green", "purple", "sky", "red")
MARKERS = "os^DvP"
DASHES = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)), (0, (1, 1)))
PICTURE = 150
"""Dots per inch of a picture."""
WIDTH = 9.0
"""Inches, at 72 units each."""
ROW = 0.22
"""Inches for a line of text."""
TALL = 30
"""A chart with more rows has its scale at both ends."""
LABEL = 52
"""At most this many characters of a cell's name are shown next to a chart."""
_CHARACTER = 0.071
"""Inches of an average character at the size of labels, on the wide side."""


def colour(name: str) -> str:
    """The chart's own value of a colour."""
    return COLOURS[name][0]


@contextmanager
def settings() -> Iterator[None]:
    """Ignore the user's matplotlib settings and use only these."""
    ours: Any = {
        "font.family": "DejaVu Sans", "font.size": 9, "axes.titlesize": 9, "axes.labelsize": 9, "xtick.labelsize": 8,
        "ytick.labelsize": 8, "legend.fontsize": 8, "text.color": colour("text"), "text.parse_math": False,
        "axes.edgecolor": colour("quiet"), "axes.labelcolor": colour("text"), "xtick.color": colour("quiet"),
        "ytick.color": colour("quiet"), "xtick.labelcolor": colour("text"), "ytick.labelcolor": colour("text"),
        "axes.facecolor": "none", "figure.facecolor": "none", "savefig.facecolor": "none", "axes.spines.top": False,
        "axes.spines.right": False, "axes.grid": True, "axes.axisbelow": True, "grid.color": colour("grid"),
        "grid.linewidth": 0.6, "legend.frameon": False, "legend.labelcolor": colour("text"), "svg.fonttype": "none",
        "svg.hashsalt": "madplug", "pdf.fonttype": 42,
        "hatch.color": colour("page"), "hatch.linewidth": 0.8, "axes.unicode_minus": True}
    with mpl.rc_context(), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # letters that the layout's font does not have
        mpl.rcdefaults()
        mpl.rcParams.update(ours)
        yield


class Sheet:
    """A figure of fixed width: margins for names on the left, and warnings below."""

    def __init__(self, report: Mapping[str, Any], about: Sequence[str], *, plot: float, left: float = 0.6,
                 top: float = 0.25, bottom: float = 0.5, right: float = 0.25) -> None:
        self.warnings = said(report, about)
        self.lines = [line for text in self.warnings for line in textwrap.wrap(f"read with care: {text}", 130)]
        self.left, self.top, self.plot = left, top, plot
        self.inner = WIDTH - left - right
        self.bottom = bottom + (0.12 + 0.17 * len(self.lines) if self.lines else 0)
        self.height = top + plot + self.bottom
        self.figure = Figure((WIDTH, self.height), dpi=72)  # an SVG's own unit: text measures as it will be shown
        for i, line in enumerate(reversed(self.lines)):
            self.figure.text(0.08 / WIDTH, (0.07 + 0.17 * i) / self.height, line, color=colour("warn"), fontsize=8)

    def axes(self, x: float = 0.0, wide: float = 1.0, y: float = 0.0, high: float = 1.0) -> Axes:
        """Axes over a part of the plot: shares of its inner width and height, from the lower left."""
        return self.figure.add_axes((
            (self.left + x * self.inner) / WIDTH, (self.bottom + y * self.plot) / self.height,
            wide * self.inner / WIDTH, high * self.plot / self.height))

    def chart(self, name: str, title: str, caption: str, rows: Sequence[Mapping[str, Any]] = ()) -> Chart:
        """The finished chart; rows: the numbers in it."""
        return Chart(name, title, caption, svg(self.figure, name, title), self.figure, rows)


def said(report: Mapping[str, Any], about: Sequence[str]) -> list[str]:
    """The report's notes on these matters."""
    return list(dict.fromkeys(note["text"] for note in report["notes"] if note["about"] in about))


def score(cell: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The figures of the metric that is compared."""
    found: Mapping[str, Any] | None = cell["metrics"].get(cell["metric"])
    return found


def names(report: Mapping[str, Any], cells: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names of some of the report's cells, short enough for a margin; the same on every chart, and all different."""
    every = report["cells"]
    short = dict(zip((c["cell"] for c in every), distinct([label(c) for c in every], LABEL), strict=True))
    return [short[c["cell"]] for c in cells]


def margin(texts: Sequence[str]) -> float:
    """Inches that the longest of these texts needs."""
    return 0.25 + _CHARACTER * max(map(width, texts), default=0)


def rows(axes: Axes, texts: Sequence[str]) -> None:
    """A row for each text, the first on top; where there are many, the scale is repeated above them."""
    axes.set_yticks([])
    axes.set_ylim(len(texts) - 0.5, -0.5)
    axes.tick_params(axis="x", labeltop=len(texts) > TALL)
    label_rows(axes, range(len(texts)), texts)


def label_rows(axes: Axes, at: Iterable[float], texts: Sequence[str]) -> None:
    """Text to the left of the axes; plain text, because hundreds of ticks take seconds."""
    for y, text in zip(at, texts, strict=True):
        axes.annotate(text, (0, y), (-4, 0), axes.get_yaxis_transform(), "offset points", ha="right", va="center",
                      fontsize=8, annotation_clip=False)


def logarithmic(axes: Axes) -> None:
    """A logarithmic x axis whose numbers are written out, the fewer the wider its range is."""
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    subs = (1, 2, 5) if high < 60 * low else (1, 3) if high < 3000 * low else (1,)
    axes.xaxis.set_major_locator(LogLocator(subs=subs))
    axes.xaxis.set_major_formatter(in_full())
    axes.xaxis.set_minor_formatter(NullFormatter())


def in_full() -> FuncFormatter:
    """Numbers of an axis written out, with commas."""
    return FuncFormatter(lambda x, _: f"{x:,.12g}")


def legend(axes: Axes, sheet: Sheet, columns: int) -> None:
    """A legend above the axes."""
    above = 0.25 if sheet.plot > ROW * TALL else 0.05
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1 + above / sheet.plot), ncols=columns, borderaxespad=0,
                handlelength=2.2)


def columns(labels: Sequence[str]) -> int:
    """How many columns of a legend fit beside each other, at most four."""
    return max(1, min(4, len(labels), int((WIDTH - 1.5) / (0.4 + margin(labels)))))


def save(figure: Figure, path: Path) -> list[Path]:
    """As vector graphics, a page and a picture, on white paper; the same figure gives the same bytes."""
    figure.set_facecolor("white")
    paths = [path.with_suffix(f".{kind}") for kind in ("svg", "pdf", "png")]
    with replacing(paths[0]) as beside:
        FigureCanvasSVG(figure).print_svg(beside, metadata={"Date": None})  # type: ignore[no-untyped-call]
    with replacing(paths[1]) as beside:
        FigureCanvasPdf(figure).print_pdf(beside, metadata={"CreationDate": None})  # type: ignore[no-untyped-call]
    canvas = FigureCanvasAgg(figure)
    figure.set_dpi(PICTURE)
    with replacing(paths[2]) as beside:
        canvas.print_png(beside, metadata={"Software": None})  # type: ignore[no-untyped-call]
    figure.set_dpi(72)
    return paths


def svg(figure: Figure, name: str, title: str) -> str:
    """As text to put into a page: with unique names, and colours that the page can change."""
    file = io.StringIO()
    FigureCanvasSVG(figure).print_svg(file, metadata={"Date": None, "Creator": None})  # type: ignore[no-untyped-call]
    text = file.getvalue()
    text = text[text.index("<svg"):]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'xlink:href="#', f'xlink:href="#{name}-', text)
    text = re.sub(r"url\(#", f"url(#{name}-", text)
    text = re.sub(r' width="[\d.]+pt" height="[\d.]+pt"', "", _recoloured(text), count=1)
    return text.replace("<svg ", f'<svg role="img" aria-label="{title}" ', 1)


def _recoloured(text: str) -> str:
    by_value: dict[str, str] = {light: name for name, (light, _) in COLOURS.items()}
    change: Callable[[re.Match[str]], str] = lambda m: f"var(--{by_value[m.group()]}, {m.group()})"  # noqa: E731
    return re.sub("|".join(by_value), change, text)


def css() -> str:
    """The colours for light and dark pages."""
    light, dark = ("".join(f"--{n}:{pair[i]};" for n, pair in COLOURS.items()) for i in (0, 1))
    return (f":root{{color-scheme:light dark;{light}}}\n"
            f"@media (prefers-color-scheme:dark){{:root:not(.light){{{dark}}}}}\n:root.dark{{{dark}}}")
