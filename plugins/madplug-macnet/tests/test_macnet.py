"""Graphs, what travels along them, and what they cost."""

import random
from itertools import combinations

import pytest

from madplug_baselines import Last
from madplug_macnet import Along, Graph, Node
from madplug_macnet.graph import calls_of, depths_of, edges_of, inputs_of, layers_of, sinks_of
from madplug_testing import play

MARKED = {"draft": "draft", "criticise": "on {solution}", "refine": "{solution} {comment}", "merge": "{solutions}",
          "block": "{content}"}


def held(agents=4, **options):
    """Every message is called after its kind and its author."""
    return play(turns=Graph(**options), visibility=Along(), styles=[Node(**MARKED)], decision=Last(), agents=agents,
                replies=lambda request: f"{'c' if request.purpose == 'review' else 's'}{request.agent}")


@pytest.mark.parametrize(("topology", "of_four", "of_eight", "edges", "of_thousand"), [
    ("chain", 7, 15, 999, 1999), ("star", 8, 16, 999, 2000), ("tree", 8, 16, 999, 2000),
    ("layered", 13, 33, 98_679, 198_359), ("mesh", 15, 63, 499_500, 999_999)])
def test_calls_are_those_of_sources_edges_and_merges(topology, of_four, of_eight, edges, of_thousand):
    assert (held(4, topology=topology).result.calls, held(8, topology=topology).result.calls) == (of_four, of_eight)
    assert [Graph(topology=topology).turns(n, 1) for n in (4, 8, 1000)] == [of_four, of_eight, of_thousand]
    assert len(edges_of(topology, 1000)) == edges


@pytest.mark.parametrize(("agents", "sizes"), [(8, [4, 2, 2]), (1000, [112] + [111] * 8), (1, [1])])
def test_layers_are_equal_but_for_the_first(agents, sizes):
    assert list(map(len, layers_of(agents))) == sizes
    assert [agent for layer in layers_of(agents) for agent in layer] == list(range(agents))


def test_a_chain_of_a_thousand_agents_runs_and_no_request_grows_with_them():
    played = held(1000)
    assert played.result.calls == 1999
    assert max(map(len, played.prompts)) < 15


@pytest.mark.parametrize("topology", ["chain", "star", "tree", "mesh", "layered", "random"])
def test_a_reversed_graph_has_as_many_edges_and_no_cycle(topology):
    there, back = (edges_of(topology, 7, reverse=r, rng=random.Random(1)) for r in (False, True))
    assert len(there) == len(back)
    assert all(u < v for u, v in there + back)
    assert depths_of(inputs_of(7, back))[-1] == max(depths_of(inputs_of(7, there)))


def test_random_edges_are_drawn_from_all_pairs_and_cost_no_more_than_a_mesh():
    drawn = [edges_of("random", 6, rng=random.Random(i)) for i in range(50)]
    assert all(5 <= len(edges) <= 15 and set(edges) <= set(combinations(range(6), 2)) for edges in drawn)
    assert max(calls_of(6, edges) for edges in drawn) <= Graph(topology="random").turns(6, 1)
    assert len(drawn[0]) != len(drawn[1])
    assert sinks_of(3, [(0, 1)]) == [1, 2]


@pytest.mark.parametrize(("topology", "prompts", "keys"), [
    ("chain", ["draft", "on s0", "s0 c1", "on s1", "s1 c2"], ["s0", None, "s1", None, "s2"]),
    # a node merges what it wrote for all its inputs, whatever their layer, and the last agent several sinks
    ("mesh", ["draft", "on s0", "s0 c1", "on s0", "on s1", "s0 c2", "s1 c2", "s2\n\ns2"], None),
    ("star", ["draft", "on s0", "on s0", "s0 c1", "s0 c2", "s1\n\ns2"], None)])
def test_a_critic_reads_the_solution_and_gives_no_answer_and_the_actor_reads_both(topology, prompts, keys):
    played = held(3, topology=topology)
    assert [r.messages[-1]["content"] for r in played.requests] == prompts
    assert keys in (None, [m.key for m in played.messages])
    assert (played.requests[-1].agent, played.decision.key, played.decision.agreed) == (2, "s2", True)


def test_the_temperature_falls_with_depth_unless_it_is_the_models_own():
    played = held(3, topology="chain")
    assert [r.params["temperature"] for r in played.requests] == [0.75, 0.5, 0.5, 0.25, 0.25]
    assert held(3, topology="star").requests[-1].params == {"temperature": 0}
    plain = play(turns=Graph(), visibility=Along(), styles=[Node(cooling=False)], agents=2, replies=lambda r: "x")
    assert {str(r.params) for r in plain.requests} == {"{}"}


def test_check_refuses_what_costs_more_than_was_thought_of():
    class Thousand:
        wanted = 1000

    [problem] = Graph(topology="layered").check(Thousand())
    assert problem == "layered with 1000 agents takes 198,359 calls a debate; most = 198359 lets it pass"
    assert list(Graph(topology="tree").check(Thousand())) == []
