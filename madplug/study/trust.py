"""Whether a study was run by this user, and what is asked before one that was not is given files to execute and keys.

Its `study.toml` names files, addresses and variables with keys. What this user ran carries a seal, made with a secret
that stays in the user's home; anything else may come from somebody else, so the user is asked.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from urllib.parse import urlsplit

from madplug.components import Component
from madplug.errors import UserError
from madplug.study.directory import SEAL, read_manifest
from madplug.study.files import read_text
from madplug.study.seal import seal

Ask = Callable[[list[str]], None]
"""Asks about what a study would have done, in words. Raises `UserError` unless the user agrees."""

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"]+")


def is_own(folder: Path) -> bool:
    """Whether the study in a directory was run by this user on this machine, with the `study.toml` that it has now."""
    try:
        expected = seal(read_text(folder / "study.toml"))
        found = read_manifest(folder).get(SEAL)
    except (OSError, ValueError, UserError):
        return False
    return bool(expected) and isinstance(found, str) and found.isascii() and hmac.compare_digest(expected, found)


def asking(folder: Path, *, yes: bool) -> Ask:
    """Ask on the terminal, unless this user ran the study. yes: the user has agreed beforehand."""
    def ask(what: list[str]) -> None:
        import click

        from madplug.text import safe

        if yes or not what or is_own(folder):
            return
        said = f"{folder} was not run by you on this machine, and it {'; it '.join(what)}"
        if not sys.stdin.isatty():
            raise UserError(f"{said}; if you trust it, add --yes")
        click.echo(safe(said), err=True)
        if not click.confirm("Go on?", err=True):
            raise UserError("nothing was done")
    return ask


def destinations(components: Iterable[Component]) -> list[str]:
    """What models and services may send elsewhere than they do by default: to which address, and with which key."""
    sent = []
    for component in components:
        options = component.options
        chosen = {name: str(getattr(options, name)) for name, field in type(options).model_fields.items()
                  if getattr(options, name) != field.default}
        keys = [str(getattr(options, name)) for name in type(options).model_fields
                if name.endswith("_env") and getattr(options, name)]
        addresses = [found for text in chosen.values() for found in _ADDRESS.findall(text) if _is_remote(found)]
        if addresses or any(name.endswith("_env") for name in chosen):
            where = f" to {addresses[0]}" if addresses else ""
            key = f" with the key in {' and '.join(keys)}" if keys else ""
            sent.append(f"has {component.full_name} send requests{where}{key}")
    return list(dict.fromkeys(sent))


def _is_remote(address: str) -> bool:
    """Whether an address is one of another machine."""
    try:
        host = urlsplit(address).hostname or ""
    except ValueError:
        return True
    if host == "localhost":
        return False
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return True
