"""What agents at the table see."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from madplug import Message, Options, Turn, Visibility

if TYPE_CHECKING:
    from madplug import Debate


class GroupedOptions(Options):
    """Options of `reconcile.grouped`."""

    groups: int | None = Field(default=None, ge=1,
                               description="how many of the largest groups are shown; unset: all")


class Grouped(Visibility):
    """All messages of the previous round, including the agent's own, in groups of equal answers.

    The largest group comes first; of equally large ones, the one whose answer was given by the earliest agent.
    Within a group the order is that of the agents. Messages whose answer could not be read come last, after all
    groups, and are left out when `groups` is given. Messages without an author (an opening, an extension's note)
    come first.

    Differs from the paper's code: that shows the two largest groups only, so that with three different
    answers the third is hidden (`groups = 2`); the paper speaks of all.
    """

    name = "grouped"
    source = "Chen et al. 2024, ReConcile, section 3"
    Options = GroupedOptions

    def view(self, debate: Debate, turn: Turn) -> Sequence[Message]:
        """The round before, group by group."""
        said = debate.transcript.of_round(debate.round - 1)
        opening = debate.transcript.of_round(0) if debate.round > 1 else ()
        groups = by_answer(m for m in said if m.agent is not None and m.key is not None)
        groups.sort(key=len, reverse=True)
        unread = [m for m in said if m.agent is not None and m.key is None and self.options.groups is None]
        return [*(m for m in (*opening, *said) if m.agent is None),
                *(m for group in groups[:self.options.groups] for m in group), *unread]


def by_answer(messages: Iterable[Message]) -> list[list[Message]]:
    """Messages in groups of equal answers, in the order the answers appear; unread ones are one group."""
    groups: dict[str | None, list[Message]] = {}
    for message in messages:
        groups.setdefault(message.key, []).append(message)
    return list(groups.values())


def by_last_answer(messages: Sequence[Message]) -> list[list[Message]]:
    """The same in the order of each group's last message: a group that another visibility shows last is last."""
    places = {m.id: at for at, m in enumerate(messages)}
    return sorted(by_answer(messages), key=lambda group: places[group[-1].id])
