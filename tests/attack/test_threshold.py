import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forgetgauge.attack import signals as read
from forgetgauge.attack.adversary import TargetContext
from forgetgauge.attack.threshold import CONFIDENCE, CORRECTNESS, LOSS, best_threshold, class_thresholds

from .worlds import N_CLASSES, draw_shadow, draw_signals, draw_world, panel_of

TARGET = TargetContext(N_CLASSES)
FEW = st.lists(st.integers(0, 6), min_size=1, max_size=12)
EIGHT = st.lists(st.integers(0, 6), min_size=8, max_size=8)  # eighths are exact, so that rounding breaks no ties
MANY = st.lists(st.integers(0, 40), min_size=1, max_size=40)


def balanced_accuracy(threshold, members, others) -> Fraction:
    """½[P_in(a ≥ t) + P_out(a < t)], exactly."""
    above = Fraction(sum(m >= threshold for m in members), len(members))
    return (above + Fraction(sum(o < threshold for o in others), len(others))) / 2


def brute_force(members, others):
    """O(n²): try every observed value from the smallest on; the first of the best is kept."""
    return max(sorted({*members, *others}), key=lambda t: balanced_accuracy(t, members, others))


@settings(max_examples=200, deadline=None)
@given(members=FEW | MANY, others=FEW | MANY)
def test_no_observed_value_separates_better_than_the_threshold_chosen(members, others):
    chosen = best_threshold(np.array(members, dtype=float), np.array(others, dtype=float))
    assert chosen in {*members, *others}
    best = balanced_accuracy(brute_force(members, others), members, others)
    assert balanced_accuracy(chosen, members, others) == best


@settings(max_examples=200, deadline=None)
@given(members=EIGHT, others=EIGHT)
def test_of_several_best_thresholds_the_smallest_is_chosen(members, others):
    chosen = best_threshold(np.array(members, dtype=float), np.array(others, dtype=float))
    assert chosen == brute_force(members, others)


def test_rounding_does_not_decide_which_of_several_best_thresholds_is_chosen():
    members, others = [0] * 10 + [1, 2], [0] * 11 + [1]
    assert best_threshold(np.array(members, dtype=float), np.array(others, dtype=float)) == brute_force(members, others)


def test_a_gap_between_others_and_members_is_cut_at_the_smallest_member():
    assert best_threshold(np.array([0.7, 0.9]), np.array([0.1, 0.2])) == 0.7


def test_where_nothing_separates_everyone_is_a_member():
    assert best_threshold(np.array([1.0, 2.0]), np.array([1.0, 2.0])) == 1.0
    assert best_threshold(np.array([0.0]), np.array([5.0])) == 0.0


@settings(max_examples=50, deadline=None)
@given(members=FEW, others=FEW, seed=st.integers(0, 2**32))
def test_the_threshold_depends_neither_on_the_order_nor_on_repetition(members, others, seed):
    rng, members, others = np.random.default_rng(seed), np.array(members, dtype=float), np.array(others, dtype=float)
    chosen = best_threshold(members, others)
    assert best_threshold(rng.permutation(members), rng.permutation(others)) == chosen
    assert best_threshold(np.repeat(members, 3), np.tile(others, 2)) == chosen


def test_each_class_has_its_own_threshold():
    scores = np.array([0.1, 0.9, 0.4, 0.5])
    labels, member = np.array([0, 0, 1, 1]), np.array([False, True, False, True])
    assert class_thresholds(scores, labels, member, 2).tolist() == [0.9, 0.5]


def test_a_class_without_both_members_and_others_takes_the_threshold_of_all():
    scores = np.array([0.1, 0.9, 0.6, 0.7, 0.2])
    labels = np.array([0, 0, 1, 1, 2])
    member = np.array([False, True, True, True, False])
    of_all = brute_force([0.9, 0.6, 0.7], [0.1, 0.2])
    assert class_thresholds(scores, labels, member, 4).tolist() == [0.9, of_all, of_all, of_all]


def test_a_point_whose_score_is_the_threshold_is_said_to_be_a_member():
    shadows = draw_shadow(200, 3)
    attack, (signals, _) = CONFIDENCE.fit(shadows, TARGET), shadows.rows
    for label in range(N_CLASSES):
        on_it = (read.CONFIDENCE(signals) == attack.thresholds[label]) & (signals.labels == label)
        assert on_it.any()
        assert attack.decide(signals)[on_it].all()


def test_on_the_shadows_no_other_thresholds_do_better_in_any_class():
    shadows = draw_shadow(300, 4)
    signals, member = shadows.rows
    scores, labels = read.CONFIDENCE(signals), signals.labels
    thresholds = CONFIDENCE.fit(shadows, TARGET).thresholds
    for label in range(N_CLASSES):
        members, others = (scores[(labels == label) & side].tolist() for side in (member, ~member))
        best = max(balanced_accuracy(t, members, others) for t in [*members, *others])
        assert balanced_accuracy(thresholds[label], members, others) == best


def test_the_advantage_of_correctness_is_the_accuracy_gap():
    attack = CORRECTNESS.fit(draw_shadow(50, 0), TARGET)
    forget, unseen = draw_signals(200, 1, member_boost=2.0), draw_signals(200, 2)
    advantage = attack.decide(forget).mean() - attack.decide(unseen).mean()
    gap = np.mean(forget.outputs.argmax(1) == forget.labels) - np.mean(unseen.outputs.argmax(1) == unseen.labels)
    assert advantage == pytest.approx(gap, abs=1e-12)
    assert advantage > 0.1


def test_correctness_learns_nothing_from_the_shadows():
    one, other = CORRECTNESS.fit(draw_shadow(50, 0), TARGET), CORRECTNESS.fit(draw_shadow(90, 1, boost=-3.0), TARGET)
    assert np.array_equal(one.arrays()["thresholds"], other.arrays()["thresholds"])


@pytest.mark.parametrize("member", [True, False])
def test_shadows_without_both_members_and_others_are_refused(member):
    signals = draw_signals(20, 0)
    with pytest.raises(ValueError, match=r"members|others"):
        CONFIDENCE.fit(panel_of(signals, np.full(20, member)), TARGET)


def test_the_loss_attack_says_member_where_the_loss_is_at_most_the_mean_training_loss():
    shadows, target = draw_world(5).shadows, draw_world(6).target
    losses = [
        -math.log(shadows.model(j).read("posterior")[x, y])
        for j in range(shadows.n_models)
        for x, y in enumerate(shadows.labels)
        if shadows.role[j, x] == 1
    ]
    attack = LOSS.fit(shadows, TARGET)
    np.testing.assert_allclose(attack.thresholds, np.full(N_CLASSES, -np.mean(losses)), rtol=0, atol=1e-9)
    says = [-math.log(p) <= np.mean(losses) for p in target.read("confidence")]
    assert attack.decide(target).tolist() == says


MODULES = ["adversary", "signals", "threshold", "reference", "lira", "rmia", "quantile", "shadow_model"]


@pytest.mark.parametrize("module", MODULES)
def test_attacks_need_no_torch_and_load_scikit_learn_only_to_fit_with_it(module):
    code = f"import sys, forgetgauge.attack.{module}; sys.exit('torch' in sys.modules or 'sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-W", "error", "-c", code], check=False).returncode == 0
