"""`litellm.chat`: one request, one call of `litellm.acompletion`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from madplug import (
    AccessError,
    Completion,
    Model,
    ModelError,
    RefusedError,
    Request,
    TransientError,
    UnreachableError,
    Volatile,
)
from madplug_litellm.library import chain, load, never_reached, response_class, unload
from madplug_litellm.prices import price_of
from madplug_openai.bodies import MEGABYTE
from madplug_openai.failures import failure
from madplug_openai.forms import response_format
from madplug_openai.keys import Address, KeyVariable, StreamedText, key_from, presentable, refuse_key_in
from madplug_openai.network import allow_connections
from madplug_openai.options import ChatOptions
from madplug_openai.replies import Shapeless, completion_in
from madplug_prompting.batches import BatchSupport
from madplug_prompting.streaming import begin_reply

_OURS = {"model", "messages", "stream", "n", "api_key", "apikey", "api-key", "authorization", "api_base", "base_url",
         "timeout", "num_retries", "max_retries", "drop_params", "shared_session"}
_SECRET = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS)(?:_\w+)?$")
# What litellm puts before an endpoint's own words, and what it says where another try cannot help.
_PREFIX = re.compile(r"^(?:litellm\.)?(?:\w+(?:Error|Exception|Timeout): )*(?:\w+(?:Exception|Error) - )?")
_HOPELESS = re.compile(r"(?i)missing credentials|api key|no module named|pip install|LLM Provider NOT provided")

_MOST = 20_000
"""Characters of an error that are looked at."""


class Chat(Model):
    """A model of any provider that litellm reaches: Anthropic, Gemini, Bedrock, Vertex, Mistral, Groq, ...

    litellm is imported when the model is opened (some five seconds and 140 MB), with the map of prices it comes
    with: nothing is fetched but the answers. Its retries, banners and connection limits are off. Usage and cost
    are what litellm makes of the provider's account; a `price` in the run file goes before its map. An
    OpenAI-compatible endpoint is served with a twentieth of the work by `openai.chat`. Requests to `anthropic/` models
    can also be sent as batches, by an executor such as `batch.rounds`.
    """

    name = "chat"
    _session: Any = None
    _batches: Any = None

    class Options(ChatOptions):
        """Options of `litellm.chat`."""

        reserved = frozenset(_OURS)

        model: str = Field(min_length=1, description="provider/model, as litellm names it")
        api_base: Annotated[Address | None, Volatile] = Field(
            default=None, description="an address other than the provider's own")
        api_key_env: Annotated[KeyVariable | None, Volatile] = Field(
            default=None, description="name of the environment variable with the key; by default the one that "
            "litellm looks for, such as ANTHROPIC_API_KEY")
        seed: bool = Field(default=True, description="send each call's seed, where litellm says the model takes one")
        structured: Literal["auto", "always", "never"] = Field(
            default="auto", description="send JSON schemas; auto: where litellm says the model supports them")
        drop_params: bool = Field(
            default=False, description="leave out parameters that the model does not take, instead of an error")

        @model_validator(mode="after")
        def _keeps_its_key(self) -> Any:
            if self.api_base:
                refuse_key_in(self.api_base, self.api_key_env or "OPENAI_API_KEY")
            return self

    @property
    def price(self) -> Mapping[str, float] | None:
        """The run file's, or else that of litellm's map; litellm is not imported for it."""
        return super().price or price_of(self.options.model)

    async def open(self) -> None:
        """Import litellm and make a pool for the providers it reaches through aiohttp."""
        import aiohttp

        options = self.options
        key = key_from(options.api_key_env) if options.api_key_env else ""
        allow_connections(options.max_in_flight)
        self._litellm = litellm = load(options.max_in_flight)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=4.0), cookie_jar=aiohttp.DummyCookieJar(),
            response_class=response_class(int(options.max_reply_mb * MEGABYTE)))
        self._keys = tuple({key, *(v for k, v in os.environ.items() if _SECRET.search(k) and len(v) > 7)} - {""})
        self._fixed = self._arguments(key)
        if options.model.startswith("anthropic/"):
            from madplug_litellm.anthropic import Batches, client_for

            key = key or os.environ.get("ANTHROPIC_API_KEY", "")
            self._batches = Batches(self, client_for(options, key, self._keys), self._keys)
        supported = litellm.get_supported_openai_params(model=options.model) or ()
        self._seeded = options.seed and "seed" in supported
        self._structured = options.structured == "always" or (
            options.structured == "auto" and litellm.supports_response_schema(model=options.model))

    async def close(self) -> None:
        """Close the pool and the clients that litellm keeps."""
        if self._session is not None:
            await self._session.close()
            if self._batches is not None:
                await self._batches.close()
            await unload(self._litellm)

    @property
    def batches(self) -> BatchSupport | None:
        """Those of Anthropic."""
        batches: BatchSupport | None = self._batches
        return batches

    async def complete(self, request: Request) -> Completion:
        """One call of litellm."""
        shown = begin_reply(request)
        try:
            reply = await self._reply(self.arguments(request), shown)
        except ModelError:
            raise
        except Exception as error:
            raise self._meaning(error) from None
        # A price in the run file is applied by the host.
        cost = None if self.options.price else reply._hidden_params.get("response_cost")
        return self.read(reply, cost, tools="tools" in request.params)

    def read(self, reply: Any, cost: float | None, *, tools: bool) -> Completion:
        """The completion in a reply of litellm. tools: whether the request offered any."""
        try:
            return completion_in(reply.model_dump(exclude_none=True), self.options.model, keys=self._keys,
                                 keep_reasoning=self.options.keep_reasoning, cost=cost, tools=tools)
        except Shapeless as found:
            raise TransientError(f"the reply {found}") from None

    async def _reply(self, given: Mapping[str, Any], shown: Callable[[str], None] | None) -> Any:
        """The reply as litellm makes it; shown while it is written, if something listens and the endpoint streams."""
        if shown is not None and "logprobs" not in given:
            reply = await self._show(given, shown)
            if reply is not None:
                return reply
        return await self._litellm.acompletion(**given)

    async def _show(self, given: Mapping[str, Any], shown: Callable[[str], None]) -> Any:
        """A reply put together from its pieces, or None if the endpoint does not send pieces."""
        text = StreamedText(shown, self._keys)
        stream = await self._litellm.acompletion(**given, stream=True, stream_options={"include_usage": True})
        pieces = []
        async for piece in stream:
            pieces.append(piece)
            if piece.choices:
                text.add(piece.choices[0].delta.content or "")
        text.end()
        # litellm ends every stream with a reason of its own, also one that has broken off.
        if stream.received_finish_reason or stream.intermittent_finish_reason:
            return self._litellm.stream_chunk_builder(pieces, messages=given["messages"])
        if any(piece.choices and piece.choices[0].delta.content for piece in pieces):
            raise TransientError("the connection broke in the middle of the reply")
        return None

    def arguments(self, request: Request) -> dict[str, Any]:
        """What litellm is called with. It rewrites messages in place, so it gets its own."""
        given = {**self._fixed, **request.params, "messages": [deepcopy(dict(m)) for m in request.messages]}
        if self._seeded:
            given["seed"] = request.seed
        if "logprobs" in given:
            given["logprobs"] = bool(given["logprobs"])
        if request.form and "json_schema" in request.form and self._structured:
            given["response_format"] = response_format(request.form["json_schema"])
        return given

    def _arguments(self, key: str) -> dict[str, Any]:
        """The arguments that are the same in every call."""
        options = self.options
        given = {name: getattr(options, name) for name in ("model", "api_base", "temperature", "top_p", "max_tokens")}
        given["stop"] = list(options.stop) if options.stop else None
        given["api_key"] = key or self._placeholder()
        return {**{name: value for name, value in given.items() if value is not None}, **options.extra,
                "timeout": options.timeout, "num_retries": 0, "max_retries": 0, "drop_params": options.drop_params,
                "shared_session": self._session}

    def _placeholder(self) -> str | None:
        """In place of a key for a private server: the SDK behind `openai/` sends nothing without one."""
        own = self.options.api_base and self.options.model.startswith("openai/")
        return "none" if own and not os.environ.get("OPENAI_API_KEY") else None

    def _meaning(self, error: Exception) -> ModelError:
        """The madplug error for an exception of litellm."""
        said = _PREFIX.sub("", str(getattr(error, "message", None) or error)[:_MOST])
        said = said.partition("Traceback (most recent call last)")[0]  # litellm's own, about a reply of another shape
        if refused := next((below for below in chain(error) if isinstance(below, RefusedError)), None):
            return refused
        if never_reached(error):
            return UnreachableError(f"the connection failed: {presentable(said, self._keys)}")
        status = getattr(error, "status_code", 500)
        status = status if isinstance(status, int) else 500
        if status >= 500 and _HOPELESS.search(said):
            return AccessError(presentable(said, self._keys))
        if type(error).__name__ == "ContentPolicyViolationError":
            return RefusedError(f"the endpoint's content filter refused the request: {presentable(said, self._keys)}")
        body = getattr(error, "body", None)
        code = body.get("code") if isinstance(body, Mapping) else getattr(error, "code", None)
        headers = getattr(error, "litellm_response_headers", None) or getattr(
            getattr(error, "response", None), "headers", None) or {}
        kind = getattr(error, "type", None)
        return failure(status, {"message": said, "code": code, "type": kind}, "", headers, self._keys)
