"""Debates, messages and calls as files: JSON lines, CSV and Parquet."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TextIO

from madplug import UserError, listed, to_json
from madplug.store import Reader, open_study
from madplug.study import OWN_FILES, read_manifest, replacing
from madplug_export.flat import CALL, DEBATE, MESSAGE, Uses, debate_row, lines, message_rows, rows_of

BATCH = 500
What = Literal["debates", "messages", "calls"]
COLUMNS = ("question", "reference", "partial", "answer", "key", "undecided", "rounds", "first_answers", "last_answers",
           "flips", "flipped")
"""The columns of `DEBATE` that Parquet has beside the parts of a debate."""
_FREE = {"metadata", "data", "scores", "weights", "notes", "metrics", "raw", "request"}
"""Parts of a row whose keys are not fixed; in Parquet, whose columns are, they become JSON text."""


def export_to(folder: Path, output: Path | str, what: What = "debates", form: str | None = None) -> int:
    """Write one row per debate, message or call, and return how many; the columns are in `docs/export.md`.

    output: a file whose name ends in .jsonl, .csv or .parquet, or `-` for standard output. form: `jsonl`, `csv` or
    `parquet`, whatever the file is called; standard output is JSON lines unless it says otherwise. JSON lines of
    debates are the whole debates; CSV has the columns of `DEBATE`; Parquet has both. Raises `UserError` for anything
    else.
    """
    form = form or ("jsonl" if str(output) == "-" else Path(output).suffix.removeprefix("."))
    writers: dict[str, Callable[[What, Reader, Any], int]] = {
        "jsonl": _to_jsonl, "csv": _to_csv, "parquet": _to_parquet}
    if form not in writers or (form == "parquet" and str(output) == "-"):
        raise UserError(f"--output {output}: the name must end in .jsonl, .csv or .parquet, or be - for standard output"
                        " (--format jsonl or csv)")
    _refuse_records(folder, output)
    with open_study(folder) as study, _writing(output) as target:
        return writers[form](what, study, target)


def elsewhere(folder: Path, what: What) -> str:
    """Where further calls of a study are, to follow how many it has; empty where it reuses no other's."""
    runs = read_manifest(folder)["runs"] if what == "calls" else ()
    found = dict.fromkeys(path for run in runs if isinstance(run, Mapping) for path in run.get("reuse", ()))
    return f"; calls that it reuses are on record in {listed(found)}" if found else ""


def _refuse_records(folder: Path, output: Path | str) -> None:
    """Refuse to write over a study's own files, or over any database."""
    if str(output) == "-":
        return
    with suppress(OSError, ValueError):  # told when it is opened
        target = Path(output).resolve()
        own = target.parent == Path(folder).resolve() and (target.name in OWN_FILES or target.name.startswith("study."))
        if own or (target.is_file() and _begins(target) == b"SQLite format 3\0"):
            raise UserError(f"--output {output}: is a file of a study, which would be lost; choose another name")


def _begins(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(16)


def _rows(study: Reader, what: What) -> Iterator[Any]:
    """Debates, whole and as `_with_columns` has them, or rows of messages or calls."""
    if what == "calls":
        return map(Uses(study).of, study.calls())
    if what == "messages":
        return (row for line in lines(study) for row in rows_of(line, lambda record: [*message_rows(record)]))
    return (rows_of(line, _with_columns) for line in lines(study))


@contextmanager
def _writing(output: Path | str) -> Iterator[Any]:
    """What to write to: standard output, or the path of a file."""
    if str(output) == "-" and sys.stdout is None:
        raise UserError("--output -: standard output is closed")
    try:
        if str(output) == "-":
            yield sys.stdout
            return
        target = Path(output).resolve()
        if target.exists() and not target.is_file():  # a pipe, say
            yield target
            return
        with replacing(target) as beside:
            yield beside
    except BrokenPipeError:  # who reads has had enough
        raise
    except OSError as error:
        raise UserError(f"--output {output}: cannot be written: {error.strerror}") from None


@contextmanager
def _opened(target: Any) -> Iterator[TextIO]:
    if isinstance(target, Path):
        with target.open("w", encoding="utf-8", newline="") as file:
            yield file
    else:
        yield target


def _to_jsonl(what: What, study: Reader, target: Any) -> int:
    count = 0
    with _opened(target) as file:
        for line in lines(study) if what == "debates" else map(to_json, _rows(study, what)):
            file.write(line + "\n")
            count += 1
    return count


def _metric_names(study: Reader) -> list[str]:
    """The scores that debates have; of a metric with parts its own name too only if no debate has a part."""
    names: set[str] = set()
    without: set[str] = set()
    for row in study.figures():
        for name, value in row["metrics"].items():
            (without if value is None else names).add(name)
    return sorted(names | {n for n in without - names if not any(part.startswith(f"{n}.") for part in names)})


def _to_csv(what: What, study: Reader, target: Any) -> int:
    """Lists and tables are JSON text."""
    metrics = (f"metric.{name}" for name in _metric_names(study))
    columns = {"messages": [*MESSAGE], "calls": [*CALL], "debates": [*DEBATE, *metrics]}[what]
    count = 0
    rows = _rows(study, what) if what != "debates" else (rows_of(line, debate_row) for line in lines(study))
    with _opened(target) as file:
        writer = csv.writer(_Lines(file), lineterminator="\r\n")
        writer.writerow(columns)
        for row in rows:
            writer.writerow([_plain(row.get(name)) for name in columns])
            count += 1
    return count


class _Lines:
    """Writes rows that end in a line feed.

    Before Python 3.13, `csv` quotes a carriage return in a text only if it is part of the end of a row, and to whatever
    reads the file one outside of quotes is the end of a row.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, row: str) -> None:
        """Write a row, which ends in both."""
        self._file.write(row.removesuffix("\r\n") + "\n")


def _plain(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


def _to_parquet(what: What, study: Reader, target: Any) -> int:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise UserError("Parquet needs pyarrow: pip install 'madplug-export[parquet]', or export to .jsonl or .csv"
                        ) from None
    count, writer, schema, rows = 0, None, _schemas(pa)[what], _rows(study, what)
    while batch := list(islice(rows, BATCH)):
        table = _to_table(pa, batch, schema)
        writer = writer or pq.ParquetWriter(target, schema)
        writer.write_table(table)
        count += len(batch)
    if writer is None:
        raise UserError(f"--output {target}: there are no {what} to export yet{elsewhere(study.folder, what)}")
    writer.close()
    return count


def _with_columns(record: Mapping[str, Any]) -> dict[str, Any]:
    """A whole debate, with those columns of `DEBATE` that its own parts do not have under the same name."""
    flat = debate_row(record)
    return {**record, **{name: flat[name] for name in COLUMNS}}


def _to_table(pa: Any, records: Sequence[Mapping[str, Any]], schema: Any) -> Any:
    """The rows of a batch; raises `UserError` with the record that does not fit the columns."""
    try:
        return pa.Table.from_pylist([_flat(record) for record in records], schema=schema)
    except (ValueError, TypeError, OverflowError, AttributeError, RecursionError) as error:  # pyarrow's are among them
        if len(records) > 1:
            return pa.concat_tables([_to_table(pa, [record], schema) for record in records])
        raise UserError(f"the record {json.dumps(records[0])[:100]}... cannot be written as Parquet: {error}") from None


def _flat(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: json.dumps(v, ensure_ascii=False) if k in _FREE else _flat(v) for k, v in value.items()}
    return [_flat(v) for v in value] if isinstance(value, list) else value


def _schemas(pa: Any) -> dict[str, Any]:
    """Fixed columns: an empty list in the first rows must not determine a column's type."""
    text, whole, number, truth = pa.string(), pa.int64(), pa.float64(), pa.bool_()
    texts = pa.list_(text)
    sample = pa.struct({"id": text, "question": text, "choices": texts, "context": texts, "images": texts,
                        "group": text, "metadata": text})
    persona = pa.struct({"name": text, "description": text, "role": text, "votes": truth})
    agent = pa.struct({"id": whole, "persona": persona, "model": text, "style": text})
    message = pa.struct({
        "id": whole, "round": whole, "wave": whole, "agent": whole, "move": text, "content": text, "stage": text,
        "answer": text, "key": text, "agreement": truth, "confidence": number, "seen": pa.list_(whole),
        "altered": pa.list_(whole), "retracted": truth, "model": text, "calls": texts, "data": text})
    vote = pa.struct({"agent": whole, "weights": text, "valid": truth})
    decision = pa.struct({"key": text, "answer": text, "agreed": truth, "scores": text, "votes": pa.list_(vote),
                          "tie": truth, "fallback": truth, "reason": text})
    tokens = pa.struct({"prompt": whole, "completion": whole, "cached": whole, "cost_usd": number, "raw": text})
    debates = pa.schema({
        "cell": text, "repeat": whole, "sample": sample, "references": texts, "agents": pa.list_(agent),
        "messages": pa.list_(message), "decision": decision, "metrics": text, "calls": whole, "retries": whole,
        "tokens": tokens, "seconds": number, "error": text, "notes": text, "oracle": truth,
        "question": text, "reference": text, "partial": truth, "answer": text, "key": text, "undecided": truth,
        "rounds": whole, "first_answers": texts, "last_answers": texts, "flips": whole, "flipped": whole})
    messages = pa.schema({
        "cell": text, "repeat": whole, "sample": text, "message": whole, "round": whole, "wave": whole, "agent": whole,
        "persona": text, "role": text, "votes": truth, "model": text, "move": text, "stage": text, "content": text,
        "answer": text, "key": text, "changed": truth, "agreement": truth, "confidence": number,
        "seen": pa.list_(whole), "altered": pa.list_(whole), "retracted": truth, "calls": texts, "data": text,
        "oracle": truth})
    calls = pa.schema({
        "key": text, "cell": text, "repeat": whole, "sample": text, "agent": whole, "purpose": text, "round": whole,
        "nth": whole, "message": whole, "uses": whole, "model": text, "request": text, "text": text, "usage": tokens,
        "logprobs": pa.list_(number), "retries": whole, "seconds": number, "at": number})
    return {"debates": debates, "messages": messages, "calls": calls}
