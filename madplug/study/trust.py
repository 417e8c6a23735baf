"""Whose study it is: the one question before a study that this user did not begin is run, decided or scored.

A study's directory is data to those who read it, and code to those who run it: its `study.toml` names components, local
files to execute, and addresses that keys are sent to. What this user ran or agreed to is remembered by a digest of that
file; the study of anyone else, or one whose `study.toml` has been changed, is asked about once.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from madplug.config.read import read
from madplug.errors import UserError
from madplug.registry.local import is_file_reference
from madplug.store import has_study, open_study
from madplug.study.compatibility import strings
from madplug.study.files import read_text

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"]+")
_MOST = 12
"""Components, files or addresses that are named in the question; the others are counted."""


def confirm(folder: Path, table: Mapping[str, Any], *, yes: bool = False) -> None:
    """Ask on the terminal before a study that this user did not begin is run. Raises `UserError` without consent.

    table: the run file that would be run; nothing that it names has been made. yes: the user has agreed beforehand.
    What the directory's own `study.toml` names is in the question too, since it will not be asked about again.
    """
    try:
        begun = has_study(folder)
    except (OSError, ValueError):  # which whoever opens it will tell
        return
    if not begun or is_own(folder):
        return
    open_study(folder).close()  # one that cannot be read need not be trusted
    if not yes:
        _ask(f"{folder}: you did not begin this study on this machine{_owner(folder)}; it names "
             f"{_names([table, _stored(folder)])}")
    remember(folder)


def is_own(folder: Path) -> bool:
    """Whether this user ran, or agreed to, a study with the `study.toml` that is in a directory."""
    try:
        return _mark(read_text(folder / "study.toml")).exists()
    except (OSError, ValueError, RuntimeError):
        return False


def remember(folder: Path) -> None:
    """Remember the `study.toml` in a directory as one that the user ran or agreed to."""
    with suppress(OSError, ValueError, RuntimeError):  # without a home, every study is asked about
        mark = _mark(read_text(folder / "study.toml"))
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()


def _mark(text: str) -> Path:
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return state / "madplug" / "begun" / sha256(text.encode()).hexdigest()


def _ask(question: str) -> None:
    import click

    from madplug.text import safe

    if not sys.stdin.isatty():
        raise UserError(f"{question}; if you trust it, add --yes (in Python: yes=True)")
    click.echo(safe(question), err=True)
    if not click.confirm("Go on?", err=True):
        raise UserError("nothing was done")


def _owner(folder: Path) -> str:
    try:
        return f" (its files belong to {folder.owner()})"
    except (KeyError, OSError, NotImplementedError):  # an account of another machine; Windows
        return ""


def _stored(folder: Path) -> Mapping[str, Any]:
    try:
        return read(folder / "study.toml", (), {})
    except UserError:
        return {}


def _names(tables: Sequence[Mapping[str, Any]]) -> str:
    """The components, local files and addresses that run files name, in words."""
    texts = [*strings(tables)]
    found = {"the components": [use for use in _uses(tables) if not is_file_reference(use)],
             "the local files": [text for text in texts if is_file_reference(text)],
             "the addresses": [address for text in texts for address in _ADDRESS.findall(text)]}
    named = {what: list(dict.fromkeys(words)) for what, words in found.items() if words}
    return "; ".join(f"{what} {', '.join(words[:_MOST])}" + (f" and {len(words) - _MOST} more" if words[_MOST:] else "")
                     for what, words in reversed(named.items())) or "nothing"


def _uses(value: Any) -> Iterator[str]:
    """The text that stands after `use` anywhere in a run file."""
    if isinstance(value, Mapping):
        yield from (use for key, use in value.items() if key == "use" and isinstance(use, str))
    if isinstance(value, Mapping | list):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _uses(inner)
