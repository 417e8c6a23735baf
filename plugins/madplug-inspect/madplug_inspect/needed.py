"""Whether inspect_ai is installed: it is large, so it is an extra."""

from __future__ import annotations

from importlib.util import find_spec

NEEDED = "needs inspect_ai, which is not installed: pip install 'madplug-inspect[inspect]'"


def is_installed() -> bool:
    """Whether inspect_ai can be imported."""
    return find_spec("inspect_ai") is not None
