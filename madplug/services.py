"""What services can do, as protocols: an option says which one it needs, and `madplug check` looks for its methods.

    embedder: Annotated[ServiceName, Offers(Embedder)] = Field(description="turns answers into vectors")

A service implements a protocol by having its methods, each an `async def`; it inherits only from `madplug.Service`.
Plugins can define further protocols.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from typing_extensions import get_protocol_members

from madplug.errors import ComponentError, listed, nearest
from madplug.text import a


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors, so that texts with similar meanings are close."""

    async def embed(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """One vector per text, in order, all of the same length."""


@dataclass(frozen=True, slots=True)
class Passage:
    """What a retriever found."""

    text: str
    source: str = ""
    """Where it is from, as a reader would look it up: a file and its place in it, an address."""


@runtime_checkable
class Retriever(Protocol):
    """Finds passages about a question."""

    async def retrieve(self, query: str, k: int) -> Sequence[Passage]:
        """At most `k` passages, best first."""


class ProgramResult(Protocol):
    """The result of running a program."""

    @property
    def status(self) -> str:
        """`ok`, or how it ended otherwise."""

    @property
    def output(self) -> str:
        """What it printed, up to the sandbox's limit."""

    @property
    def error(self) -> str:
        """Why it failed, in one line; empty if it did not."""


@runtime_checkable
class Sandbox(Protocol):
    """Runs untrusted programs: with limits, without network and without files."""

    async def run(self, program: str) -> ProgramResult:
        """Run a program to its end or to a limit; never raises for what the program does."""


def lacks(cls: type[Any], protocol: type[Any]) -> list[str]:
    """The methods of a protocol that a class does not have as coroutine functions."""
    return sorted(name for name in get_protocol_members(protocol) if inspect.isfunction(getattr(protocol, name, None))
                  and not inspect.iscoroutinefunction(getattr(cls, name, None)))


def find_service(services: Mapping[str, Any], name: str, protocol: type[Any] | None) -> Any:
    """A service by name. Raises `ComponentError` if there is none, or it does not implement the protocol."""
    if name not in services:
        raise ComponentError(f"a component asked for the service '{name}', which this cell does not use"
                             f"{nearest(name, services)}; it uses {listed(sorted(services), near=name) or 'none'}")
    found = services[name]
    if protocol is not None and (missing := lacks(type(found), protocol)):
        raise ComponentError(f"the service '{name}' ({type(found).__qualname__}) is not {a(protocol.__name__)}: it has "
                             f"no `async def {missing[0]}`")
    return found


__all__ = ["Embedder", "Passage", "ProgramResult", "Retriever", "Sandbox"]
