"""Whether two lists of outputs are one model's up to rounding: evaluated twice, a model seldom agrees bit by bit.

Two trained models may both be sure of most points and give nearly equal numbers there. So outputs count as the same
only where they differ by little of the column's spread and by little of the distance to the outputs of other points.
"""

from __future__ import annotations

import numpy as np

from forgetgauge.game.arrays import Bools, Floats

ROUNDING = 1e-3
"""Differences below this share of the standard deviation are taken for rounding."""
NEARLY_ALL = 0.9
"""Share of points with the same outputs from which on two lists are of one model."""
NEIGHBOURS = 0.1
"""The nearest of the outputs, so large a share of them, are a point's neighbourhood."""
FAR_CLOSER = 0.01
"""Two outputs that are the same differ by less than this share of a neighbourhood's width."""


def nearly_same(first: Floats, second: Floats) -> Bools:
    """(n,) where two lists of outputs, (n,) or (n, columns) each, are the same up to rounding."""
    one, other = (np.asarray(part, dtype=np.float64).reshape(len(part), -1) for part in (first, second))
    same = np.ones(len(one), dtype=np.bool_)
    for mine, theirs in zip(one.T, other.T, strict=True):
        pooled = np.sort(np.concatenate([mine, theirs]))
        low, high = np.minimum(mine, theirs), np.maximum(mine, theirs)
        with np.errstate(over="ignore", invalid="ignore"):  # margins may be as large as numbers are
            apart = high - low
            near = np.flatnonzero((low != high) & (apart <= ROUNDING * pooled.std()))  # mostly few
            alike = low == high
            alike[near] = apart[near] <= FAR_CLOSER * _width(pooled, low[near], high[near])
        same &= alike
    return same


def _width(pooled: Floats, low: Floats, high: Floats) -> Floats:
    """(n,) how far a neighbourhood of each couple of outputs reaches, below the lower or above the higher."""
    n_neighbours = max(1, int(NEIGHBOURS * len(pooled)))
    ends = np.concatenate([np.full(n_neighbours, -np.inf), pooled, np.full(n_neighbours, np.inf)])
    below = ends[np.searchsorted(pooled, low, "left")]
    above = ends[np.searchsorted(pooled, high, "right") + 2 * n_neighbours - 1]
    return np.asarray(np.minimum(low - below, above - high), dtype=np.float64)


def is_one_model(first: Floats, second: Floats) -> bool:
    """Whether the outputs are the same, up to rounding, on nearly all points."""
    return bool(nearly_same(first, second).mean() >= NEARLY_ALL)
