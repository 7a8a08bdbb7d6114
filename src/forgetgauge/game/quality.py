"""Unlearning Quality Q = 1 − sup_A Adv(A, Ul) over a declared set of adversaries, and its interval.

This is where the absolute value and the maximum are taken: once, after every average. ``supremum`` says what doing so
costs, and how to estimate Q without paying for it.
"""

from collections.abc import Sequence

import numpy as np

from forgetgauge.game.arrays import Floats, frozen_floats
from forgetgauge.game.intervals import ROUNDING, Interval


def best_adversary(advantages: Floats) -> int:
    """The index of the adversary of largest |signed advantage|; the first of them on a tie."""
    return first_largest(np.abs(_checked(advantages)))


def first_largest(values: Floats) -> int:
    """The index of the largest of (n,) values; the first of those that differ from it by no more than rounding."""
    return int(np.argmax(values >= values.max() - ROUNDING))


def quality_plugin(advantages: Floats) -> float:
    """1 − max_a |Adv_a| from the mean signed advantage of each adversary, (n_adversaries,); biased low."""
    return 1 - float(np.abs(_checked(advantages)).max())


def quality_interval(intervals: Sequence[Interval], level: float) -> Interval:
    """The interval for Q that holds whenever all the given signed intervals hold.

    ``level`` is the probability with which they hold together. Each puts |Adv_a| in [max(0, low, −high),
    max(|low|, |high|)]; the maximum over adversaries lies between the largest of the lower and of the upper ends.
    """
    if not intervals:
        raise ValueError("the quality needs the interval of at least one adversary")
    least = max(max(0.0, interval.low, -interval.high) for interval in intervals)
    most = max(max(abs(interval.low), abs(interval.high)) for interval in intervals)
    return Interval(max(0.0, 1 - most), max(0.0, 1 - least), level, intervals[0].basis)


def _checked(advantages: Floats) -> Floats:
    values = frozen_floats(advantages, "advantages")
    if values.ndim != 1 or values.size == 0 or np.abs(values).max() > 1:
        raise ValueError("advantages must be one number in [-1, 1] for each of at least one adversary")
    return values
