"""Questions from the Hugging Face hub."""

from __future__ import annotations

from madplug import Dataset, hookimpl
from madplug_datasets.hub import Hub, HubOptions

__all__ = ["Hub", "HubOptions"]


@hookimpl
def madplug_register_datasets() -> list[type[Dataset]]:
    """Register `datasets.hub`."""
    return [Hub]
