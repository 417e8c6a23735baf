"""Models of every provider that litellm reaches."""

from __future__ import annotations

from madplug import hookimpl
from madplug_litellm.chat import Chat

__all__ = ["Chat", "madplug_register_models"]


@hookimpl
def madplug_register_models() -> list[type[Chat]]:
    """Register the model."""
    return [Chat]
