"""How many pairs are enough: Stein's two-stage rule.

The spread of n0 pilot pairs fixes the total N before another pair is run, and the final interval uses *that* spread
with the mean over all N pairs: mean ± t_{n0−1} s_pilot/√N. Means and spreads of normal pairs are independent, so the
interval keeps its level although N was chosen on the data, if pairs are normal. Looking at the interval after
every pair and stopping when it is narrow does not have that property.

The interval of Q that follows is at most 2h wide: its ends lie t_{1−α/2J} and t_{1−α/2} standard errors from |mean|
(``quality``), so N = ⌈((t_{1−α/2J} + t_{1−α/2})/2 · s_max/h)²⌉ pairs suffice, with s_max the largest pilot spread.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy import special

from forgetgauge.game.arrays import Floats, frozen_floats
from forgetgauge.game.intervals import MIN_PAIRS, Interval, agree, bounded_interval, check_level
from forgetgauge.game.quality import supremum_interval_of


def pairs_needed(pilot: Floats, half_width: float, level: float = 0.95, limit: int | None = None) -> int:
    """The total number of pairs, the pilot's included, after which the interval of Q has at most this half width.

    It is ``limit`` where more would be wanted, and never less than the pilot's number.
    ``pilot`` holds signed advantages, (n0 ≥ 5, n_adversaries). For several methods take the largest answer.
    """
    values = _checked(pilot, level)
    if not half_width > 0:
        raise ValueError(f"the wanted half width must be positive, but it is {half_width}")
    spread = float(values.std(axis=0, ddof=1).max())
    together, alone = (_quantile(values, each) for each in _levels(values, level))
    wanted = max(len(values), math.ceil(((together + alone) / 2 * spread / half_width) ** 2))
    return wanted if limit is None else max(len(values), min(wanted, limit))


def stein_intervals(by_pair: Floats, n_pilot: int, level: float = 0.95, *, together: bool = True) -> list[Interval]:
    """One signed interval per adversary, all of which hold with ``level``, ``together`` or each by itself; the pilot
    pairs come first.

    ``by_pair`` holds all signed advantages, (N, n_adversaries). Only the pilot's spread enters: it alone chose N.
    """
    pilot = _checked(by_pair[:n_pilot], level)
    return _around(by_pair, pilot, _levels(pilot, level)[0 if together else 1], level)


def stein_quality_interval(
    by_pair: Floats, n_pilot: int, level: float = 0.95, counted: Sequence[int] | None = None
) -> Interval:
    """The interval of Q after Stein's rule; at most 2h wide once ``pairs_needed`` pairs were run.

    That is, where no adversary's pilot pairs agree: its interval is then the distribution-free one. ``counted`` are the
    adversaries that count for the lower end, all where it is None (``quality.counted_below``).
    """
    together, alone = (stein_intervals(by_pair, n_pilot, level, together=both) for both in (True, False))
    return supremum_interval_of(together, alone if counted is None else [alone[which] for which in counted], level)


def _around(by_pair: Floats, pilot: Floats, each: float, level: float) -> list[Interval]:
    """Each two-sided at the level ``each``; ``level`` is what they are for."""
    centre = frozen_floats(by_pair, "advantages by pair").mean(axis=0)
    half = _quantile(pilot, each) * pilot.std(axis=0, ddof=1) / math.sqrt(len(by_pair))
    low, high = np.clip(centre - half, -1, 1), np.clip(centre + half, -1, 1)
    found = [Interval(float(a), float(b), level, "over pairs") for a, b in zip(low, high, strict=True)]
    for which in np.flatnonzero(agree(pilot)):  # a spread of 0 says nothing; the bounded interval lets N be chosen
        found[which] = replace(bounded_interval(by_pair[:, which], each), level=level)
    return found


def _levels(pilot: Floats, level: float) -> tuple[float, float]:
    """Of intervals that hold together (Bonferroni), and of one that holds alone."""
    return 1 - (1 - level) / pilot.shape[1], level


def _quantile(pilot: Floats, each: float) -> float:
    return float(special.stdtrit(len(pilot) - 1, (1 + each) / 2))


def _checked(pilot: Floats, level: float) -> Floats:
    check_level(level)
    values = frozen_floats(pilot, "pilot advantages")
    if values.ndim != 2 or len(values) < MIN_PAIRS or values.shape[1] == 0:
        raise ValueError(f"a pilot needs at least {MIN_PAIRS} pairs and one adversary, but its shape is {values.shape}")
    return values
