"""Embedders: sentences, hashing. A service with `embed(texts)` that gives one list of numbers per text."""

from __future__ import annotations

from madplug import Service, hookimpl
from madplug_embeddings.hashing import Hashing
from madplug_embeddings.sentences import Sentences

__all__ = ["Hashing", "Sentences"]


@hookimpl
def madplug_register_services() -> list[type[Service]]:
    """Offer both embedders."""
    return [Sentences, Hashing]
