"""`openai.chat`: one request, one exchange, over one pooled connection.

The client is our own because it is on the path of every call: what a library adds there, a study of a hundred
thousand calls pays a hundred thousand times.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, field_validator

from madplug import Completion, Model, ModelError, ModelOptions, RefusedError, Request, TransientError, Volatile
from madplug_openai.failures import failure
from madplug_openai.forms import Structured, fields
from madplug_openai.keys import Address, KeyVariable, key_from, presentable
from madplug_openai.network import allow_connections, proxy_for
from madplug_openai.replies import Shapeless, completion_in

OPENAI = "https://api.openai.com/v1"
_OURS = {"model", "messages", "stream", "n", "api_key", "apikey", "api-key", "authorization"}
# Mappings that are not dicts, such as read-only ones, are written like dicts.
_encode = json.JSONEncoder(separators=(",", ":"), default=dict).encode


class Chat(Model):
    """A model behind any OpenAI-compatible endpoint: OpenAI, vLLM, llama.cpp, SGLang, Ollama, OpenRouter.

    One `POST BASE_URL/chat/completions` per call over a pool of connections, and never another request.
    Failures that may pass (429, 408, 409, 425, 5xx, resets, timeouts, replies that cannot be read or say
    nothing) are tried again by the host; every other status is a refusal. An answer whose tokens were used up
    before it began is a refusal too: another try would be paid for and end the same way.
    """

    name = "chat"
    _session: Any = None

    class Options(ModelOptions):
        """Options of `openai.chat`."""

        model_config = ConfigDict(hide_input_in_errors=True)

        model: str = Field(min_length=1, description="the model's name, as the endpoint knows it")
        base_url: Annotated[Address, Volatile] = Field(
            default=OPENAI, description="the address before /chat/completions")
        api_key_env: Annotated[KeyVariable, Volatile] = Field(
            default="OPENAI_API_KEY", description="name of the environment variable that holds the key; no "
            "key is sent while it is not set")
        organization: Annotated[str | None, Volatile] = Field(
            default=None, description="sent as OpenAI-Organization")
        temperature: float | None = Field(
            default=None, ge=0, le=10, description="randomness of sampling; the endpoint's own unless given")
        top_p: float | None = Field(default=None, gt=0, le=1, description="share of the probability to sample from")
        max_tokens: int | None = Field(default=None, ge=1, description="the most tokens of one answer")
        stop: tuple[str, ...] | None = Field(default=None, description="texts that end an answer")
        max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = Field(
            default="max_tokens", description="what the endpoint calls max_tokens; OpenAI's reasoning models "
            "take max_completion_tokens only")
        seed: bool = Field(default=True, description="send the seed that the study derives for each call")
        structured: Structured = Field(
            default="json_schema", description="the forms of answers the endpoint can hold: JSON schemas, or "
            "with vllm, sglang and llamacpp also regular expressions and grammars")
        extra: Mapping[str, Any] = Field(
            default_factory=dict, description="further fields of the body, such as reasoning_effort")
        keep_reasoning: Annotated[bool, Volatile] = Field(
            default=True, description="keep the reasoning that some endpoints return, with the call's usage")
        timeout: Annotated[float, Volatile] = Field(
            default=300.0, gt=0, le=86_400, description="seconds after which one try is given up")

        @field_validator("extra")
        @classmethod
        def _further_only(cls, extra: Mapping[str, Any]) -> Mapping[str, Any]:
            taken = sorted(name for name in extra if name.lower() in _OURS)
            if taken:
                raise ValueError(f"must not set {', '.join(taken)}")
            return extra

    async def open(self) -> None:
        """Make the pool. Connections are opened when they are needed."""
        import aiohttp

        options = self.options
        key = key_from(options.api_key_env)
        self._keys = (key,) if key else ()
        self._url = options.base_url + "/chat/completions"
        self._fixed = self._fields()
        headers = {"Content-Type": "application/json", "User-Agent": "madplug"}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        if options.organization:
            headers["OpenAI-Organization"] = options.organization
        allow_connections(options.max_in_flight)
        # The host's slots are the limit. Servers drop idle connections after 5 s or more: we do so first.
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=4.0), headers=headers,
            timeout=aiohttp.ClientTimeout(total=options.timeout), cookie_jar=aiohttp.DummyCookieJar(),
            proxy=proxy_for(options.base_url))
        self._broken = (aiohttp.ClientError, OSError)
        self._untrusted = aiohttp.ClientConnectorCertificateError

    async def close(self) -> None:
        """Close the pool."""
        if self._session is not None:
            await self._session.close()

    async def complete(self, request: Request) -> Completion:
        """One exchange with the endpoint."""
        body = _encode(self.body(request)).encode()
        try:
            async with self._session.post(self._url, data=body, allow_redirects=False) as response:
                reply = await response.read()
        except asyncio.TimeoutError:
            raise TransientError(f"no answer within {self.options.timeout:g} s") from None
        except self._broken as error:
            said = f"the connection failed: {presentable(str(error) or type(error).__name__, self._keys)}"
            # A certificate that is refused once is refused each time.
            raise (RefusedError if isinstance(error, self._untrusted) else TransientError)(said) from None
        return self.read(response.status, response.headers, reply.decode("utf-8", "replace"))

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

    def read(self, status: int, headers: Mapping[str, str], text: str) -> Completion:
        """The answer in a response, or the error it stands for."""
        try:
            reply = json.loads(text)
        except (ValueError, RecursionError):
            reply = None
        if not 200 <= status < 300:
            raise self._explained(status, failure(status, reply, text, headers, self._keys))
        try:
            return completion_in(reply, self.options.model, keep_reasoning=self.options.keep_reasoning)
        except Shapeless:
            raise self._unreadable(reply, text, headers) from None

    def _unreadable(self, reply: Any, text: str, headers: Mapping[str, str]) -> ModelError:
        """Of a reply without a message: some endpoints report errors under the status 200."""
        error = reply.get("error") if isinstance(reply, Mapping) else None
        if error:
            code = error.get("code") if isinstance(error, Mapping) else None
            status = code if isinstance(code, int) and 400 <= code < 600 else 502
            return self._explained(status, failure(status, reply, text, headers, self._keys))
        what = "is no JSON" if reply is None else "has no message"
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

