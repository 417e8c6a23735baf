"""Addresses and keys: what a run file may say about them, and how they are removed from messages."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from typing import Annotated
from urllib.parse import unquote, urlsplit

from pydantic import AfterValidator

from madplug import UserError, forms_of, hide

_NAME = re.compile(r"[A-Z_][A-Z0-9_]{0,63}")
_LIKE_A_KEY = re.compile(r"\b(?:sk|pk|rk|gsk|hf|xai)[-_][\w.*-]{8,}")
# Colours, cursor movements and titles first, whole; then every other control or direction character.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?)")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff\s]+")
_USER = re.compile(r"(?<=://)[^\s'\"<>]+@")  # up to the last @: a password may contain / where it must not
_REQUEST_ID = re.compile(r"(?i)\(?\brequest[ _-]?id\b\W{1,3}[\w-]{6,}\)?")


def _variable(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError("must be the name of an environment variable in capitals, such as OPENAI_API_KEY; "
                         "a key itself never belongs in a run file")
    return name


def _address(url: str) -> str:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - read for its check
    except ValueError:
        raise ValueError("is not an address") from None
    if parts.username is not None or parts.password is not None:
        raise ValueError("must not contain a user name or password; name the key's variable in api_key_env")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must begin with http:// or https:// and name a host")
    if parts.query or parts.fragment:
        raise ValueError("must not contain ? or #: it is the part before /chat/completions")
    return url.rstrip("/")


KeyVariable = Annotated[str, AfterValidator(_variable)]
"""The name of an environment variable; what looks like a key is refused and not repeated."""
Address = Annotated[str, AfterValidator(_address)]
"""An http(s) address without credentials."""


def key_from(variable: str) -> str:
    """The key in an environment variable, or an empty string when it is not set."""
    key = os.environ.get(variable, "").strip()
    if not (key.isascii() and key.isprintable()):
        raise UserError(f"the environment variable {variable} has characters that no key contains")
    return key


def refuse_key_in(address: str, variable: str | None) -> None:
    """Refuse an address with a key in it: it would be written to the study's directory. Raises `ValueError`."""
    key = os.environ.get(variable, "").strip() if variable else ""
    if hide(address, [key]) != address or _LIKE_A_KEY.search(unquote(address)):
        raise ValueError("must not contain a key; name the key's variable in api_key_env")


def presentable(text: str, keys: Iterable[str] = (), most: int = 300) -> str:
    """Text of an endpoint as one short line: no key or password in it, and nothing a terminal would obey.

    Identifiers of single requests go too, so that the same refusal reads the same each time.
    """
    keys = tuple(keys)
    text = hide(_USER.sub("[key]@", text[:100 * most]), keys, "[key]")
    text = _CONTROLS.sub(" ", _ESCAPES.sub("", text))
    # Once more: what was taken out may have stood in the middle of a key.
    text = _LIKE_A_KEY.sub("[key]", hide(_REQUEST_ID.sub("", text), keys, "[key]")).strip()
    return text if len(text) <= most else text[:most - 3].rstrip() + "..."


class StreamedText:
    """A text that is shown while it arrives, without keys, also where a key comes in pieces or escaped.

    shown: called with each piece that cannot be the beginning of a key.
    """

    def __init__(self, shown: Callable[[str], None], keys: Iterable[str]) -> None:
        self._shown = shown
        self._keys = tuple(keys)
        self._forms = [form for key in self._keys for form in forms_of(key)]
        self._longest = max(map(len, self._forms), default=0)
        self._kept = ""

    def add(self, text: str) -> None:
        """Show a piece, as far as it is clear what it is."""
        text = hide(self._kept + text, self._keys, "[key]")
        last = range(max(0, len(text) - self._longest), len(text))
        safe = next((at for at in last if any(form.startswith(text[at:]) for form in self._forms)), len(text))
        self._kept = text[safe:]
        if safe:
            self._shown(text[:safe])

    def end(self) -> None:
        """Show what is left: nothing follows that could make it a key."""
        if self._kept:
            self._shown(self._kept)
        self._kept = ""
