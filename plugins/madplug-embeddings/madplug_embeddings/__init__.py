"""Embedders: sentences, hashing. Services that satisfy `madplug.services.Embedder`."""

from __future__ import annotations

from madplug import Service, hookimpl
from madplug_embeddings.hashing import Hashing
from madplug_embeddings.sentences import Sentences

__all__ = ["Hashing", "Sentences"]


@hookimpl
def madplug_register_services() -> list[type[Service]]:
    """Register two services."""
    return [Sentences, Hashing]
