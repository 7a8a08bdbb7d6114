import numpy as np
import pytest
from scipy import stats

from forgetgauge.game.intervals import signed_interval, simultaneous_intervals
from forgetgauge.game.quality import bounded_quality_interval, cross_fit, quality_interval, supremum_interval

from .simulation import assess, make_world, simulate_pairs
from .supremum_simulation import CORRELATIONS, SCENARIOS, draw_pairs, interval_report, null_alarm_rate, outcomes_of


def test_the_ends_of_the_interval_by_hand():
    by_pair = draw_pairs(np.array([0.3, -0.28, 0.0]), 0.3, (8,), np.random.default_rng(0))
    mean, error = np.abs(by_pair.mean(axis=0)), stats.sem(by_pair)
    interval = supremum_interval(outcomes_of(by_pair), 0.9)
    assert interval.low == pytest.approx(1 - (mean + stats.t.ppf(0.95, 7) * error).max())
    assert interval.high == pytest.approx(1 - (mean - stats.t.ppf(1 - 0.1 / 6, 7) * error).max())
    assert (interval.level, interval.basis) == (0.9, "over pairs")


@pytest.mark.parametrize("n_pairs", [2, 6])
@pytest.mark.parametrize("memory", [0.0, 0.8])
def test_the_interval_lies_inside_bonferronis_and_holds_the_plug_in(n_pairs, memory):
    outcomes = simulate_pairs(make_world(memory, (-0.5, 0.0, 0.5)), n_pairs, 1, np.random.default_rng(1))
    found, wide = (
        assess(outcomes, np.random.default_rng(0), n_relabellings=10),
        quality_interval(simultaneous_intervals(outcomes), 0.95),
    )
    assert wide.low < found.quality_interval.low
    assert wide.high == found.quality_interval.high
    assert found.quality_interval.low <= found.quality_plugin <= found.quality_interval.high
    assert found.quality_interval.basis == ("over pairs" if n_pairs == 6 else "given these models")
    assert found.basis == ("over pairs" if n_pairs == 6 else "over points")


def test_with_one_adversary_nothing_is_chosen_but_the_sign():
    outcomes = outcomes_of(draw_pairs(np.array([0.3]), 0.0, (6,), np.random.default_rng(2)))
    found = assess(outcomes, np.random.default_rng(0), n_relabellings=10)
    assert found.quality_interval == quality_interval([signed_interval(outcomes, 0)], 0.95)
    assert found.quality == pytest.approx(found.quality_plugin)


def test_chance_alone_leaves_a_quality_of_one_and_an_advantage_below_zero():
    by_pair = np.array([[0.1], [-0.1], [0.1], [-0.1], [0.1], [-0.1]])
    outcomes = outcomes_of(by_pair)
    found = assess(outcomes, np.random.default_rng(0), n_relabellings=10)
    assert cross_fit(outcomes).advantage < 0
    assert (found.quality, found.quality_plugin) == (1.0, pytest.approx(1.0))


def test_the_named_adversary_is_the_best_over_all_pairs():
    by_pair = draw_pairs(np.array([0.0, -0.3, 0.1]), 0.0, (8,), np.random.default_rng(3))
    assert assess(outcomes_of(by_pair), np.random.default_rng(0), n_relabellings=10).best == 1


def test_an_adversary_that_tells_no_two_models_apart_does_not_widen_the_interval_of_the_others():
    by_pair = draw_pairs(np.array([0.3]), 0.0, (8,), np.random.default_rng(4))
    silent = np.concatenate([by_pair, np.zeros((8, 1))], axis=1)
    assert supremum_interval(outcomes_of(silent)).low == supremum_interval(outcomes_of(by_pair)).low
    nothing = supremum_interval(outcomes_of(np.zeros((8, 2))))
    assert (nothing.low, nothing.high) == (bounded_quality_interval(np.zeros((8, 2))).low, 1)
    assert nothing.low < 0.63  # 1 − Adv where a share of 1 − 0.025^(1/8) of pairs may have an advantage of 1


@pytest.mark.parametrize("n_adversaries", [1, 2, 8, 64])
@pytest.mark.parametrize("n_pairs", [5, 8, 16, 64])
def test_the_ends_miss_together_in_no_more_than_five_percent_by_integration(n_pairs, n_adversaries):
    """The union bound in the module's docstring, for every r; it holds under any dependence between adversaries."""
    alpha, df = 0.05, n_pairs - 1
    together, alone = stats.t.ppf(1 - alpha / (2 * n_adversaries), df), stats.t.ppf(1 - alpha / 2, df)
    spread = np.sqrt(stats.chi2.ppf((np.arange(4000) + 0.5) / 4000, df) / df)
    distance = np.linspace(0, 10, 1001)[:, None]
    wrong_sign = stats.norm.sf(together * spread + 2 * distance).mean(axis=1)
    inside = np.maximum(0, 2 * stats.norm.cdf(distance - alone * spread) - 1).mean(axis=1)
    missed = alpha / 2 + np.minimum(alpha / 2, inside + wrong_sign) + (n_adversaries - 1) * wrong_sign
    assert missed.max() <= alpha + 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("correlation", CORRELATIONS)
def test_eight_useless_adversaries_pull_the_upper_end_below_one_in_at_most_five_percent(correlation):
    assert null_alarm_rate(correlation) <= 0.05


@pytest.mark.slow
@pytest.mark.parametrize(("name", "correlation"), SCENARIOS)
def test_the_interval_holds_the_maximum_in_94_percent_and_is_narrower_than_bonferronis(name, correlation):
    report = interval_report(name, correlation, 8, repetitions=1000)
    assert report.coverage >= 0.94
    assert report.width < report.bonferroni_width
    assert report.crossfit_outside <= 0.02


@pytest.mark.slow
@pytest.mark.parametrize("memory", [0.0, 0.6])
def test_the_interval_holds_the_maximum_of_simulated_bits(memory):
    assert interval_report("bits", memory, 8, repetitions=600).coverage >= 0.94
