"""What goes on from round to round in the debates of a cell, added up one debate at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import log2
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from madplug_report.reading import SaidMessage

Keys = dict[int, str | None]
"""Answers of one round by voter; None where an answer could not be read."""


@dataclass
class Round:
    """Sums over the debates with answers in a round: those in which some were to be given, read or not."""

    debates: int = 0
    answered: int = 0
    """Of these, those in which an answer could be read, over which the entropy is."""
    answered_by_several: int = 0
    """Of these, those with at least two voters."""
    entropy: float = 0.0
    agreement: float = 0.0
    pairs: int = 0
    """Debates with at least two voters, over which the agreement is."""
    turns: int = 0
    """Answers of voters that could be read and have one before; a change is between two such answers."""
    changed: int = 0
    judged: int = 0
    """Of these turns, those in debates where it is known which answers are right."""
    to_right: int = 0
    to_wrong: int = 0
    known: int = 0
    """Debates in which it is known which answers are right."""
    right: float = 0.0
    """Of these, those whose most common answer is; of several, the share of them that are."""
    contested: int = 0
    """Of those in which it is known, those with at least two voters."""
    lone: int = 0
    """Of these, those in which one voter is right and all others are wrong."""
    followed: int = 0
    """Of the lone ones, those in which the voter speaks again in the next round with an answer."""
    kept: int = 0
    """Of these, those in which the voter is still right then."""
    won: int = 0
    """Of the lone ones, those whose debate ends with a right decision."""

    def figures(self, number: int) -> dict[str, Any]:
        """Means and shares; None for a division by zero."""
        return {"round": number, "debates": self.debates, "of_several": self.answered_by_several,
                "contested": self.contested, "entropy": _share(self.entropy, self.answered),
                "entropy_of_several": _share(self.entropy, self.answered_by_several),
                "agreement": _share(self.agreement, self.pairs), "changed": _share(self.changed, self.turns),
                "to_right": _share(self.to_right, self.judged), "to_wrong": _share(self.to_wrong, self.judged),
                "accuracy": _share(self.right, self.known), "lone": _share(self.lone, self.contested),
                "lone_n": self.lone, "lone_kept": _share(self.kept, self.followed),
                "lone_won": _share(self.won, self.lone)}


@dataclass
class CellRounds:
    """The rounds of a cell."""

    pool: bool = False
    """Whether its messages are independent samples, whose votes can be counted at every smaller number of samples."""
    rounds: list[Round] = field(default_factory=list)
    kinds: dict[tuple[str, str, int], list[int]] = field(default_factory=dict)
    """Turns of voters by move, stage and round: how many, and how many of their answers could be read."""
    flagged: int = 0
    malformed: int = 0
    """Debates with a ballot, or another reply that the method reads, that could not be read. An unread answer is one
    only where the decision says so: where an older one is counted instead, or all of them are."""
    messages: int = 0
    as_written: int = 0
    """Debates decided rightly, by an answer that is spelled like a reference."""
    respelled: int = 0
    """Debates decided rightly, by one that is not."""
    positions: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    """By place in the view, and how many peers it shows: opportunities to adopt an answer, and adoptions."""
    pools: list[list[int]] = field(default_factory=list)
    """For k = 1, 2, ... samples: debates with as many in which it is known which answers are right, those in which the
    vote of the first k is right, and of these those that have no more.
    """

    def add(self, said: Sequence[SaidMessage], voters: Collection[int], references: Sequence[str], key: str | None,
            score: float | None) -> None:
        """One debate: its messages, who votes, and how its decision was scored."""
        table = self._table(said, voters)
        self.messages += len(said)
        right = right_answers(references, key, score)
        if score == 1 and key is not None:
            self.as_written += key in references
            self.respelled += key not in references
        if self.pool and right is not None:
            self._vote([m.key for m in said if m.agent in voters], right)
        before: Keys = {}
        lone: tuple[Round, int] | None = None
        for number in sorted(table):
            keys = table[number]
            self._add(number, keys, before, right)
            lone = self._add_lone(self.rounds[number - 1], keys, right, lone, score)
            before |= {agent: key for agent, key in keys.items() if key is not None}
        self._add_positions(said, voters, table)

    def _table(self, said: Sequence[SaidMessage], voters: Collection[int]) -> dict[int, Keys]:
        """The last key of each voter that was to give an answer, by round; turns are counted."""
        table: dict[int, Keys] = {}
        kinds = self.kinds
        for m in said:
            number, agent, key = m.round, m.agent, m.key
            if agent is None or agent not in voters or number < 1 or m.answer == "":  # "": it was not to give one
                continue
            keys = table.get(number)
            if keys is None:
                keys = table[number] = {}
            if key is not None or agent not in keys:
                keys[agent] = key
            kind = (m.move, m.stage, number)
            counts = kinds.get(kind)
            if counts is None:
                counts = kinds[kind] = [0, 0]
            counts[0] += 1
            counts[1] += key is not None
        return table

    def _add(self, number: int, keys: Keys, before: Keys, right: Collection[str] | None) -> None:
        while len(self.rounds) < number:
            self.rounds.append(Round())
        r = self.rounds[number - 1]
        r.debates += 1
        read = any(key is not None for key in keys.values())
        r.answered += read
        bits, same = spread(keys.values())
        r.entropy += bits
        if same is not None:
            r.agreement += same
            r.pairs += 1
            r.answered_by_several += read
        both = [(before[a], k) for a, k in keys.items() if a in before and k is not None]
        r.turns += len(both)
        r.judged += len(both) if right is not None else 0
        for was, now in both:
            if was != now:
                r.changed += 1
                if right is not None:
                    r.to_right += now in right and was not in right
                    r.to_wrong += was in right and now not in right

    def _add_lone(self, r: Round, keys: Keys, right: Collection[str] | None, before: tuple[Round, int] | None,
                  score: float | None) -> tuple[Round, int] | None:
        """Count a round's most common answer, and a voter who alone is right; before: that of the round before."""
        if right is None:
            return None
        counts = Counter(k for k in keys.values() if k is not None)
        r.known += 1
        r.contested += len(keys) > 1
        leaders = [key for key, n in counts.items() if n == max(counts.values())]
        r.right += sum(key in right for key in leaders) / max(1, len(leaders))
        if before is not None and keys.get(before[1]) is not None:
            before[0].followed += 1
            before[0].kept += keys[before[1]] in right
        those = [agent for agent, key in keys.items() if key in right]
        if len(those) != 1 or len(keys) < 2:
            return None
        r.lone += 1
        r.won += score == 1
        return r, those[0]

    def _add_positions(self, said: Sequence[SaidMessage], voters: Collection[int], table: dict[int, Keys]) -> None:
        """Count which of the answers that a voter was shown once, and did not share, it took over."""
        by_id: dict[int, SaidMessage] | None = None
        for m in said:
            own = table.get(m.round - 1, {}).get(m.agent) if m.agent is not None else None
            if m.key is None or own is None or len(m.seen) < 2:
                continue
            by_id = by_id or {other.id: other for other in said}
            seen = [other for i in m.seen if (other := by_id.get(i))]
            again = {other.agent for other in seen if other.round == m.round}  # who has spoken since
            shown = [other for other in seen if other.round == m.round - 1
                     and other.agent != m.agent and other.agent in voters and other.agent not in again]
            once = Counter(other.key for other in shown)
            for place, other in enumerate(shown, 1) if len(shown) > 1 else ():
                if other.key is not None and other.key != own and once[other.key] == 1:
                    counts = self.positions.setdefault((place, len(shown)), [0, 0])
                    counts[0] += 1
                    counts[1] += m.key == other.key

    def places(self) -> list[dict[str, Any]]:
        """How often the answer at each place of a view was taken over."""
        return [{"place": place, "of": of, "opportunities": n, "adopted": adopted, "share": adopted / n}
                for (place, of), (n, adopted) in sorted(self.positions.items(), key=lambda item: item[0][::-1])]

    def _vote(self, keys: Sequence[str | None], right: Collection[str]) -> None:
        """Whether the most common of the first k answers is right, for every k; the first of equals counts."""
        self.pools += [[0, 0, 0] for _ in keys[len(self.pools):]]
        counts: Counter[str] = Counter()
        leader: str | None = None
        order: dict[str, int] = {}
        for i, key in enumerate(keys):
            if key is not None:
                counts[key] += 1
                order.setdefault(key, i)
                if leader is None or (counts[key], -order[key]) > (counts[leader], -order[leader]):
                    leader = key
            won = leader in right
            debates, rights, ended = self.pools[i]
            self.pools[i] = [debates + 1, rights + won, ended + (won and i == len(keys) - 1)]

    def unread(self) -> tuple[int, int]:
        """How many answers could not be read, and how many were to be given.

        The record does not tell a turn that gives no answer from one whose answer could not be read. Turns of a kind
        (move, stage and round) none of which ever gave an answer in this cell were not to give one; but if nothing
        was ever read, everything was unreadable.
        """
        kinds = [counts for counts in self.kinds.values() if counts[1]] or list(self.kinds.values())
        expected = sum(turns for turns, _ in kinds)
        return expected - sum(read for _, read in kinds), expected

    @property
    def judges(self) -> bool:
        """Whether answers other than the decision's can be judged: references are spelled as answers are."""
        return self.as_written > 0 and self.respelled <= 0.02 * self.as_written

    def curve(self) -> list[tuple[float, float]]:
        """The mean number of samples and the accuracy of the vote of the first k, for k = 1, 2, ...

        A debate with fewer than k counts with all it has, so that the curve ends where the cell is.
        """
        samples, ended, found = 0, 0, []
        for debates, right, last in self.pools:
            samples += debates
            found.append((samples / self.pools[0][0], (right + ended) / self.pools[0][0]))
            ended += last
        return found


def right_answers(references: Sequence[str], key: str | None, score: float | None) -> frozenset[str] | None:
    """The keys that are right, as far as a record shows without the study's answer format; None where it does not.

    The references count as they are written, and so does the key of a decision that was scored right. A score that
    is neither right nor wrong is ignored, as is one that contradicts the references.
    """
    if score == 1 and key is not None:
        return frozenset((key, *references))
    return frozenset(references) if score == 0 and references and key not in references else None


def spread(keys: Collection[str | None]) -> tuple[float, float | None]:
    """How spread the answers of a round are.

    The entropy in bits of those that could be read; and the share of pairs of voters with the same answer, where one
    that could not be read is like no other (None for a single voter).
    """
    counts: dict[str, int] = {}
    for key in keys:
        if key is not None:
            counts[key] = counts.get(key, 0) + 1
    return _spread(tuple(sorted(counts.values())), len(keys))


@lru_cache(4096)
def _spread(counts: tuple[int, ...], n: int) -> tuple[float, float | None]:
    read = sum(counts)
    bits = -sum(c / read * log2(c / read) for c in counts) if len(counts) > 1 else 0.0
    return bits, sum(c * (c - 1) for c in counts) / (n * (n - 1)) if n > 1 else None


def _share(part: float, whole: int) -> float | None:
    return part / whole if whole else None
