"""What a store takes and gives beside the records of a debate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from madplug.records import Caller, Completion, DebateId

Outcome = Literal["running", "done", "failed"]
"""The state of a debate. One that was stopped or killed stays `running` until it is run again."""
ESTIMATED = "estimated"
"""The fact that names the models whose tokens are estimated."""
EDITED = "edited"
"""The fact that tells of plugins that changed between debates."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call that was answered."""

    completion: Completion
    retries: int = 0
    """Attempts that failed before the one that was answered."""
    seconds: float = 0.0
    """Duration of the answered attempt."""


@dataclass(frozen=True, slots=True)
class CallRow:
    """A request and where it comes from."""

    key: bytes
    caller: Caller
    model: str
    """The name of a `[models.NAME]` table."""
    request: str
    """JSON of the messages, the parameters and the form."""


@dataclass(slots=True)
class Totals:
    """What a study has paid for so far."""

    calls: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    retries: int = 0
    """Attempts that failed, over all calls that were answered in the end."""
    unpriced: int = 0
    """Calls whose cost is not known."""


@dataclass(frozen=True, slots=True)
class DebateProgress:
    """The progress of one debate."""

    outcome: Outcome
    messages: int
    """Messages on record, retracted ones included."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What has been recorded since a cursor."""

    debates: Mapping[DebateId, DebateProgress] = field(default_factory=dict)
    """The debates that started, got a message or ended."""
    calls: int = 0
    """How many calls were answered."""


@dataclass(frozen=True, slots=True)
class CellOverview:
    """The sums over the debates of a cell."""

    cell: str
    done: int = 0
    failed: int = 0
    running: int = 0
    """Debates that have started and not ended; they count in none of the sums."""
    undecided: int = 0
    partial: int = 0
    """Decided after an agent had failed."""
    fallback: int = 0
    """Debates that a fallback decided."""
    unread: int = 0
    """Debates with a final answer, a vote, or a reply in a given form, that could not be read."""
    calls: int = 0
    retries: int = 0
    prompt: int = 0
    """Tokens."""
    completion: int = 0
    cached: int = 0
    cost_usd: float | None = 0.0
    """None if the cost of a debate is unknown."""
    seconds: float = 0.0
    repeats: int = 0


class CallFigures(NamedTuple):
    """The numbers of an answered call, and where it came from, without its request and its reply."""

    key: bytes
    cell: str | None
    """The cell that paid for it; other cells may use it, too."""
    repeat: int | None
    sample: str | None
    agent: int | None
    purpose: str
    round: int | None
    model: str
    prompt: int
    """Tokens, cached ones included."""
    completion: int
    """Tokens, those of its reasoning included."""
    cached: int
    reasoning: int
    """Tokens of `completion` that the model has spent on reasoning that it does not show, if the provider says so."""
    cost_usd: float | None
    seconds: float
    retries: int
    """Attempts that failed before the one that was answered."""


def reasoning_tokens(raw: Mapping[str, Any]) -> int:
    """The tokens spent on hidden reasoning, from a usage as the provider reports it."""
    details = raw.get("completion_tokens_details") or raw.get("output_tokens_details")
    found = details.get("reasoning_tokens") if isinstance(details, Mapping) else None
    return found if isinstance(found, int) and found > 0 else 0


def key_bytes(key: bytes | str) -> bytes:
    """A call's key as bytes."""
    try:
        return bytes.fromhex(key) if isinstance(key, str) else key
    except ValueError:
        return b""  # no call has this key
