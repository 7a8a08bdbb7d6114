"""What the values of a strength that were tried say of a price: which one is taken, and which ruin a model.

Values are tested from the weakest upwards, and the search stops at the first that is not shown to keep the price. So a
strength is taken only if every weaker one keeps it too, and for one that costs too much to be taken, the first of these
must pass by luck: that there are many adds nothing (decision 0043).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, stdev

from scipy.special import stdtrit

from forgetgauge.results.record import TriedStrength, TuningResult

RUINED = 10.0
"""Prices: what may cost more nobody would use."""
_NEARLY = 1e-12


def loss_and_reach(lost: Sequence[float], level: float) -> tuple[float, float]:
    """(mean, how far Student's one-sided bounds at this level are from it)."""
    return fmean(lost), float(stdtrit(len(lost) - 1, level)) * stdev(lost) / math.sqrt(len(lost))


def is_within(bound: float, price: float) -> bool:
    """Whether a loss that may be as large as this is no more than the price."""
    return bound <= price + _NEARLY


def holds(tried: TriedStrength, price: float) -> bool:
    """Whether a strength costs no more than the price, by the upper end of what its models show."""
    return tried.bound is not None and is_within(tried.bound, price)


def strongest_kept(tried: Sequence[TriedStrength], price: float) -> TriedStrength | None:
    """The last value before the first that does not hold, of values from the weakest to the strongest.

    Values at which jobs failed were not tried: they neither hold nor stop the search.
    """
    best = None
    for one in tried:
        if holds(one, price):
            best = one
        elif one.bound is not None or one.diverged:
            break
    return best


def is_cliff(tried: Sequence[TriedStrength], value: float) -> bool:
    """Whether a model diverged at the value next beyond this one: then it may diverge here as well, in other models."""
    beyond = [
        one for one in tried[[one.value for one in tried].index(value) + 1 :] if one.bound is not None or one.diverged
    ]
    return bool(beyond) and beyond[0].diverged


def is_ruined(tried: TriedStrength, price: float) -> bool:
    """Whether a strength may cost ten prices, leaves models without numbers, or is not known, since its jobs failed."""
    return tried.bound is None or tried.bound > RUINED * price


def stepped_back(found: TuningResult) -> bool:
    """Whether the value before the strongest that keeps the price was taken, because a model diverged beyond that."""
    best = strongest_kept(found.tried, found.price)
    values = [one.value for one in found.tried]
    return best is not None and found.chosen in values and values.index(found.chosen) < values.index(best.value)


def kept_again(found: TuningResult) -> TriedStrength | None:
    """The strongest value that keeps the price beyond one that costs its models more than that on average, or at which
    one diverged: what a search from the strong end would have taken. None where there is no such value."""
    too_much, again = False, None
    for one in found.tried:
        if one.diverged or (one.loss is not None and one.loss > found.price):
            too_much = True
        elif too_much and holds(one, found.price) and one.value != found.chosen:
            again = one
    return again


def ruined_between(found: TuningResult, one: float, other: float) -> list[float]:
    """The values between two that ruined shadow models: no curve is to be drawn across them."""
    low, high = sorted((one, other))
    return [tried.value for tried in found.tried if low < tried.value < high and is_ruined(tried, found.price)]
