"""A reply that comes in pieces (server-sent events), put together as if it had come at once."""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Mapping
from typing import Any

from madplug import TransientError
from madplug_openai.replies import text_in

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
        self._unreadable = False
        """Whether a piece of the reply is missing, because it could not be read."""

    def feed(self, data: bytes) -> None:
        """Take bytes of the reply as they arrive."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            line = line.removeprefix(codecs.BOM_UTF8)
            if line.startswith(b"data:") and not self._done:
                self._event(line[5:].strip())

    def _event(self, data: bytes) -> None:
        if data in (b"", b"[DONE]"):
            self._done = bool(data)
            return
        try:
            texts = self._texts(json.loads(data))
        except (AttributeError, RecursionError, TypeError, ValueError):
            self._unreadable = True
            return
        for text in filter(None, texts):
            self._shown(text)

    def _texts(self, event: Any) -> list[str]:
        """What an event adds to the answer."""
        choices = event.get("choices")
        self._first = self._first or event
        self._usage = event.get("usage") or self._usage
        # Some servers send what happened to them as an event of its own, without the name `error`.
        self._error = event.get("error") or ("message" in event and choices is None and event) or self._error
        return [self._choice(choice) for choice in choices or () if not choice.get("index")]

    def _choice(self, choice: Mapping[str, Any]) -> str:
        """What the choice adds to the answer. The first choice is the reply, as where it comes at once."""
        added = ""
        for name, value in (choice.get("delta") or {}).items():
            if name == "content":
                added = value if isinstance(value, str) else text_in(value)  # half a character may stand alone here
                self._message[name] += added
            elif name == "tool_calls" and isinstance(value, list):
                for piece in value:
                    self._add_call(self._message.setdefault(name, []), piece)
            elif name != "role" and isinstance(value, str):
                self._message[name] = self._message.get(name, "") + value
                added += value if name == "refusal" else ""
        logprobs = choice.get("logprobs")
        self._logprobs += (logprobs.get("content") or ()) if isinstance(logprobs, dict) else ()
        self._finish = choice.get("finish_reason") or self._finish
        return added

    @staticmethod
    def _add_call(calls: list[dict[str, Any]], piece: Mapping[str, Any]) -> None:
        """A piece of a tool call: the first has its name, and all of them have parts of its arguments."""
        known = next((call for call in calls if call["index"] == piece.get("index", len(calls))), None)
        function = dict(piece.get("function") or {})
        if known is None:
            calls.append({**piece, "index": piece.get("index", len(calls)), "function": function})
        else:
            known["function"]["arguments"] = known["function"].get("arguments", "") + function.get("arguments", "")

    def reply(self) -> bytes | None:
        """The whole reply as JSON, or None if it has not come in pieces. Raises `TransientError` if it broke off."""
        if self._first is None:
            return None
        if self._error is None and self._finish is None and not self._done:
            raise TransientError("the connection broke in the middle of the reply")
        if self._error is None and self._unreadable:
            raise TransientError("a piece of the reply cannot be read")
        choice = {"index": 0, "message": self._message, "finish_reason": self._finish,
                  **({"logprobs": {"content": self._logprobs}} if self._logprobs else {})}
        whole = {"id": self._first.get("id"), "model": self._first.get("model"), "choices": [choice],
                 **({"usage": self._usage} if self._usage else {}), **({"error": self._error} if self._error else {})}
        if self._error:
            del whole["choices"]
        return json.dumps(whole).encode()
