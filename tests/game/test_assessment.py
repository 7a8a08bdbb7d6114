import numpy as np
import pytest

from forgetgauge.game.bounds import least_epsilon
from forgetgauge.game.intervals import advantage_floor, bounded_interval, signed_interval
from forgetgauge.game.one_model import log_p_of_most_visible
from forgetgauge.game.permutation import noise_floor
from forgetgauge.game.quality import bounded_quality_interval, cross_fit, supremum_interval

from .simulation import assess, make_world, simulate_pairs


@pytest.mark.parametrize("n_pairs", [1, 6])
def test_an_assessment_only_puts_the_pieces_together(n_pairs):
    outcomes = simulate_pairs(make_world(0.6, (0.0, 0.5, 3.0)), n_pairs, 2, np.random.default_rng(0))
    result = assess(outcomes, np.random.default_rng(1), level=0.9, n_relabellings=100, delta=1e-3)
    assert result.by_pair.shape == (n_pairs, 3)
    assert result.advantage == pytest.approx(result.by_pair.mean(axis=0))
    assert result.quality_plugin == pytest.approx(1 - np.abs(result.advantage).max())
    fitted = cross_fit(outcomes)
    assert (result.crossfit_advantage, result.basis) == (fitted.advantage, fitted.basis)
    assert result.quality == 1 - np.clip(fitted.advantage, 0, 1)
    floor = 0.0 if n_pairs < 5 else float(advantage_floor(result.by_pair, 0.95))
    assert result.advantage_floor == pytest.approx(floor)
    assert (result.model_log_p, result.n_models) == log_p_of_most_visible(outcomes)
    assert result.n_models == 4 * n_pairs
    assert result.epsilon == least_epsilon(floor, result.model_log_p, n_models=result.n_models, delta=1e-3, level=0.9)
    assert result.delta == 1e-3
    assert abs(result.advantage[result.best]) == np.abs(result.advantage).max()
    assert result.intervals == tuple(signed_interval(outcomes, a, 0.9) for a in range(3))
    assert result.quality_interval == supremum_interval(outcomes, 0.9)
    assert result.quality_interval.low <= result.quality_plugin <= result.quality_interval.high
    assert result.bounded_interval == bounded_quality_interval(result.by_pair, 0.9)
    assert result.noise == noise_floor(outcomes, np.random.default_rng(1), 100)


def test_the_bounded_interval_is_shown_where_it_is_asked_for():
    outcomes = simulate_pairs(make_world(0.6, (0.0, 0.5)), 6, 1, np.random.default_rng(0))
    shown, asked = (assess(outcomes, np.random.default_rng(1), interval=kind) for kind in ("student", "bounded"))
    assert shown.bounded_interval == asked.bounded_interval == asked.quality_interval
    assert shown.quality_interval != asked.quality_interval
    assert asked.intervals == tuple(bounded_interval(column) for column in asked.by_pair.T)
    assert (shown.quality, shown.noise) == (asked.quality, asked.noise)


def test_a_method_that_forgets_nothing_is_told_from_retrain():
    rng = np.random.default_rng(2)
    leaky = assess(simulate_pairs(make_world(1.0), 6, 1, rng), rng, n_relabellings=200)
    clean = assess(simulate_pairs(make_world(0.0), 6, 1, rng), rng, n_relabellings=200)
    assert leaky.noise.p_value < 0.01 < clean.noise.p_value
    assert leaky.quality_interval.high < 1 == clean.quality_interval.high


def test_nothing_measured_nothing_assessed():
    with pytest.raises(ValueError, match="at least one pair"):
        assess([], np.random.default_rng(0))
