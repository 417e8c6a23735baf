"""Intervals, tests and effects agree with scipy, with their definitions, and with the worked numbers."""

import itertools
import math
import random

import numpy as np
import pytest
import scipy.stats

from madplug_report import intervals, sizes
from madplug_report import statistics as st
from madplug_report.comparing import paired_test

CLOSE = {"rel": 1e-9, "abs": 1e-9}


# Intervals

@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
def test_wilson_agrees_with_scipy_and_is_of_proportions_alone(level):
    for n in (1, 2, 5, 30, 100, 5000):
        for k in {0, 1, n // 3, n - 1, n}:
            ours = intervals.wilson(k, n, level)
            theirs = scipy.stats.binomtest(k, n).proportion_ci(level, method="wilson")
            assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), **CLOSE)
    for k, n in ((1, 0), (3, 2), (-1, 2)):
        with pytest.raises(ValueError, match="not a proportion"):
            intervals.wilson(k, n)


@pytest.mark.parametrize("shape", ["normal", "skewed", "thirds"])
def test_bca_agrees_with_scipy_on_its_own_resamples(shape):
    rng = np.random.default_rng(2)
    for _ in range(60):
        n = int(rng.integers(8, 60))
        x = {"normal": rng.normal(0.1, 1, n), "skewed": rng.exponential(1, n) - 0.5,
             "thirds": rng.integers(-3, 4, n) / 4}[shape]
        theirs = scipy.stats.bootstrap((x,), np.mean, n_resamples=400, method="BCa", rng=rng)
        ours = intervals.bca(x, theirs.bootstrap_distribution)
        assert ours.method == "BCa bootstrap"
        assert (ours.low, ours.high) == pytest.approx(theirs.confidence_interval, **CLOSE)


def test_resampled_means_are_means_of_resamples_which_columns_share_and_a_seed_determines(monkeypatch):
    x = np.random.default_rng(3).normal(size=200)
    means = intervals.bootstrap_means(x, seed=0, resamples=4000)
    assert means.shape == (4000, 1)
    assert (means.mean(), means.std()) == (pytest.approx(x.mean(), abs=0.01),
                                           pytest.approx(x.std() / math.sqrt(200), rel=0.05))
    assert (means == intervals.bootstrap_means(x, seed=0, resamples=4000)).all()
    assert (means != intervals.bootstrap_means(x, seed=1, resamples=4000)).any()
    of_pairs = intervals.bootstrap_means(np.column_stack([x, 2 * x, np.ones(200)]), seed=9, resamples=100)
    assert of_pairs[:, 1] == pytest.approx(2 * of_pairs[:, 0])
    assert of_pairs[:, 2] == pytest.approx(np.ones(100))
    monkeypatch.setattr(intervals, "_DRAWN_AT_MOST", 90_000)  # of very many samples there are fewer resamples
    assert len(intervals.bootstrap_means(np.arange(30.0), resamples=9_999)) == 3_000
    assert len(intervals.bootstrap_means(np.zeros(1000), resamples=9_999)) == 1_999


def test_the_interval_of_a_standard_error_is_students():
    x = np.random.default_rng(6).normal(size=40)
    ours = intervals.student(x)
    theirs = scipy.stats.t.interval(0.95, 39, x.mean(), scipy.stats.sem(x))
    assert (ours.low, ours.high) == pytest.approx(theirs, **CLOSE)
    assert intervals.student([1.0]) is None
    assert intervals.student([0.5, 0.5, 0.5]) is None


def score_by_brute_force(gained, lost, n, difference):
    """The score statistic with the likelihood maximised numerically over the share that is lost."""
    def against(losses):
        shares = (losses + difference, losses, 1 - 2 * losses - difference)
        counts = (gained, lost, n - gained - lost)
        return -sum(k * math.log(max(p, 1e-300)) for k, p in zip(counts, shares, strict=True))

    low, high = max(0.0, -difference), (1 - difference) / 2
    losses = scipy.optimize.minimize_scalar(against, bounds=(low, high), method="bounded",
                                            options={"xatol": 1e-14}).x
    return (gained - lost - n * difference) / math.sqrt(n * (2 * losses + difference * (1 - difference)))


@pytest.mark.parametrize(("gained", "lost", "n"), [(3, 1, 80), (14, 2, 80), (5, 5, 20), (1, 9, 40), (12, 7, 300)])
def test_the_ends_of_tangos_interval_are_where_the_score_is_the_quantile(gained, lost, n):
    interval = intervals.tango(gained, lost, n)
    z = 1.959963984540054
    assert score_by_brute_force(gained, lost, n, interval.low) == pytest.approx(z, abs=1e-5)
    assert score_by_brute_force(gained, lost, n, interval.high) == pytest.approx(-z, abs=1e-5)


def test_tangos_interval_holds_zero_exactly_where_mcnemars_test_does_not_reject():
    for gained, lost in itertools.product(range(13), range(13)):
        interval = intervals.tango(gained, lost, 50)
        rejects = (gained - lost) ** 2 > 1.959963984540054**2 * (gained + lost)
        assert (interval.low <= 0 <= interval.high) == (not rejects)
        mirrored = intervals.tango(lost, gained, 50)
        assert (mirrored.low, mirrored.high) == pytest.approx((-interval.high, -interval.low), **CLOSE)


def test_pairs_none_of_which_differ_leave_room_for_a_difference():
    interval = intervals.tango(0, 0, 50)
    assert (interval.low, interval.high) == pytest.approx((-0.07134, 0.07134), abs=1e-4)
    assert intervals.tango(9, 0, 9).high == 1.0


@pytest.mark.parametrize(("x", "method"), [
    ([0.0] * 80 + [1.0, 0.5, -1.0], "Student's t"), ([0.0] * 20 + [1.0, 0.5, -1.0] * 10, "BCa bootstrap")])
def test_a_mean_is_resampled_only_where_enough_values_differ(x, method):
    assert intervals.of_mean(x, intervals.bootstrap_means(x)[:, 0]).method == method
    assert intervals.Interval(-0.2, 1.3, method).within(0, 1) == intervals.Interval(0, 1, method)


# Tests

def test_mcnemar_agrees_with_the_binomial_test_and_with_sign_flips_of_single_debates():
    for gained, lost in ((0, 0), (0, 1), (1, 0), (9, 2), (30, 30), (300, 240), (0, 400), (17, 150)):
        theirs = scipy.stats.binomtest(gained, gained + lost).pvalue if gained + lost else 1.0
        assert st.mcnemar(gained, lost) == pytest.approx(theirs, **CLOSE)
        flips = st.sign_flips([1.0] * gained + [-1.0] * lost + [0.0] * 50)
        assert flips.p == pytest.approx(theirs, **CLOSE)


def scipy_flips(x):
    return scipy.stats.permutation_test((x,), np.sum, permutation_type="samples", n_resamples=np.inf).pvalue


@pytest.mark.parametrize("repeats", [1, 2, 3, 5, None])
def test_sign_flips_of_few_numbers_on_a_grid_or_not_agree_with_scipy(repeats):
    rng = np.random.default_rng(repeats or 8)
    for _ in range(40 if repeats else 60):
        n = int(rng.integers(2, 11))
        x = rng.integers(-repeats, repeats + 1, n) if repeats else rng.normal(0.3, 1, n)
        test = st.sign_flips(x / (repeats or 1))
        assert test.method == "sign flips, exact"
        assert test.p == pytest.approx(scipy_flips(x) if x.any() else 1.0, **CLOSE)


def test_many_sign_flips_are_drawn_and_come_near_the_counted_ones():
    rng = np.random.default_rng(9)
    x = rng.integers(-2, 4, 400) / 3
    sizes_, counts = np.unique(np.abs(np.rint(x[x != 0] * 3).astype(int)), return_counts=True)
    drawn = st._drawn_on_grid(sizes_, counts, abs(int(np.rint(x * 3).sum())), 0, 99_999)
    assert drawn == pytest.approx(st.sign_flips(x).p, abs=0.005)
    y = rng.normal(0.12, 1, 200)
    signs = rng.choice([-1, 1], (20_000, 200))
    test = st.sign_flips(y)
    assert (test.method, test.p) == ("sign flips, 9,999 drawn", pytest.approx(
        np.mean(np.abs(signs @ y) >= abs(y.sum())), abs=0.02))
    large = np.repeat([1 / 3, -1 / 3, 2 / 3, -2 / 3], [9000, 8800, 4000, 3900])  # drawn from its binomials
    test, z = st.sign_flips(large), large.sum() / math.sqrt((large**2).sum())
    assert (test.method, test.p) == ("sign flips, 99,999 drawn", pytest.approx(
        2 * scipy.stats.norm.sf(abs(z)), abs=0.005))


def test_holm_is_the_closed_test_of_bonferroni_on_a_thousand_families():
    """By its definition: a hypothesis falls when every family it belongs to has a small enough p-value."""
    dice = random.Random(10)
    for _ in range(1000):
        ps = [dice.random() ** dice.choice([1, 4]) for _ in range(dice.randint(1, 6))]
        families = [s for n in range(1, len(ps) + 1) for s in itertools.combinations(range(len(ps)), n)]
        closed = [max(min(1.0, len(s) * min(ps[j] for j in s)) for s in families if i in s) for i in range(len(ps))]
        assert st.holm(ps) == pytest.approx(closed, **CLOSE)


# Effects

@pytest.mark.parametrize(("figure", "by_hand"), [
    (st.mean_and_std([53.0, 51.2, 55.6]), (53.266667, 2.212088)), (st.odds_ratio(0.5, 0.2), 4),
    (st.cohen_h(0.5, 0.25), math.pi / 2 - math.pi / 3), (st.cohen_h(1, 0), math.pi), (st.paired_odds_ratio(6, 3), 2),
    (st.standardised([1.0, 0.0]), 0.5 / math.sqrt(0.5))])
def test_spreads_and_effects_by_hand(figure, by_hand):
    assert figure == pytest.approx(by_hand)


@pytest.mark.parametrize("figure", [
    st.mean_and_std([0.5])[1], st.mean_and_std([])[0], intervals.bca([0.0] * 9, np.zeros(99)),
    intervals.bca([1.0], np.ones(99)), st.odds_ratio(1.0, 0.5), st.odds_ratio(0.5, 0.0), st.paired_odds_ratio(3, 0),
    st.standardised([0.5, 0.5]), sizes.detectable(0.0, 100), sizes.detectable(0.5, 1), sizes.to_settle(0.0, 0.3)])
def test_a_figure_that_is_not_defined_is_none(figure):
    assert figure is None


@pytest.mark.parametrize("scores", [[1 / 3, -1 / 3, 0.0] * 9, [-1 / 3, 1 / 3] * 15, [2 / 3, -1 / 3, -1 / 3] * 9])
def test_a_difference_of_zero_has_no_sign(scores):
    found = paired_test(scores, binary=False)
    assert str(found["difference"]) == "0.0"


def test_an_interval_that_ends_at_zero_has_zero_in_it():
    dice = random.Random(88)
    scores = [dice.choice([0, 0, 0, 1 / 3, -1 / 3, -2 / 3, -1 / 3]) for _ in range(60)]
    assert str(paired_test(scores, binary=False)["ci95"]) == "[-0.15, 0.0]"


# Sizes

@pytest.mark.parametrize(("population", "exact", "once", "two_step"), [
    (14042, 373.96, 374, 375), (12032, 372.30, 373, 374), (546, 225.74, 226, 227), (2289, 329.08, 330, 330),
    (250, 151.68, 152, 152), (11873, 372.15, 373, 373)])
def test_sample_sizes_of_the_papers_data_sets(population, exact, once, two_step):
    assert round(sizes.sample_size(population, rounding="none"), 2) == exact
    assert sizes.sample_size(population, rounding="once") == once
    assert sizes.sample_size(population) == two_step


def test_a_sample_is_never_larger_than_its_population():
    assert [1 <= sizes.sample_size(population) <= population for population in (1, 2, 3, 10, 50)] == [True] * 5
    with pytest.raises(ValueError, match="no samples"):
        sizes.sample_size(0)


@pytest.mark.parametrize("share", [0.05, 0.1, 0.2, 0.3, 0.5, 0.6])
@pytest.mark.parametrize("n", [80, 100, 300, 1000, 2000])
def test_the_detectable_difference_solves_connors_condition_and_takes_the_size_that_it_was_found_for(share, n):
    least, a, b = sizes.detectable(share, n), 1.959963984540054, 0.8416212335729143
    assert math.sqrt(n) * least == pytest.approx(a * math.sqrt(share) + b * math.sqrt(share - least * least), **CLOSE)
    assert sizes.to_settle(least, share) == n


@pytest.mark.parametrize(("n", "exact"), [(8, 0.801), (16, 0.449), (24, 0.309), (50, 0.154), (100, 0.078)])
def test_few_pairs_that_disagree_do_not_make_a_small_difference_detectable(n, exact):
    """exact: the power of the exact test, summed up over all numbers of pairs that disagree."""
    few, many = sizes.detectable(0.02, n, binary=True), sizes.detectable(0.9, n, binary=True)
    assert 0.9 * exact < few < exact
    assert sizes.to_settle(few, few) == n
    assert few < many == sizes.detectable(0.9, n)
    assert sizes.detectable(1.0, 5, binary=True) is None, "the p of five samples that all differ is 0.0625"


@pytest.mark.parametrize("size", [1e-11, 1e19, 1e99])
def test_the_size_of_scores_does_not_change_a_test(size):
    x = np.arange(1, 12) * size
    assert st.sign_flips(x).p == pytest.approx(2 / 2**11)
    assert st.sign_flips([*x[:-1], -x[-1]]).p == pytest.approx(st.sign_flips([*range(1, 11), -11]).p)
