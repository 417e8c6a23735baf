"""Asking the services that several plugins name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from madplug.services import Embedder, Retriever

if TYPE_CHECKING:
    from madplug import Debate


async def embed(debate: Debate, service: str, texts: Sequence[str]) -> Sequence[Sequence[float]]:
    """One vector for each text, from the embedder of this name."""
    return await debate.service(service, Embedder).embed(texts)


async def retrieve(debate: Debate, service: str, query: str, count: int) -> Sequence[str]:
    """At most `count` passages for a query, the best first, from the retriever of this name."""
    return await debate.service(service, Retriever).retrieve(query, count)
