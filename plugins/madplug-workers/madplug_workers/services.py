"""Services that live once: workers in other processes ask the driver's instance."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Protocol

from madplug import Service


class Serves(Protocol):
    """What asks the driver's services."""

    async def serve(self, cell: str, name: str, method: str, /, *arguments: Any, **named: Any) -> Any:
        """What a method of a service returns."""


def live_once(cell: str, name: str, service: Service, driver: Serves) -> Service:
    """The service itself; or, if it lives once, one with the same methods, each of which asks the driver's instance."""
    if not service.once:
        return service
    cls = type(service)
    methods = {method: _forward(cell, name, method, driver) for method in dir(cls)
               if method[:1] != "_" and inspect.iscoroutinefunction(getattr(cls, method))}
    idle = dict.fromkeys(("open", "close", "prepare"), _do_nothing)
    made: Service = type(cls.__name__, (cls,), methods | idle).from_slot(  # type: ignore[attr-defined]
        service.options, full_name=service.full_name)
    return made


def _forward(cell: str, name: str, method: str, driver: Serves) -> Callable[..., Any]:
    async def ask(self: Service, *arguments: Any, **named: Any) -> Any:
        return await driver.serve(cell, name, method, *arguments, **named)

    ask.__name__ = method
    return ask


def _do_nothing(self: Service, *_: Any) -> None:
    """The instance in the driver's process is opened, prepared and closed there."""
