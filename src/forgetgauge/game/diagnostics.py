"""Numbers that others report about a score, averaged over a swap pair. Diagnostics, not Q: they bound or illustrate it.

Scores are larger where an adversary is surer of "forgotten"; they may be infinite. Everything is weighted by P_D. None
of these has a threshold fixed before F and T were seen, so none is an advantage of a declared adversary. In particular
the KS envelope takes its threshold from the very points it is evaluated on: it is positive even for Retrain, by about
0.87/√k with two retrained models that have nothing in common. Only one model shared by both sides gives 0.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from forgetgauge.game.arrays import Bools, Floats, Ints, frozen_bools, frozen_floats
from forgetgauge.game.sensitivity import checked


@dataclass(frozen=True)
class Diagnostics:
    """One score on one swap pair."""

    auc: float
    """Mean of the two sides' areas under the ROC curve; exactly ½ for one model shared by both sides."""
    ks_envelope: float
    """max_t |½(Adv_s(t) + Adv_s'(t))|: no one threshold on this score has a larger SWAP advantage on this pair."""


def diagnose(scores: ArrayLike, scores_swapped: ArrayLike, in_forget: ArrayLike, weight: ArrayLike) -> Diagnostics:
    """All diagnostics of one pair; scores of the two sides' models over the same points, (2k,) each."""
    sets = _sets(in_forget, weight)
    first, second = _ranked(scores, sets), _ranked(scores_swapped, sets)
    return Diagnostics(
        auc=0.5 + (_auc(first) - _auc(second)) / 2,
        ks_envelope=_swap_ks(first, second),
    )


def auc(scores: ArrayLike, in_forget: ArrayLike, weight: ArrayLike) -> float:
    """P(score of F > score of T) + ½P(equal), for one split."""
    return _auc(_ranked(scores, _sets(in_forget, weight)))


def swap_auc(scores: ArrayLike, scores_swapped: ArrayLike, in_forget: ArrayLike, weight: ArrayLike) -> float:
    """½(AUC_s + AUC_s'); by AUC_s' = 1 − AUC with F and T exchanged, exactly ½ when both sides share a model."""
    return 0.5 + (auc(scores, in_forget, weight) - auc(scores_swapped, in_forget, weight)) / 2


@dataclass(frozen=True, eq=False)
class _Sets:
    """Which points are in F, and each point's share of the mass of its set."""

    in_forget: Bools
    share_of_forget: Floats
    share_of_unseen: Floats


@dataclass(frozen=True, eq=False)
class _Tail:
    """The scores of one set, sorted: how much of the set lies at or above any threshold."""

    share: Floats
    """(k,) of the set's mass, as the points came."""
    order: Ints
    """(k,) which of them has the smallest score, the second smallest, …"""
    ascending: Floats
    """(k,) the scores in that order."""
    at_or_above: Floats
    """(k + 1,) mass of each of ``ascending`` and all that follow; 0 at the end."""

    @staticmethod
    def of(scores: Floats, share: Floats) -> "_Tail":
        order = np.argsort(scores)
        at_or_above = np.zeros(len(scores) + 1)
        at_or_above[:-1] = np.cumsum(share[order][::-1])[::-1]
        return _Tail(share, order, scores[order], at_or_above)

    def beyond(self, thresholds: Floats) -> Floats:
        """The share at or above each threshold; quickest when these ascend."""
        return self.at_or_above[self.ascending.searchsorted(thresholds, side="left")]


@dataclass(frozen=True, eq=False)
class _Ranked:
    """One model's scores of the two sets, sorted once for all diagnostics."""

    forget: _Tail
    unseen: _Tail


def _auc(ranked: _Ranked) -> float:
    ascending, forget = ranked.unseen.ascending, ranked.forget
    first = np.concatenate([[True], ascending[1:] != ascending[:-1]])  # where each distinct score of T begins
    mass = -np.diff(ranked.unseen.at_or_above[:-1][first], append=0.0)
    cumulative = np.concatenate([[0.0], np.cumsum(mass)])
    below, up_to = (ascending[first].searchsorted(forget.ascending, side=end) for end in ("left", "right"))
    beaten = np.empty(len(forget.order))  # searched in ascending order, which is several times as fast
    beaten[forget.order] = cumulative[below] + cumulative[up_to]
    return float(forget.share @ beaten / 2)


def _swap_ks(first: _Ranked, second: _Ranked) -> float:
    thresholds = _merged(first, second)
    return float(np.abs(_signed_curve(first, thresholds) - _signed_curve(second, thresholds)).max()) / 2


def _merged(*models: _Ranked) -> Floats:
    """All scores of these models in ascending order."""
    runs = [its.ascending for ranked in models for its in (ranked.forget, ranked.unseen)]
    return np.sort(np.concatenate(runs), kind="stable")  # which notices runs and merges them


def _signed_curve(ranked: _Ranked, thresholds: Floats) -> Floats:
    """Share of F minus share of T at or above each threshold."""
    return ranked.forget.beyond(thresholds) - ranked.unseen.beyond(thresholds)


def _ranked(scores: ArrayLike, sets: _Sets) -> _Ranked:
    values = np.array(scores, dtype=np.float64)
    if np.isnan(values).any():
        raise ValueError(f"scores must be numbers, but {int(np.isnan(values).sum())} of them are not")
    if values.shape != sets.in_forget.shape:
        raise ValueError(f"scores {values.shape} and in_forget {sets.in_forget.shape} must be of the same points")
    return _Ranked(
        _Tail.of(values[sets.in_forget], sets.share_of_forget), _Tail.of(values[~sets.in_forget], sets.share_of_unseen)
    )


def _sets(in_forget: ArrayLike, weight: ArrayLike) -> _Sets:
    side, mass = frozen_bools(in_forget, "in_forget"), frozen_floats(weight, "weight")
    if side.ndim != 1 or side.shape != mass.shape:
        raise ValueError(f"in_forget {side.shape} and weight {mass.shape} must be of the same points")
    for name, members in (("forget", side), ("unseen", ~side)):
        if not mass[members].sum() > 0:
            raise ValueError(f"the {name} set has no mass, so its scores cannot be ranked")
    return _Sets(side, *(checked(mass[members], int(members.sum())) for members in (side, ~side)))
