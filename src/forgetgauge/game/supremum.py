"""Three numbers for Q = 1 − sup_a |Adv_a| over the declared adversaries. Each has its own target.

* ``quality_plugin``: 1 − max_a |mean_a|, the paper's. Its target is Q, and it is biased low: |·| and max of noise.
* ``quality``: the adversary and its sign chosen on other pairs than those that score it. Unbiased (before clipping) for
  the adversary chosen, hence optimistic about the maximum: by about 0.1 at |F| = 5 (``crossfit``, docs/statistics.md).
* ``interval``: for Q itself at the level asked for, although the best adversary was looked for among J.

The two ends of the interval answer two questions. Its *upper* end ("some adversary has at least this advantage") must
survive the search, so it is Bonferroni's: max_a(|mean_a| − t_{1−α/2J} se_a). Its *lower* end ("none has more than
this") needs one interval to hold, that of the truly best adversary, whichever it is: max_a(|mean_a| + t_{1−α/2} se_a)
pays nothing for J. Together they miss in at most α: where the maximum m is large each end misses in at most α/2; where
it is near 0 the lower end cannot miss, and the upper one does in at most α. In between, with r = m/se of the noisiest
adversary, the miss is at most α/2 + min(α/2, P(|Z| + t_{1−α/2}S < r) + n(r)) + (J − 1)n(r), where n(r) =
P(Z > t_{1−α/2J}S + 2r) and S² ~ χ²/df. Integrated (tests/game/test_supremum.py), that is never above α + 0.0001 for
5 to 64 pairs and up to 64 adversaries, however they depend on each other, if the pairs' advantages are normal. A method
that fails in a few of its models is not normal: ``bounded`` is the interval that assumes no distribution.

An adversary of whose decisions none differs between the two models of any pair showed nothing, and with its
distribution-free interval nothing could be said of Q. It widens the lower end only where no other adversary decided
anything either.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from forgetgauge.game.advantage import PairOutcome
from forgetgauge.game.arrays import Floats
from forgetgauge.game.bounded import advantage_floor, lower_bounds
from forgetgauge.game.crossfit import CrossFitBasis, cross_fit
from forgetgauge.game.intervals import (
    Interval,
    IntervalKind,
    check_level,
    check_outcomes,
    signed_interval,
    simultaneous_intervals,
)
from forgetgauge.game.quality import best_adversary, quality_interval, quality_plugin


@dataclass(frozen=True)
class Supremum:
    """The Unlearning Quality of one method against a declared set of adversaries."""

    quality_plugin: float
    """1 − max_a |mean_a|; target Q, biased low."""
    quality: float
    """1 − the cross-fitted advantage, clipped to [0, 1]; target 1 − |Adv| of the adversary chosen."""
    crossfit_advantage: float
    """The cross-fitted advantage before clipping: negative where chance alone was chosen."""
    basis: CrossFitBasis
    """What ``quality`` was chosen and scored on: different pairs, or different points of the same models."""
    interval: Interval
    """For Q, the maximum included. ``quality_plugin`` lies in it, and nearly always ``quality``."""
    bounded: Interval
    """For Q, whatever the distribution of pairs: what a certificate is judged by."""
    best: int
    """The adversary of largest |mean| over all pairs."""


def estimate_supremum(outcomes: Sequence[PairOutcome], level: float = 0.95, kind: IntervalKind = "student") -> Supremum:
    """All of these numbers from the outcomes of a method's swap pairs; nothing is drawn."""
    by_pair = _by_pair(outcomes)
    advantage = by_pair.mean(axis=0)
    fitted = cross_fit(outcomes)
    return Supremum(
        quality_plugin=quality_plugin(advantage),
        quality=1 - float(np.clip(fitted.advantage, 0, 1)),
        crossfit_advantage=fitted.advantage,
        basis=fitted.basis,
        interval=supremum_interval(outcomes, level, kind),
        bounded=bounded_quality_interval(by_pair, level),
        best=best_adversary(advantage),
    )


def supremum_interval(outcomes: Sequence[PairOutcome], level: float = 0.95, kind: IntervalKind = "student") -> Interval:
    """The interval of Q: its upper end adjusted for the number of adversaries, its lower end free of it."""
    if kind == "bounded":
        return bounded_quality_interval(_by_pair(outcomes), level)
    together = simultaneous_intervals(outcomes, level)
    alone = [signed_interval(outcomes, which, level) for which in counted_below(outcomes)]
    return supremum_interval_of(together, alone, level)


def counted_below(outcomes: Sequence[PairOutcome]) -> list[int]:
    """The adversaries that count for the lower end: those of whose decisions any differs, all where none does."""
    decided = np.any([outcome.differences.any(axis=0) for outcome in outcomes], axis=0)  # (J,)
    return [int(which) for which in np.flatnonzero(decided if decided.any() else ~decided)]


def supremum_interval_of(together: Sequence[Interval], alone: Sequence[Interval], level: float) -> Interval:
    """The same from signed intervals: those that all hold with ``level`` together, and those that do one by one."""
    adjusted = quality_interval(together, level)
    return Interval(quality_interval(alone, level).low, adjusted.high, level, adjusted.basis)


def bounded_quality_interval(by_pair: Floats, level: float = 0.95) -> Interval:
    """For Q, from (P, J) signed advantages of any distribution; each end misses with at most (1 − level)/2.

    The upper end survives the search for the best adversary. The lower end needs one bound to hold, that of the truly
    best adversary with its sign, whichever it is.
    """
    check_level(level)
    tail = (1 - level) / 2
    most = -lower_bounds(np.concatenate([by_pair, -by_pair], axis=1).T, tail).min()
    return Interval(float(1 - most), float(1 - advantage_floor(by_pair, 1 - tail)), level, "over pairs")


def _by_pair(outcomes: Sequence[PairOutcome]) -> Floats:
    check_outcomes(outcomes)
    return np.array([outcome.advantage for outcome in outcomes])
