"""A vote as it is recorded in the debate's notes, and read back when the same round is decided once more.

A round is voted on once: where a vote after it was undecided and the debate then ends there (it was stopped, or a
recorded debate that is decided again has no further round), the end is decided by those ballots.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from madplug import Vote
from madplug_prompting.finals import last_messages
from madplug_voting.nominees import Nominee
from madplug_voting.tally import Tally, Weights

if TYPE_CHECKING:
    from madplug import Debate

NOTES = "voting"


@dataclass(frozen=True)
class Ballot:
    """An agent's ballot, or the failure to get one."""

    agent: int
    weights: Weights | None
    """By the position of a solution on the list; None where no reply was valid."""
    tries: int
    said: str

    def vote(self, slate: Sequence[Nominee]) -> Vote:
        """The ballot as it is recorded with the decision."""
        by_key: dict[str, float] = {}
        for i, weight in (self.weights or {}).items():
            by_key[slate[i].key] = by_key.get(slate[i].key, 0.0) + float(weight)
        return Vote(self.agent, by_key, self.weights is not None)

    def note(self, base: int) -> dict[str, Any]:
        """The ballot as it is recorded in the notes; a refused reply with its text."""
        given = None if self.weights is None else {str(i + base): float(w) for i, w in self.weights.items()}
        note: dict[str, Any] = {"agent": self.agent, "ballot": given, "tries": self.tries}
        return note if given is not None else {**note, "unparsed": True, "said": self.said}


@dataclass(frozen=True)
class Poll:
    """One vote: what was voted on, the ballots of the presentation that decides, and their count."""

    slate: Sequence[Nominee]
    tally: Tally
    ballots: Sequence[Ballot]

    def note(self, base: int) -> dict[str, Any]:
        """The ballots and their count, as they are recorded. base: the number of the first solution."""
        return {"scores": [float(s) for s in self.tally.scores], "tie": self.tally.tie,
                "leading": [i + base for i in self.tally.leading], "ballots": [b.note(base) for b in self.ballots],
                "asked_again": sum(b.tries - 1 for b in self.ballots)}


def record(debate: Debate, decision: str, note: Mapping[str, Any]) -> None:
    """Add a note about the round that has just ended. decision: the full name of the protocol."""
    made = {"round": debate.round, "after": last_words(debate), "decision": decision, **note}
    debate.notes[NOTES] = [*debate.notes.get(NOTES, ()), made]


def find(debate: Debate, decision: str) -> Mapping[str, Any] | None:
    """What a protocol has noted about the messages that are on record, or None."""
    after = last_words(debate)
    return next((note for note in reversed(debate.notes.get(NOTES, ()))
                 if note["decision"] == decision and note["after"] == after), None)


def last_words(debate: Debate) -> list[list[Any]]:
    """The id and the key of each voter's last message. An id is never used twice, also where a round is retracted."""
    return [[message.id, message.key] for message in last_messages(debate).values()]


def read_poll(note: Mapping[str, Any], base: int) -> Poll:
    """A vote read back from its note."""
    slate = [Nominee(s["key"], s["answer"], tuple(s["agents"])) for s in note["solutions"]]
    tally = Tally(tuple(map(Fraction, note["scores"])), tuple(i - base for i in note["leading"]))
    return Poll(slate, tally, [_read_ballot(b, base) for b in note["ballots"]])


def _read_ballot(note: Mapping[str, Any], base: int) -> Ballot:
    given = note["ballot"]
    weights = None if given is None else {int(number) - base: Fraction(w) for number, w in given.items()}
    return Ballot(note["agent"], weights, note["tries"], note.get("said", ""))
