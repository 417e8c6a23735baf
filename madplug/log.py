"""The log of a study: JSON lines in its directory, without secrets."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from madplug.study.files import open_to_append

_ENVIRONMENT: Any = getattr(os.environ, "_data", os.environ)
"""The variables without being decoded, which takes most of the time when they are compared with those before."""
_KEEPS_SECRETS = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL)S?_?\d*$", re.IGNORECASE)
_PASSWORD = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#\s@:]*:(\S+)@", re.IGNORECASE)
"""The password in an address, such as that of a proxy."""
_SHORTEST = 8
"""Characters: a shorter value, such as `none`, is no secret, and too common in texts to be removed from them."""
_PORTION = 100_000
"""Characters searched at a time, so that a thread that searches a long text lets other threads run."""
_LONGEST = 18
"""Characters that one character takes up at most: two halves, each with four backslashes, a `u` and four digits."""


def redact(text: str) -> str:
    """The text without the values of environment variables whose names suggest secrets, and passwords in others."""
    return hide(text, _secrets())


def hide(text: str, secrets: Iterable[str], shown: str = "[secret]") -> str:
    """The text with `shown` in the place of each secret.

    A secret is also found where some or all of its characters are written as JSON escapes or percent-encoded.
    Secrets of fewer than 8 characters are left alone.
    """
    for secret in secrets:
        if len(secret) < _SHORTEST:
            continue
        text = text.replace(secret, shown)
        if "%" in text or "\\" in text:
            text = _hide_escaped(text, secret, shown)
    return text


def _hide_escaped(text: str, secret: str, shown: str) -> str:
    pattern, longest = _escaped(secret)
    parts, kept = [], 0
    for start in range(0, len(text), _PORTION):
        end = start + _PORTION
        for found in pattern.finditer(text, max(start, kept), end + longest):
            if found.start() >= end:
                break
            parts += [text[kept:found.start()], shown]
            kept = found.end()
    return "".join([*parts, text[kept:]])


@lru_cache(maxsize=64)
def _escaped(secret: str) -> tuple[re.Pattern[str], int]:
    """What finds a secret with any of its characters escaped, and the most characters that it may take up."""
    return re.compile("".join(map(_forms, secret))), len(secret) * _LONGEST


def _forms(character: str) -> str:
    """A pattern for a character as it is, percent-encoded, or in an escape of JSON or Python.

    Backslashes may be doubled, twice at most: text that was quoted in JSON, and that again in a log.
    """
    plain = re.escape(character)
    percent = re.sub("(..)", r"%\1", character.encode("utf-8", "surrogatepass").hex())
    units = character.encode("utf-16-be", "surrogatepass").hex()
    first, *second = (units[i:i + 4] for i in range(0, len(units), 4))
    escaped = f"u{first}" + "".join(rf"\\{{1,4}}u{unit}" for unit in second)
    if ord(character) < 256:
        escaped += f"|x{ord(character):02x}"
    return rf"(?:{plain}|(?i:{percent})|\\{{1,4}}(?:(?i:{escaped})|{plain}))"


def _secrets() -> tuple[str, ...]:
    """Those of the environment as it is now: in a notebook, a key is often set after the first study has run."""
    return _secrets_in(tuple(_ENVIRONMENT.items()))


@lru_cache(maxsize=1)
def _secrets_in(environment: tuple[tuple[Any, Any], ...]) -> tuple[str, ...]:
    """Those of `os.environ`; environment: its variables, so that they are looked for once until one changes."""
    named = (value for name, value in os.environ.items() if _KEEPS_SECRETS.search(name))
    passwords = (unquote(found[1]) for value in os.environ.values() if (found := _PASSWORD.match(value)))
    return tuple(secret for secret in (*named, *passwords) if len(secret) >= _SHORTEST)


def trace(cell: Any, log: Any) -> None:
    """Log every hook call of a cell: the debate, the implementations that were called, and the type of the result."""
    def write(outcome: Any, hook: str, implementations: Any, facts: Mapping[str, Any]) -> None:
        debate, gave = facts.get("debate"), outcome.exception or outcome.get_result()
        where = {"repeat": debate.repeat, "sample": debate.sample.id, "round": debate.round} if debate else {}
        about = {name: str(getattr(facts[name], "id", getattr(facts[name], "agent", "")))[:80]
                 for name in ("turn", "request") if name in facts}
        log.debug("hook", hook=hook, cell=cell.slug, **where, **about,
                  implementations=[i.plugin_name for i in reversed(implementations)], gave=type(gave).__name__)

    cell.manager.add_hookcall_monitoring(lambda *before: None, write)


@contextmanager
def open_log(folder: Path) -> Iterator[Any]:
    """A structlog logger that writes to `log.jsonl`; `structlog.get_logger()` gives it too, until the block ends.

    Warnings of the standard library's `logging` go to the same file, so that no library garbles the progress bar.
    """
    file = open_to_append(folder / "log.jsonl")
    try:
        with redirect_log(file.write) as logger:
            yield logger
    finally:
        file.close()


@contextmanager
def redirect_log(write: Callable[[str], object]) -> Iterator[Any]:
    """A structlog logger whose lines are passed to `write`, as `open_log` writes them."""
    import logging

    import structlog

    render = structlog.processors.JSONRenderer(ensure_ascii=False)
    processors: list[Any] = [
        structlog.contextvars.merge_contextvars, structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True), structlog.processors.format_exc_info,
        lambda logger, method, event: redact(str(render(logger, method, event)))]
    lines = _Lines(write)
    structlog.configure(processors=processors, logger_factory=structlog.WriteLoggerFactory(lines),
                        cache_logger_on_first_use=False)
    # Its own, so that a second study that begins or ends in this process does not get its lines.
    logger = structlog.wrap_logger(structlog.WriteLogger(lines), processors=processors)

    class ToStructlog(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            try:
                logger.log(record.levelno, record.getMessage(), logger=record.name)
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


class _Lines(StringIO):
    """A file whose lines are passed on."""

    def __init__(self, write: Callable[[str], object]) -> None:
        super().__init__()
        self._pass_on = write

    def write(self, text: str) -> int:
        """Pass a line on."""
        self._pass_on(text)
        return len(text)
