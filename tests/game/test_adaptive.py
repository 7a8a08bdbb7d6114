import math

import numpy as np
import pytest
from scipy import stats

from forgetgauge.game.adaptive import pairs_needed, stein_intervals, stein_quality_interval
from forgetgauge.game.intervals import bounded_interval, pair_interval

from .supremum_simulation import SCENARIOS, draw_pairs, stein_report


def pilot(n=6, n_adversaries=3, seed=0):
    return draw_pairs(np.full(n_adversaries, 0.1), 0.0, (n,), np.random.default_rng(seed))


def test_the_number_of_pairs_by_hand():
    values = pilot()
    factor = (stats.t.ppf(1 - 0.1 / 6, 5) + stats.t.ppf(0.95, 5)) / 2
    expected = math.ceil((factor * values.std(axis=0, ddof=1).max() / 0.02) ** 2)
    assert pairs_needed(values, 0.02, 0.9) == expected


def test_with_one_adversary_it_is_steins_own_rule():
    values = pilot(n_adversaries=1)
    expected = math.ceil((stats.t.ppf(0.975, 5) * values.std(ddof=1) / 0.01) ** 2)
    assert pairs_needed(values, 0.01) == expected


def test_the_pilot_is_never_thrown_away_and_the_limit_is_kept():
    values = pilot()
    assert pairs_needed(values, 10.0) == 6
    assert pairs_needed(values, 0.01) > 20
    assert pairs_needed(values, 0.01, limit=20) == 20
    assert pairs_needed(values, 0.01, limit=3) == 6
    assert pairs_needed(np.full((5, 2), 0.3), 0.01) == 5


def test_only_the_pilots_spread_enters_the_final_interval():
    by_pair = draw_pairs(np.array([0.1, -0.2]), 0.0, (20,), np.random.default_rng(1))
    intervals = stein_intervals(by_pair, 6, 0.9)
    half = stats.t.ppf(1 - 0.1 / 4, 5) * by_pair[:6].std(axis=0, ddof=1) / math.sqrt(20)
    assert [(i.low + i.high) / 2 for i in intervals] == pytest.approx(by_pair.mean(axis=0))
    assert [(i.high - i.low) / 2 for i in intervals] == pytest.approx(half)
    assert {(i.level, i.basis) for i in intervals} == {(0.9, "over pairs")}
    whole = stein_quality_interval(by_pair, 6, 0.9)
    mean, error = np.abs(by_pair.mean(axis=0)), by_pair[:6].std(axis=0, ddof=1) / math.sqrt(20)
    assert whole.low == pytest.approx(1 - (mean + stats.t.ppf(0.95, 5) * error).max())
    assert whole.high == pytest.approx(1 - (mean - stats.t.ppf(1 - 0.1 / 4, 5) * error).max())


def test_a_pilot_that_agrees_has_the_distribution_free_interval():
    by_pair = np.column_stack([np.full(9, 0.3), draw_pairs(np.array([0.1]), 0.0, (9,), np.random.default_rng(1))[:, 0]])
    agreed, spread = stein_intervals(by_pair, 6, 0.9)
    expected = bounded_interval(by_pair[:, 0], 1 - 0.1 / 2)
    assert (agreed.low, agreed.high, agreed.level) == (expected.low, expected.high, 0.9)
    assert spread.high - spread.low < 0.2 < agreed.high - agreed.low


def test_an_adversary_that_decides_nothing_does_not_widen_the_interval_of_quality():
    spread = draw_pairs(np.array([0.1]), 0.0, (9,), np.random.default_rng(1))
    by_pair = np.column_stack([spread, np.zeros(9)])
    low = stein_quality_interval(spread, 6).low
    assert stein_quality_interval(by_pair, 6, counted=[0]).low == low > stein_quality_interval(by_pair, 6).low


@pytest.mark.parametrize("seed", range(10))
def test_the_interval_of_quality_is_as_narrow_as_asked(seed):
    rng, truth = np.random.default_rng(seed), np.array([0.2, 0.0, -0.1])
    values = draw_pairs(truth, 0.5, (5,), rng)
    n_pairs = pairs_needed(values, 0.05)
    by_pair = np.concatenate([values, draw_pairs(truth, 0.5, (n_pairs - 5,), rng)])
    whole = stein_quality_interval(by_pair, 5)
    assert whole.high - whole.low <= 2 * 0.05 + 1e-12


@pytest.mark.parametrize("values", [np.zeros((4, 2)), np.zeros(6), np.zeros((6, 0)), np.full((6, 1), np.nan)])
def test_a_pilot_too_small_is_refused(values):
    with pytest.raises(ValueError, match="pilot"):
        pairs_needed(values, 0.1)


def test_a_half_width_or_level_that_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="half width"):
        pairs_needed(pilot(), 0.0)
    with pytest.raises(ValueError, match="level"):
        stein_intervals(pilot(), 6, 1.0)


def test_the_interval_of_one_adversary_holds_although_the_data_chose_how_many_pairs():
    rng, held, ordinary = np.random.default_rng(6), [], []
    for _ in range(4000):
        values = draw_pairs(np.zeros(1), 0.0, (5,), rng)
        n_pairs = pairs_needed(values, 0.04, limit=60)
        by_pair = np.concatenate([values, draw_pairs(np.zeros(1), 0.0, (n_pairs - 5,), rng)])
        (own,) = stein_intervals(by_pair, 5, together=False)
        held.append(own.low <= 0 <= own.high)
        plain = pair_interval(by_pair[:, 0])
        ordinary.append(plain.low <= 0 <= plain.high)
    assert np.mean(held) > 0.943
    assert np.mean(ordinary) < 0.937


@pytest.mark.slow
@pytest.mark.parametrize(("name", "correlation"), SCENARIOS)
def test_steins_intervals_hold_although_the_data_chose_how_many_pairs(name, correlation):
    report = stein_report(name, correlation, repetitions=1500)
    assert report.quality_coverage >= 0.94
    assert report.joint_coverage >= 0.94
    assert report.widest <= 0.04 + 1e-12


def test_intervals_stay_within_possible_advantages():
    by_pair = np.array([[1.0, 0.9], [-1.0, 1.0], [1.0, 0.8], [-1.0, -1.0], [0.5, 1.0]])
    assert [(found.low, found.high) for found in stein_intervals(by_pair, 5, 0.999)] == [(-1, 1), (-1, 1)]
