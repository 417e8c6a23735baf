import random

import pytest

from madplug_sparse import Shape, build, density, diameter, mean_in_degree
from madplug_sparse.topology import BUILDERS

EDGES = ((0, 1), (2, 1))


@pytest.mark.parametrize(("name", "n", "shape", "graph"), [
    ("ring", 5, {}, ((1, 4), (0, 2), (1, 3), (2, 4), (0, 3))), ("ring", 2, {}, ((1,), (0,))),
    ("ring_directed", 4, {}, ((1,), (2,), (3,), (0,))), ("ring_directed", 2, {}, ((1,), (0,))),
    ("chain", 4, {}, ((1,), (0, 2), (1, 3), (2,))), ("star", 4, {}, ((1, 2, 3), (0,), (0,), (0,))),
    ("star", 3, {"hub": 2}, ((2,), (2,), (0, 1))), ("groups", 5, {"groups": 2}, ((1, 2), (0, 2), (0, 1), (4,), (3,))),
    ("edges", 3, {"edges": EDGES}, ((1,), (0, 2), (1,))),  # both ways unless directed
    ("edges", 3, {"edges": EDGES, "directed": True}, ((1,), (), (1,))),
    ("k_regular", 6, {}, build("ring", 6)), ("k_regular", 4, {"k": 9}, build("full", 4))])
def test_who_reads_whom(name, n, shape, graph):
    assert tuple(tuple(sorted(reads)) for reads in build(name, n, Shape(**shape))) == graph


def test_k_regular_reads_the_nearest():
    assert build("k_regular", 6, Shape(k=4))[0] == (1, 2, 4, 5)
    assert build("k_regular", 6, Shape(k=3))[0] == (1, 3, 5)


@pytest.mark.parametrize("k", [0, 1, 2, 3, 4, 5])
def test_k_regular_is_regular(k):
    assert {len(reads) for reads in build("k_regular", 6, Shape(k=k))} == {k}


@pytest.mark.parametrize(("n", "k", "expected"), [(5, None, 2), (6, None, 3), (6, 1, 1), (3, 9, 2)])
def test_random_k_draws_k_others(n, k, expected):
    graph = build("random_k", n, Shape(k=k, rng=random.Random(1)))
    assert all(len(set(reads)) == expected and i not in reads for i, reads in enumerate(graph))


def test_erdos_renyi_leaves_nobody_alone():
    for seed in range(50):
        graph = build("erdos_renyi", 6, Shape(p=0.1, rng=random.Random(seed)))
        assert all(graph)
        assert all(i in graph[j] for i in range(6) for j in graph[i])


def test_erdos_renyi_without_probability_is_mended():
    assert all(build("erdos_renyi", 5, Shape(p=0.0)))


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
    assert (diameter(star), diameter(chain)) == (2, 5)


def test_diameter_of_what_is_not_connected():
    assert diameter(build("groups", 4)) is None
    assert diameter(build("full", 4)) == 1
