"""Communication attacks: what agents say is dropped, altered or added to on its way to the others."""

from __future__ import annotations

from madplug import Extension, hookimpl
from madplug_attack.channel import Alter, Channel, Inject
from madplug_attack.chosen import Attack, attacked
from madplug_attack.drop import Drop

__all__ = ["Alter", "Attack", "Channel", "Drop", "Inject", "attacked"]


@hookimpl
def madplug_register_extensions() -> list[type[Extension]]:
    """Register three extensions."""
    return [Drop, Alter, Inject]
