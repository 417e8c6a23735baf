"""Services are found by name and asked."""

from typing import Protocol

import pytest

from madplug import ComponentError, Embedder, Retriever, Service
from madplug_testing import debate_from, wait_for


class Library(Service):
    """Vectors and passages made of the request."""

    name = "library"

    async def embed(self, texts):
        return [(len(text), 1) for text in texts]

    async def retrieve(self, query, k):
        return [query] * k


def test_services_are_asked_by_their_names():
    debate = debate_from("A")
    debate.cell.services = {"s": Library(), "empty": Service()}
    assert wait_for(debate.service("s", Embedder).embed(("a", "bc"))) == [(1, 1), (2, 1)]
    assert wait_for(debate.service("s", Retriever).retrieve("q", 2)) == ["q", "q"]
    with pytest.raises(ComponentError, match="is not an Embedder"):
        debate.service("empty", Embedder)


class Plain(Protocol):
    """A protocol without `runtime_checkable`, as plugins write them."""

    async def embed(self, texts): ...


def test_a_service_is_checked_as_madplug_check_does():
    debate = debate_from("A")
    debate.cell.services = {"s": Library(), "empty": Service()}
    assert debate.service("s", Plain) is debate.cell.services["s"]
    with pytest.raises(ComponentError) as refused:
        debate.service("empty", Plain)
    assert str(refused.value) == "the service 'empty' (Service) is not a Plain: it has no `async def embed`"
