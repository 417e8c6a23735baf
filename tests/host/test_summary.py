"""The figures of a study: means over everything, spread over repeats, honest intervals."""

import pytest

from madplug.summary import interval, spread


def test_the_worked_numbers_of_three_repeats():
    found = spread([{"q": 53.0}, {"q": 51.2}, {"q": 55.6}])
    assert found["mean"] == pytest.approx(53.2667, abs=1e-4)
    assert found["std"] == pytest.approx(2.2121, abs=1e-4)
    assert found["per_repeat"] == [53.0, 51.2, 55.6]


def test_one_repeat_has_no_spread_and_one_sample_no_interval():
    found = spread([{"q": 1.0}], proportion=True)
    assert (found["std"], found["ci95"]) == (None, None)


def test_a_proportion_has_wilsons_interval():
    low, high = spread([{f"q{i}": float(i < 8) for i in range(10)}], proportion=True)["ci95"]
    assert (low, high) == (pytest.approx(0.490, abs=1e-3), pytest.approx(0.943, abs=1e-3))


def test_a_count_that_happens_to_be_one_everywhere_is_no_proportion():
    assert spread([{f"q{i}": 1.0 for i in range(6)}])["ci95"] == [1.0, 1.0]


def test_repeats_of_a_sample_count_as_one_sample():
    once = spread([{"a": 0.0, "b": 1.0}, {"a": 0.0, "b": 1.0}])
    assert once["ci95"] == interval([0.0, 1.0], binary=False)


def test_a_metric_of_many_figures_does_not_widen_the_table():
    from madplug.terminal import summary_table

    parts = {f"m.flips.{i}": {"mean": 0.5} for i in range(20)}
    several = {f"qa.m{i}": {"mean": 0.5} for i in range(7)}
    cell = {"cell": "c", "oracle": False, "metrics": {**several, **parts},
            "done": 4, "failed": 0, "undecided": 1, "calls": 8, "tokens": {"prompt": 4, "completion": 4},
            "cost_usd": 0.0}
    assert summary_table({"cells": [cell]}).splitlines() == [
        "cell  qa.m0  qa.m1  qa.m2  qa.m3  qa.m4  qa.m5  qa.m6  debates  undecided  failed  calls  tokens",
        "c     0.500  0.500  0.500  0.500  0.500  0.500  0.500  4        1          0       2.0    2",
        "m.flips: 20 figures in summary.json"]
