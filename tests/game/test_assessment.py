from dataclasses import replace

import numpy as np
import pytest

from forgetgauge.game.advantage import outcome_of_decisions
from forgetgauge.game.assessment import assess_all
from forgetgauge.game.bounds import least_epsilon
from forgetgauge.game.intervals import Interval, advantage_floor, bounded_interval, signed_interval
from forgetgauge.game.one_model import log_p_of_most_visible
from forgetgauge.game.permutation import noise_floors
from forgetgauge.game.quality import bounded_quality_interval, cross_fit, supremum_interval

from .simulation import assess, make_world, noise_floor, simulate_pairs
from .supremum_simulation import outcomes_of


@pytest.mark.parametrize("n_pairs", [1, 6])
def test_an_assessment_only_puts_the_pieces_together(n_pairs):
    outcomes = simulate_pairs(make_world(0.6, (0.0, 0.5, 3.0)), n_pairs, 2, np.random.default_rng(0))
    result = assess(outcomes, np.random.default_rng(1), level=0.9, n_relabellings=100, delta=1e-3)
    assert result.by_pair.shape == (n_pairs, 3)
    assert result.advantage == pytest.approx(result.by_pair.mean(axis=0))
    assert result.quality_plugin == pytest.approx(1 - np.abs(result.advantage).max())
    fitted = cross_fit(outcomes)
    assert result.basis == fitted.basis
    assert result.estimate == 1 - fitted.advantage
    low, high = result.quality_interval.low, result.quality_interval.high
    assert result.quality == np.clip(1 - fitted.advantage, low, high)
    wide = replace(result, quality_interval=Interval(0.0, 1.0, 0.9, "over pairs"))
    assert wide.quality == 1 - np.clip(fitted.advantage, 0, 1)
    beside = replace(result, quality_interval=Interval(0.1, 0.2, 0.9, "over pairs"))
    assert beside.quality == np.clip(result.estimate, 0.1, 0.2)
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
    assert result.noise == noise_floor(outcomes, np.random.default_rng(1), 100, 0.9)


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


def test_the_floor_takes_half_of_the_error_and_a_second_look_half_of_that_of_models():
    in_forget, rng = np.arange(20) < 10, np.random.default_rng(3)
    sides = np.stack([in_forget, ~in_forget])[:, None, :, None]
    says = [sides ^ (rng.random((2, 1, 20, 2)) < 0.05) for _ in range(8)]
    outcomes = [outcome_of_decisions(*each, in_forget, np.ones(20)) for each in says]
    once, twice = (assess(outcomes, np.random.default_rng(0), level=0.9, n_looks=looks) for looks in (1, 2))
    assert 0 < once.advantage_floor == pytest.approx(float(advantage_floor(once.by_pair, 0.95)))
    assert once.model_log_p == pytest.approx(twice.model_log_p - np.log(2))
    assert once.model_log_p == assess(outcomes, np.random.default_rng(0), level=0.9).model_log_p


def test_single_models_count_unless_f_was_not_drawn_and_differs_from_t_by_itself():
    in_forget = np.arange(60) < 30
    alike = outcome_of_decisions(*(np.random.default_rng(4).random((2, 1, 60, 1)) < 0.5), in_forget, np.ones(60))
    apart = outcome_of_decisions(
        *np.broadcast_to(in_forget[None, None, :, None], (2, 1, 60, 1)), in_forget, np.ones(60)
    )
    found = [
        [one.rests_on_models for one in assess_all([[alike], [apart]], np.random.default_rng(0), **options)]
        for options in ({}, {"is_drawn": True}, {"is_drawn": False})
    ]
    assert found == [[True, True], [True, True], [True, False]]
    left_out = assess([apart], np.random.default_rng(0), is_drawn=False)
    assert (left_out.model_log_p, left_out.n_models) == (0, 0)


def test_two_thousand_relabellings_are_drawn_where_no_other_number_is_asked_for():
    outcomes = simulate_pairs(make_world(0.0), 2, 1, np.random.default_rng(5))
    asked_for = noise_floor(outcomes, np.random.default_rng(0), 2000)
    assert assess(outcomes, np.random.default_rng(0)).noise == asked_for
    assert noise_floors([outcomes], np.random.default_rng(0)) == [asked_for]
    assert noise_floor(outcomes, np.random.default_rng(0), 1).p_value in (0.5, 1.0)
    assert assess(outcomes, np.random.default_rng(0)).delta == 1e-5


def test_five_pairs_are_enough_for_a_floor_and_four_are_not():
    outcomes = outcomes_of(np.full((5, 1), 0.95), 3)
    assert assess(outcomes, np.random.default_rng(0), level=0.5).advantage_floor > 0
    assert assess(outcomes[:4], np.random.default_rng(0), level=0.5).advantage_floor == 0


@pytest.mark.parametrize("interval", ["student", "bounded"])
def test_q_lies_in_its_own_interval_in_every_game(interval):
    """The estimate, which is chosen on some pairs and scored on others, lies beside it in a few of a hundred."""
    rng, beside = np.random.default_rng(6), 0
    for _ in range(150):
        outcomes = [coin_flips(rng, 20, 9) for _ in range(5)]
        found = assess(outcomes, rng, n_relabellings=20, interval=interval)
        low, high = found.quality_interval.low, found.quality_interval.high
        assert low <= found.quality <= high
        assert found.quality == pytest.approx(min(max(found.estimate, low), high))
        beside += not low <= min(found.estimate, 1.0) <= high
    assert (beside > 0) == (interval == "student")


def coin_flips(rng, k, n_adversaries):
    """A pair on which nothing is to be seen."""
    says = rng.random((2, 1, 2 * k, n_adversaries)) < 0.3
    return outcome_of_decisions(*says, np.arange(2 * k) < k, np.ones(2 * k))
