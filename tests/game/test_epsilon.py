import math

import numpy as np
import pytest
from scipy import stats

from forgetgauge.game.epsilon import empirical_epsilon

from .supremum_simulation import draw_pairs, epsilon_excess, outcomes_of


def test_the_bound_by_hand():
    by_pair = draw_pairs(np.array([0.0, -0.5]), 0.0, (7,), np.random.default_rng(0))
    worst = -by_pair[:, 1]
    floor = worst.mean() - stats.t.ppf(1 - 0.1 / 4, 6) * stats.sem(worst)  # two adversaries of two signs at 90 %
    expected = math.log((1 - 2e-3) / (1 - floor))
    assert empirical_epsilon(outcomes_of(by_pair), 1e-3, 0.9) == pytest.approx(expected)


def test_it_is_absent_below_five_pairs():
    by_pair = draw_pairs(np.array([0.5]), 0.0, (5,), np.random.default_rng(1))
    assert empirical_epsilon(outcomes_of(by_pair)) > 0
    assert empirical_epsilon(outcomes_of(by_pair[:4])) is None


def test_no_advantage_bounds_nothing_and_decisions_that_were_all_right_as_much_as_there_were():
    assert empirical_epsilon(outcomes_of(np.zeros((5, 2)))) == 0
    found = empirical_epsilon(outcomes_of(np.ones((5, 1)), k=2), delta=0)
    assert found == pytest.approx(-math.log(1 - 0.025 ** (1 / 20)))  # 1 − Adv = e^−ε at 20 points
    assert empirical_epsilon(outcomes_of(np.full((5, 1), 0.3)), delta=0.5) == 0


@pytest.mark.slow
@pytest.mark.parametrize(("name", "correlation"), [("null", 0.0), ("null", 0.7), ("ties", 0.0), ("one dominant", 0.7)])
def test_the_bound_exceeds_the_truth_in_at_most_five_percent(name, correlation):
    share, _, _ = epsilon_excess(name, correlation, 8, repetitions=1500)
    assert share <= 0.05
