"""What a person types, and the same from Python."""

from __future__ import annotations

from madplug.cli.program import main

__all__ = ["main"]
