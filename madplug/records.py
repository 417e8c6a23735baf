"""The records of a debate: frozen, and compared by value.

Everything a component receives or returns is one of these. A field enters `Message` only when two
distributions need it to talk to each other; everything else goes into `data["plugin"]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Form = Mapping[str, Any]
"""The form an answer must have: one of `{"json_schema": {...}}`, `{"regex": "..."}`, `{"grammar": "..."}`.

A regular expression matches the whole reply; a grammar is written in GBNF. A model that cannot hold a
form ignores it, so a style reads replies leniently and names the form in its prompt as well.
"""


class Frozen(dict[str, Any]):
    """A table that is on record: it reads like any other, and cannot be changed."""

    def _refuse(self, *_: Any, **__: Any) -> Any:
        from madplug.errors import ComponentError

        raise ComponentError("a component changed the data of a message on record; make a new table: {**data, ...}")

    __setitem__ = __delitem__ = update = setdefault = pop = popitem = clear = __ior__ = _refuse

    def __reduce__(self) -> tuple[type[Frozen], tuple[dict[str, Any]]]:
        return Frozen, (dict(self),)


def frozen(value: Any) -> Any:
    """A table, and the tables in it, as they are kept on record."""
    return Frozen({k: frozen(v) for k, v in value.items()}) if isinstance(value, Mapping) else value


@dataclass(frozen=True, slots=True)
class Sample:
    """One question. The reference is kept apart, so that it cannot reach a prompt by accident."""

    id: str
    question: str
    choices: tuple[str, ...] = ()
    """The options in order; the first is option A."""
    context: tuple[str, ...] = ()
    """Passages the question is about."""
    images: tuple[str, ...] = ()
    """`data:` or `https:` addresses."""
    group: str = ""
    """A stratum: a subject, a difficulty."""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Persona:
    """Who an agent is."""

    name: str
    description: str = ""
    role: str = "participant"
    votes: bool = True
    """Whether the agent counts in the decision. Moderators, judges and summarisers do not."""


@dataclass(frozen=True, slots=True)
class Agent:
    """A persona on a model."""

    id: int
    """Position in the debate, from 0."""
    persona: Persona
    model: str | None
    """The name of a `[models.NAME]` table, or None in a debate without models."""
    style: str | None = None
    """The full name of the style this agent is bound to, or None for the first that accepts its turns."""

    def __eq__(self, other: object) -> bool:
        """Equal to an agent with the same fields, and to its own id: `message.agent == turn.agent` holds."""
        if isinstance(other, Agent):
            return (self.id, self.persona, self.model, self.style) == (
                other.id, other.persona, other.model, other.style)
        return self.id == other if isinstance(other, int) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.id)


@dataclass(frozen=True, slots=True)
class Turn:
    """One agent asked for one move."""

    agent: Agent
    move: str = "improve"
    """What is asked for: `draft`, `improve`, `feedback`, `summarise`, `moderate`, ...: an open vocabulary."""
    stage: str = ""
    """A part of a round that a turn order names, for visibilities that tell parts apart."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """Anything the turn order wants kept with the message this turn causes, under the plugin's name."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a style made of a turn."""

    content: str
    """What goes on record and is shown to others."""
    answer: str | None = None
    """The answer as text. None: read it out of `content`; an empty string: this turn gives no answer."""
    agreement: bool | None = None
    """True and False: agrees or not with the draft it saw; None: was not asked or could not be read."""
    confidence: float | None = None
    """Between 0 and 1."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """Anything else worth keeping, under the plugin's name."""


@dataclass(frozen=True, slots=True)
class Message:
    """What is on record."""

    id: int
    """Position in the record, from 0; never used twice, also when a round is taken back."""
    round: int
    """From 1; 0 for what was on record before the debate began."""
    wave: int
    """Position of its wave within the round, from 0."""
    agent: int | None
    """The agent's id, or None for a message that no agent wrote."""
    move: str
    content: str
    stage: str = ""
    answer: str | None = None
    key: str | None = None
    """The canonical answer: two messages give the same answer exactly when their keys are equal."""
    agreement: bool | None = None
    confidence: float | None = None
    seen: tuple[int, ...] = ()
    """Ids of the messages the agent was shown, in the order it saw them."""
    altered: tuple[int, ...] = ()
    """Ids of the seen messages that this agent was shown otherwise than they stand on record."""
    retracted: bool = False
    model: str | None = None
    """The model that answered this turn's latest call; None for a turn without a call."""
    calls: tuple[str, ...] = ()
    """Keys of the calls this message was made from, in the order they were answered."""
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Request:
    """One model call, as it is about to be sent."""

    messages: tuple[Mapping[str, Any], ...]
    """`{"role": ..., "content": ...}`; content is a string, or a list of text and image parts
    (`{"type": "text", "text": ...}`, `{"type": "image_url", "image_url": {"url": ...}}`)."""
    purpose: str
    """`persona`, `discuss`, `extract`, `vote`, `judge`, ...: an open vocabulary, kept with the call."""
    model: str
    """The name of a `[models.NAME]` table."""
    agent: int | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    """Sampling parameters that differ from the model's own: `temperature`, `max_tokens`, `stop`, `logprobs`."""
    form: Form | None = None
    seed: int = 0
    """Derived from the study's seed and everything that tells this call from others; below 2**31."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a call consumed."""

    prompt: int = 0
    """Tokens of the prompt, cached ones included."""
    completion: int = 0
    cached: int = 0
    """Tokens of the prompt that the provider served from its prefix cache."""
    cost_usd: float | None = None
    """None when the price is unknown."""
    raw: Mapping[str, Any] = field(default_factory=dict)
    """The provider's own account, kept so that prices can be applied later."""


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model answered."""

    text: str
    usage: Usage = field(default_factory=Usage)
    logprobs: tuple[float, ...] | None = None
    """Natural logarithms of the probabilities of the answer's tokens, where they were asked for."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who makes a call: everything that tells it from others but its content."""

    cell: str
    repeat: int
    sample: str
    """The sample's id; empty for calls made in `prepare`."""
    agent: int | None = None
    purpose: str = ""
    order: int = 0
    """The debate's place in the study; older debates are served first."""
    round: int = 0
    nth: int = 0
    """How often this debate made the same request before."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A call that was answered."""

    completion: Completion
    source: Literal["paid", "shared", "stored"] = "paid"
    """Paid for by this call; by an identical call of another debate in this run; or read from the record."""
    retries: int = 0
    """Attempts that failed before the one that was answered."""
    seconds: float = 0.0
    """How long the answered attempt took."""
    key: str = ""
    """The call's key in the study's records, in hexadecimal digits."""


@dataclass(frozen=True, slots=True)
class Vote:
    """One agent's ballot."""

    agent: int
    weights: Mapping[str, float]
    """Points by answer key."""
    valid: bool = True


@dataclass(frozen=True, slots=True)
class Decision:
    """How the debate ended."""

    key: str | None
    answer: str | None = None
    """The answer as text; the key where a protocol gives none."""
    agreed: bool = False
    """True only when the protocol's own rule was met."""
    scores: Mapping[str, float] = field(default_factory=dict)
    votes: tuple[Vote, ...] = ()
    tie: bool = False
    fallback: bool = False
    """The answer was taken by a fallback; `agreed` is then False."""
    reason: str = ""

    @classmethod
    def undecided(cls, reason: str) -> Decision:
        """No answer, and why."""
        return cls(key=None, reason=reason)


@dataclass(frozen=True, slots=True)
class Review:
    """What becomes of a round that has ended."""

    redo: bool = False
    """Retract the round's messages and hold it again."""
    stop: bool = False
    """End the debate; the decision protocol's `at_end` decides."""
    say: str | None = None
    """A message put on record before the next round; nobody's."""


@dataclass(frozen=True, slots=True)
class Reopen:
    """What a phase returns to have the debate go on: further rounds, after which the decision is asked again."""

    rounds: int = 1
    say: str | None = None
    """A message put on record before the further rounds, by no agent."""


@dataclass(frozen=True, slots=True)
class DebateResult:
    """A debate that has ended, as it is stored, scored and exported."""

    cell: str
    repeat: int
    sample: Sample
    references: tuple[str, ...]
    agents: tuple[Agent, ...] = ()
    messages: tuple[Message, ...] = ()
    decision: Decision | None = None
    """None only when `error` is set."""
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    calls: int = 0
    """Model calls the debate used, whether or not another cell had paid for them."""
    retries: int = 0
    tokens: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    error: str | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)
    """Facts that components left beside the debate: flags, statistics of a phase."""

    @property
    def rounds(self) -> int:
        """Rounds in which somebody spoke."""
        return max((m.round for m in self.messages if not m.retracted), default=0)
