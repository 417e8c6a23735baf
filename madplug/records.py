"""The records of a debate: frozen, and compared by value.

Everything a component receives or returns is one of these. A field enters `Message` only when two
distributions need it to talk to each other; everything else goes into `data["plugin"]`.

What the host itself puts on record are messages without an author (`agent` is None):

    move    stage       written for
    say                 `Review.say`
    say     reopened    `Reopen.say`
    leave               `Review.leave`; the ids of the agents are in `data["madplug"]["left"]`
    leave   failed      an agent whose model failed (`on_failed_agent`); `["failed"]` has its id and the reason
    replace failed      likewise; the agent stays, on the model `["model"]`
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import Field

from madplug.text import safe

Form = Mapping[str, Any]
"""The form an answer must have: one of `{"json_schema": {...}}`, `{"regex": "..."}`, `{"grammar": "..."}`.

A regular expression matches the whole reply; a grammar is written in GBNF. A model that does not support
constrained decoding ignores the form, so a style also describes it in its prompt and parses replies leniently.
"""


class Frozen(dict[str, Any]):
    """A dictionary on record: it reads like any other, but cannot be changed."""

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise TypeError("a component changed the data of a message on record; make a new one: {**data, ...}")

    __setitem__ = __delitem__ = update = setdefault = pop = popitem = clear = __ior__ = _refuse

    def __reduce__(self) -> tuple[type[Frozen], tuple[dict[str, Any]]]:
        return Frozen, (dict(self),)


def frozen(value: Any) -> Any:
    """A mapping, and the mappings in it, made read-only for the record."""
    return Frozen({k: frozen(v) for k, v in value.items()}) if isinstance(value, Mapping) else value


class Record:
    """What components return: the host checks every field, and converts what can be converted (a list to a tuple)."""

    __slots__ = ()
    __pydantic_config__: ClassVar[Mapping[str, Any]] = {"revalidate_instances": "always", "allow_inf_nan": False}


class DebateId(NamedTuple):
    """Identifies a debate in its study."""

    cell: str
    repeat: int
    sample: str
    """The sample's id."""

    def __str__(self) -> str:
        return f"cell '{self.cell}', repeat {self.repeat}, sample '{self.sample}'"


SAY, LEAVE, REPLACE, REOPENED, FAILED = "say", "leave", "replace", "reopened", "failed"
"""The moves, and the stages, of what the host itself puts on record."""


@dataclass(frozen=True, slots=True)
class Sample(Record):
    """One question. References are not part of it, so that they cannot reach a prompt by accident."""

    id: str
    question: str
    choices: tuple[str, ...] = ()
    """The options to choose from, in order; the first is option A."""
    context: tuple[str, ...] = ()
    """Passages the question is about."""
    images: tuple[str, ...] = ()
    """`data:` or `https:` URLs."""
    group: str = ""
    """A stratum: a subject, a difficulty."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    hidden_from: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Which roles may not know a column: a field of the sample (`context`) or a key of its metadata. A component gets
    it only on behalf of an agent with another role: in a turn, or by `debate.seen_by(agent)`."""

    def without(self, columns: Collection[str]) -> Sample:
        """The sample without these columns."""
        fields: dict[str, Any] = {c: type(getattr(self, c))() for c in ("choices", "context", "images") if c in columns}
        return replace(self, **fields, metadata={k: v for k, v in self.metadata.items() if k not in columns})


@dataclass(frozen=True, slots=True)
class Persona(Record):
    """Who an agent is."""

    name: str
    description: str = ""
    role: str = "participant"
    votes: bool = True
    """Whether the agent's answer counts in the decision. Those of moderators, judges and summarisers do not."""


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
        """Equal to an agent with the same fields, and to its own id, so that `message.agent == turn.agent` works."""
        if isinstance(other, Agent):
            return (self.id, self.persona, self.model, self.style) == (
                other.id, other.persona, other.model, other.style)
        return self.id == other if isinstance(other, int) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.id)


@dataclass(frozen=True, slots=True)
class Turn(Record):
    """One agent asked for one move."""

    agent: Agent
    move: str = "improve"
    """What is asked for: `draft`, `improve`, `feedback`, `summarise`, `moderate`, ...: an open vocabulary."""
    stage: str = ""
    """A part of a round, named by the turn order, for visibilities that distinguish parts."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """What the turn order wants stored in the turn's message, under the plugin's name."""


@dataclass(frozen=True, slots=True)
class Reply(Record):
    """What a style returns for a turn."""

    content: str
    """The text that is recorded and shown to others."""
    answer: str | None = None
    """The answer as text. None: extract it from `content`. An empty string: none could be read."""
    agreement: bool | None = None
    """Whether the agent agrees with the draft it saw; None if it was not asked or its reply could not be read."""
    confidence: Annotated[float, Field(ge=0, le=1)] | None = None
    """Between 0 and 1; None if unknown."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """Anything else worth storing, under the plugin's name."""
    answers: bool = True
    """False for a turn that by design gives no answer (a summary, a ranking); `answer` and `content` are not read."""


@dataclass(frozen=True, slots=True)
class Message:
    """A message on record."""

    id: int
    """Position in the record, from 0; never reused, even if a round is retracted."""
    round: int
    """From 1; 0 for what was on record before round 1."""
    wave: int
    """Position of its wave within the round, from 0."""
    agent: int | None
    """The agent's id, or None for a message that no agent wrote."""
    move: str
    content: str
    stage: str = ""
    answer: str | None = None
    """The answer as text; None if none could be read; empty if the turn gives none by design (see `answers`)."""
    key: str | None = None
    """The canonical answer: two messages give the same answer exactly when their keys are equal."""
    agreement: bool | None = None
    confidence: float | None = None
    seen: tuple[int, ...] = ()
    """Ids of the messages the agent was shown, in that order."""
    altered: tuple[int, ...] = ()
    """Ids of those seen messages that the agent was shown in a changed form."""
    retracted: bool = False
    model: str | None = None
    """The name of the model that answered the turn's last call, or None if it made no call."""
    calls: tuple[str, ...] = ()
    """Keys of the calls behind this message, in the order they were answered."""
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def answers(self) -> bool:
        """Whether the turn was to give an answer: not a note, and not a turn that gives none by design."""
        return self.agent is not None and self.answer != ""


@dataclass(frozen=True, slots=True)
class Request:
    """One model call, as it is about to be sent."""

    messages: tuple[Mapping[str, Any], ...]
    """`{"role": ..., "content": ...}`; content is a string, or a list of text and image parts
    (`{"type": "text", "text": ...}`, `{"type": "image_url", "image_url": {"url": ...}}`)."""
    purpose: str
    """`persona`, `discuss`, `extract`, `vote`, `judge`, ...: an open vocabulary, stored with the call."""
    model: str
    """The name of a `[models.NAME]` table."""
    agent: int | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    """Sampling parameters that differ from the model's own: `temperature`, `max_tokens`, `logprobs`, `top_logprobs`."""
    form: Form | None = None
    seed: int = 0
    """Derived from the study's seed and everything that identifies this call; below 2**31."""
    round: int = 0
    """The round of the debate in which it is sent; 0 before the first."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a call used."""

    prompt: int = 0
    """Tokens of the prompt, cached ones included."""
    completion: int = 0
    cached: int = 0
    """Tokens of the prompt that the provider served from its prefix cache."""
    cost_usd: float | None = None
    """US dollars, or None if the price is unknown."""
    raw: Mapping[str, Any] = field(default_factory=dict)
    """The usage as the provider reports it, stored so that prices can be applied later."""


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model answered."""

    text: str
    usage: Usage = field(default_factory=Usage)
    logprobs: tuple[float, ...] | None = None
    """Natural logarithms of the probabilities of the reply's tokens, if they were requested."""
    top_logprobs: tuple[Mapping[str, float], ...] | None = None
    """At each place of the reply, those of the likeliest tokens; how many, `params["top_logprobs"]` asks for."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Where a call comes from: everything that identifies it except its content."""

    cell: str
    repeat: int
    sample: str
    """The sample's id; empty for calls made in `prepare`."""
    agent: int | None = None
    purpose: str = ""
    order: int = 0
    """The debate's position in the study; older debates are served first."""
    round: int = 0
    nth: int = 0
    """How often this debate has made the same request before."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A call that was answered."""

    completion: Completion
    source: Literal["paid", "shared", "stored"] = "paid"
    """Made and paid for now; shared with an identical call of another debate in this run; or read from the record."""
    retries: int = 0
    """Attempts that failed before the one that was answered."""
    seconds: float = 0.0
    """Duration of the answered attempt."""
    key: str = ""
    """The call's key in the study's records, in hexadecimal digits."""
    billed: tuple[tuple[str, Usage], ...] = ()
    """What each reply used that was paid before and was no answer, after the key under which it is on record."""


@dataclass(frozen=True, slots=True)
class Vote(Record):
    """One agent's ballot."""

    agent: int
    weights: Mapping[str, int | float]
    """Points by answer key."""
    valid: bool = True


@dataclass(frozen=True, slots=True)
class Decision(Record):
    """How a debate was decided."""

    key: str | None
    answer: str | None = None
    """The answer as text; filled in by the host with the answer that first had this key, unless given."""
    agreed: bool = False
    """True only if the protocol's own rule was met."""
    scores: Mapping[str, int | float] = field(default_factory=dict)
    votes: tuple[Vote, ...] = ()
    tie: bool = False
    fallback: bool = False
    """Whether a fallback chose the answer; `agreed` is then False."""
    reason: str = ""

    @classmethod
    def undecided(cls, reason: str) -> Decision:
        """No answer, and why."""
        return cls(key=None, reason=reason)


@dataclass(frozen=True, slots=True)
class Review(Record):
    """What to do after a round."""

    redo: bool = False
    """Retract the round's messages and run it again."""
    stop: bool = False
    """End the debate; the decision protocol's `at_end` decides."""
    say: str | None = None
    """A message to record before the next round, with no agent as its author."""
    leave: tuple[Agent | int, ...] = ()
    """Agents, or their ids, that take no further part: they get no turn, and their answers no longer count."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """What to store in the message that says so, under the plugin's name."""


@dataclass(frozen=True, slots=True)
class Reopen(Record):
    """What a phase returns to continue the debate: further rounds, after which it is decided again."""

    rounds: Annotated[int, Field(ge=1)] = 1
    say: str | None = None
    """A message to record before the further rounds, with no agent as its author."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """What to store in this message, under the plugin's name."""


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
    """None only if `error` is set."""
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    calls: int = 0
    """Model calls the debate used, those included that another debate has paid for, but none of its metrics'."""
    retries: int = 0
    tokens: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    error: str | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)
    """Facts that components stored with the debate: flags, statistics of a phase."""
    opening_calls: tuple[str, ...] = ()
    """Keys of the calls made before round 1: personas, casting, openings."""
    other_calls: tuple[str, ...] = ()
    """Keys of the calls since round 1 that are behind no message: ballots, judges, phases, metrics."""
    decision_notes: tuple[tuple[str, ...], ...] = ()
    """The parts of `notes` that the decision wrote, as paths of keys."""
    phase_notes: tuple[tuple[str, ...], ...] = ()
    """The parts of `notes` that the phases wrote."""
    scored_by: Mapping[str, str] = field(default_factory=dict)
    """A digest of the options and the code of each metric that has scored the debate, by the name of its scores."""

    def __str__(self) -> str:
        """The question, the answers of each round in the order they were given, and the outcome, a line each."""
        said = [m for m in self.messages if m.key is not None and not m.retracted]
        rounds = [f"round {n}: {', '.join(m.key for m in said if m.key and m.round == n)}"
                  for n in dict.fromkeys(m.round for m in said)]
        decided = self.decision and (self.decision.answer or self.decision.key)
        end = f"failed: {self.error}" if self.error else f"decided: {decided or 'nothing'}"
        right = f" (reference: {', '.join(self.references)})" if self.references else ""
        head = f"{self.sample.id} ({self.cell}, repeat {self.repeat}): {self.sample.question}"
        return safe("\n".join([head, *rounds, end + right]))

    @property
    def rounds(self) -> int:
        """The last round with a message that was not retracted; 0 if there is none."""
        return max((m.round for m in self.messages if not m.retracted), default=0)

    @property
    def failures(self) -> dict[int, str]:
        """What their models said, by the ids of the agents that failed and left or were replaced; else empty.

        A debate with failures that has an answer is partial: whoever shows the answer says so first.
        """
        marks = (m.data.get("madplug") for m in self.messages if m.stage == FAILED and not m.retracted)
        found = (mark.get("failed") for mark in marks if isinstance(mark, Mapping))
        return {int(i): str(why) for pairs in found if isinstance(pairs, Mapping) for i, why in pairs.items()}

    @property
    def unread(self) -> bool:
        """Whether a vote is not valid, the last answer of a voter without one was not read, or a plugin's notes, or its
        data of a message, have `"unparsed": True`, in tables or lists up to three levels down; `"missing"` beside it
        is a word for what was not there.
        """
        return any(True for _ in self.unread_parts())

    def unread_parts(self) -> Iterator[str]:
        """What could not be read (`unread`), each in words: `the vote of Agent 1`, `notes.plugin.part`."""
        last = {m.agent: m.key is not None for m in self.messages if m.answers and not m.retracted}
        votes = self.decision.votes if self.decision else ()
        voted = {vote.agent for vote in votes}
        names = {agent.id: agent.persona.name for agent in self.agents}
        invalid = dict.fromkeys(vote.agent for vote in votes if not vote.valid)  # of several of an agent, any
        yield from (f"the vote of {names.get(id, id)}" for id in invalid)
        yield from (f"the last answer of {agent.persona.name}" for agent in self.agents
                    if agent.persona.votes and agent.id not in voted and not last.get(agent.id, True))
        yield from _unparsed(self.notes, "notes")
        for m in self.messages:
            where = f", message of {names.get(m.agent, m.agent)} in round {m.round}" if m.agent is not None else ""
            yield from (f"{path}{where}" for path in _unparsed(m.data, "data"))


def _unparsed(noted: Any, path: str, levels: int = 4) -> Iterator[str]:
    """Where there is `"unparsed": True`."""
    if isinstance(noted, Mapping) and noted.get("unparsed") is True:
        yield f"{path} (no {noted['missing']})" if isinstance(noted.get("missing"), str) else path
    elif levels > 0 and isinstance(noted, Mapping):
        yield from chain.from_iterable(_unparsed(one, f"{path}.{key}", levels - 1) for key, one in noted.items())
    elif levels > 0 and isinstance(noted, list | tuple):
        yield from chain.from_iterable(_unparsed(one, f"{path}[{i}]", levels - 1) for i, one in enumerate(noted))


@dataclass(frozen=True, slots=True)
class Plan:
    """The size of a cell's debates, for counting calls before any is made. Every number is an upper bound."""

    agents: int
    """Agents of a debate, including those that do not vote."""
    rounds: int
    """Rounds in which agents speak, the first included."""
    turns: int
    """Turns in one round."""
    per_turn: int = 1
    """Model calls in one turn, of the style that makes the most."""
    models: int = 1
    """How many different models the agents use."""
    all_turns: int = 0
    """Turns in all rounds; by default as many in each."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "all_turns", self.all_turns or self.turns * self.rounds)


@dataclass(frozen=True, slots=True)
class Job:
    """One debate to run."""

    cell: str
    """The cell's slug."""
    repeat: int
    sample: Sample
    references: tuple[str, ...]
    order: int
    """The debate's position in the run; older debates are served first."""
    seed: int
    matched: DebateResult | None = None
    """The result of the same sample in the cell that this one is matched to."""
    recorded: DebateResult | None = None
    """The debate as it is on record, if it is not to be run but to be scored by `metrics`."""
    metrics: tuple[str, ...] = ()
    """The names of the metrics that score a recorded debate."""

    @property
    def id(self) -> DebateId:
        """Which debate this is."""
        return DebateId(self.cell, self.repeat, self.sample.id)


@dataclass(frozen=True, slots=True)
class Ending:
    """Why no further call is started."""

    kind: Literal["limit", "interrupted", "unusable", "detached", "decided", "unfinished"]
    """A limit was reached; the user interrupted; a model or the data cannot be used; all that is left to do is to wait
    for others, which a later run can do; an observer knows enough; or recorded debates were scored, and others are
    left to run."""
    reason: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture as data: a plugin says what it shows, and the report and the debate's page draw it.

    A metric's `summarise` returns those of a cell under `pictures`; a component notes those of one debate under its own
    name, `debate.notes["plugin"] = {"pictures": [Picture(...)]}`. With `"marks": {"verified": "right", "unverified":
    "wrong"}` beside them, the page marks what stands between such tags in messages.
    """

    title: str
    kind: Literal["line", "bars", "table", "heat"]
    rows: Annotated[tuple[Mapping[str, str | int | float | None], ...], Field(max_length=2_000)]
    """Labels and numbers by column, 2,000 rows at most; `line` has numbers in `x`."""
    x: str = ""
    """The column of the horizontal axis; a table has none."""
    y: str = ""
    """The column of heights, or of the vertical axis of `heat`."""
    series: str = ""
    """The column that tells lines or groups of bars apart; `heat`: the column of the numbers."""
    caption: str = ""


def earlier_answers(messages: Iterable[Message]) -> dict[int, str]:
    """The key of its author's answer before, by the id of each message with an answer; another key is a change of mind.

    Answers given again in a round with nothing shown are samples: none comes before another, and none of those that
    differ before the next answer. Messages that are retracted or have no readable answer are passed over.
    """
    found: dict[int, str] = {}
    last: dict[int, tuple[int, set[str]]] = {}
    for m in messages:
        if m.agent is not None and m.key is not None and not m.retracted:
            number, keys = last.get(m.agent, (m.round, set()))
            sample = number == m.round and not m.seen
            if len(keys) == 1 and not sample:
                found[m.id] = next(iter(keys))
            last[m.agent] = m.round, {m.key, *(keys if sample else ())}
    return found
