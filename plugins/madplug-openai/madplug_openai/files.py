"""Batches as files in a folder, which another program answers: `vllm run-batch`, on a machine without a network."""

from __future__ import annotations

import os
from asyncio import to_thread
from collections.abc import AsyncIterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from madplug import Completion, ModelError
from madplug_openai.batches import Batches
from madplug_openai.bodies import parse, text_of
from madplug_prompting.batches import BatchStatus

if TYPE_CHECKING:
    from madplug_openai.chat import Chat
    from madplug_openai.client import Client


class Files(Batches):
    """`TAG.jsonl` has the requests of a batch, in OpenAI's format, and `TAG.out.jsonl` gets the results, in any order.

    A batch has ended when it has a result for each of its requests, or when its file is not there any more.
    """

    most_requests = 1_000_000
    most_bytes = 10**12
    price = 1.0

    def __init__(self, chat: Chat, client: Client, keys: Sequence[str], folder: Path) -> None:
        super().__init__(chat, client, keys)
        self._folder = folder
        self.note = (f"batches are files in {folder}: `vllm run-batch -i NAME.jsonl -o NAME.out.jsonl --model MODEL` "
                     f"answers one{self.note and '; ' + self.note}")

    async def submit(self, requests: Sequence[bytes], tag: str) -> str:
        """Write the file, whole or not at all."""
        self._folder.mkdir(parents=True, exist_ok=True)
        part = self._folder / f"{tag}.part"
        await to_thread(part.write_bytes, b"".join(requests))
        os.replace(part, self._folder / f"{tag}.jsonl")
        return tag

    async def find(self, tag: str) -> str | None:
        """Whether the file is there."""
        return tag if (self._folder / f"{tag}.jsonl").exists() else None

    async def poll(self, batch: str) -> BatchStatus:
        """How many results are there."""
        answered = await to_thread(_lines, self._folder / f"{batch}.out.jsonl")
        if await self.find(batch) is None:
            return BatchStatus(ended=True, state="not found", answered=answered)
        ended = answered >= await to_thread(_lines, self._folder / f"{batch}.jsonl")
        return BatchStatus(ended, "completed" if ended else "waits for its results", answered)

    async def cancel(self, batch: str) -> None:
        """Take the file away."""
        (self._folder / f"{batch}.jsonl").unlink(missing_ok=True)

    async def fetch(self, batch: str) -> AsyncIterator[tuple[str, Completion | ModelError]]:
        """The results that are there."""
        path = self._folder / f"{batch}.out.jsonl"
        with path.open("rb") if path.exists() else BytesIO() as lines:
            for line in lines:
                row = parse(text_of(line))
                if isinstance(row, Mapping) and isinstance(row.get("custom_id"), str):
                    yield row["custom_id"], self._outcome(row)


def _lines(path: Path) -> int:
    """How many whole lines a file has."""
    if not path.exists():
        return 0
    with path.open("rb") as file:
        return sum(line.endswith(b"\n") for line in file)
