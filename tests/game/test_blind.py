"""What a test for a difference between F and T could have missed."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from forgetgauge.game.blind import advantage_limits, best_linear_advantage, correlation_floor, n_answers_of_ranks
from forgetgauge.game.one_model import ranks_test


def test_limits_hold_the_truth_as_often_as_they_say():
    """Of 2·AUC − 1 between two normal laws that are one deviation apart."""
    rng = np.random.default_rng(0)
    n, m, truth = 40, 25, 0.5205  # 2Φ(1/√2) − 1
    forget = np.arange(n + m) < n
    wrong = np.zeros(2)
    for _ in range(2000):
        scores = rng.normal(size=n + m) + forget
        above = (scores[forget][:, None] > scores[~forget][None]).mean()
        low, high = advantage_limits(2 * above - 1, n_answers_of_ranks(n, m), 0.05)
        wrong += (low > truth, high < truth)
    assert (wrong / 2000 < 0.05 + 2 * 0.005).all()


def test_so_many_answers_have_the_variance_of_ranks_at_chance():
    rng = np.random.default_rng(1)
    n, m = 30, 12
    forget = np.arange(n + m) < n
    found = [ranks_test(rng.normal(size=n + m), forget).advantage for _ in range(3000)]
    assert 1 / np.var(found) == pytest.approx(n_answers_of_ranks(n, m), rel=0.1)


def test_all_answers_right_are_not_certain():
    low, high = advantage_limits(1.0, 10, 0.05)
    assert low == pytest.approx(1 - 2 * 2.7055 / (10 + 2.7055), abs=1e-3)  # Wilson's lower limit of 10 of 10, as 2q − 1
    assert high == pytest.approx(1)


@pytest.mark.parametrize(("n_columns", "n", "shift"), [(5, 50, 1.0), (64, 50, 1.0), (200, 100, 1.5)])
def test_what_a_linear_classifier_finds_leads_back_to_what_there_was(n_columns, n, shift):
    """The difference of two means as a classifier, on points that it has not seen."""
    rng = np.random.default_rng(2)
    found = []
    for _ in range(300):
        means = [rng.normal(size=(n, n_columns)).mean(axis=0) + side * shift * np.eye(n_columns)[0] for side in (1, 0)]
        direction = means[0] - means[1]
        new = rng.normal(size=(2, 200, n_columns))
        new[0, :, 0] += shift
        scores = new @ direction
        found.append(2 * (scores[0][:, None] > scores[1][None]).mean() - 1)
    best = [2 * (rng.normal(size=100_000) + shift > rng.normal(size=100_000)).mean() - 1]
    assert best_linear_advantage(float(np.mean(found)), n_columns, n, n) == pytest.approx(best[0], abs=0.03)


def test_without_columns_nothing_is_missed_and_the_ends_stay_where_they_are():
    assert best_linear_advantage(0.3, 0, 10, 10) == pytest.approx(0.3)
    assert (best_linear_advantage(-0.1, 9, 5, 5), best_linear_advantage(1.0, 9, 5, 5)) == (0, 1)
    values = [best_linear_advantage(a, 9, 5, 5) for a in np.linspace(0, 1, 30)]
    assert (np.diff(values) >= 0).all()


@pytest.mark.parametrize("truth", [0.0, 0.3, 0.8])
def test_the_lower_limit_of_a_rank_correlation_is_seldom_above_it(truth):
    """Of normal scores whose product-moment correlation is 2 sin(π ρ/6), Spearman's is ρ."""
    rng = np.random.default_rng(0)
    plain = 2 * np.sin(np.pi * truth / 6)
    found = []
    for _ in range(1000):
        one, other = rng.normal(size=(2, 60))
        found.append(correlation_floor(one, plain * one + np.sqrt(1 - plain * plain) * other, 0.05))
    assert np.mean(np.array(found) > truth) <= 0.07
    assert np.mean(found) > truth - 0.3


def test_of_what_is_constant_or_too_few_no_correlation_is_known():
    one = np.arange(10.0)
    assert correlation_floor(one, np.zeros(10), 0.05) == correlation_floor(one[:3], one[:3], 0.05) == -1
    assert correlation_floor(one, one, 0.05) > 0.9
    assert correlation_floor(one, -one, 0.05) < -0.9


def test_so_many_answers_have_the_variance_of_ranks_over_every_draw():
    for n_forget, n_unseen in ((3, 3), (2, 5), (4, 1)):
        n = n_forget + n_unseen
        twice = []
        for forget in combinations(range(n), n_forget):
            unseen = set(range(n)) - set(forget)
            twice.append(2 * np.mean([f > u for f in forget for u in unseen]) - 1)
        exact = np.var(twice) * n / (n + 1)  # the formula is that of many points
        assert 1 / n_answers_of_ranks(n_forget, n_unseen) == pytest.approx(exact)


@pytest.mark.parametrize(("n_columns", "n_forget", "n_unseen", "shift"), [(1, 9, 4, 0.3), (50, 100, 20, 1.0)])
def test_what_is_left_of_a_shift_leads_back_to_it(n_columns, n_forget, n_unseen, shift):
    noise = n_columns * (1 / n_forget + 1 / n_unseen)
    left = shift**2 / np.sqrt(shift**2 + noise)
    of_fitted, of_best = (2 * stats.norm.cdf(deviations / np.sqrt(2)) - 1 for deviations in (left, shift))
    assert best_linear_advantage(of_fitted, n_columns, n_forget, n_unseen) == pytest.approx(of_best)


def test_nothing_and_everything_stay_what_they_are():
    assert [best_linear_advantage(a, 3, 5, 5) for a in (-0.2, 0.0, 1.0, 1.1)] == [0, 0, 1, 1]


@pytest.mark.parametrize("n", [4, 5, 30])
def test_the_lower_limit_of_a_rank_correlation_is_fishers(n):
    rng = np.random.default_rng(n)
    one = rng.integers(0, 9, n).astype(float)
    other = one + rng.normal(size=n) * 4
    rho = stats.spearmanr(one, other).statistic
    expected = np.tanh(np.arctanh(rho) - stats.norm.isf(0.05) * np.sqrt((1 + rho**2 / 2) / (n - 3)))
    assert correlation_floor(one, other, 0.05) == pytest.approx(expected)


def test_rankings_that_agree_or_disagree_entirely_have_a_limit():
    for n in range(4, 40):
        values = np.arange(float(n))
        assert 0.9 < correlation_floor(values, values, 0.05) < 1
        assert -1 <= correlation_floor(values, -values, 0.05) < -0.99
    for one, other in ((np.ones(10), values), (values, np.ones(10)), (values[:3], values[:3])):
        assert correlation_floor(one, other, 0.05) == -1
