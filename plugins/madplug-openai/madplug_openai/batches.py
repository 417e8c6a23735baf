"""Batches of requests: a file of them is uploaded, and the endpoint answers it within a day, for half the price."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import orjson

from madplug import AccessError, Completion, ModelError, Request, TransientError
from madplug_openai.bodies import parse, text_of
from madplug_openai.chat import Chat, encode
from madplug_openai.failures import failure
from madplug_openai.keys import presentable
from madplug_prompting.batches import BatchStatus

if TYPE_CHECKING:
    from madplug_openai.client import Client

ENDED = {"completed", "failed", "expired", "cancelled"}
_TAG = "madplug"
"""The field of a batch's metadata that holds its tag."""


class Interface(ABC):
    """What batch interfaces at `/batches` have in common."""

    def __init__(self, client: Client, keys: Sequence[str]) -> None:
        self._client, self._keys = client, keys

    @abstractmethod
    async def poll(self, batch: str) -> BatchStatus:
        """How far a batch is."""

    async def cancel(self, batch: str) -> None:
        """Ask the endpoint to stop; one that has ended is left as it is."""
        status = await self.poll(batch)
        if not status.ended:
            await self._call("POST", f"/batches/{quote(batch, safe='')}/cancel")

    async def _get(self, batch: str) -> Mapping[str, Any] | None:
        reply = await self._client.call("GET", f"/batches/{quote(batch, safe='')}")
        return None if reply.status == 404 else self._read(reply)

    async def _call(self, method: str, path: str, data: Any = None,
                    headers: Mapping[str, str] | None = None) -> Mapping[str, Any]:
        return self._read(await self._client.call(method, path, data, headers))

    def _read(self, reply: Any) -> Mapping[str, Any]:
        """The object in a reply. Raises `ModelError`."""
        text = text_of(reply.body)
        read = parse(text)
        if not reply.good:
            refused = failure(reply.status, read, text, reply.headers, self._keys)
            raise AccessError(f"the endpoint has no batch interface ({refused}); leave out --batch and --detach, or "
                              "`use = \"batch.rounds\"` in [execution]") if reply.status in (404, 405, 501) else refused
        if not isinstance(read, Mapping):
            raise TransientError(f"the reply is not an object: {presentable(text, self._keys, 80)}")
        return read


class Batches(Interface):
    """The batch interface of OpenAI, and of other endpoints that have the same."""

    most_requests = 50_000
    most_bytes = 190_000_000
    """5 % below the provider's limit of 200 MB."""
    price = 0.5

    def __init__(self, chat: Chat, client: Client, keys: Sequence[str]) -> None:
        super().__init__(client, keys)
        self._chat = chat
        most = chat.options.samples_per_request
        self.note = "" if most == 1 else (
            f"samples_per_request = {most} is about single requests; in batches the prompt is paid for each sample")

    def encode(self, id: str, request: Request) -> bytes:
        """A line of the input file."""
        line = {"custom_id": id, "method": "POST", "url": "/v1/chat/completions", "body": self._chat.body(request)}
        return encode(line) + b"\n"

    async def submit(self, requests: Sequence[bytes], tag: str) -> str:
        """Upload a file, and have it worked on."""
        import aiohttp

        form = aiohttp.MultipartWriter("form-data")
        form.append(b"batch").set_content_disposition("form-data", name="purpose")
        file = form.append(BytesIO(b"".join(requests)), {"Content-Type": "application/jsonl"})
        file.set_content_disposition("form-data", name="file", filename=f"{tag}.jsonl")
        uploaded = await self._call("POST", "/files", form, dict(form.headers))
        made = await self._call("POST", "/batches", orjson.dumps({
            "input_file_id": uploaded.get("id"), "endpoint": "/v1/chat/completions", "completion_window": "24h",
            "metadata": {_TAG: tag}}))
        return str(made["id"])

    async def find(self, tag: str) -> str | None:
        """Look through all batches of the account."""
        after = ""
        while True:
            page = await self._call("GET", f"/batches?limit=100{after}")
            found = page.get("data") or []
            for batch in found:
                if (batch.get("metadata") or {}).get(_TAG) == tag:
                    return str(batch["id"])
            if not found or not page.get("has_more"):
                return None
            after = f"&after={quote(str(found[-1]['id']), safe='')}"

    async def poll(self, batch: str) -> BatchStatus:
        """How far a batch is; one that is not there has ended without a result."""
        found = await self._get(batch)
        if found is None:
            return BatchStatus(ended=True, state="not found")
        state = str(found.get("status"))
        return BatchStatus(state in ENDED, state, (found.get("request_counts") or {}).get("completed") or 0,
                           found.get("expires_at"), _errors(found)[0].get("code") == "token_limit_exceeded")

    async def fetch(self, batch: str) -> AsyncIterator[tuple[str, Completion | ModelError]]:
        """The lines of the output file and of the error file, and what is wrong with the lines of a refused file."""
        found = await self._get(batch) or {}
        for file in filter(None, map(found.get, ("output_file_id", "error_file_id"))):
            async for line in self._client.lines(f"/files/{quote(file, safe='')}/content"):
                row = parse(text_of(line))
                if isinstance(row, Mapping) and isinstance(row.get("custom_id"), str):
                    yield row["custom_id"], self._outcome(row)
        if found.get("status") == "failed":
            async for id, error in self._refused(found):
                yield id, error

    async def _refused(self, batch: Mapping[str, Any]) -> AsyncIterator[tuple[str, ModelError]]:
        """What is wrong with the lines of a file that was refused, or with all of them."""
        errors = _errors(batch)
        by_line = {error["line"]: error for error in errors if error.get("line")}
        status = 429 if errors[0].get("code") == "token_limit_exceeded" else 400
        number = 0
        async for line in self._client.lines(f"/files/{quote(batch['input_file_id'], safe='')}/content"):
            number += 1
            if not by_line or number in by_line:
                error = by_line.get(number, errors[0])
                yield orjson.loads(line)["custom_id"], failure(status, {"error": error}, "", {}, self._keys)

    def _outcome(self, row: Mapping[str, Any]) -> Completion | ModelError:
        """What became of one request."""
        response = row.get("response")
        if not isinstance(response, Mapping) or not isinstance(response.get("status_code"), int):
            error = row.get("error")
            said = error.get("message") or error.get("code") if isinstance(error, Mapping) else None
            return TransientError(presentable(str(said or "the batch ended without an answer"), self._keys))
        try:
            body = response.get("body") or row.get("error")  # where vLLM says what is wrong with a request
            return self._chat.read(response["status_code"], {}, orjson.dumps(body), tools=True)
        except ModelError as error:
            return error


def _errors(batch: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Why a batch was refused: at least one, which may say nothing."""
    return (batch.get("errors") or {}).get("data") or [{}]
