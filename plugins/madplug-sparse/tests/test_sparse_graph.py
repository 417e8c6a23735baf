import random

import pytest
from pydantic import ValidationError

from madplug import Sample
from madplug_som import Exchange
from madplug_sparse import Shape, SparseGraph, Topology, build, density, diameter, mean_in_degree
from madplug_sparse.topology import BUILDERS
from madplug_testing import debate_from, play

MARKED = {"first": "<q>", "exchange": "{answers}<c>", "block": "{content}", "verify": "<verify>"}


def said(request) -> str:
    """`<m>agent,round` of the agent that is asked."""
    return f"<m>{request.agent},{1 + sum(m['role'] == 'assistant' for m in request.messages)}"


def shown(played) -> list[list[str]]:
    """By request: the peers' messages in its last user message."""
    return [r.messages[-1]["content"].replace("<c>", "").split("\n\n") for r in played.requests]


def run(rounds=2, agents=5, **options):
    return play(styles=[Exchange(**MARKED)], visibility=SparseGraph(**options), replies=said, rounds=rounds,
                agents=agents)


@pytest.mark.parametrize(("agents", "options", "sent"), [
    (5, {}, ["14", "02", "13", "24", "03"]),  # a ring
    (4, {"topology": "star", "hub": 2}, ["2", "2", "013", "2"]),
    (3, {"topology": "edges", "edges": ((0, 1), (2, 1)), "directed": True}, ["1", "", "1"])])
def test_a_graph_sends_the_answers_of_those_that_it_connects(agents, options, sent):
    assert shown(run(agents=agents, **options))[agents:] == [
        [f"<m>{peer},1" for peer in peers] or ["<verify>"] for peers in sent]


def test_full_sends_what_everything_sends():
    assert run(topology="full").requests == play(
        styles=[Exchange(**MARKED)], replies=said, rounds=2, agents=5).requests


@pytest.mark.parametrize(("window", "topology"), [(1, "ring"), (1, "star"), (None, "full"), (1, "chain")])
def test_input_tokens_follow_the_formula(window, topology):
    q, m, c, n, r = 100, 200, 30, 5, 2
    played = run(rounds=3, agents=n, topology=topology, window=window)
    text = "".join(played.prompts)
    degrees = [len(SparseGraph(topology=topology).neighbours(played.debate, a, 2)) for a in played.debate.agents]
    last = sum((r + 1) * q + r * ((1 + d) * m + c) for d in degrees)
    full = n * ((r + 1) * q + (n * m + c) * r * (r + 1) // 2)
    sent = q * text.count("<q>") + m * text.count("<m>") + c * text.count("<c>")
    assert sent == (full if window is None else last)


@pytest.mark.parametrize("topology", ["random_k", "erdos_renyi"])
def test_a_random_graph_is_drawn_for_the_sample_the_seed_and_every_round_or_stays(topology):
    debate, graph = debate_from("AAAA " * 8), SparseGraph(topology=topology)
    assert len({graph.graph(debate, k) for k in range(1, 6)}) > 1
    assert graph.graph(debate, 2) == graph.graph(debate, 2)
    stays = SparseGraph(topology=topology, resample=False)
    assert len({stays.graph(debate, k) for k in range(1, 6)}) == 1
    drawn = {graph.graph(debate_from("A " * 8, sample=Sample(str(i), "?"), seed=s), 1)
             for i in range(5) for s in (1, 2)}
    assert len(drawn) == 10


def test_what_was_read_once_stays_in_view_under_resampling():
    played = run(rounds=4, agents=6, topology="random_k", k=2)
    for agent in range(6):
        chats = [r.messages for r in played.requests if r.agent == agent]
        assert all(chats[-1][:len(chat)] == chat for chat in chats)
        assert all(chat[-1]["content"].count("<m>") == 2 for chat in chats[1:])


def test_edges_belong_to_the_topology_of_that_name():
    with pytest.raises(ValidationError, match="and of no other"):
        SparseGraph(edges=((0, 1),))


@pytest.mark.parametrize(("options", "problem"), [
    ({"topology": "star", "hub": 3}, "hub = 3"), ({"topology": "edges", "edges": ((0, 3),)}, "does not exist"),
    ({"topology": "k_regular", "k": 1}, "no 1-regular"), ({"topology": "k_regular", "k": 3}, ""), ({}, "")])
def test_a_graph_that_does_not_fit_the_agents_is_a_problem(options, problem):
    class ThreeAgents:
        wanted = 3

    assert [problem in text for text in SparseGraph(**options).check(ThreeAgents())] == ([True] if problem else [])


def test_topology_measures_the_exchange_and_nothing_where_there_is_none():
    played = play(replies=["A"] * 12, agents=6, rounds=2, visibility=SparseGraph(topology="star"),
                  metrics={"graph": Topology()})
    assert played.metrics == {"graph.density": pytest.approx(1 / 3), "graph.in_degree": pytest.approx(10 / 6),
                              "graph.diameter": 2.0}
    assert set(play(replies=["A"] * 3, metrics={"graph": Topology()}).metrics.values()) == {None}


# The graphs themselves

@pytest.mark.parametrize(("name", "n", "shape", "graph"), [
    ("ring", 5, {}, ((1, 4), (0, 2), (1, 3), (2, 4), (0, 3))), ("ring", 2, {}, ((1,), (0,))),
    ("ring_directed", 4, {}, ((1,), (2,), (3,), (0,))), ("ring_directed", 2, {}, ((1,), (0,))),
    ("chain", 4, {}, ((1,), (0, 2), (1, 3), (2,))), ("star", 4, {}, ((1, 2, 3), (0,), (0,), (0,))),
    ("star", 3, {"hub": 2}, ((2,), (2,), (0, 1))), ("groups", 5, {"groups": 2}, ((1, 2), (0, 2), (0, 1), (4,), (3,))),
    ("edges", 3, {"edges": ((0, 1), (2, 1))}, ((1,), (0, 2), (1,))),  # both ways unless directed
    ("edges", 3, {"edges": ((0, 1), (2, 1)), "directed": True}, ((1,), (), (1,))),
    ("k_regular", 6, {}, build("ring", 6)), ("k_regular", 4, {"k": 9}, build("full", 4))])
def test_who_reads_whom(name, n, shape, graph):
    assert tuple(tuple(sorted(reads)) for reads in build(name, n, Shape(**shape))) == graph


@pytest.mark.parametrize(("k", "nearest"), [
    (0, ()), (1, (3,)), (2, (1, 5)), (3, (1, 3, 5)), (4, (1, 2, 4, 5)), (5, (1, 2, 3, 4, 5))])
def test_k_regular_is_regular_and_reads_the_nearest(k, nearest):
    graph = build("k_regular", 6, Shape(k=k))
    assert {len(reads) for reads in graph} == {k}
    assert graph[0] == nearest


@pytest.mark.parametrize(("n", "k", "expected"), [(5, None, 2), (6, None, 3), (6, 1, 1), (3, 9, 2)])
def test_random_k_draws_k_others(n, k, expected):
    graph = build("random_k", n, Shape(k=k, rng=random.Random(1)))
    assert all(len(set(reads)) == expected and i not in reads for i, reads in enumerate(graph))


def test_erdos_renyi_leaves_nobody_alone():
    for seed in range(50):
        graph = build("erdos_renyi", 6, Shape(p=0.1 * (seed > 0), rng=random.Random(seed)))
        assert all(graph)
        assert all(i in graph[j] for i in range(6) for j in graph[i])


@pytest.mark.parametrize("name", BUILDERS)
def test_nobody_reads_itself_and_one_agent_reads_nobody(name):
    assert all(i not in reads for n in (2, 3, 5, 8) for i, reads in enumerate(build(name, n)))
    assert build(name, 1) == ((),)


@pytest.mark.parametrize(("name", "n", "expected"), [
    ("ring", 6, 0.4), ("star", 6, 1 / 3), ("ring", 4, 2 / 3), ("ring", 3, 1.0), ("full", 7, 1.0), ("chain", 6, 1 / 3)])
def test_density(name, n, expected):
    assert density(build(name, n)) == pytest.approx(expected)


def test_a_star_and_a_chain_differ_in_diameter_alone():
    star, chain = build("star", 6), build("chain", 6)
    assert (density(star), mean_in_degree(star)) == (density(chain), mean_in_degree(chain))
    assert [diameter(graph) for graph in (star, chain, build("full", 4), build("groups", 4))] == [2, 5, 1, None]


@pytest.mark.parametrize(("options", "agents", "told"), [
    ({}, 3, True), ({}, 4, False), ({"topology": "star"}, 3, False), ({"topology": "k_regular", "k": 4}, 5, True),
    ({"topology": "full"}, 3, False), ({"topology": "erdos_renyi"}, 2, False)])
def test_a_graph_that_is_complete_with_so_few_agents_is_a_warning(options, agents, told):
    cell = type("Cell", (), {"wanted": agents, "rounds": 2})
    assert any("is complete" in text for text in SparseGraph(**options).warn(cell)) is told
