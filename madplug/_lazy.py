"""Names of a package that are imported when they are first used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: dict[str, Any], homes: Mapping[str, tuple[str, ...]] | None = None,
               ) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """A package's `__getattr__` and `__dir__`, from its `globals()`.

    homes: its names by the madplug module they are in; by default what the package imports for type checkers.
    """
    home = _imported(package["__file__"]) if homes is None else {
        name: f"madplug.{module}" for module, names in homes.items() for name in names}

    def get(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module '{package['__name__']}' has no attribute '{name}'")
        package[name] = value = getattr(import_module(home[name]), name)
        return value

    return get, lambda: sorted({*package, *home})


def _imported(file: str) -> dict[str, str]:
    """The modules of the names that a file imports under `if TYPE_CHECKING:`."""
    import ast  # `import madplug` needs none of this

    with open(file, encoding="utf-8") as source:
        blocks = [node for node in ast.parse(source.read()).body if isinstance(node, ast.If)]
    return {alias.name: node.module or "" for block in blocks for node in block.body
            if isinstance(node, ast.ImportFrom) for alias in node.names}
