"""Models behind an OpenAI-compatible endpoint: OpenAI itself, vLLM, SGLang, llama.cpp, Ollama, ...."""

from __future__ import annotations

from madplug import hookimpl
from madplug_openai.chat import Chat

__all__ = ["Chat", "madplug_register_models"]


@hookimpl
def madplug_register_models() -> list[type[Chat]]:
    """Register the model."""
    return [Chat]
