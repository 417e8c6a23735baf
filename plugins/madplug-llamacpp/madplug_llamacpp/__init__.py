"""The embedded model: GGUF weights inside the process."""

from __future__ import annotations

from madplug import hookimpl
from madplug_llamacpp.chat import Chat

__all__ = ["Chat", "madplug_register_models"]


@hookimpl
def madplug_register_models() -> list[type[Chat]]:
    """Register the model."""
    return [Chat]
