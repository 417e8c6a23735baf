"""The transcript: the only state of a debate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from madplug.errors import ComponentError
from madplug.records import LEAVE, Agent, Message


class Transcript:
    """The messages of a debate in the order they were recorded, and the queries that most components need."""

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._record = list(messages)
        self._keys = dict.fromkeys(m.key for m in self._record if m.key is not None)
        self._standing: tuple[Message, ...] | None = None
        self._left: frozenset[int] | None = None
        self.locked = False
        """Whether the debate is running, so that only the host may write."""

    def __len__(self) -> int:
        """How many messages were ever recorded: the id of the next one."""
        return len(self._record)

    @property
    def messages(self) -> tuple[Message, ...]:
        """Every message that was not retracted, in order."""
        if self._standing is None:
            self._standing = tuple([m for m in self._record if not m.retracted])
        return self._standing

    @property
    def left(self) -> frozenset[int]:
        """Ids of the agents that have left the debate."""
        if self._left is None:
            gone = (m.data["madplug"]["left"] for m in self.messages if m.agent is None and m.move == LEAVE)
            self._left = frozenset(id for ids in gone for id in ids)
        return self._left

    @property
    def record(self) -> tuple[Message, ...]:
        """Every message ever recorded, retracted ones included."""
        return tuple(self._record)

    def of_round(self, n: int) -> tuple[Message, ...]:
        """The messages of round `n`, in order; round 0 is what was on record before round 1."""
        return tuple([m for m in self.messages if m.round == n])

    def by(self, agent: Agent | int) -> tuple[Message, ...]:
        """The messages of one agent, oldest first."""
        wanted = agent.id if isinstance(agent, Agent) else agent
        return tuple([m for m in self.messages if m.agent == wanted])

    def last(self, agent: Agent | int) -> Message | None:
        """The latest message of one agent, or None."""
        return next(reversed(self.by(agent)), None)

    def answers(self, agents: Sequence[Agent] | None = None) -> list[list[str | None]]:
        """Keys by agent (rows) and round (columns, from round 1): each agent's last key of each round.

        None if the agent did not speak in the round or gave no readable answer. agents: the rows and their order
        (for instance `debate.voters`); by default, every agent that spoke, by id.
        """
        rounds = max((m.round for m in self.messages), default=0)
        ids = [a.id for a in agents] if agents is not None else sorted(
            {m.agent for m in self.messages if m.agent is not None and m.round > 0})
        table: dict[int, list[str | None]] = {i: [None] * rounds for i in ids}
        for m in self.messages:
            if m.agent in table and m.round > 0 and m.key is not None:
                table[m.agent][m.round - 1] = m.key
        return [table[i] for i in ids]

    def append(self, message: Message) -> Message:
        """Put a message on record and give it its id. While the debate is running, only the host may."""
        self._refuse("append", "return it: a Reply from a style, Review(say=...), messages of `madplug_opening`")
        return self._append(message)

    def retract(self, ids: Iterable[int]) -> None:
        """Mark messages as retracted. While the debate is running, only the host may."""
        self._refuse("retract", "return Review(redo=True) from `madplug_round_ended`")
        self._retract(ids)

    def _refuse(self, method: str, instead: str) -> None:
        if self.locked:
            raise ComponentError(f"a component called transcript.{method}; only the host changes the record: {instead}")

    def _append(self, message: Message) -> Message:
        nth = len(self._record)
        if message.id != nth:
            message = replace(message, id=nth)
        self._record.append(message)
        self._standing = None
        if message.move == LEAVE:
            self._left = None
        if message.key is not None:
            self._keys[message.key] = None
        return message

    def _retract(self, ids: Iterable[int]) -> None:
        self._standing = self._left = None
        for i in ids:
            self._record[i] = replace(self._record[i], retracted=True)
