"""The log of a study: JSON lines in its directory, and no secrets in them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

_KEEPS_SECRETS = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?)$", re.IGNORECASE)


def redact(text: str) -> str:
    """The text without the values of environment variables that hold secrets."""
    for secret in _secrets():
        text = text.replace(secret, "[secret]")
    return text


@lru_cache(maxsize=1)
def _secrets() -> tuple[str, ...]:
    return tuple(v for k, v in os.environ.items() if _KEEPS_SECRETS.search(k) and len(v) >= 8)


def trace(cell: Any, log: Any) -> None:
    """Log every hook call of a cell's run: about which debate, who was heard in which order, and what it gave."""
    def told(hook: str, implementations: Any, facts: Mapping[str, Any], gave: object) -> None:
        debate = facts.get("debate")
        where = {"repeat": debate.repeat, "sample": debate.sample.id, "round": debate.round} if debate else {}
        about = {name: str(getattr(facts[name], "id", getattr(facts[name], "agent", "")))[:80]
                 for name in ("turn", "message", "request") if name in facts}
        log.debug("hook", hook=hook, cell=cell.slug, **where, **about,
                  heard=[i.plugin_name for i in reversed(implementations)], gave=type(gave).__name__)

    cell.traced = told
    cell.manager.add_hookcall_monitoring(
        lambda *before: None,
        lambda outcome, hook, implementations, facts: told(
            hook, implementations, facts, outcome.exception or outcome.get_result()))


def open_log(folder: Path) -> Any:
    """A structlog logger that writes to `log.jsonl`; also what plugins get from `structlog.get_logger()`.

    Warnings of the standard library's `logging` go to the same file, so that no library writes over the progress.
    """
    import logging

    import structlog

    file = (folder / "log.jsonl").open("a", encoding="utf-8", buffering=1)
    render = structlog.processors.JSONRenderer(ensure_ascii=False)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars, structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True), structlog.processors.format_exc_info,
            lambda logger, method, event: redact(str(render(logger, method, event)))],
        logger_factory=structlog.WriteLoggerFactory(file), cache_logger_on_first_use=False)
    logger = structlog.get_logger()

    class ToStructlog(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            try:
                logger.log(record.levelno, record.getMessage(), logger=record.name)
            except Exception:  # a log must not fail what it reports on
                self.handleError(record)

    root = logging.getLogger()
    root.handlers = [h for h in root.handlers if type(h).__name__ != "ToStructlog"]
    root.addHandler(ToStructlog(logging.WARNING))
    return logger
