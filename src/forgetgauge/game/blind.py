"""How far F and T may differ by themselves: what a test that looked for a difference could have missed.

Where F was not drawn at random, a model that never saw F may tell it from T because the two differ. A test without the
model looks for such a difference first. Not to have found one is not to have shown that there is none: the upper
confidence limit of the difference is what a model's advantage has to exceed.
"""

import math

import numpy as np
from scipy.special import ndtr, ndtri

from forgetgauge.game.arrays import Floats
from forgetgauge.game.direction import mid_ranks


def n_answers_of_ranks(n_forget: int, n_unseen: int) -> float:
    """As many independent answers say as much as the ranks of F among F and T: 1.5 n where both have n points.

    Near chance 2·AUC − 1 has the variance (n_forget + n_unseen)/(3 · n_forget · n_unseen), a share of right answers
    turned into an advantage 1/n_answers.
    """
    return 3 * n_forget * n_unseen / (n_forget + n_unseen)


def advantage_limits(advantage: float, n_answers: float, tail: float) -> tuple[float, float]:
    """Lower and upper confidence limit of an advantage, each wrong with the chance `tail`: Wilson's, so that all
    answers being right does not make them certain."""
    z2 = float(ndtri(tail)) ** 2 / n_answers
    centre = advantage / (1 + z2)
    half = math.sqrt(z2 * ((1 - advantage * advantage) + z2)) / (1 + z2)
    return centre - half, centre + half


def best_linear_advantage(advantage: float, n_columns: int, n_forget: int, n_unseen: int) -> float:
    """The advantage of the best classifier, where one fitted on n_forget and n_unseen points has this one on others.

    For points that are normal in `n_columns` columns and shifted by δ standard deviations in some direction, a linear
    classifier finds the direction up to noise of variance n_columns (1/n_forget + 1/n_unseen), so that δ² /
    √(δ² + noise) deviations are left of δ. With many columns and few points it finds next to nothing.
    """
    if advantage <= 0:
        return 0.0
    if advantage >= 1:
        return 1.0
    left = 2 * float(ndtri((1 + advantage) / 2)) ** 2
    noise = n_columns * (1 / n_forget + 1 / n_unseen)
    shift2 = (left + math.sqrt(left * left + 4 * left * noise)) / 2
    return float(2 * ndtr(math.sqrt(shift2 / 2)) - 1)


def correlation_floor(one: Floats, other: Floats, tail: float) -> float:
    """Lower confidence limit of Spearman's rank correlation, wrong with the chance `tail`; −1 where nothing is known.

    By Fisher's transformation, with the variance (1 + ρ²/2)/(n − 3) of ranks (Bonett and Wright 2000).
    """
    n = len(one)
    if n < 4 or (one == one[0]).all() or (other == other[0]).all():
        return -1.0
    found = min(float(np.corrcoef(mid_ranks(one), mid_ranks(other))[0, 1]), 1 - 1e-12)
    deviation = math.sqrt((1 + found * found / 2) / (n - 3))
    return math.tanh(math.atanh(max(found, -1 + 1e-12)) + float(ndtri(tail)) * deviation)
