"""The status of a study's directory, and its debates and calls as files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from madplug.errors import UserError
from madplug.rows import to_json
from madplug.store import open_study
from madplug.summary import figures_by_cell

BATCH = 500
_FREE = {"metadata", "data", "scores", "weights", "notes", "metrics", "raw"}
"""Parts of a row whose keys are not fixed; in Parquet, whose columns are, they become JSON text."""


def status_of(folder: Path) -> dict[str, Any]:
    """Done, failed, left, calls, tokens and cost (USD) of a study, also while it runs."""
    with open_study(folder) as study:
        cells: list[dict[str, Any]] = [
            {"cell": name, "done": f.done, "failed": f.failed, "undecided": f.undecided, "calls": f.calls,
             "tokens": f.prompt + f.completion, "seconds": round(f.seconds, 3)}
            for name, f in sorted(figures_by_cell(study.figures()).items())]
        totals, planned = study.totals(), study.fact("planned")
        done, failed = sum(c["done"] for c in cells), sum(c["failed"] for c in cells)
        left = planned - done - failed if isinstance(planned, int) else None
        return {"done": done, "failed": failed, "left": left, "calls": totals.calls, "retries": study.retries(),
                "tokens": totals.tokens, "cost_usd": totals.cost_usd, "problems": study.problems(), "cells": cells}


def export_to(folder: Path, output: Path) -> int:
    """Write one row per debate and return how many. Raises `UserError` unless the name ends in .jsonl or .parquet."""
    writers = {".jsonl": _to_jsonl, ".parquet": _to_parquet}
    if output.suffix not in writers:
        raise UserError(f"--output {output}: the name must end in .jsonl or .parquet")
    with open_study(folder) as study, _writing(output):
        return writers[output.suffix](study.records(), output)


def export_calls(folder: Path, output: Path) -> int:
    """Write one row per model call, to replay it or to read prompts; return how many.

    The `key` of a row is the one that messages of an exported debate have in `calls`.
    """
    if output.suffix != ".jsonl":
        raise UserError(f"--output {output}: calls are written as .jsonl")
    with open_study(folder) as study, _writing(output):
        return _to_jsonl(map(to_json, study.calls()), output)


@contextmanager
def _writing(output: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(f"--output {output}: cannot be written: {error.strerror}") from None


def _to_jsonl(records: Iterator[str], output: Path) -> int:
    count = 0
    with output.open("w", encoding="utf-8") as file:
        for record in records:
            file.write(record + "\n")
            count += 1
    return count


def _to_parquet(records: Iterator[str], output: Path) -> int:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise UserError("Parquet needs pyarrow: pip install 'madplug[parquet]', or export to .jsonl") from None
    count, writer, schema = 0, None, _schema(pa)
    while batch := list(islice(records, BATCH)):
        table = _to_table(pa, batch, schema)
        writer = writer or pq.ParquetWriter(output, schema)
        writer.write_table(table)
        count += len(batch)
    if writer is None:
        raise UserError(f"--output {output}: there are no debates to export yet")
    writer.close()
    return count


def _to_table(pa: Any, records: Sequence[str], schema: Any) -> Any:
    """The rows of a batch; raises `UserError` with the record that does not fit the columns."""
    try:
        return pa.Table.from_pylist([_flat(json.loads(record)) for record in records], schema=schema)
    except (ValueError, TypeError, OverflowError, AttributeError, RecursionError) as error:  # pyarrow's are among them
        if len(records) > 1:
            return pa.concat_tables([_to_table(pa, [record], schema) for record in records])
        raise UserError(f"the record {records[0][:100]}... cannot be written as Parquet: {error}") from None


def _flat(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: json.dumps(v, ensure_ascii=False) if k in _FREE else _flat(v) for k, v in value.items()}
    return [_flat(v) for v in value] if isinstance(value, list) else value


def _schema(pa: Any) -> Any:
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
    return pa.schema({
        "cell": text, "repeat": whole, "sample": sample, "references": texts, "agents": pa.list_(agent),
        "messages": pa.list_(message), "decision": decision, "metrics": text, "calls": whole, "retries": whole,
        "tokens": tokens, "seconds": number, "error": text, "notes": text})
