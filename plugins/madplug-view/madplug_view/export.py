"""The pages as files that open from disk or any static host: one page, or a page with chunks of data beside it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from madplug import UserError, count, plain, to_json
from madplug.store import DebateId, Reader, open_study, sample_digest
from madplug.study import write_whole
from madplug_read import Outline, outline
from madplug_view.bundle import bundle
from madplug_view.charts import can_draw
from madplug_view.notes import Note, read_notes, words_of
from madplug_view.queries import metric_names, walk
from madplug_view.rows import cut_call, row_of, texts_of
from madplug_view.server import PAGE_FOLDER
from madplug_view.studies import Study, key_of, main_metric
from madplug_view.texts import cut_texts

ONE_PAGE = 8_000_000
"""Characters of data that one page takes; more goes into chunks."""
CHUNK = 1_000_000
"""Characters after which a chunk of debates is full."""
_CHUNK = re.compile(r"(?:study|charts|rows|debates)-\d+(?:-\d+){0,2}\.js")
STYLES = ("vendor/temml/temml.css", "style.css")
MADE_BY = '<meta name="generator" content="madplug-view">'


@dataclass(frozen=True)
class Part:
    """Which debates are exported; everything by default."""

    cells: Collection[str] = ()
    samples: Collection[str] = ()

    def has(self, id: DebateId) -> bool:
        """Whether a debate is in the part."""
        return (not self.cells or id.cell in self.cells) and (not self.samples or id.sample in self.samples)


def export(studies: Sequence[Study], output: Path, part: Part | None = None) -> str:
    """Write the pages of some studies; returns what was written.

    output: a name ending in .html for one page that contains everything, or a directory. Raises `UserError` if there is
    nothing to export, it is too much for one page, or the directory has other files in it.
    """
    one = output.suffix.lower() in (".html", ".htm")
    if not one:
        _check_folder(output)
    chunks = _Chunks(output, one)
    try:
        debates = sum(_export_study(number, study, chunks, part or Part()) for number, study in enumerate(studies))
        if not debates:
            raise UserError(f"--export {output}: there is no such debate to export")
        facts = {"studies": [s.name for s in studies], "list": [s.listed() for s in studies], "start": chunks.start,
                 "searches": "texts" if chunks.whole is not None else "questions"}
        page = output if one else output / "index.html"
        if not one:
            output.mkdir(parents=True, exist_ok=True)
        write_whole(page, _page(facts, chunks.whole))
        chunks.remove_others()
    except OSError as error:
        raise UserError(f"--export {output}: cannot be written: {error.strerror}") from None
    more = f", with its data in {count(len(chunks.written), 'file')}" if chunks.whole is None else ""
    return "\n".join([f"{count(debates, 'debate')} in {page}{more}", *chunks.problems])


@dataclass
class _Chunks:
    """The data: together in `whole` as long as one page takes it, then each in a file."""

    output: Path
    one: bool
    whole: dict[str, str] | None = field(default_factory=dict)
    size: int = 0
    written: list[str] = field(default_factory=list)
    """The names of the files of chunks."""
    problems: list[str] = field(default_factory=list)
    start: str | None = None
    """Where the page opens, if not on the list of studies."""

    def add(self, name: str, value: Any) -> None:
        """Add a chunk."""
        text = to_json(value)
        self.size += len(text)
        if self.whole is not None:
            self.whole[name] = text
            if self.size > ONE_PAGE:
                self._spill()
            return
        self._write(name, text)

    def _spill(self) -> None:
        if self.one:
            raise UserError(f"--export {self.output}: these debates are too much for one page; name a directory, or "
                            "choose debates with --cell and --sample")
        (self.output / "data").mkdir(parents=True, exist_ok=True)
        for name, text in (self.whole or {}).items():
            self._write(name, text)
        self.whole = None

    def _write(self, name: str, text: str) -> None:
        self.written.append(f"{name}.js")
        file = self.output / "data" / self.written[-1]
        write_whole(file, f"madplugChunk({json.dumps(name)}, {text});\n")

    def remove_others(self) -> None:
        """Remove the chunks of an earlier export, which may be of debates that are not to be in this one."""
        for file in () if self.one else (self.output / "data").glob("*.js"):
            if file.name not in self.written and _CHUNK.fullmatch(file.name):
                file.unlink()


def _export_study(number: int, study: Study, chunks: _Chunks, part: Part) -> int:
    """Add a study's chunks; returns the number of its debates."""
    with open_study(study.folder) as reader:
        cells: dict[str, str] = {}
        debates = 0
        for nth, found in enumerate(reader.overview()):
            if part.cells and found.cell not in part.cells:
                continue
            rows = list(_export_cell(study, reader, found.cell, f"debates-{number}-{nth}", chunks, part))
            if rows and part.samples:
                chunks.start = chunks.start or _address(study.name, rows[0])
            if rows:
                cells[found.cell] = f"rows-{number}-{nth}"
                chunks.add(cells[found.cell], rows)
                debates += len(rows)
        names = metric_names(reader)
    overviews = {name: _of_cells(study.overview(name or None), cells, part) for name in names or [""]}
    charts = _charts(study, chunks) if cells and not part.cells and not part.samples else []
    if charts:
        chunks.add(f"charts-{number}", charts)
    chunks.add(f"study-{number}", {"cells": cells, "overviews": overviews, "metric": main_metric(names),
                                   "charts": bool(charts)})
    return debates


def _address(study: str, row: Mapping[str, Any]) -> str:
    """The part of an address behind `#` that shows a debate."""
    return "#/" + "/".join(quote(str(part), safe="") for part in (
        "debate", study, row["cell"], row["repeat"], row["sample"]))


def _charts(study: Study, chunks: _Chunks) -> list[dict[str, Any]]:
    """The report's charts; an export without them is better than none."""
    if not can_draw():
        return []
    try:
        return study.charts()
    except UserError as error:
        chunks.problems.append(f"{study.name}: without charts: {error}")
        return []


def _of_cells(overview: dict[str, Any], cells: Collection[str], part: Part) -> dict[str, Any]:
    """An overview of what is exported; if that is only a part, without what is known of the whole."""
    whole = not (part.samples or part.cells)
    partial: dict[str, Any] = {} if whole else {
        "planned": None, "status": "a part of the study", "paid": None, "failures": []}
    return {**overview, **partial, "cells": [c for c in overview["cells"] if c["cell"] in cells]}


def _export_cell(study: Study, reader: Reader, cell: str, name: str, chunks: _Chunks,
                 part: Part) -> Iterator[dict[str, Any]]:
    """The rows of a cell, after their debates."""
    full: dict[str, Any] = {}
    size = nth = 0
    notes = read_notes(study.folder)
    for started, (_, id) in enumerate(walk(reader, cell)):
        result = reader.debate(id) if part.has(id) else None
        if result is None:
            continue
        found = outline(result, study.grade(reader, result), reader.spent)
        yield {**row_of(found), "chunk": f"{name}-{nth}", "started": started, "messages": len(found.messages),
               "metrics": dict(found.metrics), "key": key_of(result), "note": notes.get(id),
               "search": _search_text(found, notes.get(id), chunks),
               "digest": sample_digest(result.sample, result.references)}
        entry = _entry(study, reader, found, part)
        full[json.dumps(list(id), ensure_ascii=False, separators=(",", ":"))] = entry
        size += len(to_json(entry))
        if size > CHUNK:
            chunks.add(f"{name}-{nth}", full)
            full, size, nth = {}, 0, nth + 1
    if full:
        chunks.add(f"{name}-{nth}", full)


def _entry(study: Study, reader: Reader, found: Outline, part: Part) -> dict[str, Any]:
    keys = dict.fromkeys([*found.opening_calls, *(key for m in found.messages for key in m.calls), *found.other_calls])
    calls = {row["key"]: cut_call(row) for row in reader.calls(keys=keys)}
    debate = cut_texts(plain(found))
    for message in debate["messages"]:
        message["length"] = len(message["content"])  # the rest is not there to be asked for
    beside = study.beside(reader, found)
    others = [cell for cell in beside["cells"] if not part.cells or cell in part.cells]
    return {"debate": {**debate, **beside, "cells": others},
            "calls": calls}


def _search_text(found: Outline, note: Note | None, chunks: _Chunks) -> str:
    """What a search looks through: every text on one page, otherwise questions and answers; and the reader's note."""
    texts = list(texts_of(found))
    if chunks.whole is None:
        texts = [found.sample.id, found.sample.question[:300], *(a.key for a in found.answers)]
    return "\n".join(text[:5000] for text in (*texts, *words_of(note))).lower()


def _check_folder(folder: Path) -> None:
    """Refuse to write among other files."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise UserError(f"--export {folder}: is a file; name a directory, or a file ending in .html")
    page = folder / "index.html"
    ours = page.is_file() and MADE_BY in page.read_text(encoding="utf-8", errors="replace")[:2000]
    if not ours and any(folder.iterdir()):
        raise UserError(f"--export {folder}: is not empty; name a new directory")


def _page(facts: dict[str, Any], whole: dict[str, str] | None) -> str:
    """The page; its policy names its own script and style by their hashes, so that nothing else can run."""
    program = bundle(PAGE_FOLDER / "app" / "main.js", PAGE_FOLDER / "vendor" / "preact")
    script = _in_script(f"globalThis.madplugExport = {to_json(facts)};\n{program}")
    style = "".join((PAGE_FOLDER / name).read_text(encoding="utf-8") for name in STYLES)
    own = "" if whole is not None else " 'self'"
    policy = (f"default-src 'none'; script-src {_hash(script)}{own}; style-src {_hash(style)}; img-src data:; "
              "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types madplug-chunks")
    blocks = "".join(f'<script type="application/json" id="chunk-{name}">{_in_script(text)}</script>\n'
                     for name, text in (whole or {}).items())
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
{MADE_BY}
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">
<title>madplug</title><link rel="icon" href="data:,"><style>{style}</style></head><body>
<div id="app"><p class="loading">Loading…</p></div>
{blocks}<script>{script}</script>
</body></html>
"""


def _in_script(text: str) -> str:
    """A text that cannot end the script it is in."""
    return re.sub(r"<(?=[!/]|script)", r"\\u003c", text, flags=re.IGNORECASE)


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
