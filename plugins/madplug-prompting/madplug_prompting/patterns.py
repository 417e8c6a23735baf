"""Regular expressions that are compiled when they are used first: compiling them all would delay every start."""

from __future__ import annotations

import re
from typing import Any, cast

_METHODS = ("search", "match", "fullmatch", "sub", "subn", "finditer", "findall", "split", "pattern", "flags")


class _Lazy:
    def __init__(self, pattern: str, flags: int) -> None:
        self._source = pattern, flags

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(*self._source)
        self.__dict__.update((method, getattr(compiled, method)) for method in _METHODS)
        return getattr(compiled, name)


def regex(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """What `re.compile` gives, compiled on first use. Raises `re.error` then."""
    return cast("re.Pattern[str]", _Lazy(pattern, flags))
