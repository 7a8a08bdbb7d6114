"""Membership inference as a score of unlearning, as the paper's Table 4 has it, and repaired as far as it can be.

MIA score = 1 − AUC of an attack's score on one split, F positive and T negative, ties ½. Its ideal is ½, not 1: below,
forgotten points look like members; above, they look *less* like members than unseen ones, which is as telling. On one
split it is not grounded: F and T differ before any training. Averaged over a swap it is, since AUC_s' = 1 − AUC_s for
one model.

Offset MIA accuracy = accuracy of the attack's decisions − its accuracy against Retrain on the same split (the paper's
appendix adds ½). Grounded by construction, and still a matter of the split: there is a six-point example where it is 0
for three different methods.
"""

import numpy as np
from numpy.typing import ArrayLike

from forgetgauge.game.advantage import signed_advantage
from forgetgauge.game.diagnostics import auc, swap_auc
from forgetgauge.game.quality import first_largest

IDEAL = 0.5


def mia_score(scores: ArrayLike, in_forget: ArrayLike, weight: ArrayLike) -> float:
    """1 − AUC on one split; scores are larger where the attack is surer of “forgotten”."""
    return 1 - auc(scores, in_forget, weight)


def swap_mia_score(scores: ArrayLike, scores_swapped: ArrayLike, in_forget: ArrayLike, weight: ArrayLike) -> float:
    """1 − the mean AUC of the two sides, whose scores are over the same points; ½ for one model shared by both."""
    return 1 - swap_auc(scores, scores_swapped, in_forget, weight)


def mia_accuracy(says_forget: ArrayLike, in_forget: ArrayLike, weight: ArrayLike) -> float:
    """½P(A=1 | F) + ½P(A=0 | T): the share of right answers on one split, since |F| = |T|."""
    return (1 + signed_advantage(says_forget, in_forget, weight)) / 2


def offset_mia_accuracy(
    says_forget: ArrayLike, says_forget_of_retrain: ArrayLike, in_forget: ArrayLike, weight: ArrayLike
) -> float:
    """Accuracy minus the same attack's accuracy against Retrain, on the same split; 0 is “like Retrain”."""
    accuracies = [mia_accuracy(said, in_forget, weight) for said in (says_forget, says_forget_of_retrain)]
    return accuracies[0] - accuracies[1]


def best_attack(scores: ArrayLike) -> int:
    """Which attack has the lowest mean score, of (n_pairs, n_attacks): the largest AUC, as the paper's “best”.

    Chosen on what it is scored on, hence biased low: below ½ even for Retrain. Q's own search is corrected for that.
    """
    return first_largest(-np.asarray(scores, dtype=np.float64).mean(axis=0))
