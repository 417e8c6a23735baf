"""People in debates: a model whose requests a person answers in the browser."""

from __future__ import annotations

from madplug import Model, hookimpl
from madplug_human.chat import Chat

__all__ = ["Chat"]


@hookimpl
def madplug_register_models() -> list[type[Model]]:
    """Register the model."""
    return [Chat]
