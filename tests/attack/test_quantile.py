import dataclasses

import numpy as np
import pytest
from sklearn.linear_model import QuantileRegressor

from forgetgauge.attack.adversary import TargetContext
from forgetgauge.attack.quantile import LEVELS, REGRESSION, Quantile, QuantileAttack, design_of, pinball_regression
from forgetgauge.attack.signals import GAP

from .worlds import N_CLASSES, draw_world


def pinball(residual: np.ndarray, level: float) -> float:
    return float(np.where(residual > 0, level * residual, (level - 1) * residual).mean())


def draw_points(n: int, seed: int):
    """(s, usual s, class): the spread grows with the class."""
    rng = np.random.default_rng(seed)
    usual, labels = rng.normal(2, 3, n), rng.integers(0, N_CLASSES, n)
    return 1 + 0.8 * usual + labels + (1 + labels) * rng.standard_normal(n), usual, labels


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("n", [60, 500])
def test_no_linear_function_has_a_clearly_smaller_pinball_loss(n, level):
    values, usual, labels = draw_points(n, 0)
    design = design_of(usual, labels, N_CLASSES, 0.0, 1.0)
    exact = QuantileRegressor(quantile=level, alpha=0, solver="highs").fit(design[:, 1:], values)
    least = pinball(values - exact.predict(design[:, 1:]), level)
    found = pinball(values - design @ pinball_regression(design, values, level), level)
    assert least - 1e-9 <= found <= 1.003 * least


@pytest.mark.parametrize("level", LEVELS)
def test_of_fresh_points_one_minus_tau_lie_above_the_quantile(level):
    quantile = Quantile.fit(*draw_points(5000, 1), N_CLASSES, level)
    values, usual, labels = draw_points(20_000, 2)
    share = np.mean(values > quantile.at(usual, labels))
    assert share == pytest.approx(1 - level, abs=4 * np.sqrt(level * (1 - level) * (1 / 5000 + 1 / 20_000)))


def test_of_the_points_a_target_did_not_see_one_minus_tau_are_called_members():
    shares = {level: [] for level in LEVELS}
    for seed in range(5):
        world = draw_world(40 + seed, n=400)
        fitted = REGRESSION.fit(world.shadows, TargetContext(N_CLASSES, outsiders=world.outsiders))
        for level in LEVELS:
            says = dataclasses.replace(fitted, level=np.array(level)).decide(world.target)
            shares[level].append(says[~world.member].mean())
    for level in LEVELS:
        assert np.mean(shares[level]) == pytest.approx(1 - level, abs=0.06)


def test_the_level_rises_with_what_there_is_to_see():
    little, much = (
        REGRESSION.fit(world.shadows, TargetContext(N_CLASSES, outsiders=world.outsiders))
        for world in (draw_world(50, boost=1.0), draw_world(50, boost=5.0))
    )
    assert little.level < much.level


@pytest.mark.parametrize("factor", [1e-3, 1.0, 1e6])
def test_the_scale_of_the_logits_does_not_matter(factor):
    values, usual, labels = draw_points(300, 3)
    one = Quantile.fit(values, usual, labels, N_CLASSES, 0.7).at(usual, labels)
    other = Quantile.fit(factor * values, factor * usual, labels, N_CLASSES, 0.7).at(factor * usual, labels)
    np.testing.assert_allclose(other, factor * one, rtol=1e-6, atol=1e-6 * factor)


def test_points_that_are_all_alike_have_themselves_as_quantile():
    values, labels = np.full(50, 3.0), np.zeros(50, dtype=np.int64)
    quantile = Quantile.fit(values, values, labels, N_CLASSES, 0.9)
    np.testing.assert_allclose(quantile.at(values, labels), 3.0, atol=1e-2)


def surer(signals):
    """Of the same points, whose own logit is larger by 2."""
    logits = signals.outputs.copy()
    logits[np.arange(len(logits)), signals.labels] += 2
    return dataclasses.replace(signals, outputs=logits)


def test_the_score_is_the_gap_above_the_models_own_quantile():
    world = draw_world(51)
    attack = REGRESSION.fit(world.shadows, TargetContext(N_CLASSES, outsiders=world.outsiders))
    assert isinstance(attack, QuantileAttack)
    lifted = surer(world.target)
    gained = attack.score(lifted) - attack.score(world.target)
    np.testing.assert_allclose(gained, GAP(lifted) - GAP(world.target), atol=1e-5)
    both = dataclasses.replace(
        lifted, background=surer(lifted.background)
    )  # a model that is surer of everything is no surer of members
    np.testing.assert_allclose(attack.score(both), attack.score(world.target), atol=1e-4)
