"""Looking at a study's directory: its status, and its debates as files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from madplug.errors import UserError
from madplug.rows import to_json
from madplug.store import StudyStore
from madplug.summary import add_up

BATCH = 500
_FREE = {"metadata", "data", "scores", "weights", "notes", "metrics", "raw"}
"""Parts of a row whose keys are not fixed: text in Parquet, whose columns are."""


def status_of(folder: Path) -> dict[str, Any]:
    """Done, failed, left, calls, tokens and cost of a study, also while it runs."""
    store = StudyStore(folder)
    cells: list[dict[str, Any]] = [
        {"cell": name, "done": f.done, "failed": f.failed, "undecided": f.undecided, "calls": f.calls,
         "tokens": f.prompt + f.completion, "seconds": round(f.seconds, 3)}
        for name, f in sorted(add_up(store.figures()).items())]
    totals, planned = store.totals(), store.fact("planned")
    done, failed = sum(c["done"] for c in cells), sum(c["failed"] for c in cells)
    facts = {"done": done, "failed": failed, "left": None if planned is None else planned - done - failed,
             "calls": totals.calls, "retries": store.retries(), "tokens": totals.tokens, "cost_usd": totals.cost_usd,
             "problems": store.problems(), "cells": cells}
    store.close()
    return facts


def export_to(folder: Path, output: Path) -> int:
    """Write one row per debate; returns how many. Raises `UserError` for another ending than .jsonl or .parquet."""
    writers = {".jsonl": _to_jsonl, ".parquet": _to_parquet}
    if output.suffix not in writers:
        raise UserError(f"--output {output}: the name must end in .jsonl or .parquet")
    store = StudyStore(folder)
    try:
        return writers[output.suffix](store.records(), output)
    except OSError as error:
        raise UserError(f"--output {output}: cannot be written: {error.strerror}") from None
    finally:
        store.close()


def export_calls(folder: Path, output: Path) -> int:
    """Write one row per model call, for `cassette.replay` and for looking at prompts; returns how many."""
    if output.suffix != ".jsonl":
        raise UserError(f"--output {output}: calls are written as .jsonl")
    store = StudyStore(folder)
    try:
        return _to_jsonl(map(to_json, store.recorded()), output)
    except OSError as error:
        raise UserError(f"--output {output}: cannot be written: {error.strerror}") from None
    finally:
        store.close()


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
    count, writer, schema = 0, None, None
    while batch := [_flat(json.loads(r)) for r in islice(records, BATCH)]:
        table = pa.Table.from_pylist(batch, schema=schema or _schema(pa))
        schema = table.schema
        writer = writer or pq.ParquetWriter(output, schema)
        writer.write_table(table)
        count += len(batch)
    if writer is None:
        raise UserError(f"--output {output}: there are no debates to export yet")
    writer.close()
    return count


def _flat(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: json.dumps(v, ensure_ascii=False) if k in _FREE else _flat(v) for k, v in value.items()}
    return [_flat(v) for v in value] if isinstance(value, list) else value


def _schema(pa: Any) -> Any:
    """Fixed columns: an empty list in the first rows must not decide a column's type."""
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
