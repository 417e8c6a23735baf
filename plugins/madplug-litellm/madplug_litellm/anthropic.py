"""Batches of Anthropic (Message Batches): requests and replies as litellm makes and reads them, sent by ourselves."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import orjson

from madplug import Completion, ModelError, Request, TransientError
from madplug_openai.batches import Interface
from madplug_openai.bodies import MEGABYTE, MOST_OF_AN_ERROR, parse, text_of
from madplug_openai.client import Client
from madplug_openai.failures import failure
from madplug_prompting.batches import BatchStatus

if TYPE_CHECKING:
    from madplug_litellm.chat import Chat

ADDRESS = "https://api.anthropic.com"
_PATH = "/v1/messages"
_STATUSES = {"invalid_request_error": 400, "authentication_error": 401, "billing_error": 402, "permission_error": 403,
             "not_found_error": 404, "request_too_large": 413, "rate_limit_error": 429, "timeout_error": 504,
             "overloaded_error": 529}
"""What a kind of error is outside of a batch; any other is a failure of the provider."""
_OURS = {"model", "messages", "api_key", "api_base", "timeout", "num_retries", "max_retries", "drop_params",
         "shared_session"}
_ID = 32
"""Characters of a call's key; in a batch, the tag follows it."""
_BEGINNING = b'{"custom_id":"'


def client_for(options: Any, key: str, keys: Sequence[str]) -> Client:
    """Connections to the provider."""
    address = options.api_base or os.environ.get("ANTHROPIC_API_BASE") or ADDRESS
    url = address.rstrip("/").removesuffix(_PATH) + _PATH
    headers = {"Content-Type": "application/json", "User-Agent": "madplug", "anthropic-version": "2023-06-01",
               **({"x-api-key": key} if key else {})}
    most = int(options.max_reply_mb * MEGABYTE)
    limits = most, min(most, MOST_OF_AN_ERROR)
    return Client(url, headers, timeout=options.timeout, limits=limits, keys=keys, base=url)


class Batches(Interface):
    """The batch interface of Anthropic.

    Its batches have neither names nor notes, so that the tag of a batch is in the ids of its requests, and can only be
    read once it has ended.
    """

    most_requests = 100_000
    most_bytes = 243_000_000
    """5 % below the provider's limit of 256 MB."""
    price = 0.5
    note = ""

    def __init__(self, chat: Chat, client: Client, keys: Sequence[str]) -> None:
        super().__init__(client, keys)
        self._chat = chat
        self._features: set[str] = set()
        """What requests use that has to be asked for in a header."""

    async def close(self) -> None:
        """Close every connection."""
        await self._client.close()

    def encode(self, id: str, request: Request) -> bytes:
        """A request with what litellm would send to the provider."""
        from litellm import AnthropicConfig
        from litellm.integrations.anthropic_cache_control_hook import AnthropicCacheControlHook
        from litellm.utils import get_optional_params

        given = self._chat.arguments(request)
        model, messages, wanted = AnthropicCacheControlHook().get_chat_completion_prompt(
            given["model"].partition("/")[2], given["messages"],
            {name: value for name, value in given.items() if name not in _OURS}, None, None, {})
        headers: dict[str, str] = {}
        options = get_optional_params(
            model=model, custom_llm_provider="anthropic", drop_params=given["drop_params"], **wanted)
        body = AnthropicConfig().transform_request(model, messages, options, {}, headers)
        body.pop("json_mode", None)  # a note of litellm to itself
        self._features.update(filter(None, headers.get("anthropic-beta", "").split(",")))
        return _BEGINNING + id.encode() + b'","params":' + orjson.dumps(body, default=dict) + b"}"

    async def submit(self, requests: Sequence[bytes], tag: str) -> str:
        """Send all requests, each with the tag behind its id."""
        at = len(_BEGINNING) + _ID
        lines = b",".join(line[:at] + tag.encode() + line[at:] for line in requests)
        headers = {"anthropic-beta": ",".join(sorted(self._features))} if self._features else None
        return str((await self._call("POST", "/batches", b'{"requests":[' + lines + b"]}", headers))["id"])

    async def find(self, tag: str) -> str | None:
        """Look through all batches of the account. Raises `TransientError` while it may be one that has not ended."""
        open, after = 0, ""
        while True:
            page = await self._call("GET", f"/batches?limit=100{after}")
            found = page.get("data") or []
            for batch in map(str, (batch["id"] for batch in found if batch.get("processing_status") == "ended")):
                async for row in self._rows(batch):
                    if row["custom_id"][_ID:] == tag:
                        return batch
                    break
            open += sum(batch.get("processing_status") != "ended" for batch in found)
            if not found or not page.get("has_more"):
                break
            after = f"&after_id={quote(str(found[-1]['id']), safe='')}"
        if open:
            raise TransientError(f"{open} batches have not ended, and only then say whose they are")
        return None

    async def poll(self, batch: str) -> BatchStatus:
        """How far a batch is; one that is not there has ended without a result."""
        found = await self._get(batch)
        if found is None:
            return BatchStatus(ended=True, state="not found")
        state, expires = str(found.get("processing_status")), found.get("expires_at")
        counts = found.get("request_counts") or {}
        return BatchStatus(state == "ended", "completed" if state == "ended" else state, counts.get("succeeded") or 0,
                           datetime.fromisoformat(expires.replace("Z", "+00:00")).timestamp() if expires else None)

    async def fetch(self, batch: str) -> AsyncIterator[tuple[str, Completion | ModelError]]:
        """The results, in any order."""
        async for row in self._rows(batch):
            yield row["custom_id"][:_ID], self._outcome(row.get("result") or {})

    async def _rows(self, batch: str) -> AsyncIterator[Mapping[str, Any]]:
        async for line in self._client.lines(f"/batches/{quote(batch, safe='')}/results"):
            row = parse(text_of(line))
            if isinstance(row, Mapping) and isinstance(row.get("custom_id"), str):
                yield row

    def _outcome(self, result: Mapping[str, Any]) -> Completion | ModelError:
        """What became of one request."""
        kind = result.get("type")
        if kind == "errored":
            error = result.get("error") or {}
            error = error.get("error") or error
            return failure(_STATUSES.get(str(error.get("type")), 500), {"error": error}, "", {}, self._keys)
        if kind != "succeeded":
            return TransientError(f"the request was {kind} before it was answered")
        import httpx
        from litellm import AnthropicConfig, ModelResponse

        try:
            reply = AnthropicConfig().transform_parsed_response(result["message"], httpx.Response(200), ModelResponse())
            return self._chat.read(reply, None, tools=True)
        except ModelError as error:
            return error
