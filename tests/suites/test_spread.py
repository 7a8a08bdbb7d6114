from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from forgetgauge.game.sensitivity import uniform
from forgetgauge.game.splits import draw_pair
from forgetgauge.suites.spread import (
    MIN_PAIRS,
    as_random_pairs,
    as_swap_pairs,
    compare_spreads,
    deviation_interval,
    jackknife_deviation,
    lookup_advantages,
    random_estimates,
    swap_estimates,
)
from tests.game.enumeration import enumerate_splits
from tests.suites.coins import advantage, random_variance, swap_variance

RNG = np.random.default_rng(0)
WORLDS = {
    "retrain": (RNG.random(40) ** 2, None),  # the same chance, forgotten or unseen
    "none": (np.ones(40), RNG.random(40) ** 2),  # all forgotten points are recognised
    "something": (RNG.random(40), RNG.random(40)),
}


def world(name):
    p, q = WORLDS[name]
    return p, p if q is None else q


def normal_sides(n_pairs, rho, rng):
    first, second = rng.standard_normal((2, n_pairs))
    return 0.1 + 0.02 * np.stack([first, rho * first + np.sqrt(1 - rho**2) * second], axis=1)


def groupings(n):
    """All ways to group 0 … n−1 by two."""
    if n == 0:
        return [[]]
    return [
        [(0, other), *[tuple(rest[i] for i in two) for two in grouping]]
        for other in range(1, n)
        for rest in [[i for i in range(1, n) if i != other]]
        for grouping in groupings(n - 2)
    ]


@pytest.mark.parametrize("name", WORLDS)
def test_over_all_splits_of_a_small_set_both_groupings_have_one_mean_and_the_derived_variances(name):
    p, q = (values[:6] for values in world(name))
    splits = list(enumerate_splits(6, 0.5))
    k = len(splits[0].forget)
    single = np.array([advantage(s, p, q) for s in splits])
    swapped = np.array([(advantage(s, p, q) + advantage(s.swapped(), p, q)) / 2 for s in splits])
    two = (single[:, None] + single[None, :]) / 2
    coins = (np.mean(p * (1 - p)) + np.mean(q * (1 - q))) / k / 2  # the noise that expected advantages lack
    assert swapped.mean() == pytest.approx(two.mean()) == pytest.approx(np.mean(p - q))
    assert swapped.var() + coins == pytest.approx(swap_variance(p, q, k))
    assert two.var() + coins == pytest.approx(random_variance(p, q, k))


@pytest.mark.parametrize("name", WORLDS)
def test_simulated_games_scatter_as_derived_in_both_groupings(name):
    p, q = world(name)
    rng = np.random.default_rng(1)
    pairs = [draw_pair(40, 0.5, rng) for _ in range(600)]
    by_split = np.array([[advantage(side, p, q, rng) for side in pair.sides] for pair in pairs])
    expected = [f(p, q, len(pairs[0].split.forget)) ** 0.5 for f in (swap_variance, random_variance)]
    found = compare_spreads(by_split)
    drawn = [estimates(by_split).std(ddof=1) for estimates in (swap_estimates, random_estimates)]
    assert [found.swap_deviation.value, found.random_deviation.value] == pytest.approx(expected, rel=0.1)
    assert drawn == pytest.approx(expected, rel=0.1)
    assert found.variance_ratio == pytest.approx((expected[1] / expected[0]) ** 2, rel=0.2)
    assert found.mean == pytest.approx(np.mean(p - q), abs=0.01)
    if name != "something":  # there, what differs between forgotten and unseen may outweigh what is alike
        assert found.variance_ratio_interval[0] > 1


def test_the_random_variance_is_that_of_all_groupings_of_each_side_on_average():
    by_split = np.random.default_rng(2).random((6, 2))
    every = [
        np.var([(side[i] + side[j]) / 2 for i, j in grouping], ddof=1)
        for side in by_split.T
        for grouping in groupings(6)
    ]
    assert len(every) == 2 * 15
    assert compare_spreads(by_split).random_deviation.value ** 2 == pytest.approx(np.mean(every))


def test_the_swap_deviation_is_the_sample_deviation_and_the_means_of_both_groupings_agree():
    by_split = np.random.default_rng(3).random((10, 2))
    found = compare_spreads(by_split)
    assert found.swap_deviation.value == pytest.approx(np.std(swap_estimates(by_split), ddof=1))
    assert (
        found.mean == pytest.approx(swap_estimates(by_split).mean()) == pytest.approx(random_estimates(by_split).mean())
    )
    assert (
        found.variance_ratio
        == pytest.approx((found.random_deviation.value / found.swap_deviation.value) ** 2)
        == pytest.approx(1 / (1 + found.correlation))
    )


def test_the_random_grouping_uses_every_split_once_and_never_joins_one_with_its_swap():
    marked = 2.0 ** np.arange(8).reshape(4, 2)  # row i: s_i and its swap; sums of two name their summands
    joined = (2 * random_estimates(marked)).astype(int).tolist()
    assert joined == [1 + 4, 2 + 8, 16 + 64, 32 + 128]


@pytest.mark.parametrize("rho", [-0.8, 0.0])
def test_the_intervals_cover(rho):
    rng = np.random.default_rng(4)
    truth = np.array([0.02 * ((1 + rho) / 2) ** 0.5, 0.02 * 0.5**0.5, 1 / (1 + rho)])
    hits = np.zeros(3)
    for _ in range(1000):
        found = compare_spreads(normal_sides(12, rho, rng))
        intervals = [found.swap_deviation.interval, found.random_deviation.interval, found.variance_ratio_interval]
        hits += [low <= at <= high for (low, high), at in zip(intervals, truth, strict=True)]
    assert hits / 1000 == pytest.approx(0.95, abs=0.025)


def test_the_jackknifes_interval_covers_nearly():
    rng = np.random.default_rng(5)
    sides = (normal_sides(20, -0.5, rng) for _ in range(400))
    found = [jackknife_deviation(random_estimates(s).reshape(-1, 2)) for s in sides]
    assert 0.9 <= np.mean([d.interval[0] <= 0.02 * 0.5**0.5 <= d.interval[1] for d in found]) <= 0.98


def test_a_swap_that_cancels_all_leaves_no_ratio():
    contrast = np.random.default_rng(6).random(8)
    found = compare_spreads(np.stack([contrast, -contrast], axis=1))
    assert (found.swap_deviation.value, found.variance_ratio, found.variance_ratio_interval, found.correlation) == (
        0,
        None,
        None,
        -1,
    )
    assert compare_spreads(np.zeros((4, 2))).correlation is None


def test_deviations_of_what_hardly_varies():
    assert jackknife_deviation(np.ones((4, 2))).interval == (0, 0)
    once = np.array([[1.0, 1.0], [1.0, 1.0], [0.5, 1.0]])
    assert jackknife_deviation(once).interval == (0, 1)


def test_too_few_pairs_are_refused():
    with pytest.raises(ValueError, match=f"at least {MIN_PAIRS} pairs"):
        compare_spreads(np.zeros((3, 2)))


@pytest.mark.parametrize("df", [2, 3, 10, 61.5])
def test_the_interval_of_a_deviation_is_chi_squares(df):
    low, high = deviation_interval(0.3, df, 0.9)
    assert stats.chi2.cdf(df * 0.3**2 / low**2, df) == pytest.approx(0.95, rel=1e-9)
    assert stats.chi2.cdf(df * 0.3**2 / high**2, df) == pytest.approx(0.05, rel=1e-9)


# -- the look-up adversary of Proposition 3.7 ----------------------------------------------------------------------

PAIRS = [draw_pair(60, 0.5, np.random.default_rng(seed)) for seed in range(6)]
WEIGHTS = uniform(60)


@pytest.mark.parametrize("queries", [1, 16, math.inf])
def test_on_swap_pairs_the_look_up_adversary_has_no_advantage(queries):
    assert lookup_advantages(as_swap_pairs(PAIRS), WEIGHTS, queries).tolist() == [0.0] * 6


def test_on_random_splits_it_is_always_right_whatever_was_unlearned():
    assert lookup_advantages(as_random_pairs(PAIRS), WEIGHTS, math.inf).tolist() == [1.0] * 6


def test_with_one_query_it_is_right_as_often_as_a_point_is_in_both_splits():
    groups = as_random_pairs(PAIRS)
    k = len(PAIRS[0].split.forget)
    shared = [len(np.intersect1d(a.forget, b.forget)) + len(np.intersect1d(a.unseen, b.unseen)) for a, b in groups]
    assert lookup_advantages(groups, WEIGHTS, 1) == pytest.approx(np.array(shared) / (2 * k))


def test_random_pairs_are_of_different_swap_pairs():
    assert len(as_random_pairs(PAIRS)) == len(as_swap_pairs(PAIRS)) == 6
    assert as_random_pairs(PAIRS)[1] == (PAIRS[0].split.swapped(), PAIRS[1].split.swapped())
