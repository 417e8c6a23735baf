"""A model, as a worker uses it: opened before its first request, asked, and closed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from madplug.calls.quota import estimate_tokens
from madplug.components import Model
from madplug.debate.checks import error_text, method_name, type_error
from madplug.errors import EmptyReplyError, ModelError, StudyStopped
from madplug.records import Completion, Request, Usage
from madplug.rows import storable_text
from madplug.store.encode import MOST_USD, clamp_usage


class ModelChannel:
    """A model with its name in the study."""

    def __init__(self, name: str, model: Model) -> None:
        self.name = name
        self.model = model
        self.opened = False
        self._opening = asyncio.Lock()

    @property
    def opening(self) -> bool:
        """Whether the model is being opened."""
        return self._opening.locked()

    async def open(self) -> None:
        """Open the model before its first request. Raises `StudyStopped` when it cannot be opened."""
        async with self._opening:
            if self.opened:
                return
            try:
                opening = self.model.open()
                if opening is not None:
                    await opening
            except Exception as error:
                raise StudyStopped(f"model '{self.name}' cannot be opened: {error_text(error)}") from error
            self.opened = True

    async def ask(self, request: Request, body: str, *, accept_empty: bool = False) -> Completion:
        """Make one attempt at a request. accept_empty: return a reply without text instead of raising."""
        try:
            answer: Any = self.model.complete(request)
            completion = await answer if hasattr(answer, "__await__") else answer
        except EmptyReplyError as error:
            if not accept_empty:
                raise
            completion = Completion("", error.usage or Usage())
        if not isinstance(completion, Completion):
            raise type_error(f"{method_name(self.model, 'complete')} returned", completion, "Completion")
        if not isinstance(completion.text, str):
            raise type_error(f"{method_name(self.model, 'complete')} returned a Completion whose text is",
                             completion.text, "a string")
        text = storable_text(completion.text)
        usage = estimated(clamp_usage(completion.usage), body, text)
        if usage.cost_usd is None and (price := self.model.price):
            # However absurd the price: an unknown cost would count as none for `limits.cost_usd`.
            usage = clamp_usage(replace(usage, cost_usd=min(cost_of(usage, price), MOST_USD)))
        if usage is completion.usage and text is completion.text:
            return completion
        return Completion(text, usage, completion.logprobs)

    async def close(self) -> None:
        """Close the model, if it was opened. Raises `ModelError` when it cannot be closed."""
        if not self.opened:
            return
        self.opened = False
        try:
            closing = self.model.close()
            if closing is not None:
                await closing
        except (Exception, SystemExit) as error:
            raise ModelError(f"model '{self.name}': close raised {type(error).__name__}: {error_text(error)}") \
                from error


def estimated(usage: Usage, body: str, text: str) -> Usage:
    """The usage, or an estimate marked as one if the endpoint reports none."""
    if usage.prompt or usage.completion or not text:
        return usage
    return replace(usage, prompt=estimate_tokens(body), completion=estimate_tokens(text),
                   raw={**usage.raw, "estimated": True})


def cost_of(usage: Usage, price: Mapping[str, float]) -> float:
    """USD of a call. price: USD per million tokens, by `prompt`, `completion` and `cached`."""
    cached = price.get("cached", price.get("prompt", 0.0))
    return ((usage.prompt - usage.cached) * price.get("prompt", 0.0) + usage.cached * cached
            + usage.completion * price.get("completion", 0.0)) / 1e6
