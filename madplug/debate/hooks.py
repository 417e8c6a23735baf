"""The hooks between the components of a cell: the host's own implementations, and those of the named components."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from madplug.component import Component
from madplug.debate.checks import check_returned_all
from madplug.hookspecs import HookManager, hookimpl, hooks_of
from madplug.records import Message


def make_manager(components: Iterable[Component]) -> HookManager:
    """The pluggy manager of a cell's run; components are registered in their order."""
    manager = HookManager()
    manager.register(_Host(), "host")
    for i, component in enumerate(components):
        if hooks_of(type(component)) and manager.get_name(component) is None:
            manager.register(component, f"{i}.{component.kind}.{component.full_name}")
    return manager


class _Host:
    """The innermost implementation of every hook; delegates to the chosen component."""

    @hookimpl(trylast=True)
    def madplug_samples(self, setup: Any) -> Any:
        return setup.samples()

    @hookimpl(trylast=True)
    def madplug_opening(self, debate: Any) -> Any:
        return ()

    @hookimpl(trylast=True)
    def madplug_view(self, debate: Any, turn: Any) -> Any:
        visibility = debate.cell.visibility
        return check_returned_all(visibility.view(debate, turn), Message, visibility, "view")

    @hookimpl(trylast=True)
    def madplug_reply(self, debate: Any, turn: Any, view: Any) -> Any:
        return debate._respond(turn, view)

    @hookimpl(trylast=True)
    def madplug_request(self, debate: Any, request: Any) -> Any:
        return request

    @hookimpl(trylast=True)
    def madplug_complete(self, debate: Any, request: Any) -> Any:
        return debate._send(request)

    @hookimpl(trylast=True)
    def madplug_round_ended(self, debate: Any) -> Any:
        return None
