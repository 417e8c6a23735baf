"""Who changed their answer, and whom they followed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from madplug import Agent, DebateResult, Message, Metric, earlier_answers
from madplug_dynamics.table import Keys, columns, histories, mode, own_scores, plurality, ratio, total
from madplug_qa.keys import canonical_references, is_right

if TYPE_CHECKING:
    from madplug import Debate

KINDS = ("TT", "TF", "FT", "FF")
"""From right (T) or wrong (F) to right or wrong."""


class Flips(Metric):
    """Changes of answers from round to round: from right to wrong, from wrong to right, and at all.

    Parts. `TT TF FT FF`: steps of voters from one round to the next, right (T) or wrong (F) before and after; an answer
    that could not be read is wrong, a round in which a voter did not speak is passed over. `ends_TT` ...: from each
    voter's first round to its last. `group_TT` ...: of the most frequent answer of each round, the first of equals.
    `to_wrong`, `to_right`: TF / (TT + TF) and FT / (FT + FF). `changed`, `change_rate`, `agents_changed`: changes of
    mind of voters, as `madplug read` shows them, their share of the answers with one before, voters with one.
    `relied_on_other`: voters wrong first and right at the end; `bullied_by_other`: right first and wrong at the end;
    with `_any`: wrong first and right in any round, right in any round and wrong at the end. Without
    references only the three about change.

    The figures of a cell have the rates over all its debates together.

    Differs from the authors' code: `relied_on_other` and `bullied_by_other` are as DebateLLM documents them, the `_any`
    forms as it computes them.
    """

    name = "flips"
    source = "Smit et al. 2024 (DebateLLM); MADC 2026"

    def score(self, debate: Debate, references: Sequence[str]) -> Mapping[str, float | None] | None:
        """Counts and rates by name."""
        rows = [row for row in histories(debate) if row]
        if not rows:
            return None
        right = canonical_references(debate, references)
        parts: dict[str, float | None] = dict(changes(debate))
        return parts if not right else {**parts, **_against(debate, rows, right)}

    def summarise(self, results: Iterable[DebateResult]) -> Mapping[str, Any]:
        """Rates of all debates together; those of `score` are of single debates."""
        scores = own_scores(self, results)
        n = {part: total(scores, part) for part in (*KINDS, *(f"group_{kind}" for kind in KINDS))}
        return {"pooled_to_wrong": ratio(n["TF"], n["TT"] + n["TF"]),
                "pooled_to_right": ratio(n["FT"], n["FT"] + n["FF"]),
                "pooled_group_to_wrong": ratio(n["group_TF"], n["group_TT"] + n["group_TF"]),
                "pooled_group_to_right": ratio(n["group_FT"], n["group_FT"] + n["group_FF"])} if any(n.values()) else {}


class Conformity(Metric):
    """How often an agent takes over what most of the others said.

    An opportunity: the voters whose messages of the round before an agent saw had one most frequent answer, and it was
    not the agent's own. The agent conforms if that is its next answer. Parts: `opportunities`, `conforming`, `rate`;
    with references also `harmful` (it was right before) and `helpful` (the answer it took over is right). What an agent
    saw is what is on record as seen, so partial visibility, dropped messages and orders are accounted for.
    """

    name = "conformity"
    source = "this project's definitions; the tendency is Free-MAD 2025, section 1"

    def score(self, debate: Debate, references: Sequence[str]) -> Mapping[str, float | None]:
        """Counts and their ratio."""
        right = canonical_references(debate, references)
        steps = [step for agent in debate.voters for step in opportunities(debate, agent)]
        conforming = [(own, majority) for own, majority, then in steps if then == majority]
        parts: dict[str, float | None] = {
            "opportunities": float(len(steps)), "conforming": float(len(conforming)),
            "rate": ratio(len(conforming), len(steps))}
        if right:
            parts["harmful"] = float(sum(is_right(debate, own, right) for own, _ in conforming))
            parts["helpful"] = float(sum(is_right(debate, majority, right) for _, majority in conforming))
        return parts

    def summarise(self, results: Iterable[DebateResult]) -> Mapping[str, Any]:
        """The rate of all debates together; `rate` is of a single debate."""
        scores = own_scores(self, results)
        chances, taken = total(scores, "opportunities"), total(scores, "conforming")
        return {"all_opportunities": chances, "all_conforming": taken,
                "pooled_rate": ratio(taken, chances)} if scores else {}


def opportunities(debate: Debate, agent: Agent) -> Iterable[tuple[str, str, str | None]]:
    """(own answer, most frequent answer of the others it saw, next answer) for each opportunity of an agent."""
    row = debate.transcript.answers([agent])[0]
    for k in range(2, len(row) + 1):
        said = [m for m in debate.transcript.by(agent) if m.round == k and m.answers]
        own, majority = row[k - 2], mode(_shown(debate, agent, said, k - 1))
        if said and own is not None and majority is not None and own != majority:
            yield own, majority, row[k - 1]


def _shown(debate: Debate, agent: Agent, said: Sequence[Message], k: int) -> Keys:
    """The keys of round k that an agent had seen when it spoke, one for each other voter."""
    seen = {i for message in said for i in message.seen}
    voters = {a.id for a in debate.voters} - {agent.id}
    return list({m.agent: m.key for m in debate.transcript.of_round(k)
                 if m.id in seen and m.agent in voters and m.key is not None}.values())


def changes(debate: Debate) -> dict[str, float | None]:
    """Voters' changes of mind, of their answers with one before, and voters that made one."""
    earlier, voters = earlier_answers(debate.transcript.messages), {a.id for a in debate.voters}
    said = [m for m in debate.transcript.messages if m.id in earlier and m.agent in voters]
    changed = [m.agent for m in said if m.key != earlier[m.id]]
    return {"changed": float(len(changed)), "change_rate": ratio(len(changed), len(said)),
            "agents_changed": float(len(set(changed)))}


def kinds(rows: Iterable[Sequence[bool]], prefix: str = "") -> dict[str, float | None]:
    """How many steps of each kind there are."""
    counts = Counter("FT"[a] + "FT"[b] for row in rows for a, b in pairwise(row))
    return {prefix + kind: float(counts[kind]) for kind in KINDS}


def _against(debate: Debate, rows: Sequence[Keys], right: Sequence[str]) -> dict[str, float | None]:
    """The parts that need references."""
    truth = [[is_right(debate, key, right) for key in row] for row in rows]
    group = [is_right(debate, plurality(column), right) for column in columns(debate).values()]
    steps = kinds(truth)
    tt, tf, ft, ff = (steps[kind] or 0.0 for kind in KINDS)
    return {**steps, **kinds(([row[0], row[-1]] for row in truth if len(row) > 1), "ends_"), **kinds([group], "group_"),
            "to_wrong": ratio(tf, tt + tf), "to_right": ratio(ft, ft + ff),
            "relied_on_other": float(sum(not row[0] and row[-1] for row in truth)),
            "bullied_by_other": float(sum(row[0] and not row[-1] for row in truth)),
            "relied_on_other_any": float(sum(not row[0] and any(row) for row in truth)),
            "bullied_by_other_any": float(sum(any(row) and not row[-1] for row in truth))}
