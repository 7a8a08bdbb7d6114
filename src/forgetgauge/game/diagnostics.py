"""Numbers that others report about a score, averaged over a swap pair. Diagnostics, not Q: they bound or illustrate it.

Scores are larger where an adversary is surer of "forgotten"; they may be infinite. Everything is weighted by P_D. None
of these has a threshold fixed before F and T were seen, so none is an advantage of a declared adversary. In particular
the KS envelope takes its threshold from the very points it is evaluated on: it is positive even for Retrain, by about
0.87/√k with two retrained models that have nothing in common. Only one model shared by both sides gives 0.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from forgetgauge.game.arrays import Bools, Floats, frozen_bools, frozen_floats
from forgetgauge.game.sensitivity import checked

_TOLERANCE = 1e-12  # sums of weights in another order differ by rounding; a limit must still include its own value


@dataclass(frozen=True)
class Diagnostics:
    """One score on one swap pair."""

    auc: float
    """Mean of the two sides' areas under the ROC curve; exactly ½ for one model shared by both sides."""
    tpr_at_01_percent: float
    """Mean of the two sides' true positive rates at a false positive rate of at most 0.1 %."""
    tpr_at_1_percent: float
    """The same at 1 %."""
    ks_envelope: float
    """max_t |½(Adv_s(t) + Adv_s'(t))|: no one threshold on this score has a larger SWAP advantage on this pair."""


def diagnose(scores: ArrayLike, scores_swapped: ArrayLike, in_forget: ArrayLike, weight: ArrayLike) -> Diagnostics:
    """All diagnostics of one pair; scores of the two sides' models over the same points, (2k,) each."""
    return Diagnostics(
        auc=swap_auc(scores, scores_swapped, in_forget, weight),
        tpr_at_01_percent=swap_tpr_at_fpr(scores, scores_swapped, in_forget, weight, 0.001),
        tpr_at_1_percent=swap_tpr_at_fpr(scores, scores_swapped, in_forget, weight, 0.01),
        ks_envelope=swap_ks(scores, scores_swapped, in_forget, weight),
    )


def auc(scores: ArrayLike, in_forget: ArrayLike, weight: ArrayLike) -> float:
    """P(score of F > score of T) + ½P(equal), for one split."""
    values, side, mass = _checked(scores, in_forget, weight)
    grid = np.unique(values[~side])
    unseen = -np.diff(_share_at_or_above(grid, values[~side], mass[~side]), append=0.0)  # mass at each value of T
    forget = values[side]
    below, up_to = (np.searchsorted(grid, forget, side=end) for end in ("left", "right"))
    cumulative = np.concatenate([[0.0], np.cumsum(unseen)])
    return float(_shares(mass[side]) @ (cumulative[below] + cumulative[up_to]) / 2)


def swap_auc(scores: ArrayLike, scores_swapped: ArrayLike, in_forget: ArrayLike, weight: ArrayLike) -> float:
    """½(AUC_s + AUC_s'); by AUC_s' = 1 − AUC with F and T exchanged, exactly ½ when both sides share a model."""
    return 0.5 + (auc(scores, in_forget, weight) - auc(scores_swapped, in_forget, weight)) / 2


def tpr_at_fpr(scores: ArrayLike, in_forget: ArrayLike, weight: ArrayLike, limit: float) -> float:
    """The largest share of F at or above a threshold that at most a share ``limit`` of T reaches; no interpolation."""
    if not 0 <= limit <= 1:
        raise ValueError(f"a false positive rate lies in [0, 1], but the limit is {limit}")
    values, side, mass = _checked(scores, in_forget, weight)
    grid = np.unique(values)
    false_rate = _share_at_or_above(grid, values[~side], mass[~side])
    true_rate = _share_at_or_above(grid, values[side], mass[side])
    return float(true_rate[false_rate <= limit + _TOLERANCE].max(initial=0.0))


def swap_tpr_at_fpr(
    scores: ArrayLike, scores_swapped: ArrayLike, in_forget: ArrayLike, weight: ArrayLike, limit: float
) -> float:
    """The mean of the two sides, each with its own threshold."""
    swapped = ~frozen_bools(in_forget, "in_forget")
    return (tpr_at_fpr(scores, in_forget, weight, limit) + tpr_at_fpr(scores_swapped, swapped, weight, limit)) / 2


def ks(scores: ArrayLike, in_forget: ArrayLike, weight: ArrayLike) -> float:
    """max_t |TPR(t) − FPR(t)| of one split: the two-sample Kolmogorov–Smirnov distance, above 0 without any signal."""
    values, side, mass = _checked(scores, in_forget, weight)
    return float(np.abs(_signed_curve(np.unique(values), values, side, mass)).max())


def swap_ks(scores: ArrayLike, scores_swapped: ArrayLike, in_forget: ArrayLike, weight: ArrayLike) -> float:
    """max_t |½(Adv_s(t) + Adv_s'(t))| with one threshold for both sides; 0 when they share a model."""
    first, side, mass = _checked(scores, in_forget, weight)
    second = _checked(scores_swapped, in_forget, weight)[0]
    grid = np.unique(np.concatenate([first, second]))
    both = _signed_curve(grid, first, side, mass) - _signed_curve(grid, second, side, mass)
    return float(np.abs(both).max()) / 2


def _signed_curve(grid: Floats, values: Floats, side: Bools, mass: Floats) -> Floats:
    """Share of F minus share of T at or above each threshold of the grid."""
    above_forget = _share_at_or_above(grid, values[side], mass[side])
    return above_forget - _share_at_or_above(grid, values[~side], mass[~side])


def _share_at_or_above(grid: Floats, values: Floats, mass: Floats) -> Floats:
    """Share of the mass of ``values`` at or above each threshold."""
    order = np.argsort(values)
    tail = np.concatenate([np.cumsum(_shares(mass)[order][::-1])[::-1], [0.0]])
    return np.asarray(tail[np.searchsorted(values[order], grid, side="left")], dtype=np.float64)


def _shares(mass: Floats) -> Floats:
    return checked(mass, len(mass))


def _checked(scores: ArrayLike, in_forget: ArrayLike, weight: ArrayLike) -> tuple[Floats, Bools, Floats]:
    values = np.array(scores, dtype=np.float64)
    side, mass = frozen_bools(in_forget, "in_forget"), frozen_floats(weight, "weight")
    if np.isnan(values).any():
        raise ValueError(f"scores must be numbers, but {int(np.isnan(values).sum())} of them are not")
    if values.ndim != 1 or not values.shape == side.shape == mass.shape:
        raise ValueError(
            f"scores {values.shape}, in_forget {side.shape} and weight {mass.shape} must be of the same points"
        )
    for name, members in (("forget", side), ("unseen", ~side)):
        if not mass[members].sum() > 0:
            raise ValueError(f"the {name} set has no mass, so its scores cannot be ranked")
    return values, side, mass
