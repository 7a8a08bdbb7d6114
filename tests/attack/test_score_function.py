"""Score functions of the user's: fitted without F and T, checked in one line, set by a run file."""

import dataclasses
import io

import numpy as np
import pytest

import forgetgauge
import forgetgauge.attack.threshold
from forgetgauge.attack.adversary import Need, Role, TargetContext, calibration_of
from forgetgauge.attack.parameters import adjusted, completed, parameters_of
from forgetgauge.attack.threshold import best_threshold
from forgetgauge.errors import UserError
from forgetgauge.game.adversary import Access
from forgetgauge.testing import check_adversary

from .worlds import N_CLASSES, auc, draw_world

TARGET = TargetContext(N_CLASSES)


@forgetgauge.adversary
def confidence(signals, power=1.0):
    """Probability of the true label."""
    return signals.read("confidence") ** power


@forgetgauge.adversary(either_way=True)
def doubt(signals):
    return signals.read("loss")


@forgetgauge.adversary
def calibrated(signals, others):
    return signals.read("statistic") - others.mean("statistic")


@forgetgauge.adversary(columns=["gradient-norm"], either_way=True, by_class=False)
def steepness(signals, base=10.0):
    return np.log(signals.columns["gradient-norm"]) / np.log(base)


EVERY = [confidence, doubt, calibrated, steepness]


@pytest.mark.parametrize("adversary", EVERY, ids=lambda one: one.__name__)
def test_it_keeps_the_promises_of_an_adversary(adversary):
    check_adversary(adversary)


def test_it_is_the_shipped_attack_on_the_same_score():
    world = draw_world(80)
    shipped = forgetgauge.attack.threshold.CONFIDENCE.fit(world.shadows, TARGET)
    own = confidence.fit(world.shadows, TARGET)
    assert np.array_equal(own.margin(world.target), shipped.margin(world.target))


def test_it_can_still_be_called_like_the_function_it_was():
    world = draw_world(81)
    assert np.array_equal(confidence(world.target), world.target.read("confidence"))
    assert confidence.__name__ == "confidence"


def test_its_orientation_is_learned_only_where_that_is_asked_for():
    world = draw_world(82)
    assert doubt.fit(world.shadows, TARGET).sign == -1
    one_way = dataclasses.replace(doubt, either_way=False)
    assert one_way.fit(world.shadows, TARGET).sign == 1
    assert auc(doubt.fit(world.shadows, TARGET).score(world.target), world.member) > 0.6


def test_one_threshold_for_all_classes_is_the_best_of_all_rows():
    world = draw_world(83)
    attack = dataclasses.replace(confidence, by_class=False).fit(world.shadows, TARGET)
    signals, member = world.shadows.rows
    score = signals.read("confidence")
    assert attack.thresholds.tolist() == [best_threshold(score[member], score[~member])] * N_CLASSES


def by_hand(world):
    """(scores of the target, scores of left-out shadow models by class and membership), point by point."""
    phi = [world.outsiders.model(which).read("statistic") for which in range(8)]
    target = [world.target.read("statistic")[x] - np.mean([one[x] for one in phi]) for x in range(200)]
    shadows, rows = world.shadows, []
    phi = [shadows.model(which).read("statistic") for which in range(8)]
    for which in range(8):
        for x in range(200):
            unseen = [phi[k][x] for k in range(8) if k != which and shadows.role[k, x] == Role.OUT]
            if unseen:
                rows.append((phi[which][x] - np.mean(unseen), shadows.labels[x], shadows.role[which, x] == Role.IN))
    return target, rows


def test_comparing_with_other_models_is_its_formula_written_out():
    world = draw_world(84)
    attack = calibrated.fit(*world.given(calibrated))
    target, rows = by_hand(world)
    np.testing.assert_allclose(attack.score(world.target), target, rtol=1e-9, atol=1e-9)
    for label in range(N_CLASSES):
        own = [(score, saw) for score, of, saw in rows if of == label]
        members, others = (np.array([score for score, saw in own if saw == side]) for side in (True, False))
        assert attack.thresholds[label] == pytest.approx(best_threshold(members, others), abs=1e-9)
    given = calibration_of(calibrated, attack, world.shadows)
    assert sum(len(side) for model in given for side in model) == len(rows)


def test_what_it_learned_survives_the_disk():
    world = draw_world(85)
    attack, file = calibrated.fit(*world.given(calibrated)), io.BytesIO()
    np.savez(file, **attack.arrays())
    file.seek(0)
    with np.load(file, allow_pickle=False) as stored:
        again = calibrated.load(dict(stored))
    assert np.array_equal(again.margin(world.target), attack.margin(world.target))


def test_models_that_saw_a_point_are_not_shown():
    seen = []

    @forgetgauge.adversary
    def looks(signals, others):
        seen.append(np.isnan(others.read("loss")).mean())
        return signals.read("confidence")

    looks.fit(*draw_world(86).given(looks))
    assert len(seen) == 8
    assert 0.3 < np.mean(seen) < 0.6  # each model saw half of the points


def test_it_is_white_box_where_a_column_is():
    assert (steepness.access, steepness.needs) == (Access.WHITE_BOX, {Need.GRADIENT_NORM})
    assert confidence.access == forgetgauge.adversary(columns=["augmented"])(len).access == Access.BLACK_BOX


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (lambda signals: signals.read("posterior"), r"shape \(200, 3\), not one number for each of 200 points"),
        (lambda signals: 1.0, r"shape \(\), not one number"),
        (lambda signals: "high", "gave a str, not one number"),
        (lambda signals: np.full(len(signals), np.nan), "gave NaN"),
    ],
)
def test_what_is_no_score_is_refused_in_one_line(given, words):
    with pytest.raises(ValueError, match=words) as refused:
        forgetgauge.adversary(given)(draw_world(87).target)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda: 0, "takes no argument"),
        (lambda signals, power: 0, "'power' needs a default"),
        (lambda signals, *more: 0, "no names that a run file could set"),
        (lambda signals, **more: 0, "no names that a run file could set"),
        ("confidence", "a str is no score function"),
    ],
)
def test_what_is_no_score_function_is_refused_where_it_is_written(function, words):
    with pytest.raises(UserError, match=words):
        forgetgauge.adversary(function)


def test_a_column_that_there_is_not_is_refused_with_the_nearest():
    with pytest.raises(UserError, match="unknown column 'gradient'; did you mean 'gradient-norm'"):
        forgetgauge.adversary(columns=["gradient"])(len)


# -- parameters ------------------------------------------------------------------------------------------------------


def test_its_further_arguments_are_parameters():
    assert {name: one.default for name, one in parameters_of(confidence).items()} == {"power": 1.0}
    squared = adjusted(confidence, completed("x", confidence, {"power": 2}, ()))
    world = draw_world(88)
    np.testing.assert_allclose(squared(world.target), world.target.read("confidence") ** 2)
    assert squared.needs == confidence.needs


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"powr": 2.0}, "x: unknown key 'powr'; did you mean 'power'"),
        ({"power": "much"}, "x.power = 'much' is not a number"),
        ({"power": True}, "x.power = True is not a number"),
    ],
)
def test_a_parameter_that_does_not_fit_is_one_line(given, words):
    with pytest.raises(UserError, match=words):
        completed("x", confidence, given, ())
