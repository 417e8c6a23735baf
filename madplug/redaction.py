"""Redaction: the secrets of the environment are written to no file and shown on no terminal."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote

_ENVIRONMENT: Any = getattr(os.environ, "_data", os.environ)
"""The variables without being decoded, which takes most of the time when they are compared with those before."""
_KEEPS_SECRETS = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL)S?_?\d*$", re.IGNORECASE)
_PASSWORD = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#\s@:]*:(\S+)@", re.IGNORECASE)
"""The password in an address, such as that of a proxy."""
_SHORTEST = 8
"""Characters: a shorter value, such as `none`, is not a secret, and too common in texts to be removed from them."""
_WORD = re.compile(r"[A-Z]?[a-z]{,12}|[A-Z]{,12}")
"""What stands in the place of a key that nobody asks for, such as `anything`: models write it, too, and mean it."""


def redact(text: str) -> str:
    """The text without the values of environment variables whose names suggest secrets, and passwords in others."""
    secrets = _secrets_in(tuple(_ENVIRONMENT.items()))  # as they are now: in a notebook, a key is often set late
    return _without(text, secrets, "[secret]")


def hide(text: str, secrets: Iterable[str], shown: str = "[secret]") -> str:
    """The text with `shown` in the place of each secret.

    A secret is found as it is, as JSON quotes it (also twice, as in a log of a reply) and percent-encoded. Secrets of
    fewer than 8 characters, and words of at most 13 letters, are left alone.
    """
    return _without(text, filter(_is_key, secrets), shown)


def _is_key(text: str) -> bool:
    return len(text) >= _SHORTEST and not _WORD.fullmatch(text)


def _without(text: str, secrets: Iterable[str], shown: str) -> str:
    for secret in secrets:
        for form in forms_of(secret):
            text = text.replace(form, shown)
    return text


@lru_cache(maxsize=64)
def forms_of(secret: str) -> list[str]:
    """The forms in which `hide` finds a secret, the longest first."""
    quoted = [quote(secret, safe=safe, errors="surrogatepass") for safe in ("", "/")]
    forms = {secret, *quoted, *(re.sub("%..", lambda found: found[0].lower(), text) for text in quoted)}
    for _ in range(2):
        in_json = {json.dumps(form, ensure_ascii=ascii)[1:-1] for form in forms for ascii in (True, False)}
        forms |= in_json | {form.replace("/", r"\/") for form in in_json}  # as some encoders write a slash
    return sorted(forms, key=len, reverse=True)


@lru_cache(maxsize=1)
def _secrets_in(environment: tuple[tuple[Any, Any], ...]) -> tuple[str, ...]:
    """Those of `os.environ`; environment: its variables, so that they are looked for once until one changes."""
    named = [(name, value) for name, value in os.environ.items() if _KEEPS_SECRETS.search(name)]
    passwords = [value for name, value in named if "PASS" in name.upper()]
    passwords += [unquote(found[1]) for value in os.environ.values() if (found := _PASSWORD.match(value))]
    return (*(text for text in passwords if len(text) >= _SHORTEST), *(text for _, text in named if _is_key(text)))
