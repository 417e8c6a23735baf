"""`openai.chat`: one request, one exchange, over one pooled connection.

The client is our own because it is on the path of every call: what a library adds there, a study of a hundred
thousand calls pays a hundred thousand times.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from io import BytesIO
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
from madplug_openai.bodies import ACCEPT_ENCODING, MEGABYTE, MOST_OF_AN_ERROR, TooLarge, parse, read_body, text_of
from madplug_openai.failures import failure
from madplug_openai.forms import Structured, fields
from madplug_openai.keys import Address, KeyVariable, key_from, presentable, refuse_key_in
from madplug_openai.network import allow_connections, proxy_for
from madplug_openai.options import ChatOptions
from madplug_openai.replies import Shapeless, completion_in, without_keys

OPENAI = "https://api.openai.com/v1"
_OURS = {"model", "messages", "stream", "n", "api_key", "apikey", "api-key", "authorization"}
LARGE = 100_000
"""Bytes from which on a reply is read in a thread: the other calls go on meanwhile."""
CONNECT_WITHIN = 30.0
"""Seconds within which an endpoint has to accept a connection."""
# Mappings that are not dicts, such as read-only ones, are written like dicts.
_encode = json.JSONEncoder(separators=(",", ":"), default=dict).encode


class Chat(Model):
    """A model behind any OpenAI-compatible endpoint: OpenAI, vLLM, llama.cpp, SGLang, Ollama, OpenRouter.

    One `POST BASE_URL/chat/completions` per call over a pool of connections, and never another request.
    Failures that may pass (429, 408, 409, 425, 5xx, timeouts, replies that break off, cannot be read or say
    nothing) are tried again by the host. While the endpoint cannot be reached every call waits for it. Other
    statuses are refusals: of one request (400, 413, 422, a content filter), which fails its debate, or of all
    (401, 402, 403, 404, no quota left), which end the study unless others are answered. An answer whose tokens were
    used up before it began is a refusal too: another try would be paid for and end the same way.
    """

    name = "chat"
    _session: Any = None

    class Options(ChatOptions):
        """Options of `openai.chat`."""

        reserved = frozenset(_OURS)

        model: str = Field(min_length=1, description="the model's name, as the endpoint knows it")
        base_url: Annotated[Address, Volatile] = Field(
            default=OPENAI, description="the address before /chat/completions")
        api_key_env: Annotated[KeyVariable, Volatile] = Field(
            default="OPENAI_API_KEY", description="name of the environment variable with the key; no "
            "key is sent while it is not set")
        organization: Annotated[str | None, Volatile] = Field(
            default=None, description="sent as OpenAI-Organization")
        max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = Field(
            default="max_tokens", description="what the endpoint calls max_tokens; OpenAI's reasoning models "
            "take max_completion_tokens only")
        seed: bool = Field(default=True, description="send the seed that the study derives for each call")
        structured: Structured = Field(
            default="json_schema", description="the forms to which the endpoint can constrain replies: JSON schemas, "
            "or with vllm, sglang and llamacpp also regular expressions and grammars")

        max_reply_mb: Annotated[float, Volatile] = Field(
            default=16.0, gt=0, le=1024, description="the largest reply in megabytes, unpacked; a larger one is "
            "refused")

        @model_validator(mode="after")
        def _keeps_its_key(self) -> Any:
            refuse_key_in(self.base_url, self.api_key_env)
            return self

    async def open(self) -> None:
        """Make the pool. Connections are opened when they are needed."""
        import aiohttp

        options = self.options
        key = key_from(options.api_key_env)
        self._keys = (key,) if key else ()
        self._url = options.base_url + "/chat/completions"
        self._fixed = self._fields()
        headers = {"Content-Type": "application/json", "User-Agent": "madplug", "Accept-Encoding": ACCEPT_ENCODING}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        if options.organization:
            headers["OpenAI-Organization"] = options.organization
        allow_connections(options.max_in_flight)
        # The host's slots are the limit. Servers drop idle connections after 5 s or more: we do so first.
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=4.0), headers=headers, auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=options.timeout, sock_connect=min(CONNECT_WITHIN, options.timeout)),
            cookie_jar=aiohttp.DummyCookieJar(), proxy=proxy_for(options.base_url))
        self._most = int(options.max_reply_mb * MEGABYTE)
        self._reading = asyncio.Lock()

    async def close(self) -> None:
        """Close the pool."""
        if self._session is not None:
            await self._session.close()

    async def complete(self, request: Request) -> Completion:
        """One exchange with the endpoint."""
        status, headers, body = await self._exchange(_encode(self.body(request)).encode())
        if len(body) < LARGE:
            return self.read(status, headers, body)
        async with self._reading:  # one at a time: a thread that reads JSON keeps the interpreter to itself
            return await asyncio.to_thread(self.read, status, headers, body)

    async def _exchange(self, body: bytes) -> tuple[int, Mapping[str, str], bytes]:
        """Send a request; the status, the headers and the body of the reply."""
        response = None
        try:
            data = body if len(body) < MEGABYTE else BytesIO(body)  # sent in portions
            async with self._session.post(self._url, data=data, allow_redirects=False) as response:
                return response.status, response.headers, await self._body_of(response)
        except asyncio.TimeoutError as error:
            raise self._late(error) from None
        except Exception as error:
            raise broken(error, response is not None, self._keys) or error from None

    async def _body_of(self, response: Any) -> bytes:
        """A reply as far as it is wanted."""
        good = 200 <= response.status < 300
        try:
            return await read_body(response, self._most if good else min(self._most, MOST_OF_AN_ERROR))
        except TooLarge as found:
            response.close()
            if good:
                raise RefusedError(f"the reply is larger than max_reply_mb, {self.options.max_reply_mb:g} MB") from None
            beginning: bytes = found.args[0]
            return beginning

    def _late(self, error: Exception) -> TransientError:
        from aiohttp import ServerTimeoutError

        if isinstance(error, ServerTimeoutError):
            return UnreachableError("the endpoint could not be reached: it did not accept the connection in time")
        return TransientError(f"no answer within {self.options.timeout:g} s")

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

    def read(self, status: int, headers: Mapping[str, str], body: bytes) -> Completion:
        """The completion in a response, or the error that it means."""
        text = text_of(body)
        reply = parse(text)
        if not 200 <= status < 300:
            raise self._explained(status, failure(status, reply, text, headers, self._keys))
        try:
            completion = completion_in(reply, self.options.model, keep_reasoning=self.options.keep_reasoning)
            return without_keys(completion, self._keys)
        except Shapeless as found:
            raise self._unreadable(reply, text, headers, str(found)) from None

    def _unreadable(self, reply: Any, text: str, headers: Mapping[str, str], why: str) -> ModelError:
        """Of a reply that cannot be read: some endpoints report errors under the status 200."""
        error = reply.get("error") if isinstance(reply, Mapping) else None
        if error:
            code = error.get("code") if isinstance(error, Mapping) else None
            status = code if isinstance(code, int) and 400 <= code < 600 else 502
            return self._explained(status, failure(status, reply, text, headers, self._keys))
        what = "is not JSON" if reply is None else why
        return TransientError(f"the reply {what}: {presentable(text, self._keys, 80)}")

    def _explained(self, status: int, error: ModelError) -> ModelError:
        """With what the user can do about it, where that is known."""
        advice = ""
        if status in (401, 403) and not self._keys:
            advice = f"; no key was sent, because the variable {self.options.api_key_env} is not set"
        elif 300 <= status < 400:
            advice = "; the address in base_url leads elsewhere: name the final one"
        elif status in (400, 422) and "max_completion_tokens" in str(error):
            advice = "; set max_tokens_field = \"max_completion_tokens\""
        elif status in (400, 422) and "response_format" in str(error):
            advice = "; set structured = \"none\" if the endpoint has no JSON schemas"
        return type(error)(f"{error}{advice}") if advice else error


def broken(error: BaseException, answering: bool, keys: Iterable[str]) -> ModelError | None:
    """What an error of aiohttp means, or None for another one. answering: whether the reply had begun."""
    import aiohttp

    if not isinstance(error, aiohttp.ClientError | OSError):
        return None
    said = presentable(str(error) or type(error).__name__, keys)
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.InvalidURL):
        return AccessError(f"the connection failed: {said}")
    if answering or isinstance(error, aiohttp.ClientPayloadError):
        return TransientError(f"the connection broke in the middle of the reply: {said}")
    if isinstance(error, aiohttp.ClientResponseError) and not isinstance(error, aiohttp.ClientHttpProxyError):
        first = error.message.partition("\n")[0]  # after it come the bytes as they were sent
        return TransientError(f"the reply is not HTTP: {presentable(first, keys)}")
    return UnreachableError(f"the connection failed: {said}")

