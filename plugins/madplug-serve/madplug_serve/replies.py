"""What a client gets: a debate as a chat completion, whole or in the chunks of a stream."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from madplug import Agent, DebateResult, Message

PLACEHOLDERS = ("answer", "message")


class ReplyWriter:
    """Writes the replies to one request.

    template: the text of an answer, with `{answer}` (the decision's answer) and `{message}` (the whole last message of
    an agent that gave it).
    """

    def __init__(self, id: str, model: str, template: str, ignored: Sequence[str] = ()) -> None:
        self._head = {"id": f"chatcmpl-{id}", "created": int(time.time()), "model": model}
        self._template = template
        self._ignored = list(ignored)

    def whole(self, results: Sequence[DebateResult]) -> dict[str, Any]:
        """The reply in one piece: a choice for each debate."""
        choices = [{"index": i, "finish_reason": "stop", "logprobs": None, "message": {
            "role": "assistant", "content": answer_text(result, self._template), "reasoning_content": reasoning(result),
            "refusal": None}} for i, result in enumerate(results)]
        return {**self._head, "object": "chat.completion", "choices": choices, "usage": usage_of(results),
                "madplug": self._facts(results)}

    def chunk(self, index: int, **delta: Any) -> bytes:
        """A piece of one choice."""
        return self._event(choices=[{"index": index, "delta": delta, "finish_reason": None}])

    def last(self, index: int, result: DebateResult) -> bytes:
        """The answer of one choice, and its end."""
        answer = answer_text(result, self._template)
        return (self.chunk(index, content=answer)
                + self._event(choices=[{"index": index, "delta": {}, "finish_reason": "stop"}],
                              madplug=self._facts([result])))

    def usage(self, results: Sequence[DebateResult]) -> bytes:
        """What all debates of the request used."""
        return self._event(choices=[], usage=usage_of(results))

    def _facts(self, results: Sequence[DebateResult]) -> dict[str, Any]:
        return {"debates": [facts_of(r) for r in results], "ignored": self._ignored}

    def _event(self, **more: Any) -> bytes:
        return sse({**self._head, "object": "chat.completion.chunk", **more})


def sse(body: Mapping[str, Any]) -> bytes:
    """One event of a stream."""
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def answer_text(result: DebateResult, template: str) -> str:
    """The text of a debate's answer; empty if it is undecided."""
    decision = result.decision
    if decision is None or decision.key is None:
        return ""
    answer = decision.answer or decision.key
    said = [m.content for m in result.messages if m.key == decision.key and not m.retracted]
    values = {"answer": answer, "message": said[-1] if said else answer}
    parts = template.split("{")  # filled in one pass: braces in an answer stay text
    filled = parts[0]
    for part in parts[1:]:
        name, brace, rest = part.partition("}")
        filled += values[name] + rest if brace and name in values else "{" + part
    return filled


def reasoning(result: DebateResult) -> str:
    """The debate as one text."""
    return "".join(reasoning_part(m, None if m.agent is None else result.agents[m.agent]) for m in result.messages
                   if not m.retracted)


def reasoning_part(message: Message, agent: Agent | None) -> str:
    """One message of a debate."""
    who = "Note" if agent is None else agent.persona.name
    if message.retracted:
        return f"[{who}, round {message.round}: the message was retracted]\n\n"
    return f"[{who}, round {message.round}]\n{message.content.strip()}\n\n"


def usage_of(results: Sequence[DebateResult]) -> dict[str, Any]:
    """The tokens of all debates of a request."""
    prompt, completion = (sum(getattr(r.tokens, name) for r in results) for name in ("prompt", "completion"))
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": sum(r.tokens.cached for r in results)}}


def facts_of(result: DebateResult) -> dict[str, Any]:
    """Where a debate is recorded, and how it ended."""
    decision = result.decision
    return {"cell": result.cell, "sample": result.sample.id, "agreed": decision is not None and decision.agreed,
            "decided": decision is not None and decision.key is not None,
            "reason": decision.reason if decision else "", "rounds": result.rounds, "calls": result.calls,
            "cost_usd": result.tokens.cost_usd, "seconds": result.seconds}
