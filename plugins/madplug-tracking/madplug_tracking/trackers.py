"""Experiment trackers: parameters, figures as they come, and files at the end.

A tracker gets a run for each cell, so that its own tools compare cells. Figures are sums over the debates so far, those
of earlier runs of the study included, and are sent at most once every few seconds: a tracker that takes milliseconds
for each figure would otherwise fall behind a fast study.
"""

from __future__ import annotations

import json
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import uuid4

from pydantic import Field

from madplug import DebateFinished, StudyError, StudyFinished, StudyStarted, Volatile, plain, python_command, redact
from madplug_tracking.network import NetworkObserver, NetworkOptions, RejectedError

if TYPE_CHECKING:
    from tempfile import TemporaryDirectory

    from madplug import Run

REPORT_SECONDS = 25.0
"""The most seconds that making the report may take: an observer has 30 once a study has ended."""
_REPORT = """
from madplug import main
folder, target = sys.argv[1:]
main(["report", "--output", target, "--", folder], prog_name="madplug")
"""
LONGEST = 250
"""Characters of a parameter's value; prompts are longer, and are in `study.toml`."""


class TrackingOptions(NetworkOptions):
    """Options of every tracker."""

    every: Annotated[float, Volatile] = Field(
        default=5.0, ge=0, description="seconds between two reports of a cell's figures; the last one always comes")
    report: Annotated[bool, Volatile] = Field(default=True, description=(
        "attach what `madplug report` writes about the study, if madplug-report is installed"))


@dataclass
class RunningFigures:
    """The sums over the debates of one cell so far."""

    debates: int = 0
    """Debates that have ended, failed ones included."""
    failed: int = 0
    undecided: int = 0
    calls: int = 0
    tokens: int = 0
    cost_usd: float | None = 0.0
    """US dollars, or None once a price was unknown."""
    sums: dict[str, float] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, row: Mapping[str, Any]) -> None:
        """Count a debate: a row of `Reader.figures`."""
        self.debates += 1
        self.failed += row["error"] is not None
        self.undecided += row["error"] is None and not row["decided"]
        self.calls += row["calls"]
        self.tokens += row["prompt"] + row["completion"]
        cost = row["cost_usd"]
        self.cost_usd = None if self.cost_usd is None or cost is None else self.cost_usd + cost
        for name, value in row["metrics"].items():
            if value is not None:
                self.sums[name] = self.sums.get(name, 0.0) + value
                self.counts[name] = self.counts.get(name, 0) + 1

    def values(self) -> dict[str, float]:
        """The figures by name: metrics are means over the debates that have a score."""
        found: dict[str, float] = {name: total / self.counts[name] for name, total in self.sums.items()}
        found |= {"debates": self.debates, "failed": self.failed, "undecided": self.undecided, "calls": self.calls,
                  "tokens": self.tokens}
        return found if self.cost_usd is None else {**found, "cost_usd": self.cost_usd}


@dataclass(frozen=True)
class TrackedCell:
    """A cell as a tracker's run."""

    name: str
    id: str
    """The same whenever the study is resumed: 16 hexadecimal digits."""
    settings: Mapping[str, str]
    """Every setting by its dotted key, without secrets."""


class Tracker(NetworkObserver):
    """An observer that reports to an experiment tracker.

    A subclass has `connect`, which runs before the study starts, so that a tracker that is slow to import or to answer
    loses nothing, and then `begin`, `log` and `finish`, in a thread beside the study. One that raises is called again
    later, unless it raises `RejectedError`.
    """

    Options = TrackingOptions
    batch = 1
    _files: TemporaryDirectory[str] | None = None

    @abstractmethod
    def connect(self, study: str) -> None:
        """Import the tracker and connect to it. Raises `StudyError` if it is not installed."""

    @abstractmethod
    def begin(self, study: str, id: str, cells: Sequence[TrackedCell]) -> None:
        """Start a run for each cell, or continue those of an earlier run of the study. id: the study's."""

    @abstractmethod
    def log(self, cell: str, figures: Mapping[str, float], step: int) -> None:
        """Report the figures of a cell. step: how many of its debates have ended."""

    @abstractmethod
    def finish(self, status: str, files: Path | None) -> None:
        """End the runs. status: `finished`, `stopped` or `failed`. files: a folder of files to attach, or None."""

    async def open(self, run: Run) -> None:
        """Remember where the study is, and connect."""
        from asyncio import to_thread

        self._folder = run.folder
        self._rejected = False
        await to_thread(self.connect, run.study)
        super().open(run)

    def send(self, records: Sequence[Callable[[], None]]) -> None:
        """Call one of the subclass's methods."""
        if self._rejected:
            raise RejectedError("the tracker did not take the beginning of the runs")
        for call in records:
            call()

    def _begin(self, study: str, id: str, cells: Sequence[TrackedCell]) -> None:
        try:
            self.begin(study, id, cells)
        except RejectedError:
            self._rejected = True
            raise

    def study_started(self, event: StudyStarted) -> None:
        """Start the runs, with the figures of earlier runs of the study."""
        self._figures = {cell: RunningFigures() for cell in event.cells}
        self._due = dict.fromkeys(event.cells, 0.0)
        self._recorded: set[tuple[str, int, str]] = set()
        if self._folder is not None and event.done:
            self._count_recorded(self._folder)
        origin = uuid4().hex if self._folder is None else _origin(self._folder)
        tables = {} if self._folder is None else _cell_tables(self._folder)
        cells = [TrackedCell(cell, _digest(event.study, origin, cell),
                             flatten(tables.get(cell) or event.settings.get(cell, {}))) for cell in event.cells]
        self.put(partial(self._begin, event.study, _digest(event.study, origin), cells))

    def _count_recorded(self, folder: Path) -> None:
        from madplug import open_study

        with open_study(folder) as study:
            for row in study.figures():
                if row["error"] is None and row["cell"] in self._figures:  # failed debates are run again
                    self._figures[row["cell"]].add(row)
                    self._recorded.add((row["cell"], row["repeat"], row["sample"]))

    def debate_finished(self, event: DebateFinished) -> None:
        """Count a debate, and report if it is time."""
        result, cell = event.result, event.debate.cell
        if result is None or event.debate in self._recorded:  # it ended before the records were read
            return
        decision, tokens = result.decision, result.tokens
        self._figures[cell].add({
            "error": result.error, "decided": decision is not None and decision.key is not None, "calls": result.calls,
            "prompt": tokens.prompt, "completion": tokens.completion, "cost_usd": tokens.cost_usd,
            "metrics": result.metrics})
        if time.monotonic() >= self._due[cell]:
            self._report(cell)
            self._due[cell] = time.monotonic() + self.options.every

    def _report(self, cell: str) -> None:
        figures = self._figures[cell]
        self.put(partial(self.log, cell, figures.values(), figures.debates))

    def study_finished(self, event: StudyFinished) -> None:
        """Report the last figures, and attach the files."""
        for cell in self._figures:
            self._report(cell)
        status = str(event.summary.get("status", ""))
        if self._folder is None:
            self.put(partial(self.finish, status, None))
            return
        from tempfile import TemporaryDirectory

        self._files = TemporaryDirectory()
        target = Path(self._files.name)
        problem = _write_files(target, self._folder, event.summary, report=self.options.report)
        self.put(partial(self.finish, status, target))
        if problem is not None:
            raise StudyError(problem)

    async def close(self) -> None:
        """Wait for what is left, and delete the files."""
        try:
            await super().close()
        finally:
            if self._files is not None:
                self._files.cleanup()


def flatten(table: Any, prefix: str = "") -> dict[str, str]:
    """The values of nested tables and lists, as texts by dotted key, without secrets and shortened."""
    if isinstance(table, Mapping):
        items: Iterator[tuple[Any, Any]] = iter(table.items())
    elif isinstance(table, list | tuple):
        items = iter(enumerate(table))
    else:
        text = redact(str(table))
        return {prefix: text if len(text) <= LONGEST else text[:LONGEST - 3] + "..."}
    return {key: value for name, inner in items
            for key, value in flatten(inner, f"{prefix}.{name}".strip(".")).items()}


def _digest(*parts: str) -> str:
    return blake2b("\0".join(parts).encode(), digest_size=8).hexdigest()


def _origin(folder: Path) -> str:
    """What tells a study from others of its name: when and where its first run started."""
    from madplug.study import read_manifest

    runs = read_manifest(folder)["runs"]
    return f"{folder.resolve()} {runs[0] if runs else ''}"


def _cell_tables(folder: Path) -> dict[str, Any]:
    """Every setting of each cell, from the expanded run file."""
    from madplug.study import read

    path = folder / "study.toml"
    cells = read(path, (), {}).get("cells", []) if path.is_file() else []
    return {cell["name"]: {key: value for key, value in cell.items() if key != "name"} for cell in cells}


def _write_files(target: Path, folder: Path, summary: Mapping[str, Any], *, report: bool) -> str | None:
    """Write the run file, the summary and the report, without secrets; why there is no report, or None."""
    (target / "summary.json").write_text(
        redact(json.dumps(plain(summary), indent=2, ensure_ascii=False)), encoding="utf-8")
    if (folder / "study.toml").is_file():
        (target / "study.toml").write_text(
            redact((folder / "study.toml").read_text(encoding="utf-8")), encoding="utf-8")
    return _write_report(folder, target / "report") if report and find_spec("madplug_report") is not None else None


def _write_report(folder: Path, target: Path) -> str | None:
    """What `madplug report` writes, made in a process of its own; why it could not be made, or None."""
    import subprocess

    command = python_command(_REPORT, str(folder), str(target))
    try:
        subprocess.run(command, capture_output=True, text=True, timeout=REPORT_SECONDS, check=True,
                       stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return f"the report took longer than {REPORT_SECONDS:g} s and was not attached"
    except subprocess.CalledProcessError as error:
        return f"the report could not be made: {error.stderr.strip()[-500:]}"
    for path in target.rglob("*"):
        if path.suffix in (".md", ".tex", ".json", ".html", ".csv"):
            path.write_text(redact(path.read_text(encoding="utf-8")), encoding="utf-8")
    return None
