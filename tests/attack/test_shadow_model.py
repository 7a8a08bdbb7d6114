import dataclasses

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from forgetgauge.attack.adversary import Panel, TargetContext
from forgetgauge.attack.shadow_model import AWARE, ENOUGH_ROWS, PLAIN, sorted_posteriors

from .worlds import N_CLASSES, auc, draw_world, permuted, rows

TARGET = TargetContext(N_CLASSES)


def rows_of_class(panel: Panel, label: int):
    signals, member = panel.rows
    at = np.flatnonzero(signals.labels == label)
    return rows(signals, at), member[at]


def classifier(signals, member):
    pipeline = make_pipeline(StandardScaler(), LogisticRegression(class_weight="balanced", tol=1e-10, max_iter=10_000))
    return pipeline.fit(sorted_posteriors(signals), member)


@pytest.mark.parametrize("label", range(N_CLASSES))
def test_it_is_a_classifier_of_that_class_and_decides_by_one_half(label):
    world = draw_world(60)
    attack = PLAIN.fit(world.shadows, TARGET)
    of_class = rows(world.target, np.flatnonzero(world.target.labels == label))
    expected = classifier(*rows_of_class(world.shadows, label)).predict_proba(sorted_posteriors(of_class))[:, 1]
    np.testing.assert_allclose(1 / (1 + np.exp(-attack.score(of_class))), expected, atol=1e-5)
    assert np.array_equal(attack.decide(of_class), expected >= 0.5)


def test_a_class_with_few_rows_is_judged_by_the_classifier_of_all():
    world = draw_world(61)
    of_class = np.flatnonzero(world.shadows.labels == 1)
    few = np.setdiff1d(np.arange(200), of_class[8:])  # 8 points × 8 models: fewer than 50 a side
    shadows = permuted(world.shadows, np.arange(8), few)
    _, member = rows_of_class(shadows, 1)
    assert min(member.sum(), (~member).sum()) < ENOUGH_ROWS
    of_all = classifier(*shadows.rows)
    at = rows(world.target, np.flatnonzero(world.target.labels == 1))
    np.testing.assert_allclose(
        PLAIN.fit(shadows, TARGET).score(at), of_all.decision_function(sorted_posteriors(at)), atol=1e-5
    )


def test_the_features_are_the_sorted_log_posterior_and_the_true_labels():
    signals = draw_world(62).target
    found = sorted_posteriors(signals)
    expected = np.sort(np.log(signals.read("posterior")), axis=1)[:, ::-1]
    np.testing.assert_allclose(found[:, :-1], expected, atol=1e-12)
    np.testing.assert_allclose(found[:, -1], np.log(signals.read("confidence")), atol=1e-12)


def test_on_an_overfit_world_it_does_on_the_target_what_it_does_on_a_fresh_shadow():
    world, fresh = draw_world(63, boost=3.0, n=600), draw_world(64, boost=3.0, n=600)
    attack = PLAIN.fit(world.shadows, TARGET)
    signals, member = fresh.shadows.rows
    assert auc(attack.score(world.target), world.member) == pytest.approx(auc(attack.score(signals), member), abs=0.05)


def test_many_others_and_few_members_weigh_the_same():
    """Shadows that saw a tenth of their points still call about as many points members as others on the target."""
    shares = [
        PLAIN.fit(world.shadows, TARGET).decide(world.target).mean()
        for world in (draw_world(65, n=400, seen_share=0.1), draw_world(65, n=400, seen_share=0.9))
    ]
    assert shares[0] == pytest.approx(shares[1], abs=0.12)
    assert 0.3 < shares[0] < 0.7


def test_the_aware_attack_learns_from_what_was_forgotten_and_not_from_what_was_retained():
    world = draw_world(66)
    panel = world.unlearned_shadows
    garbled = np.where((panel.role == -1)[:, :, None], np.float32(9), panel.outputs)
    one, other = AWARE.fit(panel, TARGET), AWARE.fit(dataclasses.replace(panel, outputs=garbled), TARGET)
    assert np.array_equal(one.score(world.target), other.score(world.target))


@pytest.mark.parametrize("role", [0, 1])
def test_shadows_of_one_sort_are_refused(role):
    panel = dataclasses.replace(draw_world(67).shadows, role=np.full((8, 200), role, dtype=np.int8))
    with pytest.raises(ValueError, match="members and others"):
        PLAIN.fit(panel, TARGET)
