"""Three numbers for Q = 1 − sup_a |Adv_a| over the declared adversaries. Each has its own target.

* ``quality_plugin``: 1 − max_a |mean_a|, the paper's. Its target is Q, and it is biased low: |·| and max of noise.
* ``quality``: the adversary and its sign chosen on other pairs than those that score it. Unbiased (before clipping) for
  the adversary chosen, hence a little optimistic about the maximum (``crossfit``).
* ``interval``: holds Q itself with the level asked for, although the best adversary was looked for among J.

The two ends of the interval answer two questions. Its *upper* end ("some adversary has at least this advantage") must
survive the search, so it is Bonferroni's: max_a(|mean_a| − t_{1−α/2J} se_a). Its *lower* end ("none has more than
this") needs one interval to hold, that of the truly best adversary, whichever it is: max_a(|mean_a| + t_{1−α/2} se_a)
pays nothing for J. Together they miss in at most α: where the maximum m is large each end misses in at most α/2; where
it is near 0 the lower end cannot miss, and the upper one does in at most α. In between, with r = m/se of the noisiest
adversary, the miss is at most α/2 + min(α/2, P(|Z| + t_{1−α/2}S < r) + n(r)) + (J − 1)n(r), where n(r) =
P(Z > t_{1−α/2J}S + 2r) and S² ~ χ²/df. Integrated (tests/game/test_supremum.py), that is never above α + 0.0001 for
5 to 64 pairs and up to 64 adversaries, however they depend on each other, if the pairs' advantages are normal.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from forgetgauge.game.advantage import PairOutcome
from forgetgauge.game.crossfit import CrossFitBasis, cross_fit
from forgetgauge.game.intervals import Interval, signed_interval, simultaneous_intervals
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
    """Holds Q, the maximum included. It holds ``quality_plugin`` too, and nearly always ``quality``."""
    best: int
    """The adversary of largest |mean| over all pairs."""


def estimate_supremum(outcomes: Sequence[PairOutcome], level: float = 0.95) -> Supremum:
    """All three numbers from the outcomes of a method's swap pairs; nothing is drawn."""
    interval = supremum_interval(outcomes, level)
    advantage = np.mean([outcome.advantage for outcome in outcomes], axis=0)
    fitted = cross_fit(outcomes)
    return Supremum(
        quality_plugin=quality_plugin(advantage),
        quality=1 - float(np.clip(fitted.advantage, 0, 1)),
        crossfit_advantage=fitted.advantage,
        basis=fitted.basis,
        interval=interval,
        best=best_adversary(advantage),
    )


def supremum_interval(outcomes: Sequence[PairOutcome], level: float = 0.95) -> Interval:
    """The interval of Q: its upper end adjusted for the number of adversaries, its lower end free of it."""
    together = simultaneous_intervals(outcomes, level)
    alone = [signed_interval(outcomes, adversary, level) for adversary in range(len(together))]
    return supremum_interval_of(together, alone, level)


def supremum_interval_of(together: Sequence[Interval], alone: Sequence[Interval], level: float) -> Interval:
    """The same from signed intervals: those that all hold with ``level`` together, and those that do one by one."""
    adjusted = quality_interval(together, level)
    return Interval(quality_interval(alone, level).low, adjusted.high, level, adjusted.basis)


def advantage_floor(outcomes: Sequence[PairOutcome], level: float = 0.95) -> float:
    """A lower confidence bound of sup_a |Adv_a|, one-sided, adjusted for the choice of adversary and of sign.

    max_a(|mean_a| − t_{1−α/2J} se_a), at least 0: it exceeds the truth in at most α, J adversaries of two signs each.
    """
    return 1 - quality_interval(simultaneous_intervals(outcomes, level), level).high
