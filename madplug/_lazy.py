"""Names of a package that are imported when they are first used."""

from __future__ import annotations

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def lazy_names(package: dict[str, Any]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """A package's `__getattr__` and `__dir__`, from its `globals()`, for what it imports under `if TYPE_CHECKING:`."""
    blocks = (node for node in ast.parse(Path(package["__file__"]).read_bytes()).body if isinstance(node, ast.If))
    home = {alias.name: node.module or "" for block in blocks for node in block.body
            if isinstance(node, ast.ImportFrom) for alias in node.names}

    def get(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module '{package['__name__']}' has no attribute '{name}'")
        package[name] = value = getattr(import_module(home[name]), name)
        return value

    return get, lambda: sorted({*package, *home})
