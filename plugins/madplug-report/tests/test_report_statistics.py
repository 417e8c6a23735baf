"""Intervals, tests and effects agree with scipy, with their definitions, and with the worked numbers."""

import itertools
import math
import random

import numpy as np
import pytest
import scipy.stats

from madplug_report import intervals, sizes
from madplug_report import statistics as st

CLOSE = {"rel": 1e-9, "abs": 1e-9}


def test_the_spread_over_repeats_is_the_sample_standard_deviation():
    mean, std = st.mean_and_std([53.0, 51.2, 55.6])
    assert (round(mean, 4), round(std, 4)) == (53.2667, 2.2121)


# Intervals

@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
def test_wilson_agrees_with_scipy_on_a_thousand_cases(level):
    dice = random.Random(1)
    for _ in range(1000):
        n = dice.choice([1, 2, 5, 30, 100, 5000])
        k = dice.randint(0, n)
        ours = intervals.wilson(k, n, level)
        theirs = scipy.stats.binomtest(k, n).proportion_ci(level, method="wilson")
        assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), **CLOSE)


def test_what_is_not_a_proportion_has_no_interval():
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


def test_resampled_means_are_means_of_resamples():
    x = np.random.default_rng(3).normal(size=200)
    means = intervals.bootstrap_means(x, seed=0, resamples=4000)
    assert means.shape == (4000, 1)
    assert means.mean() == pytest.approx(x.mean(), abs=0.01)
    assert means.std() == pytest.approx(x.std() / math.sqrt(200), rel=0.05)


def test_columns_share_their_resamples_so_that_pairs_stay_pairs():
    x = np.random.default_rng(4).normal(size=50)
    means = intervals.bootstrap_means(np.column_stack([x, 2 * x, np.ones(50)]), seed=9, resamples=100)
    assert means[:, 1] == pytest.approx(2 * means[:, 0])
    assert means[:, 2] == pytest.approx(np.ones(100))


def test_resampling_is_seeded_and_of_very_many_samples_there_are_fewer_resamples(monkeypatch):
    x = np.arange(30.0)
    assert (intervals.bootstrap_means(x, 1) == intervals.bootstrap_means(x, 1)).all()
    assert (intervals.bootstrap_means(x, 1) != intervals.bootstrap_means(x, 2)).any()
    monkeypatch.setattr(intervals, "_DRAWN_AT_MOST", 90_000)
    assert len(intervals.bootstrap_means(x, resamples=9_999)) == 3_000
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


def test_a_mean_is_resampled_only_where_enough_values_differ():
    few = [0.0] * 80 + [1.0, 0.5, -1.0]
    assert intervals.of_mean(few, intervals.bootstrap_means(few)[:, 0]).method == "Student's t"
    enough = [0.0] * 20 + [1.0, 0.5, -1.0] * 10
    assert intervals.of_mean(enough, intervals.bootstrap_means(enough)[:, 0]).method == "BCa bootstrap"


def test_an_interval_can_be_kept_within_bounds():
    assert intervals.Interval(-0.2, 1.3, "x").within(0, 1) == intervals.Interval(0, 1, "x")


# Tests

def test_mcnemar_agrees_with_the_binomial_test_on_a_thousand_cases():
    dice = random.Random(7)
    for _ in range(1000):
        gained, lost = dice.randint(0, 400), dice.randint(0, 400)
        theirs = scipy.stats.binomtest(gained, gained + lost).pvalue if gained + lost else 1.0
        assert st.mcnemar(gained, lost) == pytest.approx(theirs, **CLOSE)


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


def test_sign_flips_of_single_debates_are_mcnemars_test():
    for gained, lost in ((9, 2), (30, 30), (300, 240)):
        x = [1.0] * gained + [-1.0] * lost + [0.0] * 50
        assert st.sign_flips(x).p == pytest.approx(st.mcnemar(gained, lost), **CLOSE)


def test_drawn_sign_flips_come_near_the_counted_ones():
    rng = np.random.default_rng(9)
    x = rng.integers(-2, 4, 400) / 3
    exact = st.sign_flips(x)
    sizes_, counts = np.unique(np.abs(np.rint(x[x != 0] * 3).astype(int)), return_counts=True)
    drawn = st._drawn_on_grid(sizes_, counts, abs(int(np.rint(x * 3).sum())), 0, 99_999)
    assert drawn == pytest.approx(exact.p, abs=0.005)
    y = rng.normal(0.12, 1, 200)
    signs = rng.choice([-1, 1], (20_000, 200))
    assert st.sign_flips(y).p == pytest.approx(np.mean(np.abs(signs @ y) >= abs(y.sum())), abs=0.02)
    assert st.sign_flips(y).method == "sign flips, 9,999 drawn"


def test_a_large_grid_is_drawn_from_its_binomials():
    x = np.concatenate([np.full(9000, 1 / 3), np.full(8800, -1 / 3), np.full(4000, 2 / 3), np.full(3900, -2 / 3)])
    test = st.sign_flips(x)
    assert test.method == "sign flips, 99,999 drawn"
    z = x.sum() / math.sqrt((x**2).sum())
    assert test.p == pytest.approx(2 * scipy.stats.norm.sf(abs(z)), abs=0.005)


def test_holm_is_the_closed_test_of_bonferroni_on_a_thousand_families():
    """By its definition: a hypothesis falls when every family it belongs to has a small enough p-value."""
    dice = random.Random(10)
    for _ in range(1000):
        ps = [dice.random() ** dice.choice([1, 4]) for _ in range(dice.randint(1, 6))]
        families = [s for n in range(1, len(ps) + 1) for s in itertools.combinations(range(len(ps)), n)]
        closed = [max(min(1.0, len(s) * min(ps[j] for j in s)) for s in families if i in s) for i in range(len(ps))]
        assert st.holm(ps) == pytest.approx(closed, **CLOSE)


# Effects

def test_odds_ratios_agree_with_scipy_on_a_thousand_cases():
    dice = random.Random(11)
    for _ in range(1000):
        n = dice.randint(10, 500)
        a, b = dice.randint(1, n - 1), dice.randint(1, n - 1)
        theirs = scipy.stats.contingency.odds_ratio([[a, n - a], [b, n - b]], kind="sample").statistic
        assert st.odds_ratio(a / n, b / n) == pytest.approx(theirs, **CLOSE)


def test_cohens_h_by_hand():
    assert st.cohen_h(0.5, 0.25) == pytest.approx(math.pi / 2 - math.pi / 3)
    assert st.cohen_h(1, 0) == pytest.approx(math.pi)


@pytest.mark.parametrize("figure", [
    st.mean_and_std([0.5])[1], st.mean_and_std([])[0], intervals.bca([0.0] * 9, np.zeros(99)),
    intervals.bca([1.0], np.ones(99)), st.odds_ratio(1.0, 0.5), st.odds_ratio(0.5, 0.0), st.paired_odds_ratio(3, 0),
    st.standardised([0.5, 0.5]), sizes.detectable(0.0, 100), sizes.detectable(0.5, 1), sizes.to_settle(0.0, 0.3)])
def test_a_figure_that_is_not_defined_is_none(figure):
    assert figure is None


def test_effects_of_pairs_by_hand():
    assert st.paired_odds_ratio(6, 3) == 2.0
    assert st.standardised([1.0, 0.0]) == pytest.approx(0.5 / math.sqrt(0.5))


# Sizes

@pytest.mark.parametrize(("population", "exact", "once", "two_step"), [
    (14042, 373.96, 374, 375), (12032, 372.30, 373, 374), (546, 225.74, 226, 227), (2289, 329.08, 330, 330),
    (250, 151.68, 152, 152), (11873, 372.15, 373, 373)])
def test_sample_sizes_of_the_papers_data_sets(population, exact, once, two_step):
    assert round(sizes.sample_size(population, rounding="none"), 2) == exact
    assert sizes.sample_size(population, rounding="once") == once
    assert sizes.sample_size(population) == two_step


def test_a_sample_is_never_larger_than_its_population():
    for population in (1, 2, 3, 10, 50):
        assert 1 <= sizes.sample_size(population) <= population
    assert sizes.sample_size(1) == 1
    with pytest.raises(ValueError, match="no samples"):
        sizes.sample_size(0)


@pytest.mark.parametrize("share", [0.05, 0.1, 0.2, 0.3, 0.5, 0.6])
@pytest.mark.parametrize("n", [80, 100, 300, 1000, 2000])
def test_the_detectable_difference_solves_connors_condition_and_takes_the_size_that_it_was_found_for(share, n):
    least, a, b = sizes.detectable(share, n), 1.959963984540054, 0.8416212335729143
    assert math.sqrt(n) * least == pytest.approx(a * math.sqrt(share) + b * math.sqrt(share - least * least), **CLOSE)
    assert sizes.to_settle(least, share) == n


@pytest.mark.parametrize("size", [1e-11, 1e19, 1e99])
def test_the_size_of_scores_does_not_change_a_test(size):
    x = np.arange(1, 12) * size
    assert st.sign_flips(x).p == pytest.approx(2 / 2**11)
    assert st.sign_flips([*x[:-1], -x[-1]]).p == pytest.approx(st.sign_flips([*range(1, 11), -11]).p)
