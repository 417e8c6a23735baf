"""Retrievers: bm25, wikipedia. Services that satisfy `madplug.services.Retriever`."""

from __future__ import annotations

from madplug import Service, hookimpl
from madplug_retrieval.bm25 import Bm25
from madplug_retrieval.wikipedia import Wikipedia

__all__ = ["Bm25", "Wikipedia"]


@hookimpl
def madplug_register_services() -> list[type[Service]]:
    """Register two services."""
    return [Bm25, Wikipedia]
