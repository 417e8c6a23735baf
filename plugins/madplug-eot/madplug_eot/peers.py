"""Who reads whom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from madplug import Agent, Message, Options, Turn, Visibility

if TYPE_CHECKING:
    from madplug import CellFacts, Debate

Topology = Literal["memory", "report", "relay", "debate"]


class PeersOptions(Options):
    """Options of `eot.peers`."""

    topology: Topology = Field(default="memory", description="who reads whom")


class Peers(Visibility):
    """An agent's own latest message and those of the peers that its topology lets it read.

    `memory`: every agent reads all others. `report`: agent 0 reads all, the others read agent 0. `relay`: agent
    i reads agent i + 1, the last one reads agent 0. `debate`: agent 0 reads all and no agent reads it; the
    others read each other in pairs. The agent's own message comes first, then the peers' in the order of the
    agents. Messages without an author (an opening, or what an extension said after the last round) are shown
    first.

    Differs from the paper: `debate` is described for three agents only. With more, the others are paired in
    their order (1 with 2, 3 with 4, ...), and an unpaired one reads the agent before it.
    """

    name = "peers"
    source = "Yin et al. 2023, Exchange-of-Thought, section 3"
    Options = PeersOptions

    def view(self, debate: Debate, turn: Turn) -> Sequence[Message]:
        """Notes of the round before, the agent's own latest message, its peers' latest messages."""
        notes = [m for m in debate.transcript.messages
                 if m.agent is None and (m.round == 0 or m.round >= debate.round - 1)]
        writers = (turn.agent.id, *self.neighbours(debate, turn.agent, debate.round))
        latest = (debate.transcript.last(i) for i in writers)
        return [*notes, *(m for m in latest if m is not None)]

    def neighbours(self, debate: Debate, agent: Agent, round: int) -> Sequence[int]:
        """The agents this one reads, in every round the same."""
        return sees(self.options.topology, agent.id, len(debate.agents))

    def warn(self, cell: CellFacts) -> Iterator[str]:
        """A topology that is complete with so few agents."""
        topology, n = self.options.topology, cell.wanted
        if topology != "memory" and cell.rounds > 1 < n and all(len(sees(topology, i, n)) == n - 1 for i in range(n)):
            yield (f"of {n} agents everybody reads everybody: this is the same debate as with topology = \"memory\"; "
                   "take 3 agents or more")


def sees(topology: Topology, i: int, n: int) -> tuple[int, ...]:
    """Positions that agent `i` of `n` reads, ascending."""
    others = tuple(j for j in range(n) if j != i)
    if topology == "memory" or (topology != "relay" and i == 0):
        return others
    if topology == "report":
        return (0,)
    if topology == "relay":
        return ((i + 1) % n,) if n > 1 else ()
    partner = i + 1 if i % 2 else i - 1
    if partner >= n:
        partner = i - 1
    return (partner,) if partner > 0 else ()
