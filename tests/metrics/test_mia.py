"""MIA scores against scikit-learn, and the paper's six points: accuracy depends on the split, the swap does not."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from forgetgauge.game.advantage import swap_advantage
from forgetgauge.metrics.scores import best_attack, mia_accuracy, mia_score, offset_mia_accuracy, swap_mia_score

TENTHS = np.array([7, 4, 3, 1, 6, 8])  # A … F, in tenths
BUMPS = (0, 1, 2)  # Retrain, and two methods that leave forgotten points 0.1 and 0.2 more suspicious
ONES = np.ones(6)
ABC, DEF = (0, 1, 2), (3, 4, 5)
ALL_SPLITS = list(combinations(range(6), 3))


def forgotten(forget: tuple[int, ...]) -> np.ndarray:
    return np.isin(np.arange(6), forget)


def says_forget(forget: tuple[int, ...], bump: int) -> np.ndarray:
    return TENTHS + bump * forgotten(forget) >= 5


def accuracies(forget: tuple[int, ...]) -> list[float]:
    return [mia_accuracy(says_forget(forget, bump), forgotten(forget), ONES) for bump in BUMPS]


def offsets(forget: tuple[int, ...]) -> list[float]:
    retrain = says_forget(forget, 0)
    return [offset_mia_accuracy(says_forget(forget, bump), retrain, forgotten(forget), ONES) for bump in BUMPS]


def test_the_papers_example_accuracy_depends_on_the_split():
    assert accuracies(ABC) == pytest.approx([1 / 3, 1 / 2, 2 / 3])
    assert accuracies(DEF) == pytest.approx([2 / 3, 2 / 3, 2 / 3])


def test_the_papers_example_offsetting_by_retrain_does_not_help():
    assert offsets(ABC) == pytest.approx([0, 1 / 6, 1 / 3])
    assert offsets(DEF) == pytest.approx([0, 0, 0])


def test_the_papers_example_the_swap_gives_the_same_for_all_twenty_splits():
    for forget in ALL_SPLITS:
        unseen = tuple(point for point in range(6) if point not in forget)
        found = [
            swap_advantage(says_forget(forget, bump), says_forget(unseen, bump), forgotten(forget), ONES)
            for bump in BUMPS
        ]
        assert found == pytest.approx([0, 1 / 6, 1 / 3])


def test_over_all_splits_of_the_example_the_offset_takes_several_values_for_one_method():
    assert len({round(offsets(forget)[1], 12) for forget in ALL_SPLITS}) > 1


def test_the_mia_score_of_one_split_is_not_grounded_and_that_of_the_swap_is():
    """Retrain: one model whose scores know nothing of the split."""
    single = [mia_score(TENTHS, forgotten(forget), ONES) for forget in ALL_SPLITS]
    assert min(single) < 0.2 < 0.8 < max(single)
    for forget in ALL_SPLITS:
        assert swap_mia_score(TENTHS, TENTHS, forgotten(forget), ONES) == 0.5


scores_with_ties = st.lists(st.integers(-3, 3), min_size=4, max_size=40).filter(lambda s: len(s) % 2 == 0)


@given(scores_with_ties, st.integers(0, 2**32 - 1))
def test_the_mia_score_is_1_minus_scikit_learns_auc(scores, seed):
    in_forget = np.random.default_rng(seed).permutation(len(scores)) < len(scores) // 2
    weight = np.random.default_rng(seed).uniform(0.1, 1, len(scores))
    auc = roc_auc_score(in_forget, scores, sample_weight=weight)
    assert mia_score(scores, in_forget, weight) == pytest.approx(1 - auc, abs=1e-12)


@given(scores_with_ties, st.integers(0, 2**32 - 1))
def test_the_swaps_score_is_the_mean_of_the_two_sides(scores, seed):
    rng = np.random.default_rng(seed)
    in_forget, other = rng.permutation(len(scores)) < len(scores) // 2, rng.normal(size=len(scores))
    ones = np.ones(len(scores))
    sides = mia_score(scores, in_forget, ones), mia_score(other, ~in_forget, ones)
    assert swap_mia_score(scores, other, in_forget, ones) == pytest.approx(np.mean(sides), abs=1e-12)


def test_below_a_half_means_that_forgotten_points_look_like_members():
    in_forget = np.array([True, True, False, False])
    assert mia_score([4, 3, 2, 1], in_forget, np.ones(4)) == 0
    assert mia_score([1, 2, 3, 4], in_forget, np.ones(4)) == 1


def test_the_best_attack_has_the_lowest_score_in_the_mean():
    assert best_attack([[0.5, 0.4, 0.1], [0.5, 0.3, 0.9]]) == 1
