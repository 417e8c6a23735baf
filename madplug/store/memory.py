"""A study in memory, for tests and for debates in scripts."""

from __future__ import annotations

import sqlite3
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from madplug.errors import StudyError, UserError
from madplug.records import Agent, DebateId, DebateResult, Message, Sample
from madplug.rows import plain
from madplug.store import browsing
from madplug.store.base import (
    Call,
    CallFigures,
    CallRow,
    CellOverview,
    Changes,
    Ending,
    Order,
    Progress,
    Spent,
    Totals,
    key_bytes,
    reasoning_tokens,
)
from madplug.store.encode import (
    check_ids,
    clamp_call,
    clamp_result,
    encode,
    encode_content,
    encode_message,
    id_of,
    sample_digest,
)


class MemoryStore:
    """`Recorder` and `Reader` in memory. results: debates that it contains from the start."""

    def __init__(self, results: Iterable[DebateResult] = ()) -> None:
        self._calls: dict[bytes, tuple[CallRow, Call, float]] = {}
        self._debates: dict[DebateId, DebateResult] = {id_of(result): result for result in results}
        self._running: set[DebateId] = set()
        self._facts: dict[str, Any] = {}
        self._problems: list[str] = []
        self._ticks: dict[DebateId, int] = dict.fromkeys(self._debates, 0)
        self._tick = 0

    def call(self, key: bytes | str) -> Call | None:
        """The call recorded under a key, given as bytes or in hexadecimal digits, or None."""
        found = self._calls.get(key_bytes(key))
        return found[1] if found else None

    async def keep_call(self, row: CallRow, call: Call) -> None:
        """Record a call."""
        self._calls.setdefault(row.key, (row, clamp_call(call), time.time()))

    def start_debate(self, id: DebateId, sample: Sample, references: Sequence[str]) -> None:
        """Record the start of a debate; what an earlier attempt has left is dropped."""
        encode_content(sample, references, id)
        self._running.add(id)
        self._keep(DebateResult(*id[:2], sample, tuple(references)))

    def keep_agents(self, id: DebateId, agents: Sequence[Agent]) -> None:
        """Record the agents of a debate that was started."""
        encode(agents, f"{id}: the agents")
        self._keep(replace(self._get_started(id), agents=tuple(agents)))

    def keep_message(self, id: DebateId, message: Message) -> None:
        """Record a message of a debate that was started; it replaces an earlier one with the same id."""
        encode_message(message, id)
        found = self._get_started(id)
        messages = {m.id: m for m in found.messages} | {message.id: message}
        self._keep(replace(found, messages=tuple(messages[i] for i in sorted(messages))))

    async def finish_debate(self, result: DebateResult) -> None:
        """Record how a debate ended, started or not."""
        check_ids(result)
        encode(result, id_of(result))
        self._running.discard(id_of(result))
        self._keep(clamp_result(result))

    def fact(self, name: str) -> Any:
        """The value recorded under a name, or None."""
        return self._facts.get(name)

    async def keep_fact(self, name: str, value: Any) -> None:
        """Record a JSON value under a name."""
        self._facts[name] = plain(value)

    async def keep_problem(self, text: str) -> None:
        """Record a problem of the study."""
        self._problems.append(text)

    async def forget_problems(self) -> None:
        """Drop the problems of an earlier run."""
        self._problems.clear()

    def problems(self) -> list[str]:
        """The problems, each once."""
        return list(dict.fromkeys(self._problems))

    def done(self) -> Mapping[DebateId, str]:
        """The debates that need not be run again, each with its sample's digest."""
        return {id: sample_digest(r.sample, r.references) for id, r in self._debates.items()
                if r.error is None and id not in self._running}

    def digests(self, cell: str, repeat: int) -> Iterator[tuple[str, str]]:
        """The sample's id and digest of each debate of a cell and repeat that need not be run again."""
        return ((id.sample, digest) for id, digest in self.done().items() if id[:2] == (cell, repeat))

    def done_counts(self) -> Mapping[tuple[str, int], int]:
        """How many debates need not be run again, by cell and repeat."""
        return Counter(id[:2] for id in self.done())

    def failed(self) -> set[DebateId]:
        """The debates that failed in an earlier run."""
        return {id for id, r in self._debates.items() if r.error is not None and id not in self._running}

    def result(self, id: DebateId) -> DebateResult | None:
        """A debate that has ended, or None."""
        return None if id in self._running else self._debates.get(id)

    def results(self, cell: str | None = None) -> Iterator[DebateResult]:
        """The debates of a cell, or all, that have ended, in the order of cell, repeat and sample id."""
        return (r for r in self.debates(cell) if id_of(r) not in self._running)

    def debate(self, id: DebateId) -> DebateResult | None:
        """One debate, even if it is running, or None."""
        return self._debates.get(id)

    def debates(self, cell: str | None = None) -> Iterator[DebateResult]:
        """The debates of a cell, or all, in the order of cell, repeat and sample id, including running ones."""
        return (self._debates[id] for id in sorted(self._debates) if cell in (None, id.cell))

    def records(self, id: DebateId | None = None) -> Iterator[str]:
        """The debates that have ended, or only this one, as lines of an export."""
        results = self.results() if id is None else filter(None, [self.result(id)])
        return (encode(r, id_of(r)) for r in results)

    def figures(self, cell: str | None = None) -> Iterator[Mapping[str, Any]]:
        """One row per debate of a cell, or of all, that has ended, with its numbers and without its messages."""
        return map(_figures, self.results(cell))

    def overview(self, metric: str | None = None) -> list[CellOverview]:
        """The sums of each cell and, if named, a metric; cells in the order they started."""
        return browsing.overview(self._rows(), metric)

    def cells(self) -> list[str]:
        """The cells that have debates, by name."""
        return sorted({id.cell for id in self._debates})

    def metric_names(self, *, of_each: int | None = None) -> list[str]:
        """The scores that debates of the study have, or the first ones of each cell."""
        return browsing.metric_names(self._rows(), of_each=of_each)

    def walk(self, cell: str, order: Order = "sample", *, descending: bool = False,
             after: str | None = None, ending: Ending | None = None) -> Iterator[tuple[str, DebateId]]:
        """The debates of a cell one after the other, each with a cursor; given as `after`, it continues behind it."""
        return browsing.walk(self._rows(), cell, order, descending, after, ending)

    def contrast(self, first: str, second: str, metric: str) -> dict[tuple[float, float], int]:
        """Debates on the same sample and repeat in two cells, by a metric's scores in the first and the second."""
        return browsing.contrast(self._rows(), first, second, metric)

    def spent(self, keys: Iterable[bytes | str]) -> Spent:
        """What the calls with these keys used."""
        found = [self._calls[key] for key in map(key_bytes, keys) if key in self._calls]
        usages = [call.completion.usage for _, call, _ in found]
        costs = [usage.cost_usd for usage in usages]
        return Spent(len(found), sum(u.prompt for u in usages), sum(u.completion for u in usages),
                     None if None in costs else sum((c for c in costs if c is not None), 0.0),
                     sum(call.seconds for _, call, _ in found), sum(call.retries for _, call, _ in found))

    def calls(self, cell: str | None = None, keys: Iterable[bytes | str] | None = None) -> Iterator[Mapping[str, Any]]:
        """The answered calls of a cell, or all, or those with these keys, in the order they were answered."""
        wanted = None if keys is None else {key_bytes(key) for key in keys}
        return (_call_row(*found) for key, found in list(self._calls.items())
                if cell in (None, found[0].caller.cell) and (wanted is None or key in wanted))

    def call_figures(self, keys: Iterable[bytes | str] | None = None) -> Iterator[CallFigures]:
        """The numbers of every answered call, in the order they were answered, or of those with these keys."""
        wanted = list(self._calls) if keys is None else [key for key in map(key_bytes, keys) if key in self._calls]
        for key in wanted:
            row, call, _ = self._calls[key]
            who, usage = row.caller, call.completion.usage
            yield CallFigures(key, who.cell, who.repeat, who.sample, who.agent, who.purpose, who.round, row.model,
                              usage.prompt, usage.completion, usage.cached, reasoning_tokens(usage.raw), usage.cost_usd,
                              call.seconds)

    def totals(self) -> Totals:
        """What has been paid for."""
        usages = [call.completion.usage for _, call, _ in self._calls.values()]
        return Totals(len(usages), sum(u.prompt + u.completion for u in usages), sum(u.cost_usd or 0.0 for u in usages))

    def retries(self) -> int:
        """How many attempts failed, over all calls that were answered in the end."""
        return sum(call.retries for _, call, _ in self._calls.values())

    def latest(self) -> str:
        """The cursor of what has been recorded so far."""
        return f"{self._tick}.{len(self._calls)}"

    def since(self, cursor: str | None = None) -> tuple[Changes, str]:
        """What has been recorded since a cursor that an earlier call returned, and the next cursor."""
        try:
            tick, calls = map(int, cursor.split(".")) if cursor else (-1, 0)
        except ValueError:
            raise UserError(f"{cursor!r:.40} is not a cursor of a study") from None
        debates = {id: Progress(self._outcome(id), len(self._debates[id].messages))
                   for id, changed in self._ticks.items() if changed > tick}
        return Changes(debates, len(self._calls) - calls), f"{self._tick}.{len(self._calls)}"

    def close(self) -> None:
        """Do nothing."""

    def __enter__(self) -> MemoryStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _rows(self) -> browsing.Rows:
        """The numbers of the debates as a table of SQLite, so that they are added up and sorted as on disk."""
        db = sqlite3.connect(":memory:")
        db.execute(f"CREATE TABLE debates ({', '.join(browsing.COLUMNS)})")
        marks = ", ".join("?" * len(browsing.COLUMNS))
        for number, (id, result) in enumerate(self._debates.items(), 1):
            values: dict[str, Any] = {"cell": id.cell, "repeat": id.repeat, "sample": id.sample}
            if id not in self._running:
                values = {**_figures(result), "metrics": encode(result.metrics, id), "outcome": self._outcome(id),
                          "messages": len(result.messages)}
            values["number"] = number
            db.execute(f"INSERT INTO debates VALUES ({marks})", [values.get(name) for name in browsing.COLUMNS])
        return db.execute

    def _outcome(self, id: DebateId) -> Any:
        if id in self._running:
            return "running"
        return "done" if self._debates[id].error is None else "failed"

    def _get_started(self, id: DebateId) -> DebateResult:
        if id not in self._running:
            raise StudyError(f"{id} was not started")
        return self._debates[id]

    def _keep(self, result: DebateResult) -> None:
        self._tick += 1
        self._ticks[id_of(result)] = self._tick
        self._debates[id_of(result)] = result


def _figures(result: DebateResult) -> Mapping[str, Any]:
    decision, tokens = result.decision, result.tokens
    return {"cell": result.cell, "repeat": result.repeat, "sample": result.sample.id, "error": result.error,
            "decided": decision is not None and decision.key is not None,
            "agreed": decision is not None and decision.agreed, "rounds": result.rounds, "calls": result.calls,
            "retries": result.retries, "prompt": tokens.prompt, "completion": tokens.completion,
            "cached": tokens.cached, "cost_usd": tokens.cost_usd, "seconds": result.seconds,
            "metrics": result.metrics}


def _call_row(row: CallRow, call: Call, at: float) -> Mapping[str, Any]:
    import json

    caller, done = row.caller, call.completion
    return {"key": row.key.hex(), "cell": caller.cell, "repeat": caller.repeat, "sample": caller.sample,
            "agent": caller.agent, "purpose": caller.purpose, "round": caller.round, "nth": caller.nth,
            "model": row.model, "request": json.loads(row.request), "text": done.text, "usage": asdict(done.usage),
            "logprobs": None if done.logprobs is None else list(done.logprobs), "retries": call.retries,
            "seconds": call.seconds, "at": at}
