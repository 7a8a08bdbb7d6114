"""LiRA against plain loops: every mean, variance and density written out for one point at a time."""

import dataclasses
import math
import statistics

import numpy as np
import pytest
from scipy.stats import norm

from forgetgauge.attack.adversary import Panel, Role, TargetContext
from forgetgauge.attack.lira import ENOUGH_MODELS, OFFLINE, ONLINE, UNLEARNING
from forgetgauge.attack.threshold import best_threshold

from .worlds import N_CLASSES, Half, World, draw_world

WORLDS = {
    "balanced": draw_world(11),
    "skewed": draw_world(12, seen_share=0.9),
    "two models": draw_world(13, n_models=2),
    "many models": draw_world(14, n=12, n_models=ENOUGH_MODELS + 1),
}
every_world = pytest.mark.parametrize("world", [pytest.param(world, id=name) for name, world in WORLDS.items()])


def phi(logits, y) -> float:
    z = [float(value) for value in logits]
    top = max(z)
    posterior = [math.exp(value - top) / sum(math.exp(other - top) for other in z) for value in z]
    return math.log(posterior[y]) - math.log(sum(p for i, p in enumerate(posterior) if i != y))


def phis(panel: Panel) -> list[list[float]]:
    return [[phi(panel.outputs[j, x], y) for x, y in enumerate(panel.labels)] for j in range(panel.n_models)]


def of_side(values, panel: Panel, x: int, side: Role, but: int = -1) -> list[float]:
    return [values[j][x] for j in range(panel.n_models) if panel.role[j, x] == side and j != but]


def pooled_sd(values, panel: Panel, side: Role) -> float:
    """About each point's mean, over all points with two models or more."""
    squares, freedom = 0.0, 0
    for x in range(len(panel.labels)):
        found = of_side(values, panel, x, side)
        if len(found) >= 2:
            squares += sum((value - statistics.fmean(found)) ** 2 for value in found)
            freedom += len(found) - 1
    return math.sqrt(squares / freedom)


def sd_at(values, panel: Panel, x: int, side: Role, pooled: float, but: int = -1) -> float:
    n_models = panel.n_models - (but >= 0)
    found = of_side(values, panel, x, side, but)
    return statistics.stdev(found) if n_models >= ENOUGH_MODELS and len(found) >= 2 else pooled


def online_by_hand(references: Panel, target) -> list[float]:
    values = phis(references)
    means = {}
    for x in range(len(references.labels)):
        sides = (of_side(values, references, x, side) for side in (Role.IN, Role.OUT))
        means[x] = [statistics.fmean(found) if found else None for found in sides]
    both = [m_in - m_out for m_in, m_out in means.values() if m_in is not None and m_out is not None]
    difference = statistics.fmean(both)
    pooled_in, pooled_out = (pooled_sd(values, references, side) for side in (Role.IN, Role.OUT))
    scores = []
    for x, y in enumerate(target.labels):
        m_in, m_out = means[x]
        m_in, m_out = (m_out + difference if m_in is None else m_in), (m_in - difference if m_out is None else m_out)
        value = phi(target.outputs[x], y)
        seen = norm.logpdf(value, m_in, sd_at(values, references, x, Role.IN, pooled_in))
        scores.append(seen - norm.logpdf(value, m_out, sd_at(values, references, x, Role.OUT, pooled_out)))
    return scores


@every_world
def test_online_lira_is_its_formula_written_out(world: World):
    attack = ONLINE.fit(world.shadows, TargetContext(N_CLASSES, references=world.references))
    expected = online_by_hand(world.references, world.target)
    np.testing.assert_allclose(attack.score(world.target), expected, rtol=1e-9, atol=1e-9)
    assert attack.decide(world.target).tolist() == [score >= 0 for score in expected]


def test_u_lira_compares_forgotten_with_never_seen_and_looks_at_nothing_retained():
    world = WORLDS["balanced"]
    panel = world.unlearned_references
    some = (panel.role == Role.IN).any(axis=0) | (panel.role == Role.OUT).any(axis=0)
    assert some.all()
    attack = UNLEARNING.fit(world.unlearned_shadows, TargetContext(N_CLASSES, references=panel))
    np.testing.assert_allclose(attack.score(world.target), online_by_hand(panel, world.target), rtol=1e-9, atol=1e-9)
    garbled = np.where((panel.role == Role.NEITHER)[:, :, None], np.float32(77), panel.outputs)
    other = dataclasses.replace(panel, outputs=garbled)
    again = UNLEARNING.fit(world.unlearned_shadows, TargetContext(N_CLASSES, references=other))
    assert np.array_equal(again.score(world.target), attack.score(world.target))


def offline_by_hand(world: World):
    """(scores as Φ, threshold on its argument)."""
    outsiders, shadows = world.outsiders, world.shadows
    on_d, on_shadow_half = phis(outsiders), phis(shadows)
    pooled = pooled_sd(on_d, outsiders, Role.OUT)
    scores = []
    for x, y in enumerate(world.target.labels):
        mean = statistics.fmean(of_side(on_d, outsiders, x, Role.OUT))
        scores.append(norm.cdf(phi(world.target.outputs[x], y), mean, sd_at(on_d, outsiders, x, Role.OUT, pooled)))
    sides = {Role.IN: [], Role.OUT: []}
    for j in range(shadows.n_models):
        for x in range(len(shadows.labels)):
            found = of_side(on_shadow_half, shadows, x, Role.OUT, but=j)
            if found:
                sd = sd_at(on_shadow_half, shadows, x, Role.OUT, pooled, but=j)
                sides[Role(shadows.role[j, x])].append((on_shadow_half[j][x] - statistics.fmean(found)) / sd)
    return scores, best_threshold(np.array(sides[Role.IN]), np.array(sides[Role.OUT]))


@every_world
def test_offline_lira_is_its_formula_written_out(world: World):
    attack = OFFLINE.fit(world.shadows, TargetContext(N_CLASSES, outsiders=world.outsiders))
    scores, threshold = offline_by_hand(world)
    np.testing.assert_allclose(norm.cdf(attack.score(world.target)), scores, rtol=0, atol=1e-9)
    assert float(attack.threshold) == pytest.approx(threshold, abs=1e-9)
    assert attack.decide(world.target).tolist() == [score >= norm.cdf(threshold) for score in scores]


def test_the_spread_of_each_side_comes_from_that_side():
    rng = np.random.default_rng(0)
    half = Half.draw(300, rng)
    role = (rng.random((10, 300)) < 0.5).astype(np.int8)
    panel = half.panel(role, 1.0, rng)
    logits = panel.outputs.copy()
    logits[role == Role.IN] += rng.normal(0, 3, (int(role.sum()), N_CLASSES)).astype(np.float32)
    attack = ONLINE.fit(panel, TargetContext(N_CLASSES, references=dataclasses.replace(panel, outputs=logits)))
    assert attack.spread_in[0] > 2 * attack.spread_out[0]


def test_the_spread_is_that_over_models_and_not_that_between_points():
    rng = np.random.default_rng(1)
    half = Half.draw(400, rng)
    far_apart = dataclasses.replace(half, usual=20 * half.usual)
    role = (rng.random((10, 400)) < 0.5).astype(np.int8)
    attack = ONLINE.fit(
        half.panel(role, 1.0, rng), TargetContext(N_CLASSES, references=far_apart.panel(role, 1.0, rng))
    )
    assert attack.spread_out[0] < 2  # two logits of spread 0.7 differ by 1.0; the points themselves by some 40


def test_offline_lira_is_one_sided():
    """Far below the models that did not see the point is as unlike a member as can be."""
    world = WORLDS["balanced"]
    attack = OFFLINE.fit(world.shadows, TargetContext(N_CLASSES, outsiders=world.outsiders))
    low, high = world.target.outputs.copy(), world.target.outputs.copy()
    low[np.arange(200), world.target.labels] -= 50
    high[np.arange(200), world.target.labels] += 50
    assert not attack.decide(dataclasses.replace(world.target, outputs=low)).any()
    assert attack.decide(dataclasses.replace(world.target, outputs=high)).all()


def test_models_that_all_answer_alike_give_numbers():
    panel = Panel(
        np.ones((4, 6, 3), dtype=np.float32), np.zeros(6, dtype=np.int64), np.array([[0, 1] * 3] * 4, dtype=np.int8)
    )
    attack = ONLINE.fit(panel, TargetContext(N_CLASSES, references=panel))
    assert np.isfinite(attack.score(dataclasses.replace(panel.model(0), points=np.arange(6)))).all()


@pytest.mark.parametrize("role", [Role.IN, Role.OUT])
def test_references_of_one_side_only_are_refused(role):
    panel = dataclasses.replace(WORLDS["balanced"].references, role=np.full((8, 200), role, dtype=np.int8))
    with pytest.raises(ValueError, match="models that saw points and models that did not"):
        ONLINE.fit(panel, TargetContext(N_CLASSES, references=panel))


def test_what_was_not_given_is_named():
    world = WORLDS["balanced"]
    with pytest.raises(ValueError, match="without reference models on D"):
        ONLINE.fit(world.shadows, TargetContext(N_CLASSES))
    with pytest.raises(ValueError, match="without the shadow models' signals on D"):
        OFFLINE.fit(world.shadows, TargetContext(N_CLASSES))


def test_one_shadow_model_cannot_be_left_out():
    world = draw_world(15, n_models=1)
    with pytest.raises(ValueError, match="two or more shadow models"):
        OFFLINE.fit(world.shadows, TargetContext(N_CLASSES, outsiders=world.outsiders))


def test_points_it_was_not_fitted_on_are_refused():
    world = WORLDS["balanced"]
    attack = ONLINE.fit(world.shadows, TargetContext(N_CLASSES, references=world.references))
    with pytest.raises(ValueError, match="without their positions"):
        attack.score(dataclasses.replace(world.target, points=None))
    with pytest.raises(ValueError, match="fitted on 200 points"):
        attack.score(dataclasses.replace(world.target, points=np.arange(1, 201)))
