"""The figures of a study: means over everything, spread over repeats, honest intervals."""

import pytest

from madplug.store import CellOverview
from madplug.study import intervals
from madplug.study.summary import CellScores


def spread(repeats, *, proportion=False):
    return intervals.spread([(list(scores), list(scores.values())) for scores in repeats], proportion=proportion)


def test_the_worked_numbers_of_three_repeats():
    found = spread([{"q": 53.0}, {"q": 51.2}, {"q": 55.6}])
    assert found["mean"] == pytest.approx(53.2667, abs=1e-4)
    assert found["std"] == pytest.approx(2.2121, abs=1e-4)
    assert (found["per_repeat"], found["median"]) == ([53.0, 51.2, 55.6], 53.0)


def test_one_repeat_has_no_spread_and_one_sample_no_interval():
    found = spread([{"q": 1.0}], proportion=True)
    assert (found["std"], found["ci95"]) == (None, None)


def test_a_proportion_has_wilsons_interval():
    low, high = spread([{f"q{i}": float(i < 8) for i in range(10)}], proportion=True)["ci95"]
    assert (low, high) == (pytest.approx(0.490, abs=1e-3), pytest.approx(0.943, abs=1e-3))


def test_a_count_that_happens_to_be_one_everywhere_is_no_proportion():
    assert spread([{f"q{i}": 1.0 for i in range(6)}])["ci95"] == [1.0, 1.0]


def test_repeats_of_a_sample_that_always_agree_count_as_one_sample():
    once = spread([{"a": 0.0, "b": 1.0, "c": 1.0}], proportion=True)
    thrice = spread([{"a": 0.0, "b": 1.0, "c": 1.0}] * 3, proportion=True)
    assert thrice["ci95"] == once["ci95"]
    assert (once["ci_method"], thrice["ci_method"]) == ("Wilson", "Wilson, clustered by sample")


def test_repeats_that_do_not_depend_on_the_sample_count_as_further_samples():
    low, high = spread([{"a": 0.0, "b": 1.0}, {"a": 1.0, "b": 0.0}] * 5, proportion=True)["ci95"]
    assert spread([{"a": 0.0, "b": 1.0}], proportion=True)["ci95"][0] < low < high < 1


def test_the_interval_of_a_share_has_no_values_beyond_one():
    found = spread([{"a": 1.0, "b": 1.0, "c": 0.9}, {"a": 1.0, "b": 1.0, "c": 1.0}])
    assert found["ci95"][1] == 1.0


def test_the_mean_is_over_samples_where_repeats_have_unequally_many():
    """The interval is over samples, so the mean beside it must be, too."""
    found = spread([{"a": 0.0, "b": 1.0, "c": 0.5}, {"a": 1.0}])
    assert found["mean"] == pytest.approx((0.5 + 1.0 + 0.5) / 3)
    assert found["per_repeat"] == [0.5, 1.0]
    assert found["n"] == 3
    low, high = found["ci95"]
    assert low < found["mean"] < high


def test_a_cell_of_failures_has_no_score_and_its_debates_are_counted():
    found = CellScores().report(CellOverview("broken", failed=1), ["qa.accuracy"])
    assert (found["metrics"], found["done"], found["failed"]) == ({}, 0, 1)
