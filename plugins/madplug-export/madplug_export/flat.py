"""Debates, messages and calls as flat rows: columns that a data frame can use at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Optional, TypeVar

from madplug import FAILED, DebateId, Message, UserError, earlier_answers, parse_json, plain, to_json

if TYPE_CHECKING:
    from madplug.store import Reader

T = TypeVar("T")

Row = dict[str, Any]
METRIC = "metric."
"""How the column of a score begins in an export; in a data frame, it has the score's name alone."""

DEBATE: Mapping[str, str] = {
    "cell": "the cell",
    "repeat": "the repetition, from 0",
    "sample": "the question's id",
    "group": "its stratum",
    "question": "its text",
    "reference": "the first reference",
    "references": "all references (list)",
    "partial": "whether an agent had failed before the decision",
    "answer": "the debate's answer as text; missing if it is undecided or failed",
    "key": "its canonical form",
    "agreed": "whether the protocol's own rule was met",
    "fallback": "whether a fallback gave the answer",
    "tie": "whether there was a tie",
    "undecided": "whether there is no answer",
    "reason": "how it was decided, or why not, where the protocol says so",
    "error": "why it failed",
    "oracle": "whether components saw the references (`oracle = true`), so that it says nothing about models",
    "agents": "how many agents",
    "rounds": "the last round with a message",
    "messages": "how many, without retracted ones",
    "first_answers": "each voter's first answer, as keys (list; null: could not be read, or was not asked for)",
    "last_answers": "each voter's last answer (list)",
    "flips": "messages of voters that are `changed`",
    "flipped": "voters with such a message",
    "calls": "model calls, without those of metrics",
    "retries": "failed attempts",
    "prompt": "tokens read",
    "cached": "of these from the provider's cache",
    "completion": "tokens written",
    "cost_usd": "US dollars",
    "seconds": "from its start to its end in the run that ended it, waiting included: next to nothing where its calls "
               "were on record already; where it was decided again, with the time it took when it was run",
}
"""The columns of a debate; each metric has one more, `metric.NAME`."""
MESSAGE: Mapping[str, str] = {
    "cell": "the cell",
    "repeat": "the repetition, from 0",
    "sample": "the question's id",
    "message": "the message's id in its debate",
    "round": "from 1; 0 before round 1",
    "wave": "from 0",
    "agent": "the agent's id; missing for a message that no agent wrote",
    "persona": "its name",
    "role": "its role",
    "votes": "whether its answer counts",
    "model": "the model that answered its last call",
    "move": "what was asked for",
    "stage": "a part of a round",
    "content": "the text",
    "answer": "the answer as text",
    "key": "its canonical form",
    "changed": "whether the key differs from that of the agent's answer before; missing where one of them is",
    "agreement": "with the draft it saw",
    "confidence": "between 0 and 1",
    "seen": "ids of the messages it was shown, in that order (list)",
    "altered": "of these, shown in a changed form (list)",
    "retracted": "whether it was retracted",
    "calls": "keys of the calls behind it (list)",
    "data": "what components stored with it (table)",
    "oracle": "whether components saw the references, as for debates",
}
"""The columns of a message."""
CALL: Mapping[str, str] = {
    "key": "the call's key, as in a message's `calls`",
    "cell": "the cell that paid for it",
    "repeat": "of the debate that paid",
    "sample": "of the debate that paid; empty for calls before the first debate",
    "agent": "the agent's id",
    "purpose": "what the call was for",
    "round": "from 1; 0 before round 1",
    "nth": "how often the debate had made the same request before",
    "message": "the id of the message behind which it is, in the debate that paid; missing for others",
    "uses": "how many messages, openings and decisions of all cells rest on it",
    "model": "the `[models.NAME]` table",
    "request": "messages, parameters and form",
    "text": "the reply",
    "usage": "prompt, completion, cached, cost_usd, raw",
    "logprobs": "of the reply's tokens, if requested",
    "retries": "failed attempts",
    "seconds": "of the answered attempt",
    "at": "seconds since 1970",
}
"""The columns of a call."""


def saw_references(study: Reader) -> bool:
    """Whether components saw the references, so that every result of the study is marked."""
    identity = study.fact("identity")
    return isinstance(identity, Mapping) and identity.get("oracle") is True


def marked(study: Reader, cell: str | None = None) -> Iterator[Row]:
    """The debates of a cell, or all, each a whole record with `oracle`."""
    oracle = saw_references(study)
    return ({**plain(result), "oracle": oracle} for result in study.debates(cell))


def lines(study: Reader) -> Iterator[str]:
    """The same of all debates as lines of JSON, which are as they were recorded up to the last key."""
    end = f',"oracle":{to_json(saw_references(study))}}}'
    return (line.rstrip().removesuffix("}") + end for line in study.records())


def debate_row(record: Mapping[str, Any]) -> Row:
    """A debate as one row; see `DEBATE`. record: a debate of `marked`."""
    said = [m for m in record["messages"] if not m["retracted"]]
    voters = [a["id"] for a in record["agents"] if a["persona"]["votes"]]
    histories = [_answers(said, voter) for voter in voters]
    earlier = _earlier(record)
    changed = [m["agent"] for m in said if m["agent"] in voters and m["key"] != earlier.get(m["id"], m["key"])]
    made, sample, tokens = record["decision"] or {}, record["sample"], record["tokens"]
    return {
        "cell": record["cell"], "repeat": record["repeat"], "sample": sample["id"], "group": sample["group"],
        "question": sample["question"], "reference": next(iter(record["references"]), None),
        "references": record["references"],
        "partial": made.get("key") is not None and any(m.get("stage") == FAILED for m in said),
        "answer": made.get("answer"), "key": made.get("key"),
        **{name: made.get(name) for name in ("agreed", "fallback", "tie")},
        "undecided": record["error"] is None and made.get("key") is None, "reason": made.get("reason"),
        "error": record["error"], "oracle": record["oracle"],
        "agents": len(record["agents"]), "rounds": max((m["round"] for m in said), default=0), "messages": len(said),
        "first_answers": [keys[0] if keys else None for keys in histories],
        "last_answers": [keys[-1] if keys else None for keys in histories],
        "flips": len(changed), "flipped": len(set(changed)), "calls": record["calls"], "retries": record["retries"],
        **{name: tokens[name] for name in ("prompt", "cached", "completion", "cost_usd")},
        "seconds": record["seconds"], **{f"{METRIC}{name}": value for name, value in record["metrics"].items()}}


def _answers(said: Sequence[Mapping[str, Any]], agent: int) -> list[str | None]:
    """An agent's key in each round in which it was to give an answer: the last one that could be read."""
    keys: dict[int, str | None] = {}
    for m in said:
        if m["agent"] == agent and m["round"] > 0 and m["answer"] != "":
            keys[m["round"]] = m["key"] if m["key"] is not None else keys.get(m["round"])
    return [keys[number] for number in sorted(keys)]


def _earlier(record: Mapping[str, Any]) -> dict[int, str]:
    """By the id of a message, the key of its author's answer before."""
    return earlier_answers(Message(**m) for m in record["messages"])


def message_rows(record: Mapping[str, Any]) -> Iterator[Row]:
    """The messages of a debate, one row each; see `MESSAGE`."""
    agents = {a["id"]: a for a in record["agents"]}
    earlier = _earlier(record)
    for m in record["messages"]:
        agent = agents.get(m["agent"], {})
        persona = agent.get("persona", {})
        changed = m["key"] != earlier[m["id"]] if m["id"] in earlier else None
        yield {"cell": record["cell"], "repeat": record["repeat"], "sample": record["sample"]["id"], "message": m["id"],
               "round": m["round"], "wave": m["wave"], "agent": m["agent"], "persona": persona.get("name"),
               "role": persona.get("role"), "votes": persona.get("votes"), "model": m["model"] or agent.get("model"),
               **{name: m[name] for name in ("move", "stage", "content", "answer", "key")}, "changed": changed,
               **{name: m[name] for name in ("agreement", "confidence", "seen", "altered", "retracted", "calls")},
               "data": m["data"], "oracle": record["oracle"]}


def rows_of(line: str, read: Callable[[Any], T]) -> T:
    """What `read` makes of a line of an export. Raises `UserError` if it is damaged."""
    try:
        return read(parse_json(line))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise UserError(f"the record {line[:80]}... cannot be read: {type(error).__name__}: {error}") from None


class Uses:
    """Which message each call is behind, in the debate that paid for it, and how many rest on it.

    Only debates on the same sample in the same repeat can use the same call, so that these are read when a call of
    theirs comes up, and calls of any number are streamed.
    """

    def __init__(self, study: Reader) -> None:
        self._study = study
        self._cells = study.cells()
        self._read: dict[tuple[int, str], _ByKey] = {}

    def of(self, call: Mapping[str, Any]) -> Row:
        """The call's row with `message` and `uses`."""
        uses = self._around(call["repeat"], call["sample"]).get(bytes.fromhex(call["key"]), ())
        message = next((message for cell, message in uses if cell == call["cell"]), None)
        return {**{name: call[name] for name in CALL if name in call and name != "message"}, "message": message,
                "uses": len(uses)}

    def _around(self, repeat: int, sample: str) -> _ByKey:
        """The uses of calls in the debates on a sample, of every cell."""
        found = self._read.pop((repeat, sample), None)
        if found is None:
            found = {}
            for cell in self._cells:
                for line in self._study.records(DebateId(cell, repeat, sample)):
                    rows_of(line, lambda record: _add_uses(found, record))
            if len(self._read) >= _KEPT:
                del self._read[next(iter(self._read))]
        self._read[repeat, sample] = found  # the last one used comes last
        return found


_ByKey = dict[bytes, list[tuple[str, Optional[int]]]]  # noqa: UP045 - evaluated on Python 3.10
"""By a call's key, the cells and messages that rest on it; None for an opening."""
_KEPT = 1_000
"""Samples whose uses are kept: debates that run at the same time take turns in the order of the calls."""


def _add_uses(found: _ByKey, record: Mapping[str, Any]) -> None:
    for key in (*(record.get("opening_calls") or ()), *(record.get("other_calls") or ())):
        found.setdefault(bytes.fromhex(key), []).append((record["cell"], None))
    for message in record["messages"]:
        for key in message["calls"]:
            found.setdefault(bytes.fromhex(key), []).append((record["cell"], message["id"]))
