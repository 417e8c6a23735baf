"""Questions from a local file."""

from __future__ import annotations

from madplug import hookimpl
from madplug_files.table import Table

__all__ = ["Table"]


@hookimpl
def madplug_register_datasets() -> list[type]:
    """Register `files.table`."""
    return [Table]
