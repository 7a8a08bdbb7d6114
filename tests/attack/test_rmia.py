"""RMIA against plain loops: every ratio compared with every other."""

import dataclasses
import math
import statistics

import numpy as np
import pytest

from forgetgauge.attack.adversary import Panel, Role, TargetContext
from forgetgauge.attack.reference import leave_one_out, panel_values
from forgetgauge.attack.rmia import OFFLINE, ONLINE, offline_probability, scores_left_out
from forgetgauge.attack.signals import CONFIDENCE, Signals
from forgetgauge.attack.threshold import best_threshold

from .worlds import N_CLASSES, World, draw_world

WORLDS = {
    "balanced": draw_world(21, n=80),
    "skewed": draw_world(22, n=80, seen_share=0.9),
    "two models": draw_world(23, n=80, n_models=2),
}
every_world = pytest.mark.parametrize("world", [pytest.param(world, id=name) for name, world in WORLDS.items()])


def probabilities(signals: Signals) -> list[float]:
    result = []
    for logits, y in zip(signals.outputs.tolist(), signals.labels.tolist(), strict=True):
        top = max(logits)
        result.append(math.exp(logits[y] - top) / sum(math.exp(z - top) for z in logits))
    return result


def table(panel: Panel) -> list[list[float]]:
    return [probabilities(panel.model(j)) for j in range(panel.n_models)]


def side_mean(p, panel: Panel, x: int, side: Role, but: int) -> float | None:
    found = [p[j][x] for j in range(panel.n_models) if j != but and panel.role[j, x] == side]
    return statistics.fmean(found) if found else None


def means_out(panel: Panel, but: int = -1) -> list[float | None]:
    p = table(panel)
    return [side_mean(p, panel, x, Role.OUT, but) for x in range(len(panel.labels))]


def offline(means: list[float | None], a: float) -> list[float | None]:
    return [None if mean is None else 0.5 * ((1 + a) * mean + (1 - a)) for mean in means]


def online_elsewhere(panel: Panel, but: int = -1) -> list[float]:
    p = table(panel)
    sides = [
        (side_mean(p, panel, x, Role.IN, but), side_mean(p, panel, x, Role.OUT, but)) for x in range(len(panel.labels))
    ]
    both = [i - o for i, o in sides if i is not None and o is not None]
    if both:
        difference = statistics.fmean(both)
    else:
        difference = statistics.fmean(i for i, _ in sides if i is not None)
        difference -= statistics.fmean(o for _, o in sides if o is not None)
    result = []
    for i, o in sides:
        i, o = (o + difference if i is None else i), (i - difference if o is None else o)
        result.append((min(max(i, 0), 1) + min(max(o, 0), 1)) / 2)
    return result


def share(ratio: float, others: list[float]) -> float:
    return sum(ratio / other >= 1 for other in others) / len(others)


def attack_by_hand(target: Signals, elsewhere, background_elsewhere) -> list[float]:
    pairs = zip(probabilities(target.background), background_elsewhere, strict=True)
    ratios = [p / q for p, q in pairs if q is not None]
    return [share(p / q, ratios) for p, q in zip(probabilities(target), elsewhere, strict=True)]


def left_out_by_hand(shadows: Panel, elsewhere_but) -> tuple[list[float], list[float]]:
    """Scores of all shadow models' members and others, each model compared with the rest."""
    p, members, others = table(shadows), [], []
    for j in range(shadows.n_models):
        elsewhere = elsewhere_but(j)
        ratios = {x: p[j][x] / q for x, q in enumerate(elsewhere) if q is not None}
        unseen = [x for x in ratios if shadows.role[j, x] == Role.OUT]
        for x, ratio in ratios.items():
            scores = members if shadows.role[j, x] == Role.IN else others
            scores.append(share(ratio, [ratios[z] for z in unseen if z != x]))
    return members, others


def balanced_accuracy(members, others, threshold) -> float:
    return statistics.fmean(m >= threshold for m in members) + statistics.fmean(o < threshold for o in others)


@every_world
def test_offline_rmia_is_its_formula_written_out(world: World):
    attack = OFFLINE.fit(world.shadows, TargetContext(N_CLASSES, outsiders=world.outsiders))
    without = [means_out(world.shadows, but=j) for j in range(world.shadows.n_models)]
    trials = []
    for a in [i / 10 for i in range(11)]:
        members, others = left_out_by_hand(world.shadows, lambda j, a=a: offline(without[j], a))
        threshold = best_threshold(np.array(members), np.array(others))
        trials.append((balanced_accuracy(members, others, threshold), a, threshold))
    best = max(accuracy for accuracy, _, _ in trials)
    _, a, threshold = next(trial for trial in trials if trial[0] > best - 1e-12)
    elsewhere = offline(means_out(world.outsiders), a)
    expected = attack_by_hand(world.target, elsewhere, offline(means_out(world.shadows), a))
    np.testing.assert_allclose(attack.elsewhere, elsewhere, rtol=0, atol=1e-9)
    np.testing.assert_allclose(attack.score(world.target), expected, rtol=0, atol=1e-9)
    assert float(attack.threshold) == pytest.approx(threshold, abs=1e-9)
    assert attack.decide(world.target).tolist() == [score >= threshold for score in expected]


@every_world
def test_online_rmia_is_its_formula_written_out(world: World):
    attack = ONLINE.fit(world.shadows, TargetContext(N_CLASSES, references=world.references))
    members, others = left_out_by_hand(world.shadows, lambda j: online_elsewhere(world.shadows, but=j))
    threshold = best_threshold(np.array(members), np.array(others))
    elsewhere = online_elsewhere(world.references)
    expected = attack_by_hand(world.target, elsewhere, online_elsewhere(world.shadows))
    np.testing.assert_allclose(attack.elsewhere, elsewhere, rtol=0, atol=1e-9)
    np.testing.assert_allclose(attack.score(world.target), expected, rtol=0, atol=1e-9)
    assert float(attack.threshold) == pytest.approx(threshold, abs=1e-9)
    assert attack.decide(world.target).tolist() == [score >= threshold for score in expected]


def test_a_point_of_a_left_out_shadow_is_not_compared_with_itself():
    shadows, found_members, found_others = WORLDS["balanced"].shadows, [], []
    for left_out in leave_one_out(panel_values(shadows, CONFIDENCE), shadows, unseen_by_another=True):
        of_members, of_others = scores_left_out(left_out, offline_probability(left_out.others_out, 0.3), 1.0)
        found_members.extend(of_members)
        found_others.extend(of_others)
    members, others = left_out_by_hand(shadows, lambda j: offline(means_out(shadows, but=j), 0.3))
    np.testing.assert_allclose(found_members, members, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found_others, others, rtol=0, atol=1e-9)
    assert min(others) == 0


@pytest.mark.parametrize("adversary", [OFFLINE, ONLINE], ids=["offline", "online"])
def test_a_point_it_did_not_see_beats_any_share_of_the_background_equally_often(adversary):
    """The score of a point never seen is about even between 0 and 1: its mean is ½."""
    shares = []
    for seed in range(10):
        world = draw_world(300 + seed, n_models=6, boost=2.0)
        attack = adversary.fit(world.shadows, TargetContext(N_CLASSES, world.references, world.outsiders))
        shares.append(attack.score(world.target)[~world.member].mean())
    assert np.mean(shares) == pytest.approx(0.5, abs=0.06)


@pytest.mark.parametrize("adversary", [OFFLINE, ONLINE], ids=["offline", "online"])
def test_a_missing_background_is_named(adversary):
    world = WORLDS["balanced"]
    attack = adversary.fit(world.shadows, TargetContext(N_CLASSES, world.references, world.outsiders))
    with pytest.raises(ValueError, match="signals there are missing"):
        attack.score(dataclasses.replace(world.target, background=None))
    short = Signals(world.target.background.outputs[:9], world.target.background.labels[:9])
    with pytest.raises(ValueError, match="do not fit 80"):
        attack.score(dataclasses.replace(world.target, background=short))
