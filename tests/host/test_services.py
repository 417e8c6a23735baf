"""Services are found by name, checked as `madplug check` does, and asked."""

from typing import Protocol

import pytest

from madplug import ComponentError, Embedder, Service
from madplug_testing import debate_from, wait_for


class Library(Service):
    """Vectors made of the request."""

    name = "library"

    async def embed(self, texts):
        return [(len(text), 1) for text in texts]


class Plain(Protocol):
    """A protocol without `runtime_checkable`, as plugins write them."""

    async def embed(self, texts): ...


@pytest.mark.parametrize("protocol", [Embedder, Plain])
def test_a_service_is_asked_by_its_name_if_it_has_the_methods_of_the_protocol(protocol):
    debate = debate_from("A")
    debate.cell.services = {"s": Library(), "empty": Service()}
    assert wait_for(debate.service("s", protocol).embed(("a", "bc"))) == [(1, 1), (2, 1)]
    with pytest.raises(ComponentError, match=f"the service 'empty' .Service. is not an? {protocol.__name__}: it has no "
                                             "`async def embed`"):
        debate.service("empty", protocol)
