"""The ROC of a score over the swap pairs of a method: one threshold for both models of every pair, as the game has it.

At a threshold t, TPR(t) is the share of forgotten points that score at least t and FPR(t) that of unseen ones, each
averaged over both sides and all seeds of a pair, and over pairs. So TPR(t) − FPR(t) is the signed SWAP advantage of the
adversary that decides by t: for Retrain it is 0 on average, and where both sides share one model the curve is the
diagonal exactly. A threshold for each model by itself would not be fair in this way: it averages a curve with its
mirror image, and that mean lies above the diagonal where few false positives are allowed.

The band is for TPR at a false positive rate. Pairs are left out one by one (the jackknife), which moves the threshold
as another sample would; between two thresholds the curve of the others is straight, as a coin makes it. Where at least
six wrong calls are allowed, 95 % bands contained the true rate in 90 to 99 % of simulated games (docs/statistics.md).
An adversary that was chosen on the same pairs is taken as given.

Scores are larger where an adversary is surer of "forgotten", and may be infinite. Thresholds are taken from the points
that they are judged on: a diagnostic, as in ``diagnostics``, not the advantage of a declared adversary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy import special

from forgetgauge.game.arrays import Bools, Floats, Ints
from forgetgauge.game.intervals import MIN_PAIRS, ROUNDING, bounded_interval, check_level

PER_DECADE = 10
LEAST_RATE, LEAST_WRONG = 1e-5, 3
_TOLERANCE = 1e-12  # sums of weights in another order differ by rounding; a limit must still include its own value


@dataclass(frozen=True, eq=False)
class ScoredPair:
    """What an adversary scored the points of one swap pair."""

    scores: Floats
    """(2 sides, n_seeds, 2k)."""
    in_forget: Bools
    """(2k,) who is in F of the first side."""
    weight: Floats
    """(2k,) P_D in any scale."""

    def shares(self, *, forgotten: bool) -> Floats:
        """(2 · n_seeds · 2k,) of the mass of F, or of T, of all models together; 0 elsewhere."""
        members = np.stack([self.in_forget, ~self.in_forget])[:, None] == forgotten  # (2, 1, 2k)
        mass = np.broadcast_to(members * self.weight, self.scores.shape)
        return np.asarray(mass / mass.sum(axis=2, keepdims=True) / (mass.shape[0] * mass.shape[1])).ravel()


@dataclass(frozen=True, eq=False)
class Roc:
    """Points of the curve, from few false positives to all."""

    fpr: Floats
    """(G,)."""
    tpr: Floats
    """(G,)."""
    by_pair: Floats
    """(P, G) share of forgotten points that reach the same thresholds, of each pair."""
    pseudo: Floats
    """(P, G) TPR at the same FPR: P times that of all pairs less P − 1 times that of all others."""

    def band(self, level: float = 0.95) -> list[tuple[float, float]] | None:
        """For TPR at each FPR on its own, over pairs; None below five of them."""
        check_level(level)
        n_pairs = len(self.pseudo)
        if n_pairs < MIN_PAIRS:
            return None
        half = special.stdtrit(n_pairs - 1, (1 + level) / 2) * self.pseudo.std(axis=0, ddof=1) / sqrt(n_pairs)
        ends = [(max(0.0, rate - one), min(1.0, rate + one)) for rate, one in zip(self.tpr, half, strict=True)]
        all_agree = np.ptp(self.pseudo, axis=0) < ROUNDING
        for place in np.flatnonzero(all_agree & (self.fpr < 1 - ROUNDING)):
            found = bounded_interval(self.by_pair[:, place], level)
            ends[place] = max(0.0, found.low), found.high
        return ends


def rates(n_unseen: int) -> Floats:
    """The false positive rates that a curve over so many unseen points is drawn at, evenly spaced on a log axis; at
    the smallest, a few of them are wrongly called."""
    least = max(LEAST_RATE, LEAST_WRONG / n_unseen)
    each = 10.0 ** (-np.arange(round(-np.log10(LEAST_RATE)) * PER_DECADE + 1)[::-1] / PER_DECADE)
    return np.asarray(each[each >= min(1.0, least) * (1 - 1e-9)])


def swap_roc(pairs: Sequence[ScoredPair], limits: Floats) -> Roc:
    """At each limit the point of the curve with the most false positives that are within it; a point stands once."""
    ranked = _Ranked(pairs)
    true, false = ranked.curves()
    within = np.unique(_within(false, np.asarray(limits)))
    fpr, tpr, n_pairs = false[within], true[within], len(pairs)
    by_pair, pseudo = np.empty((2, n_pairs, len(within)))
    for place in range(n_pairs):
        own_true, own_false = ranked.curves(place)
        others = [(n_pairs * of - own) / max(1, n_pairs - 1) for of, own in ((false, own_false), (true, own_true))]
        by_pair[place] = own_true[within]
        pseudo[place] = n_pairs * tpr - (n_pairs - 1) * np.interp(fpr + _TOLERANCE, others[0], others[1])
    return Roc(fpr, tpr, by_pair, pseudo)


def tpr_within(pairs: Sequence[ScoredPair], limit: float) -> float:
    """TPR at the lowest threshold, the same for all models, at which FPR is at most the limit; no interpolation."""
    true, false = _Ranked(pairs).curves()
    return float(true[_within(false, np.array(limit))])


def _within(false: Floats, limits: Floats) -> Ints:
    """The last place at which the false positive rate is at most the limit."""
    return np.asarray(false.searchsorted(limits + _TOLERANCE, side="right") - 1)


class _Ranked:
    """The scores of all pairs, the largest first; of equal ones all are reached or none."""

    def __init__(self, pairs: Sequence[ScoredPair]) -> None:
        scores = np.concatenate([pair.scores.ravel() for pair in pairs])
        if np.isnan(scores).any():
            raise ValueError(f"scores must be numbers, but {int(np.isnan(scores).sum())} of them are not")
        self.pairs, self.order = pairs, np.argsort(-scores, kind="stable")
        falling = scores[self.order]
        self.last = np.append(falling[1:] != falling[:-1], True)

    def curves(self, only: int | None = None) -> tuple[Floats, Floats]:
        """Shares of F and of T at or above each distinct score, after a 0: of one pair, or the mean over all."""
        true, false = (self._curve(only, forgotten=forgotten) for forgotten in (True, False))
        return true, false

    def _curve(self, only: int | None, *, forgotten: bool) -> Floats:
        n_pairs = len(self.pairs)
        each = [
            pair.shares(forgotten=forgotten) * (1 / n_pairs if only is None else place == only)
            for place, pair in enumerate(self.pairs)
        ]
        return np.append(0.0, np.cumsum(np.concatenate(each)[self.order])[self.last])
