"""Writes docs/reproductions from `paper.toml`, run files and numbers: `python tests/tools/reproductions.py`.

An item of `paper.toml` is a table or figure: the run files, the words after `madplug report DIR...`, the paper's
numbers, and what differs. Where the numbers are not complete, `rows`, `columns` and `by` list what stands there, as
lists whose product is meant. `tests/integration/test_reproductions.py` rehearses every item and compares its layout.
"""

from __future__ import annotations

import csv
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "kit"))
from small_rows import small_rows  # noqa: E402

from madplug.config import load  # noqa: E402
from madplug.config.read import cells, read  # noqa: E402
from madplug.config.shape import tables  # noqa: E402
from madplug_report.pivots import short_names  # noqa: E402

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = ROOT / "docs" / "reproductions"
NOTICE = "<!-- Made by `python tests/tools/reproductions.py`; change `paper.toml` and the other files instead. -->"
PAPERS = ("mallm", "voting", "freemad", "madc", "metadebate", "khan")
CELL_KEYS = tables().cell.model_fields
NOT_KNOWN = "·"
MOST_ROWS = 20
REHEARSED = 2
"""Of more models than this, so many are rehearsed."""
COSTS = ("The most calls (as `madplug check` says), without retries, and the most tokens that they can write, with "
         "what these cost at a dollar per million. Debates that are decided early take fewer; `madplug report --price "
         "NAME=READ/WRITTEN` says what a part that was run has cost.")
Numbers = Mapping[tuple[str, str, str], str]


@dataclass(frozen=True)
class Item:
    """A table or figure of a paper."""

    paper: str
    name: str
    shows: str
    run: Sequence[str] = ()
    report: str = ""
    published: str = ""
    """The CSV file with its numbers."""
    text: str = ""
    """A CSV file of a table without an experiment."""
    rows: Sequence[Sequence[str]] = ()
    columns: Sequence[Sequence[str]] = ()
    by: Sequence[Sequence[str]] = ()
    models: Sequence[str] = ()
    """The models that the run file is run with, one after the other."""
    chart: str = ""
    """The chart that shows it: a file among `--figures`."""
    differs: str = ""

    @property
    def output(self) -> str:
        """The folder that its report is written into."""
        return f"reports/{self.paper}-{self.name.replace(' ', '-')}"

    def __str__(self) -> str:
        return f"{self.paper} {self.name}"

    @cached_property
    def words(self) -> list[str]:
        """The words of the report command."""
        return shlex.split(self.report)

    def option(self, name: str) -> list[str]:
        """The factors after an option of the report, or every `--metric`."""
        found = [after for word, after in zip(self.words, self.words[1:], strict=False) if word == name]
        return found if name == "--metric" else [part for text in found for part in text.split(",")]

    @cached_property
    def numbers(self) -> list[dict[str, str]]:
        """The lines of the CSV file."""
        if not self.published:
            return []
        with (FOLDER / self.paper / self.published).open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    def labels(self, line: Mapping[str, str], option: str) -> str | None:
        """What a number's row or column is called in the table; None where the number is of none."""
        metrics = self.option("--metric")
        short = dict(zip(metrics, short_names(metrics), strict=True)) | {"": ""}
        factors = self.option(option)
        if any(f not in line for f in factors):
            return None
        return ", ".join(short.get(line[f], line[f]) if f == "metric" else line[f] for f in factors)

    def lines(self, option: str) -> list[str]:
        """What the rows, columns or tables are called, in their order."""
        listed = {"--rows": self.rows, "--columns": self.columns, "--by": self.by}[option]
        if listed:
            return [", ".join(parts) for parts in product(*listed)]
        found = [label for line in self.numbers if (label := self.labels(line, option)) is not None]
        return list(dict.fromkeys(label for label in found if label or not self.option(option))) or [""]

    def placed(self) -> tuple[Numbers, list[dict[str, str]]]:
        """The numbers by table, row and column, and those that the table has no place for."""
        found, left, rows = {}, [], set(self.lines("--rows"))
        for line in self.numbers:
            place = tuple(self.labels(line, option) for option in ("--by", "--rows", "--columns"))
            if None in place or place[1] not in rows:
                left.append(line)
            else:
                found[place] = f"{line['value']} ± {line['std']}" if line.get("std") else line["value"]
        return found, left


@dataclass(frozen=True)
class Paper:
    """A paper, and its items."""

    folder: str
    title: str
    source: str
    says: str
    open: str
    """What it does not say of any item, and what is taken for it."""
    items: Sequence[Item] = field(default=())

    @property
    def files(self) -> list[Path]:
        """Its run files."""
        return sorted({FOLDER / self.folder / name for item in self.items for name in item.run})


def papers() -> list[Paper]:
    """All papers."""
    found = []
    for folder in PAPERS:
        table = tomllib.loads((FOLDER / folder / "paper.toml").read_text(encoding="utf-8"))
        items = [Item(folder, **item) for item in table.pop("items")]
        found.append(Paper(folder, items=items, **table))
    return found


# Rehearsals

def rehearsed(path: Path, folder: Path, url: str = "http://127.0.0.1:9/v1", *, questions: int = 2,
              pool: Path = ROOT / "examples" / "data" / "solutions.jsonl") -> dict[str, Any]:
    """The run file with a few made-up questions for each data set, and every model at one endpoint.

    pool: recorded solutions that it shows.
    """
    table = read(path, environ={})
    folder.mkdir(exist_ok=True)
    for model in table["models"].values():
        model["base_url"] = url
    passages = _written(folder / "passages.txt", "The first left.\n\nThe second is even.")
    services = {"embeddings.sentences": "embeddings.hashing",
                "retrieval.wikipedia": {"use": "retrieval.bm25", "path": str(passages)}}
    table["services"] = {name: services.get(use, use) for name, use in table.get("services", {}).items()}
    asked: dict[str, int] = {}
    for data in (table.get("dataset"), *table.get("sweep", {}).get("dataset", ()),
                 *(cell.get("dataset") for cell in table.get("cells", ()))):
        if data is not None:
            name = data["use"].partition(".")[2]
            first = asked.setdefault(str({k: v for k, v in data.items() if k != "path"}), 10 * len(asked) + 1)
            data["path"] = str(_written(folder / f"{name}-{first}.jsonl", small_rows(name, questions, first)))
    for extension in table.get("extensions", ()):
        if "study" in extension:
            extension["study"] = str(pool)
    return {**table, "repeats": min(2, table.get("repeats", 1))}


def _written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


# Costs

def calls(path: Path) -> int:
    """The most calls that a run file can make."""
    table = read(path, environ={})
    with tempfile.TemporaryDirectory() as folder:
        plan = load(rehearsed(path, Path(folder)), environ={}).plan
        own = [cell for _, _, cell in cells(table, CELL_KEYS)]
        each = [cell.worst_calls() * data["dataset"]["limit"] for cell, data in zip(plan.cells, own, strict=True)]
    return sum(each) * table.get("repeats", 1)


# Pages

def page(paper: Paper) -> str:
    """The page of a paper."""
    parts = [f"# {paper.title}", NOTICE, f"{paper.source}.", " ".join(paper.says.split()),
             f"*Open in the paper, for all of it:* {' '.join(paper.open.split())}"]
    parts += [part for item in paper.items for part in section(item)]
    parts += ["## What the runs cost", COSTS,
              markdown(["run file", "calls at most", "million tokens written at most, or dollars"], [
                  [f"`{p.name}`", f"{(n := calls(p)):,}", f"{n * most(p) / 1e6:,.0f}"] for p in paper.files])]
    return "\n\n".join(parts) + "\n"


def most(path: Path) -> int:
    """The most tokens that a call writes."""
    return max(model.get("max_tokens", 0) for model in read(path, environ={})["models"].values())


def section(item: Item) -> Iterator[str]:
    """What a page says of an item."""
    yield f"## {item.name.capitalize()}"
    yield item.shows
    if item.run:
        yield f"```sh\n{chr(10).join(commands(item))}\n```"
    if item.chart:
        yield f"The chart is `{item.output}/figures/{item.chart}.svg`."
    if item.text:
        yield markdown(*properties(FOLDER / item.paper / item.text))
    yield from layouts(item)
    if item.differs:
        yield f"*Differs:* {item.differs}."
    notes = dict.fromkeys(line["note"] for line in item.numbers if line.get("note"))
    if notes:
        yield f"*The paper's own numbers disagree:* {'; '.join(notes)}."


def properties(path: Path) -> tuple[list[str], list[list[str]]]:
    """A table without an experiment, with one property in columns if everything has every property."""
    with path.open(encoding="utf-8", newline="") as file:
        head, *lines = csv.reader(file)
    if head[-1] == "value" and len(head) > 2:
        rows, columns = (list(dict.fromkeys(line[k] for line in lines)) for k in (-3, -2))
        found = {(line[-3], line[-2]): line[-1] for line in lines}
        if len(found) == len(rows) * len(columns) == len(lines):
            return ["", *columns], [[row, *(found[row, column] for column in columns)] for row in rows]
    return head[:-1], list(dict.fromkeys(tuple(line[:-1]) for line in lines))  # type: ignore[return-value]


def commands(item: Item) -> Iterator[str]:
    """The commands that make it."""
    names = [read(FOLDER / item.paper / name, environ={})["name"] for name in item.run]
    folders = [f"runs/{name}" for name in names]
    for name, folder in zip(item.run, folders, strict=True):
        file = f"madplug run docs/reproductions/{item.paper}/{name}"
        if not item.models:
            yield file
        for model in item.models[:REHEARSED]:
            yield f"{file} --set models.agent.model={model} --output {folder}-{model.rpartition('/')[2]}"
        if len(item.models) > REHEARSED:
            yield f"# and so on for {', '.join(item.models[REHEARSED:])}"
    one = f"-{item.models[0].rpartition('/')[2]}" if len(item.models) == 1 else "-*" if item.models else ""
    where = [f"{folder}{one}" for folder in folders]
    compare = f" --compare docs/reproductions/{item.paper}/{item.published}" if item.published else ""
    output = f" --output {item.output} --figures" if item.chart else ""
    yield f"madplug report {' '.join(where)} {item.report}{output}{compare}"


def layouts(item: Item) -> Iterator[str]:
    """The item's tables with the paper's numbers in place; its rows and columns where there are none, or too many."""
    if not item.run:
        return
    numbers, left = item.placed()
    rows, columns = item.lines("--rows"), item.lines("--columns")
    if not numbers or len(rows) > MOST_ROWS:
        where = f" Its {len(item.numbers):,} numbers are in [{item.published}]({item.published})." if numbers else ""
        yield said(item, rows, columns) + where
    else:
        extra = list(dict.fromkeys(c for _, _, c in numbers if c not in columns))
        head = [", ".join(item.option("--rows")), *(c or "accuracy" for c in columns), *("average" for _ in extra)]
        for by in item.lines("--by"):
            yield (f"{by}:\n\n" if by else "") + markdown(head, [
                [r or "accuracy", *(numbers.get((by, r, c), NOT_KNOWN) for c in (*columns, *extra))] for r in rows])
    if left:
        hidden = ("source", "metric", "value", "std", "unit", "n", "repeats", "note")
        told = (", ".join(v for k, v in line.items() if k not in hidden) + f" {line['value']}" for line in left)
        yield f"The text gives: {'; '.join(told)}."


def said(item: Item, rows: Sequence[str], columns: Sequence[str]) -> str:
    """The rows and columns in words."""
    parts = {"Tables": item.lines("--by"), "Rows": rows, "Columns": columns}
    return " ".join(f"{name}: {'; '.join(lines if len(lines) <= MOST_ROWS else (*lines[:2], '...', lines[-1]))}."
                    for name, lines in parts.items() if lines != [""])


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table."""
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, ["---"] * len(head), *rows))


def index(found: Sequence[Paper]) -> str:
    """The first page."""
    rows = [[f"[{paper.title}]({paper.folder}/README.md) {item.name}",
             ", ".join(f"[{name}]({paper.folder}/{name})" for name in item.run) or "no run",
             f"{len(item.numbers):,}" if item.numbers else NOT_KNOWN, item.differs or "equal"]
            for paper in found for item in paper.items]
    head = (FOLDER / "head.md").read_text(encoding="utf-8").strip()
    table = markdown(["item", "run files", "numbers", "as printed, or what differs or is open"], rows)
    return f"{head}\n\n{NOTICE}\n\n{table}\n"


def pages() -> dict[Path, str]:
    """Every page by its file."""
    found = papers()
    return {FOLDER / "README.md": index(found), **{FOLDER / p.folder / "README.md": page(p) for p in found}}


def main() -> None:
    """Write them."""
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
