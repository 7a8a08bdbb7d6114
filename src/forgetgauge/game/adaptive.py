"""How many pairs are enough: Stein's two-stage rule.

The spread of n0 pilot pairs fixes the total N before another pair is run, and the final interval uses *that* spread
with the mean over all N pairs: mean ± t_{n0−1} s_pilot/√N. Means and spreads of normal pairs are independent, so the
interval holds at its level although N was chosen on the data. Looking at the interval after every pair and stopping
when it is narrow does not have that property.

The interval of Q that follows is at most 2h wide: its ends lie t_{1−α/2J} and t_{1−α/2} standard errors from |mean|
(``supremum``), so N = ⌈((t_{1−α/2J} + t_{1−α/2})/2 · s_max/h)²⌉ pairs suffice, with s_max the largest pilot spread.
"""

import math
from dataclasses import dataclass

import numpy as np

from forgetgauge.game import student
from forgetgauge.game.arrays import Floats, frozen_floats
from forgetgauge.game.intervals import MIN_PAIRS, Interval, check_level
from forgetgauge.game.supremum import supremum_interval_of


@dataclass(frozen=True)
class PairBudget:
    """What the pilot says is needed."""

    n_pairs: int
    """How many pairs to run in all, the pilot's included."""
    n_wanted: int
    """How many the wanted half width takes; more than ``n_pairs`` where the limit cut it short."""


def pairs_needed(pilot: Floats, half_width: float, level: float = 0.95, limit: int | None = None) -> PairBudget:
    """The total number of pairs after which the interval of Q has at most this half width.

    ``pilot`` holds signed advantages, (n0 ≥ 5, n_adversaries). For several methods take the largest answer.
    """
    values = _checked(pilot, level)
    if not half_width > 0:
        raise ValueError(f"the wanted half width must be positive, but it is {half_width}")
    spread = float(values.std(axis=0, ddof=1).max())
    together, alone = _quantiles(values, level)
    wanted = max(len(values), math.ceil(((together + alone) / 2 * spread / half_width) ** 2))
    return PairBudget(wanted if limit is None else max(len(values), min(wanted, limit)), wanted)


def stein_intervals(by_pair: Floats, n_pilot: int, level: float = 0.95) -> list[Interval]:
    """One signed interval per adversary, all of which hold together with ``level``; the pilot pairs come first.

    ``by_pair`` holds all signed advantages, (N, n_adversaries). Only the pilot's spread enters: it alone chose N.
    """
    pilot = _checked(by_pair[:n_pilot], level)
    return _around(by_pair, pilot, _quantiles(pilot, level)[0], level)


def stein_quality_interval(by_pair: Floats, n_pilot: int, level: float = 0.95) -> Interval:
    """The interval of Q after Stein's rule; at most 2h wide once ``pairs_needed`` pairs were run."""
    pilot = _checked(by_pair[:n_pilot], level)
    together, alone = (_around(by_pair, pilot, quantile, level) for quantile in _quantiles(pilot, level))
    return supremum_interval_of(together, alone, level)


def _around(by_pair: Floats, pilot: Floats, quantile: float, level: float) -> list[Interval]:
    centre = frozen_floats(by_pair, "advantages by pair").mean(axis=0)
    half = quantile * pilot.std(axis=0, ddof=1) / math.sqrt(len(by_pair))
    low, high = np.clip(centre - half, -1, 1), np.clip(centre + half, -1, 1)
    return [Interval(float(a), float(b), level, "over pairs") for a, b in zip(low, high, strict=True)]


def _quantiles(pilot: Floats, level: float) -> tuple[float, float]:
    """t quantiles of intervals that hold together and of one that holds alone."""
    n_pilot, n_adversaries = pilot.shape
    tail = (1 - level) / 2
    together, alone = (student.quantile(1 - share, n_pilot - 1) for share in (tail / n_adversaries, tail))
    return together, alone


def _checked(pilot: Floats, level: float) -> Floats:
    check_level(level)
    values = frozen_floats(pilot, "pilot advantages")
    if values.ndim != 2 or len(values) < MIN_PAIRS or values.shape[1] == 0:
        raise ValueError(f"a pilot needs at least {MIN_PAIRS} pairs and one adversary, but its shape is {values.shape}")
    return values
