"""Batches: the requests of all open debates are sent together, answered within a day, and cost half."""

from __future__ import annotations

from madplug import Executor, hookimpl


@hookimpl
def madplug_register_executors() -> list[type[Executor]]:
    """Register the executor."""
    from madplug_batch.rounds import Rounds

    return [Rounds]
