"""Names of a package that are imported when they are first used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: dict[str, Any], homes: Mapping[str, tuple[str, ...]],
               ) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """A package's `__getattr__` and `__dir__`, from its `globals()` and its names by the madplug module they are in."""
    home = {name: f"madplug.{module}" for module, names in homes.items() for name in names}

    def get(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module '{package['__name__']}' has no attribute '{name}'")
        package[name] = value = getattr(import_module(home[name]), name)
        return value

    return get, lambda: sorted({*package, *home})
