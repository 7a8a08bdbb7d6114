"""Whether two lists of outputs are one model's up to rounding: evaluated twice, a model seldom agrees bit by bit.

Two trained models may both be sure of most points and give nearly equal numbers there. So outputs count as the same
only where they differ by little of the column's spread and where few other points have outputs between the two.
"""

from __future__ import annotations

import numpy as np

from forgetgauge.game.arrays import Bools, Floats

ROUNDING = 1e-3
"""Differences below this share of the standard deviation are taken for rounding."""
NEARLY_ALL = 0.9
"""Share of points with the same outputs from which on two lists are of one model."""
FEW = 0.01
"""Of the points may so many, and always one, have outputs between two that count as the same."""


def nearly_same(first: Floats, second: Floats) -> Bools:
    """(n,) where two lists of outputs, (n,) or (n, columns) each, are the same up to rounding."""
    one, other = (np.asarray(part, dtype=np.float64).reshape(len(part), -1) for part in (first, second))
    same = np.ones(len(one), dtype=np.bool_)
    for mine, theirs in zip(one.T, other.T, strict=True):
        pooled = np.sort(np.concatenate([mine, theirs]))
        low, high = np.minimum(mine, theirs), np.maximum(mine, theirs)
        with np.errstate(over="ignore", invalid="ignore"):  # margins may be as large as numbers are
            near = high - low <= ROUNDING * pooled.std()
        near = np.flatnonzero(near & (low != high))  # mostly few, and only of these the neighbours need be counted
        n_between = np.searchsorted(pooled, high[near], "left") - np.searchsorted(pooled, low[near], "right")
        alike = low == high
        alike[near] = n_between <= max(1, int(FEW * len(mine)))
        same &= alike
    return same


def is_one_model(first: Floats, second: Floats) -> bool:
    """Whether the outputs are the same, up to rounding, on nearly all points."""
    return bool(nearly_same(first, second).mean() >= NEARLY_ALL)
