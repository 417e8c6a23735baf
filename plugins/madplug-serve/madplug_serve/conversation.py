"""What a client asks for: the body of a request, checked, as the question of a debate.

The body is untrusted. Whatever is wrong with it becomes an error in the form that OpenAI's clients understand.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

MOST_CHOICES = 128
"""The most debates that one request can start (`n`)."""
SPEAKERS = {"system": "System", "developer": "System", "user": "User", "assistant": "Assistant"}
IGNORED = ("temperature", "top_p", "top_k", "min_p", "max_tokens", "max_completion_tokens", "stop", "presence_penalty",
           "frequency_penalty", "repetition_penalty", "logit_bias", "reasoning_effort", "verbosity")
"""Parameters of sampling: the run file sets those of the agents' models, so a client's are accepted without effect."""
REFUSED = ("tools", "functions", "audio", "logprobs", "top_logprobs", "prediction")
"""What a debate cannot give, so that asking for it is an error."""


class RequestError(Exception):
    """A request that cannot be answered. The message is shown to the client."""

    def __init__(self, status: int, message: str, code: str, param: str | None = None, *, retry: bool = True) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.param = param
        self.retry = retry
        """Whether another attempt may help, if the status leaves that open."""

    def body(self) -> dict[str, Any]:
        """The error as OpenAI's API words it."""
        kind = "invalid_request_error" if self.status < 429 else "server_error"
        return {"error": {"message": str(self), "type": kind, "param": self.param, "code": self.code}}


@dataclass(frozen=True)
class Asked:
    """A checked request."""

    model: str
    question: str
    images: tuple[str, ...] = ()
    n: int = 1
    seed: int | None = None
    stream: bool = False
    usage: bool = False
    """Whether a stream ends with the usage."""
    ignored: tuple[str, ...] = ()
    """The parameters that have no effect."""

    @property
    def digest(self) -> str:
        """Identifies the conversation, whichever model it is for: 16 hexadecimal digits."""
        return blake2b(json.dumps([self.question, self.images]).encode(), digest_size=8).hexdigest()


def parse_request(body: bytes) -> Asked:
    """The request in a body. Raises `RequestError` if it is not one."""
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        raise _invalid("the body is not valid JSON") from None
    if not isinstance(asked, dict):
        raise _invalid("the body is not a JSON object")
    model = asked.get("model")
    if not isinstance(model, str) or not model:
        raise _invalid("'model' is required: one of those that /v1/models lists", "model")
    _refuse_unsupported(asked)
    question, images = to_question(asked.get("messages"))
    options = asked.get("stream_options") or {}
    if not isinstance(options, Mapping):
        raise _invalid("'stream_options' is not an object", "stream_options")
    return Asked(model, question, images, _integer(asked, "n", 1, MOST_CHOICES) or 1,
                 _integer(asked, "seed", -2**63, 2**63 - 1), asked.get("stream") is True,
                 options.get("include_usage") is True,
                 tuple(name for name in IGNORED if asked.get(name) not in (None, [], {})))


def _refuse_unsupported(asked: Mapping[str, Any]) -> None:
    for name in REFUSED:
        if asked.get(name) not in (None, False, [], {}):
            raise _invalid(f"'{name}' is not supported by a debate; leave it out", name)
    form = asked.get("response_format")
    if form is not None and not (isinstance(form, Mapping) and form.get("type") == "text"):
        raise _invalid("'response_format' is not supported by a debate; the answer format of the run file applies",
                       "response_format")


def _integer(asked: Mapping[str, Any], name: str, least: int, most: int) -> int | None:
    value = asked.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise _invalid(f"'{name}' is not a whole number from {least} to {most}", name)
    return value


def to_question(messages: Any) -> tuple[str, tuple[str, ...]]:
    """A conversation as the question of a debate, with its images.

    A single message of the user is the question as it is, after what a system message says. Of a longer conversation
    everything is part of the question, each message below its speaker, and the agents discuss the next reply.
    """
    if not isinstance(messages, list) or not messages:
        raise _invalid("'messages' is required: a list with at least one message of the user", "messages")
    said: list[tuple[str, str]] = []
    images: list[str] = []
    for i, message in enumerate(messages):
        role, text = _read_message(message, f"messages[{i}]", images)
        if text.strip():
            said.append((SPEAKERS[role], text))
    instructions = [text for speaker, text in said if speaker == "System"]
    turns = [(speaker, text) for speaker, text in said if speaker != "System"]
    if not turns or turns[-1][0] != "User":
        raise _invalid("the last message has to be one of the user, with a text", "messages")
    return "\n\n".join([*instructions, *_conversation(turns)]), tuple(images)


def _conversation(turns: Sequence[tuple[str, str]]) -> Iterator[str]:
    if len(turns) == 1:
        yield turns[0][1]
        return
    yield "This is a conversation between a user and an assistant:"
    for speaker, text in turns:
        yield f"{speaker}: {text}"
    yield "What should the assistant reply to the last message?"


def _read_message(message: Any, place: str, images: list[str]) -> tuple[str, str]:
    if not isinstance(message, Mapping):
        raise _invalid(f"{place} is not an object", "messages")
    role, content = message.get("role"), message.get("content")
    if not isinstance(role, str) or role not in SPEAKERS:
        raise _invalid(f"{place}.role is not supported by a debate; use system, user or assistant", "messages")
    if message.get("tool_calls"):
        raise _invalid(f"{place}.tool_calls is not supported by a debate", "messages")
    if isinstance(content, str) or content is None:
        return role, content or ""
    if not isinstance(content, list):
        raise _invalid(f"{place}.content is neither a string nor a list of parts", "messages")
    return role, "\n\n".join(filter(None, (_read_part(part, f"{place}.content[{i}]", images)
                                           for i, part in enumerate(content))))


def _read_part(part: Any, place: str, images: list[str]) -> str:
    """The text of a part; the address of an image is added to `images` instead."""
    kind = part.get("type") if isinstance(part, Mapping) else None
    if kind == "text" and isinstance(part.get("text"), str):
        return str(part["text"])
    image = part.get("image_url") if kind == "image_url" else None
    url = image.get("url") if isinstance(image, Mapping) else None
    if not isinstance(url, str):
        raise _invalid(f"{place} is neither a text nor an image", "messages")
    if not url.startswith(("https://", "data:image/")):
        raise _invalid(f"{place}: the address of an image begins with https:// or data:image/", "messages")
    images.append(url)
    return ""


def _invalid(message: str, param: str | None = None) -> RequestError:
    return RequestError(400, message, "invalid_request", param)
