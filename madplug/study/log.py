"""The log of a study: JSON lines in its directory, without secrets."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from madplug.redaction import redact

Log = Callable[..., None]
"""Writes a line: an event, its level, by default `info`, and facts by name."""


def trace(cell: Any, log: Log) -> None:
    """Log every hook call of a cell: the debate, the implementations that were called, and the type of the result."""
    def write(outcome: Any, hook: str, implementations: Any, facts: Mapping[str, Any]) -> None:
        debate, gave = facts.get("debate"), outcome.exception or outcome.get_result()
        where = {"repeat": debate.repeat, "sample": debate.sample.id, "round": debate.round} if debate else {}
        about = {name: str(getattr(facts[name], "id", getattr(facts[name], "agent", "")))[:80]
                 for name in ("turn", "request") if name in facts}
        log("hook", "debug", hook=hook, cell=cell.slug, **where, **about,
            implementations=[i.plugin_name for i in reversed(implementations)], gave=type(gave).__name__)

    cell.manager.add_hookcall_monitoring(lambda *before: None, write)


@contextmanager
def open_log(folder: Path, tell: Callable[[str], object]) -> Iterator[Log]:
    """A log that is written to `log.jsonl`.

    Warnings of `logging` go to the same file until the block ends, so that no library garbles the progress bar; those
    of plugins are also passed to `tell`.
    """
    with (folder / "log.jsonl").open("a", encoding="utf-8", buffering=1) as file, redirect_log(file.write, tell) as log:
        yield log


@contextmanager
def redirect_log(write: Callable[[str], object], tell: Callable[[str], object] = lambda text: None) -> Iterator[Log]:
    """A log whose lines are passed to `write`, as `open_log` writes them. tell: see there."""
    def log(event: str, level: str = "info", **facts: Any) -> None:
        at = datetime.now(timezone.utc).isoformat().replace("+00:00", "Z")
        line = json.dumps({**facts, "event": event, "level": level, "timestamp": at}, ensure_ascii=False, default=repr)
        write(redact(line) + "\n")

    class Warnings(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            try:
                log(record.getMessage(), record.levelname.lower(), logger=record.name)
                if record.name.startswith("madplug_"):
                    tell(redact(record.getMessage()))
            except Exception:  # a log must not fail what it reports on
                self.handleError(record)

    root = logging.getLogger()
    root.handlers = [h for h in root.handlers if type(h).__name__ != "Warnings"]
    handler = Warnings(logging.WARNING)
    root.addHandler(handler)
    try:
        yield log
    finally:
        root.removeHandler(handler)
