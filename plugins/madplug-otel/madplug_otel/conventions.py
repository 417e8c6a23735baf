"""The names of the semantic conventions for generative AI that are used here, and how a call is described with them."""

from __future__ import annotations

import json
from typing import Any

from madplug import CallAnswered, redact

SCHEMA = "https://opentelemetry.io/schemas/1.44.0"
"""The version of the conventions."""
PROVIDER = "madplug"
"""`gen_ai.provider.name`: a run file names models, and only they know who provides them."""
CHAT, AGENT, WORKFLOW = "chat", "invoke_agent", "invoke_workflow"
PARAMS = {"temperature": "temperature", "top_p": "top_p", "max_tokens": "max_tokens",
          "frequency_penalty": "frequency_penalty", "presence_penalty": "presence_penalty"}


def call_attributes(event: CallAnswered, *, content: bool) -> dict[str, Any]:
    """The attributes of a call's span. content: with what was sent and answered."""
    request, answered, usage = event.request, event.answered, event.answered.completion.usage
    found: dict[str, Any] = {
        "gen_ai.operation.name": CHAT, "gen_ai.provider.name": PROVIDER, "gen_ai.request.model": request.model,
        "gen_ai.usage.input_tokens": usage.prompt, "gen_ai.usage.output_tokens": usage.completion,
        "gen_ai.usage.cache_read.input_tokens": usage.cached, "madplug.call.purpose": request.purpose,
        "madplug.call.source": answered.source, "madplug.call.retries": answered.retries,
        "madplug.call.key": answered.key}
    if usage.cost_usd is not None:
        found["madplug.call.cost_usd"] = usage.cost_usd
    for name, attribute in PARAMS.items():
        if isinstance(value := request.params.get(name), int | float):
            found[f"gen_ai.request.{attribute}"] = value
    return {**found, **(_content(event) if content else {})}


def _content(event: CallAnswered) -> dict[str, str]:
    """What was sent and answered, as the conventions write messages, without secrets."""
    sent = [{"role": m.get("role", "user"), "parts": _parts(m.get("content"))} for m in event.request.messages]
    answer = [{"role": "assistant", "parts": _parts(event.answered.completion.text), "finish_reason": "stop"}]
    return {"gen_ai.input.messages": redact(json.dumps(sent, ensure_ascii=False)),
            "gen_ai.output.messages": redact(json.dumps(answer, ensure_ascii=False))}


def _parts(content: Any) -> list[dict[str, str]]:
    if isinstance(content, str):
        return [{"type": "text", "content": content}]
    texts = [part.get("text", "[image]") for part in content or ()]  # an image would be megabytes of an attribute
    return [{"type": "text", "content": text} for text in texts]
