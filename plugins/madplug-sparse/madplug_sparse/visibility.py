"""Who reads whom in a debate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field, model_validator
from typing_extensions import Self

from madplug import Agent, Message, Metric, Options, Turn, Visibility
from madplug_sparse.topology import RANDOM, Graph, Name, Shape, build, density, diameter, mean_in_degree

if TYPE_CHECKING:
    from madplug import CellFacts, Debate


class GraphOptions(Options):
    """Which graph, and how far back an agent sees."""

    topology: Name = Field(default="ring", description=(
        "who reads whom: full, ring, ring_directed (the next), chain (a ring that is open), star (all and the hub), "
        "k_regular (the k nearest in a ring), random_k (k drawn others), erdos_renyi (each pair with probability p), "
        "groups (full inside each), edges (a list)"))
    k: int | None = Field(default=None, ge=0, le=10_000, description=(
        "others that an agent reads in k_regular (default 2) and random_k (default: half of all agents)"))
    p: float = Field(default=0.5, ge=0, le=1, description="probability of a pair in erdos_renyi")
    hub: int = Field(default=0, ge=0, description="the agent in the middle of a star")
    groups: int = Field(default=2, ge=1, description="number of groups, of neighbours in the list of agents")
    edges: tuple[tuple[int, int], ...] = Field(default=(), description=(
        "pairs of agents, from 0, for topology = \"edges\": [[0, 1], [1, 2]]"))
    directed: bool = Field(default=False, description="of a pair in `edges`, only the first reads the second")
    resample: bool = Field(default=True, description=(
        "draw random_k and erdos_renyi again in every round; false: once per debate"))
    window: int | None = Field(default=None, ge=0, le=10_000, description=(
        "rounds before the current one that are shown; default: all"))

    @model_validator(mode="after")
    def _edges_belong(self) -> Self:
        if bool(self.edges) != (self.topology == "edges"):
            raise ValueError("'edges' lists the pairs of topology = \"edges\", and of no other")
        return self


class SparseGraph(Visibility):
    """An agent is shown its own messages and those of its neighbours in a graph.

    An agent reads in round k what its neighbours of round k said in the round before; what it read in
    earlier rounds stays in view, unless `window` limits it. Messages that no agent wrote are shown to all.
    Random graphs depend on the study's seed, the sample and, with `resample`, the round, and on nothing
    else. With k_regular an odd k needs an even number of agents. Two agents in a ring read each other once;
    a directed ring of two is complete. Agents take the models of `debate.models` in turn; `casting.central`
    gives the strongest to the agent with most neighbours.

    Differs from the paper: it varies the degree of a regular graph and gives no rule for isolated agents;
    here an Erdos-Renyi graph with an isolated agent is drawn again, and given a random edge if
    necessary. A summary across groups is `som.summary`.
    """

    name = "graph"
    source = "Li et al. 2024, Improving Multi-Agent Debate with Sparse Communication Topology, section 3"
    Options = GraphOptions

    def view(self, debate: Debate, turn: Turn) -> Sequence[Message]:
        """Own messages and the neighbours', in the order of the record."""
        me, now, window = turn.agent.id, debate.round, self.options.window
        oldest = 0 if window is None else now - window
        reads = {k: {me, *self.neighbours(debate, turn.agent, k)} for k in range(1, now + 1)}
        return [m for m in debate.transcript.messages
                if m.agent is None or (m.round >= oldest and m.agent in reads[min(m.round + 1, now)])]

    def neighbours(self, debate: Debate, agent: Agent, round: int) -> Sequence[int]:
        """The agents that this one reads in a round."""
        return self.graph(debate, round)[agent.id]

    def graph(self, debate: Debate, round: int) -> Graph:
        """The graph of a round."""
        o, n = self.options, len(debate.agents)
        if o.topology in RANDOM:
            scope = f"sparse.graph:{o.topology}" + (f":{round}" if o.resample else "")
            return build(o.topology, n, Shape(o.k, o.p, rng=debate.rng(scope)))
        return self._fixed(n)

    def _fixed(self, agents: int) -> Graph:
        """The graph of a topology that is not drawn."""
        o = self.options
        return build(o.topology, agents, Shape(o.k, o.p, o.hub, o.groups, o.edges, o.directed))

    def check(self, cell: Any) -> Iterable[str]:
        """The graph exists for this number of agents."""
        n, o = cell.wanted, self.options
        if o.topology == "star" and o.hub >= n:
            yield f"hub = {o.hub}, and there are {n} agents, counted from 0"
        if o.topology == "edges" and any(not 0 <= i < n for edge in o.edges for i in edge):
            yield f"'edges' names an agent that does not exist; there are {n}, counted from 0"
        if o.topology == "k_regular" and (o.k or 0) % 2 and n % 2 and (o.k or 0) < n - 1:
            yield f"there is no {o.k}-regular graph of {n} agents; take an even k or an even number of agents"

    def warn(self, cell: CellFacts) -> Iterator[str]:
        """A graph that is complete with so few agents."""
        n, topology = cell.wanted, self.options.topology
        if topology not in {"full", *RANDOM} and cell.rounds > 1 < n and density(self._fixed(n)) == 1:
            yield (f"topology = \"{topology}\" of {n} agents is complete: this is the same debate as with "
                   "topology = \"full\"")


class Topology(Metric):
    """Density, mean in-degree and diameter of who could read whom, on average over the rounds of exchange.

    Of any visibility, by its `neighbours`. A star and a chain have the same density and differ in diameter.
    The diameter is missing where some answer can never reach some agent, and all are where there was one
    round.
    """

    name = "topology"
    source = "Li et al. 2024, section 3 (density)"

    def score(self, debate: Debate, references: Sequence[str]) -> dict[str, float | None]:
        """Three figures."""
        rounds = range(2, debate.round + 1)
        graphs: list[Graph] = [tuple(tuple(debate.neighbours(a, k)) for a in debate.agents) for k in rounds]
        far = [diameter(g) for g in graphs]
        return {"density": _mean([density(g) for g in graphs]),
                "in_degree": _mean([mean_in_degree(g) for g in graphs]),
                "diameter": None if None in far else _mean([d for d in far if d is not None])}


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
