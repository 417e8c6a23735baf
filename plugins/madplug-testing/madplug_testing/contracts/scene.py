"""The debates in which a component is examined, and what is observed in them."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from hashlib import blake2b
from typing import Any

from pydantic import BaseModel

from madplug import Dataset, Debate, DebateResult, Message, Reply, Sample, Turn, to_json
from madplug.store import DebateId, MemoryStore
from madplug.study import DebateState, stored_debate
from madplug_redecide.following import follow, without_paths
from madplug_testing import PlainStyle, Played, wait_for

ODD = ("", " ", "{", '{"answer": ', "null", "[]", '{"answer": null}', "A B C", "{agent} {0} %s", "\N{SNOWMAN}\x00",
       "I cannot help with that.", '{"answer": {"a": [1, 2]}, "confidence": "high", "agree": "perhaps"}')
"""What a model may reply instead of what it was asked for."""


_OPAQUE = {"asyncio", "threading", "_thread", "weakref"}
"""Modules whose objects are about running, not about a debate: locks, and what is kept for an event loop."""


class Outspoken(PlainStyle):
    """The plainest style, which also says whether it agrees, and how sure it is: for components that need either."""

    name = "outspoken"
    gives = frozenset({"agreement", "confidence"})

    async def respond(self, debate: Debate, turn: Turn, view: Sequence[Message]) -> Reply:
        """The reply, with a confidence drawn from it; agreement is with the message shown last."""
        reply = await super().respond(debate, turn, view)
        agreement = reply.content == view[-1].content if view else None
        return replace(reply, agreement=agreement, confidence=drawn(reply.content, 11) / 10)


def drawn(text: str, below: int) -> int:
    """A number below a limit, always the same for a text."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") % below


TRAINING = Sample("train", "Which of these is a fruit?", choices=("a pear", "a chair", "a cloud"))


class Rows(Dataset):
    """The debate's sample; the other parts of the data are the same, whatever the debate's is."""

    name = "rows"

    def __init__(self, sample: Sample, references: Sequence[str]) -> None:
        super().__init__()
        self._row = (sample, tuple(references))
        self._others = [(replace(TRAINING, id=f"train {i}"), ("A",)) for i in range(3)]

    def samples(self, split: str | None = None) -> Iterator[tuple[Sample, tuple[str, ...]]]:
        """One sample, or three of another part."""
        return iter([self._row] if split is None else self._others)


class Witness(MemoryStore):
    """Keeps a debate, and sees whether what went on record is still there as it was."""

    def __init__(self) -> None:
        super().__init__()
        self.said: dict[tuple[DebateId, int], tuple[Message, str]] = {}
        self.samples: dict[DebateId, tuple[Sample, str]] = {}
        self.changed: list[str] = []

    def start_debate(self, id: DebateId, sample: Sample, references: Sequence[str]) -> None:
        """Remember the sample."""
        self.samples[id] = (sample, to_json(sample))
        super().start_debate(id, sample, references)

    def keep_message(self, id: DebateId, message: Message) -> None:
        """Look at the earlier messages, and remember this one."""
        self._compare()
        self.said[id, message.id] = (message, to_json(message))
        super().keep_message(id, message)

    async def finish_debate(self, result: DebateResult) -> None:
        """Look once more."""
        self._compare()
        await super().finish_debate(result)

    def _compare(self) -> None:
        self.changed += [f"message {message.id}" for message, then in self.said.values() if to_json(message) != then]
        self.changed += ["the sample" for sample, then in self.samples.values() if to_json(sample) != then]


@dataclass
class Trial:
    """A debate that was run with a component, and what was seen of it."""

    component: Any
    played: Played
    witness: Witness

    @property
    def debate(self) -> DebateState:
        """The debate after its end; its components may still ask."""
        return self.played.debate

    def ended(self) -> Trial:
        """Itself, if the debate came to its end."""
        if self.played.result.error is not None:
            raise AssertionError(f"the debate failed: {self.played.result.error}") from self.played.error
        return self

    def outcome(self) -> dict[str, Any]:
        """Everything that two equal debates have in common."""
        row: dict[str, Any] = json.loads(to_json(self.played.result))
        return {k: v for k, v in row.items() if k not in ("seconds", "references")}


# What is read and compared

def fitting(schema: Any, text: str) -> Any:
    """A value that fits a JSON schema, drawn from a text."""
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    if not isinstance(schema, Mapping) or "const" in schema:
        return schema.get("const") if isinstance(schema, Mapping) else None
    for choices in (schema.get("enum"), schema.get("anyOf"), schema.get("oneOf")):
        if choices:
            chosen = choices[drawn(text, len(choices))]
            return chosen if choices is schema.get("enum") else fitting(chosen, text)
    if kind == "object" or "properties" in schema:
        return {name: fitting(part, text + name) for name, part in schema.get("properties", {}).items()}
    if kind == "array":
        count = max(schema.get("minItems", 1), 1)
        return [fitting(schema.get("items", {}), f"{text}{i}") for i in range(count)]
    low, high = schema.get("minimum", 0), schema.get("maximum", 1)
    plain = {"integer": low + drawn(text, int(high - low) + 1), "number": low + (high - low) * drawn(text, 11) / 10,
             "boolean": bool(drawn(text, 2)), "null": None}
    return plain.get(str(kind), "ABC"[drawn(text, 3)])


def contents_of(thing: Any, seen: frozenset[int] = frozenset()) -> Any:
    """The contents of an object, as plain values that can be compared."""
    if thing is None or isinstance(thing, str | bytes | int | float | bool):
        return thing
    if isinstance(thing, type) or id(thing) in seen or type(thing).__module__.partition(".")[0] in _OPAQUE:
        return getattr(thing, "__qualname__", type(thing).__qualname__)
    if isinstance(thing, random.Random):
        return hash(thing.getstate())
    seen = seen | {id(thing)}
    if isinstance(thing, BaseModel):
        return thing.model_dump(mode="json")
    if is_dataclass(thing):
        return {f.name: contents_of(getattr(thing, f.name), seen) for f in fields(thing)}
    if isinstance(thing, Mapping):
        return {str(contents_of(k, seen)): contents_of(v, seen) for k, v in thing.items()}
    if isinstance(thing, Sequence):
        return [contents_of(part, seen) for part in thing]
    if isinstance(thing, set | frozenset):
        return sorted(str(contents_of(part, seen)) for part in thing)
    contents = {k: contents_of(v, seen) for k, v in getattr(thing, "__dict__", {}).items()}
    return (type(thing).__qualname__, contents)


def json_able(value: Any) -> bool:
    """Whether a table can be kept as it is: text, numbers, lists, and tables with text for keys."""
    if isinstance(value, Mapping):
        return all(isinstance(k, str) and json_able(v) for k, v in value.items())
    if isinstance(value, list | tuple):
        return all(map(json_able, value))
    return value is None or type(value) in (str, int, bool) or isinstance(value, float)


def same_twice(call: Any, what: str) -> Any:
    """What a method returns, once it has returned the same for the same."""
    one, two = call(), call()
    assert to_json(one) == to_json(two), f"{what} gives another answer the second time: {one!r:.200} and {two!r:.200}"
    return one


def variants(trial: Trial) -> Iterator[tuple[str, DebateState]]:
    """The debate as it ended; before any agent spoke; after one message; and without readable answers."""
    result = trial.played.result
    unread = tuple(replace(m, answer=None, key=None, agreement=None, confidence=None) for m in result.messages)
    records = {"as it ended": result.messages, "before any agent spoke": (), "after one message": result.messages[:1],
               "with no answer that could be read": unread}
    for name, messages in records.items():
        notes = without_paths(result.notes, (*result.decision_notes, *result.phase_notes))  # nothing is decided yet
        stored = replace(result, messages=messages, notes=notes)
        yield name, stored_debate(stored, trial.debate.cell, client=trial.debate.client)


def decided_again(trial: Trial) -> DebateState:
    """The debate decided again by the protocol that decided it, which leaves its record as it is."""
    before = trial.debate
    state = DebateState(before.cell, before.sample, right=before.right, client=before.client, seed=before.seed)
    wait_for(follow(state, trial.played.result))
    again, then = ([replace(m, id=0, seen=()) for m in debate.transcript.messages] for debate in (state, before))
    assert again == then, "deciding again changes the record"  # ids differ where a round was retracted
    return state
