"""`openai.chat`: one request, one exchange, over a pool of connections."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, Literal

import orjson
from pydantic import Field, field_validator, model_validator

from madplug import (
    Completion,
    Model,
    ModelError,
    Request,
    RunPath,
    TransientError,
    Volatile,
)
from madplug_openai.bodies import MEGABYTE, MOST_OF_AN_ERROR, parse, parse_quickly, text_of
from madplug_openai.failures import failure
from madplug_openai.forms import Structured, fields
from madplug_openai.keys import Address, KeyVariable, StreamedText, key_from, presentable, refuse_key_in
from madplug_openai.network import allow_connections
from madplug_openai.options import ChatOptions
from madplug_openai.replies import Shapeless, billed_for, completion_in
from madplug_openai.streamed import FIELDS, Pieces
from madplug_prices import price_of
from madplug_prompting.batches import BatchSupport
from madplug_prompting.streaming import begin_reply

KEY = "OPENAI_API_KEY"
OPENAI = "https://api.openai.com/v1"
_OURS = {"model", "messages", "stream", "n", "api_key", "apikey", "api-key", "authorization"}
LARGE = 100_000
"""Bytes from which on a reply is read in a thread: the other calls go on meanwhile."""
# Mappings that are not dicts, such as read-only ones, are written like dicts.
_encode_unusual = json.JSONEncoder(separators=(",", ":"), default=dict).encode


class Chat(Model):
    """A model behind any OpenAI-compatible endpoint: OpenAI, vLLM, llama.cpp, SGLang, Ollama, OpenRouter.

    One `POST BASE_URL/chat/completions` per call over a pool of connections, and never another request.
    Failures that may pass (429, 408, 409, 425, 5xx, timeouts, replies that break off, cannot be read or say
    nothing) are tried again by the host. While the endpoint cannot be reached every call waits for it. Other
    statuses are refusals: of one request (400, 413, 422, a content filter), which fails its debate, or of all
    (401, 402, 403, 404, no quota left), which end the study unless others are answered. Requests can also be sent as
    batches, to `/files` and `/batches`, by an executor such as `batch.rounds`.
    """

    name = "chat"
    _client: Any = None
    _keys: tuple[str, ...] = ()

    class Options(ChatOptions):
        """Options of `openai.chat`."""

        reserved = frozenset(_OURS)

        model: str = Field(min_length=1, description="the model's name, as the endpoint knows it")
        base_url: Annotated[Address, Volatile] = Field(
            default_factory=lambda: os.environ.get("OPENAI_BASE_URL") or OPENAI, validate_default=True, description=(
                "the address before /chat/completions; default: what the environment variable OPENAI_BASE_URL says, "
                f"or {OPENAI}"))
        api_key_env: Annotated[KeyVariable, Volatile] = Field(
            default=KEY, description="name of the environment variable with the key; no "
            "key is sent while it is not set")
        organization: Annotated[str | None, Volatile] = Field(
            default=None, description="sent as OpenAI-Organization")
        max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = Field(
            default="max_tokens", description="what the endpoint calls max_tokens; OpenAI's reasoning models "
            "take max_completion_tokens only")
        seed: bool = Field(default=True, description="send the seed that the study derives for each call")
        samples_per_request: Annotated[int, Volatile] = Field(
            default=1, ge=1, le=128, description="the most requests at the same time that differ in nothing but their "
            "seeds and are sent as one, for so many samples (`n`); the prompt is then paid once")
        batch_folder: Annotated[RunPath | None, Volatile] = Field(
            default=None, description="batches are files in this folder, which another program answers, such as "
            "`vllm run-batch`; by default they are sent to the endpoint")
        structured: Structured = Field(
            default="json_schema", description="the forms to which the endpoint can constrain replies: JSON schemas, "
            "or with vllm, sglang and llamacpp also regular expressions and grammars")

        @field_validator("organization")
        @classmethod
        def _fits_in_a_header(cls, value: str | None) -> str | None:
            if value is not None and not (value.isascii() and value.isprintable()):
                raise ValueError("is sent as a header: no line breaks, control characters or letters beyond ASCII")
            return value

        @model_validator(mode="after")
        def _keeps_its_key(self) -> Any:
            refuse_key_in(self.base_url, self.api_key_env)
            return self

    def missing(self) -> str | None:
        """The key, where OpenAI itself is asked or the run file names a variable of its own."""
        options = self.options
        wanted = (options.base_url == OPENAI and options.batch_folder is None) or options.api_key_env != KEY
        return None if not wanted or os.environ.get(options.api_key_env) else \
            f"the environment variable {options.api_key_env} is not set, so no key is sent to {options.base_url}"

    @property
    def price(self) -> Mapping[str, float] | None:
        """The run file's, or else the built-in one of the endpoint."""
        return super().price or price_of(self.options.base_url, self.options.model)

    async def open(self) -> None:
        """Make the client. Connections are opened when they are needed."""
        from asyncio import Lock

        from madplug_openai.client import Client
        from madplug_openai.samples import Samples

        options = self.options
        key = key_from(options.api_key_env)
        self._keys = (key,) if key else ()
        self._fixed = self._fields()
        headers = {"Content-Type": "application/json", "User-Agent": "madplug", "Accept": "*/*",
                   "Accept-Encoding": "gzip, deflate"}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        if options.organization:
            headers["OpenAI-Organization"] = options.organization
        allow_connections(options.max_in_flight)
        most = int(options.max_reply_mb * MEGABYTE)
        self._client = Client(options.base_url + "/chat/completions", headers, timeout=options.timeout,
                              limits=(most, min(most, MOST_OF_AN_ERROR)), keys=self._keys, base=options.base_url)
        self._reading = Lock()
        self._samples = Samples(self, self._client, options.samples_per_request)

    async def close(self) -> None:
        """Close every connection."""
        if self._client is not None:
            await self._client.close()

    @property
    def batches(self) -> BatchSupport | None:
        """The endpoint's `/files` and `/batches`, if it has them, or those in `batch_folder`."""
        from madplug_openai.batches import Batches
        from madplug_openai.files import Files

        if self.options.batch_folder is not None:
            return Files(self, self._client, self._keys, self.options.batch_folder)
        return Batches(self, self._client, self._keys)

    async def complete(self, request: Request) -> Completion:
        """One exchange with the endpoint."""
        if (shown := begin_reply(request)) is not None:
            return await self._show(request, shown)
        return await (self.ask if self.options.samples_per_request == 1 else self._samples.complete)(request)

    async def ask(self, request: Request) -> Completion:
        """One request by itself, and its reply."""
        tools = "tools" in request.params
        reply = await self._client.post(encode(self.body(request)))
        if len(reply.body) < LARGE:
            return self.read(*reply, tools=tools)
        from asyncio import to_thread

        async with self._reading:  # one at a time: a thread that reads JSON keeps the interpreter to itself
            return await to_thread(partial(self.read, *reply, tools=tools))

    async def _show(self, request: Request, shown: Callable[[str], None]) -> Completion:
        """One exchange whose reply is shown while it is written, if the endpoint streams."""
        text = StreamedText(shown, self._keys)
        pieces = Pieces(text.add)
        reply = await self._client.post(encode({**self.body(request), **FIELDS}), pieces.feed)
        whole = pieces.reply() if reply.good else None
        text.end()
        return self.read(reply.status, reply.headers, reply.body if whole is None else whole,
                         tools="tools" in request.params)

    def body(self, request: Request) -> dict[str, Any]:
        """The request as it is sent."""
        body = {**self._fixed, "messages": request.messages}
        if self.options.seed:
            body["seed"] = request.seed
        for name, value in request.params.items():
            body[self.options.max_tokens_field if name == "max_tokens" else name] = value
        if "logprobs" in body:
            body["logprobs"] = bool(body["logprobs"])
        if request.form:
            body.update(fields(request.form, self.options.structured))
        return body

    def _fields(self) -> dict[str, Any]:
        """The fields that are the same in every request."""
        options = self.options
        given = {"model": options.model, "temperature": options.temperature, "top_p": options.top_p,
                 options.max_tokens_field: options.max_tokens, "stop": options.stop}
        return {**{name: value for name, value in given.items() if value is not None}, **options.extra}

    def read(self, status: int, headers: Mapping[str, str], body: bytes, *, tools: bool = False) -> Completion:
        """The completion in a response, or the error that it means. tools: whether the request offered any."""
        reply = parse_quickly(body) if status == 200 and len(body) < LARGE else None
        text = ""
        if reply is None:
            text = text_of(body)
            reply = parse(text)
        if not 200 <= status < 300:
            raise self._explained(status, failure(status, reply, text, headers, self._keys))
        try:
            return completion_in(reply, self.options.model, keys=self._keys,
                                 keep_reasoning=self.options.keep_reasoning, tools=tools)
        except Shapeless as found:
            raise self._unreadable(reply, text or text_of(body), headers, str(found)) from None

    def _unreadable(self, reply: Any, text: str, headers: Mapping[str, str], why: str) -> ModelError:
        """Of a reply that cannot be read: some endpoints report errors under the status 200."""
        error = reply.get("error") if isinstance(reply, Mapping) else None
        if error:
            code = error.get("code") if isinstance(error, Mapping) else None
            status = code if isinstance(code, int) and 400 <= code < 600 else 502
            return self._explained(status, failure(status, reply, text, headers, self._keys))
        what = "is not JSON" if reply is None else why
        return TransientError(f"the reply {what}: {presentable(text, self._keys, 80)}", billed_for(reply))

    def _explained(self, status: int, error: ModelError) -> ModelError:
        """With what the user can do about it, where that is known."""
        advice = ""
        if status in (401, 403) and not self._keys:
            advice = f"; no key was sent, because the variable {self.options.api_key_env} is not set"
        elif 300 <= status < 400:
            advice = "; the address in base_url leads elsewhere: name the final one"
        elif status in (400, 422) and "max_completion_tokens" in str(error) \
                and self.options.max_tokens_field != "max_completion_tokens":
            advice = "; set max_tokens_field = \"max_completion_tokens\""
        elif status == 404 and "/v1" not in f"{self.options.base_url}{error}" and self.options.model not in str(error):
            advice = " (is base_url right? Most end in /v1)"
        elif status in (400, 422) and "response_format" in str(error):
            advice = "; set structured = \"none\" if the endpoint has no JSON schemas"
        return type(error)(f"{error}{advice}") if advice else error


def encode(body: dict[str, Any]) -> bytes:
    """JSON as it is sent."""
    try:
        return orjson.dumps(body, default=dict)
    except (TypeError, ValueError):  # keys that are not strings, integers beyond 64 bits, lone surrogates
        return _encode_unusual(body).encode()
