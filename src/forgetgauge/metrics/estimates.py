"""A score measured once per swap pair (or confused training set): its mean, and Student's t over these repetitions.

As for advantages (``game.intervals``) the target is the expectation over new splits and trainings, given the data.
Below ``MIN_PAIRS`` repetitions there is no interval, nor where they agree exactly: a ruined model has an IC score of 1
every time, and a spread of 0 would claim that for certain of new ones.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from forgetgauge.game.arrays import frozen_floats
from forgetgauge.game.intervals import MIN_PAIRS, agree, check_level


@dataclass(frozen=True)
class Estimate:
    """A mean and its interval."""

    value: float
    interval: tuple[float, float] | None
    """None below ``MIN_PAIRS`` repetitions, and where all agree."""


def over_pairs(
    by_pair: Sequence[float], level: float = 0.95, *, least: float = -math.inf, most: float = math.inf
) -> Estimate:
    """Of at least one repetition; the interval is cut where the score cannot be."""
    check_level(level)
    values = frozen_floats(by_pair, "scores by pair")
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(f"a mean over pairs needs at least one of them, but the shape is {values.shape}")
    mean = float(values.mean())
    if len(values) < MIN_PAIRS or agree(values):
        return Estimate(mean, None)
    standard_error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    half = float(special.stdtrit(len(values) - 1, (1 + level) / 2)) * standard_error
    return Estimate(mean, (max(least, mean - half), min(most, mean + half)))
