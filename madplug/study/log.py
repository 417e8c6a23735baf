"""The log of a study: JSON lines in its directory, without secrets."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import structlog

from madplug.redaction import redact


def trace(cell: Any, log: Any) -> None:
    """Log every hook call of a cell: the debate, the implementations that were called, and the type of the result."""
    def write(outcome: Any, hook: str, implementations: Any, facts: Mapping[str, Any]) -> None:
        debate, gave = facts.get("debate"), outcome.exception or outcome.get_result()
        where = {"repeat": debate.repeat, "sample": debate.sample.id, "round": debate.round} if debate else {}
        about = {name: str(getattr(facts[name], "id", getattr(facts[name], "agent", "")))[:80]
                 for name in ("turn", "request") if name in facts}
        log.debug("hook", hook=hook, cell=cell.slug, **where, **about,
                  implementations=[i.plugin_name for i in reversed(implementations)], gave=type(gave).__name__)

    cell.hooks = cell.manager.hook
    cell.manager.add_hookcall_monitoring(lambda *before: None, write)


@contextmanager
def open_log(folder: Path, tell: Callable[[str], object]) -> Iterator[Any]:
    """A structlog logger that writes to `log.jsonl`; `structlog.get_logger()` gives it too, until the block ends.

    Warnings of the standard library's `logging` go to the same file, so that no library garbles the progress bar;
    those of plugins are also passed to `tell`.
    """
    with (folder / "log.jsonl").open("a", encoding="utf-8", buffering=1) as file, redirect_log(file.write, tell) as log:
        yield log


@contextmanager
def redirect_log(write: Callable[[str], object], tell: Callable[[str], object] = lambda text: None) -> Iterator[Any]:
    """A structlog logger whose lines are passed to `write`, as `open_log` writes them. tell: see there."""
    render = structlog.processors.JSONRenderer(ensure_ascii=False)

    def pass_on(logger: Any, method: str, event: Any) -> str:
        write(redact(str(render(logger, method, event))) + "\n")
        raise structlog.DropEvent

    processors: list[Any] = [
        structlog.contextvars.merge_contextvars, structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True), structlog.processors.format_exc_info, pass_on]
    structlog.configure(processors=processors, cache_logger_on_first_use=False)
    # Its own, so that a second study that begins or ends in this process does not get its lines.
    logger = structlog.wrap_logger(None, processors=processors)

    class ToStructlog(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            try:
                logger.log(record.levelno, record.getMessage(), logger=record.name)
                if record.name.startswith("madplug_"):
                    tell(redact(record.getMessage()))
            except Exception:  # a log must not fail what it reports on
                self.handleError(record)

    root = logging.getLogger()
    root.handlers = [h for h in root.handlers if type(h).__name__ != "ToStructlog"]
    handler = ToStructlog(logging.WARNING)
    root.addHandler(handler)
    try:
        yield logger
    finally:
        root.removeHandler(handler)
        structlog.reset_defaults()
