"""A reply that comes in pieces (server-sent events), put together as if it had come at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from madplug import TransientError

FIELDS = {"stream": True, "stream_options": {"include_usage": True}}
"""What asks for pieces, and for the usage in the last one."""


class Pieces:
    """The pieces of one reply. shown: called with the text of each."""

    def __init__(self, shown: Callable[[str], None]) -> None:
        self._shown = shown
        self._rest = b""
        self._first: Mapping[str, Any] | None = None
        self._message: dict[str, Any] = {"role": "assistant", "content": ""}
        self._logprobs: list[Any] = []
        self._finish: str | None = None
        self._usage: Any = None
        self._error: Any = None
        self._done = False

    def feed(self, data: bytes) -> None:
        """Take bytes of the reply as they arrive."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                self._event(line[5:].strip())

    def _event(self, data: bytes) -> None:
        if data == b"[DONE]":
            self._done = True
            return
        try:
            event = json.loads(data)
        except ValueError:
            return  # the reply is then not complete, which is noticed at its end
        if not isinstance(event, dict):
            return
        self._first = self._first or event
        self._usage = event.get("usage") or self._usage
        self._error = event.get("error") or self._error
        for choice in event.get("choices") or ():
            if isinstance(choice, dict):
                self._choice(choice)

    def _choice(self, choice: Mapping[str, Any]) -> None:
        delta = choice.get("delta")
        for name, value in (delta if isinstance(delta, dict) else {}).items():
            if name != "role" and isinstance(value, str):
                self._message[name] = self._message.get(name, "") + value
                if name == "content" and value:
                    self._shown(value)
        logprobs = choice.get("logprobs")
        self._logprobs += (logprobs.get("content") or ()) if isinstance(logprobs, dict) else ()
        self._finish = choice.get("finish_reason") or self._finish

    def reply(self) -> bytes | None:
        """The whole reply as JSON, or None if it has not come in pieces. Raises `TransientError` if it broke off."""
        if self._first is None:
            return None
        if self._error is None and self._finish is None and not self._done:
            raise TransientError("the connection broke in the middle of the reply")
        choice = {"index": 0, "message": self._message, "finish_reason": self._finish,
                  **({"logprobs": {"content": self._logprobs}} if self._logprobs else {})}
        whole = {"id": self._first.get("id"), "model": self._first.get("model"), "choices": [choice],
                 **({"usage": self._usage} if self._usage else {}), **({"error": self._error} if self._error else {})}
        if self._error:
            del whole["choices"]
        return json.dumps(whole).encode()
