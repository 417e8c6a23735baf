"""The batch interface of a fake provider, as OpenAI's: files, and batches that end as a test says.

    with running_endpoint() as endpoint:
        provider = endpoint.endpoint.batches
        provider.plans.append(Plan(ends="expired", answers=0.5))    # how the next batch ends
        provider.hold = True                                        # until this is False, batches are in progress

A batch moves on by one state each time it is looked at. `provider.answered` counts how often each request was answered,
which is when it is paid.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

STATES = ("validating", "in_progress", "finalizing")
"""The states before the last one."""


@dataclass
class Plan:
    """How a batch ends."""

    ends: str = "completed"
    """`completed`, `expired`, `cancelled` or `failed`."""
    answers: float = 1.0
    """The share of the requests, the first ones, that are answered; the others are in the error file."""
    statuses: Sequence[int] = ()
    """The status of the first requests."""
    missing: int = 0
    """Results that are in neither file, the last ones."""
    twice: int = 0
    """Results that are in the output file twice."""
    unknown: int = 0
    """Results of requests that nobody made."""
    errors: Sequence[dict[str, Any]] = ()
    """What a batch that failed says: `code`, `message` and `line`, from 1."""


@dataclass
class Batches:
    """Files and batches. answer: the body of the response to a request's body, given its digest."""

    answer: Callable[[bytes, bytes], bytes]
    note: Callable[[bytes], None]
    plans: deque[Plan] = field(default_factory=deque)
    """How the next batches end, in the order in which they are submitted."""
    room: int = 0
    """A batch with which more requests than this would be under way is refused as OpenAI does; 0 for no limit."""
    hold: bool = False
    """Whether batches stay in progress."""
    faults: deque[int] = field(default_factory=deque)
    """The statuses of the next requests for the batch interface; 0 carries the request out, and answers nothing."""
    answered: Counter[str] = field(default_factory=Counter)
    """How often each request was answered, by its `custom_id`."""
    made: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The batches, as the provider describes them, by id."""
    files: dict[str, bytes] = field(default_factory=dict)

    def finish(self) -> None:
        """Bring every batch to its end."""
        for batch in self.made.values():
            if batch["status"] in STATES:
                self._end(batch, batch["_plan"])

    def serve(self, method: str, url: str, body: bytes) -> tuple[int, bytes]:
        """The status and the body of the response to a request; the status 0 is a connection that breaks."""
        status = self.faults.popleft() if self.faults else 200
        if status >= 400:
            return status, json.dumps({"error": {"message": "as planned", "code": None}}).encode()
        parts = urlsplit(url)
        path = [unquote(part) for part in parts.path.split("/")[2:]]
        found = self._handle(method, path, parse_qs(parts.query), body)
        if found is None:
            return 404, b'{"error": {"message": "no such thing"}}'
        return status, found if isinstance(found, bytes) else json.dumps(found).encode()

    def _handle(self, method: str, path: list[str], query: dict[str, list[str]], body: bytes) -> Any:
        match (method, *path):
            case ("POST", "files"):
                return {"id": self._keep(_file_in(body)), "object": "file", "purpose": "batch"}
            case ("GET", "files", id, "content"):
                return self.files.get(id)
            case ("POST", "batches"):
                return self._make(json.loads(body))
            case ("GET", "batches"):
                return self._list(query)
            case ("GET", "batches", id):
                return self._look(self.made[id]) if id in self.made else None
            case ("POST", "batches", id, "cancel"):
                self.made[id]["status"] = "cancelling"
                self.made[id]["_plan"].ends = "cancelled"
                return _shown(self.made[id])
        return None

    def _keep(self, content: bytes) -> str:
        id = f"file-{len(self.files)}"
        self.files[id] = content
        return id

    def _make(self, given: dict[str, Any]) -> dict[str, Any]:
        now, id = int(time.time()), f"batch_{len(self.made)}"
        self.made[id] = {**given, "id": id, "object": "batch", "status": STATES[0], "created_at": now,
                         "expires_at": now + 86_400, "_plan": self.plans.popleft() if self.plans else Plan()}
        if 0 < self.room < sum(map(self._requests, self.made.values())):
            self.made[id]["_plan"] = Plan(ends="failed", errors=[{
                "code": "token_limit_exceeded", "message": "Enqueued token limit reached.", "line": None}])
        return _shown(self.made[id])

    def _requests(self, batch: dict[str, Any]) -> int:
        """How many requests of a batch are under way."""
        return self.files[batch["input_file_id"]].count(b"\n") if batch["status"] in STATES else 0

    def _list(self, query: dict[str, list[str]]) -> dict[str, Any]:
        """A page, the latest first."""
        ids = list(self.made)[::-1]
        after = query.get("after")
        ids = ids[ids.index(after[0]) + 1:] if after else ids
        page = ids[:int(query["limit"][0])]
        return {"data": [_shown(self.made[id]) for id in page], "has_more": len(page) < len(ids)}

    def _look(self, batch: dict[str, Any]) -> dict[str, Any]:
        """A batch, and then its next state."""
        shown = _shown(batch)
        state, plan = batch["status"], batch["_plan"]
        if state == "cancelling":
            self._end(batch, plan)
        elif state in STATES and not (self.hold and state == "in_progress"):
            if state == STATES[-1] or (plan.ends == "failed" and state == STATES[0]):
                self._end(batch, plan)
            else:
                batch["status"] = STATES[STATES.index(state) + 1]
        return shown

    def _end(self, batch: dict[str, Any], plan: Plan) -> None:
        batch["status"] = plan.ends
        lines = [json.loads(line) for line in self.files[batch["input_file_id"]].splitlines()]
        if plan.ends == "failed":
            batch["errors"] = {"object": "list", "data": list(plan.errors)}
            return
        most = round(plan.answers * len(lines))
        good = [self._result(line, status) for line, status in zip(lines[:most], [*plan.statuses, *[200] * most],
                                                                   strict=False)]
        bad = [{"custom_id": line["custom_id"], "response": None,
                "error": {"code": f"batch_{plan.ends}", "message": f"the batch was {plan.ends}"}}
               for line in lines[most:]]
        found = {"output": [one for one in good if one["response"]["status_code"] == 200],
                 "error": [*bad, *(one for one in good if one["response"]["status_code"] != 200)]}
        out = found["output"] = found["output"][:len(found["output"]) - plan.missing]
        out += out[:plan.twice] + [{**out[0], "custom_id": f"{n:032x}"} for n in range(plan.unknown)]
        random.Random(len(lines)).shuffle(out)
        for name, rows in found.items():
            if rows:
                batch[f"{name}_file_id"] = self._keep(b"".join(json.dumps(row).encode() + b"\n" for row in rows))
        batch["request_counts"] = {"total": len(lines), "completed": len(good), "failed": len(bad)}

    def _result(self, line: dict[str, Any], status: int) -> dict[str, Any]:
        body = json.dumps(line["body"], ensure_ascii=False, separators=(",", ":")).encode()
        digest = blake2b(body, digest_size=12).digest()
        if status != 200:
            given: Any = {"error": {"message": "as planned"}}
        else:
            given = json.loads(self.answer(body, digest))
            self.answered[line["custom_id"]] += 1
            self.note(digest)
        return {"custom_id": line["custom_id"], "error": None,
                "response": {"status_code": status, "request_id": "r", "body": given}}


def _shown(batch: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in batch.items() if name[:1] != "_"}


def _file_in(body: bytes) -> bytes:
    """The file in a form."""
    boundary = body[:body.index(b"\r\n")]
    part = next(part for part in body.split(boundary) if re.search(rb'name="?file"?', part[:500]))
    return part.split(b"\r\n\r\n", 1)[1].removesuffix(b"\r\n")
