import math

import numpy as np
import pytest
from scipy import integrate

from forgetgauge.game.intervals import advantage_floor, lower_bounds
from forgetgauge.game.quality import bounded_quality_interval, supremum_interval

from .supremum_simulation import outcomes_of


def capital(values, mean, stakes):
    """By hand: half all in, half spread evenly over the shares, for each row of values; then their mean."""
    shifted = (1 + np.asarray(values)) / 2

    def of(share, row):
        return np.prod(1 - share + share * row / mean)

    return np.mean([0.5 * of(1, row) + 0.5 * integrate.quad(of, 0, 1, args=(row,))[0] for row in shifted]) * stakes


def test_the_bound_is_where_the_capital_reaches_one_over_alpha():
    values = np.random.default_rng(0).uniform(0.5, 1, (1, 9))
    (low,) = lower_bounds(values, 0.05)
    assert capital(values, (1 + low) / 2, 0.05) == pytest.approx(1, rel=1e-7)


def test_the_floor_averages_the_capital_over_adversaries_and_signs():
    by_pair = np.random.default_rng(1).uniform(0.6, 1, (12, 3))
    floor = float(advantage_floor(by_pair, 0.9))
    assert capital([*by_pair.T, *-by_pair.T], (1 + floor) / 2, 0.1) == pytest.approx(1, rel=1e-7)
    each = [lower_bounds(sign * column, 0.1 / 6) for column in by_pair.T for sign in (1, -1)]
    assert max(each) <= floor <= by_pair.mean(axis=0).max()  # never below Bonferroni's


@pytest.mark.parametrize(("n_pairs", "best"), [(5, 0.52), (8, 0.37), (20, 0.17)])
def test_pairs_all_at_zero_leave_nearly_as_little_as_any_bound_can(n_pairs, best):
    interval = bounded_quality_interval(np.zeros((n_pairs, 1)))
    possible = 1 - 0.025 ** (1 / n_pairs)
    assert possible == pytest.approx(best, abs=0.005)
    assert possible <= 1 - interval.low <= possible + 0.045
    assert interval.high == 1


def test_order_of_pairs_and_adversaries_sign_and_shape_do_not_matter():
    rng = np.random.default_rng(2)
    by_pair = rng.normal(0.8, 0.2, (16, 4)).clip(-1, 1)
    expected = float(advantage_floor(by_pair))
    assert expected > 0
    for other in (by_pair[::-1], by_pair[:, ::-1], -by_pair, np.stack([by_pair, by_pair])):
        assert advantage_floor(other) == pytest.approx(expected, abs=1e-9)


def test_bounds_lie_below_the_mean_and_rise_with_every_value():
    rng = np.random.default_rng(3)
    for values in rng.uniform(-1, 1, (20, 6)):
        low = float(lower_bounds(values, 0.1))
        assert -1 <= low < values.mean()
        values[0] = 1
        assert float(lower_bounds(values, 0.1)) >= low


def test_no_pairs_at_all_values_outside_and_other_shapes_are_refused():
    for wrong in (np.zeros((0, 2)), np.zeros(3), np.full((2, 2), 1.5)):
        with pytest.raises(ValueError, match="pairs, adversaries"):
            advantage_floor(wrong)
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        lower_bounds(np.zeros(3), 1.0)


@pytest.mark.parametrize("share", [0.05, 0.5, 0.9])
@pytest.mark.parametrize("n_pairs", [5, 20])
def test_both_ends_hold_for_the_hardest_distributions(share, n_pairs):
    """Values at both ends of [−1, 1], where no bound has more to lose."""
    rng, n_games = np.random.default_rng([n_pairs, int(100 * share)]), 4000
    values = np.where(rng.random((n_games, n_pairs)) < share, 1.0, -1.0)
    for sign in (1, -1):
        missed = lower_bounds(sign * values, 0.05) > sign * (2 * share - 1)
        assert missed.mean() <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / n_games)


def test_the_interval_of_quality_is_one_minus_the_bounds_of_the_largest_advantage():
    by_pair = np.array([[0.9, 0.1, -0.2]] * 10 + [[0.8, -0.1, 0.0]] * 10)
    found = bounded_quality_interval(by_pair, 0.9)
    signed = [sign * column for column in by_pair.T for sign in (1, -1)]
    most = max(-lower_bounds(-column, 0.05) for column in signed)
    least = advantage_floor(by_pair, 0.95)
    assert 0 < least < most < 1
    assert (found.low, found.high) == pytest.approx((1 - most, 1 - least))


def test_an_interval_of_quality_for_any_distribution_needs_pairs_of_the_same_adversaries():
    with pytest.raises(ValueError, match="at least one pair"):
        supremum_interval([], kind="bounded")
    with pytest.raises(ValueError, match="same adversaries"):
        supremum_interval([*outcomes_of(np.zeros((1, 1))), *outcomes_of(np.zeros((1, 2)))], kind="bounded")
