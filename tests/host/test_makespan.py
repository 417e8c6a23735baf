"""The benchmark of the schedule, on a few debates."""

from tests.benchmarks.makespan import measure


def test_the_benchmark_counts_the_debates_that_are_open():
    assert measure(20, 3, 2).most_open == 20
