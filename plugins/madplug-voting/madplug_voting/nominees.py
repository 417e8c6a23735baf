"""What is voted on: each voter's final answer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from madplug_prompting.finals import FinalOptions, final_answers
from madplug_prompting.replies import without_stances

if TYPE_CHECKING:
    from madplug import Debate


@dataclass(frozen=True)
class Nominee:
    """A solution that can be voted for."""

    key: str
    answer: str
    """The solution as it is listed."""
    agents: tuple[int, ...]
    """Whose answer it is."""


async def nominees(debate: Debate, options: FinalOptions) -> list[Nominee]:
    """The final answer of every voter that has one that could be read, in the order of the voters."""
    found: list[Nominee] = []
    for one in await final_answers(debate, options):
        if one.key is not None:
            same = (n.key for n in found if debate.answers.same(n.key, one.key, debate.sample))
            found.append(Nominee(next(same, one.key), without_stances(one.text), (one.agent,)))
    return found


def wording(debate: Debate, key: str, answer: str) -> str | None:
    """The text of a decision: an answer that no message gave, since a voter wrote it down only when asked; else None.

    The text of an answer on record is the host's to find, so that all protocols give the same.
    """
    return None if any(m.key == key for m in debate.transcript.messages) else answer


def merged(found: list[Nominee]) -> list[Nominee]:
    """The same solutions, each only once."""
    by_key: dict[str, Nominee] = {}
    for one in found:
        first = by_key.get(one.key)
        by_key[one.key] = one if first is None else replace(first, agents=first.agents + one.agents)
    return list(by_key.values())
