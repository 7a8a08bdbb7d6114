"""What a metric of unlearning should satisfy, and by how much one fails: the paper's grounds for Q.

Grounding: Retrain is at the metric's ideal. Order: with more of what makes a model remember (a larger privacy budget ε)
no method scores better. Consistency: methods rank alike at every value. Each is judged with intervals, since a bare
number out of order may be noise.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import ArrayLike

from forgetgauge.game.arrays import frozen_floats
from forgetgauge.game.comparison import kendall_tau

Bounds = tuple[float, float]


def is_grounded(interval: Bounds, ideal: float) -> bool:
    """Whether Retrain's interval holds the value the metric gives where nothing is left to see."""
    return interval[0] <= ideal <= interval[1]


@dataclass(frozen=True)
class SweepSteps:
    """From one swept value to the next, over all methods."""

    rises: int
    """Steps after which the score is higher."""
    falls: int
    sure_rises: int
    """Rises after which the two intervals do not meet."""
    sure_falls: int
    total: int


def steps_of(ways: Sequence[Sequence[tuple[float, Bounds | None]]]) -> SweepSteps:
    """Each way is one method's (score, interval) at the swept values in order; without intervals no step is sure."""
    steps = [(before, after) for way in ways for before, after in pairwise(way)]
    sure = [(old[1], new[1]) for old, new in steps if old[1] is not None and new[1] is not None]
    return SweepSteps(
        rises=sum(new[0] > old[0] for old, new in steps),
        falls=sum(new[0] < old[0] for old, new in steps),
        sure_rises=sum(new[0] > old[1] for old, new in sure),
        sure_falls=sum(new[1] < old[0] for old, new in sure),
        total=len(steps),
    )


def mean_tau(scores: ArrayLike) -> float | None:
    """Kendall's τ_b of the methods' rankings, averaged over every two swept values; (n_values, n_methods).

    A value that ties all methods agrees with nobody and counts as 0; None below two values or two methods.
    """
    values = frozen_floats(scores, "scores")
    if values.ndim != 2 or min(values.shape) < 2:
        return None
    found = [kendall_tau(one, other) for one, other in combinations(values, 2)]
    return float(np.mean(np.nan_to_num(found)))
