"""Is one ranking of methods another's? Kendall's τ between columns, with an interval by the bootstrap over swap pairs.

A column has the signed advantages of each method on the same pairs. A draw takes as many pairs with replacement,
the same for all methods of the column and on their own for every column, ranks the methods by the plug-in Q of the
drawn pairs, and averages τ_b over the couples of columns. The interval is the percentiles of the draws, and always
holds the τ of the columns themselves. Resampling adds noise to rankings that have some already, so most draws lie below
that τ: an interval that confirms agreement is on the careful side; where methods are close, one that denies it is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import special

from forgetgauge.game.arrays import Floats
from forgetgauge.game.intervals import MIN_PAIRS

ByMethod = Mapping[str, Floats]
"""Method -> signed advantages, (pairs, adversaries)."""
Couples = Sequence[tuple[int, int]]

N_DRAWS = 4000
LEVEL = 0.95


@dataclass(frozen=True)
class Tau:
    """Kendall's τ_b, averaged over couples of columns."""

    value: float
    interval: tuple[float, float] | None
    """None where a column has fewer than five pairs."""
    methods: tuple[str, ...]
    """The methods that all columns rank."""
    kept: tuple[tuple[str, str], ...] = ()
    """Methods of which one is ahead of the other in every column, beyond chance."""
    exchanged: tuple[tuple[str, str], ...] = ()
    """Methods of which one is ahead in one column and the other in another, each beyond chance; without such a couple
    a low τ may be that of methods too close to be ranked."""


def every_two(n_columns: int) -> Couples:
    """All couples of columns."""
    return list(combinations(range(n_columns), 2))


def bootstrap_tau(columns: Sequence[ByMethod], couples: Couples) -> Tau | None:
    """None without couples, or below three methods, which are no ranking."""
    methods = _ranked(columns)
    if not couples or len(methods) < 3:
        return None
    stacked = [np.stack([column[m] for m in methods]) for column in columns]  # (methods, pairs, adversaries) each
    value = float(_mean_tau([_orders(advantages.mean(axis=1)[None]) for advantages in stacked], couples)[0])
    if min(advantages.shape[1] for advantages in stacked) < MIN_PAIRS:
        return Tau(value, None, methods)
    rng = np.random.default_rng(0)
    drawn = _mean_tau([_orders(_resampled(advantages, rng)) for advantages in stacked], couples)
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], method="inverted_cdf")
    interval = min(float(low), value), max(float(high), value)
    sure, names = _sure_orders(stacked), list(combinations(methods, 2))
    kept = np.abs(sure.sum(axis=0)) == len(sure)
    turned = np.any([sure[one] * sure[other] < 0 for one, other in couples], axis=0)
    return Tau(value, interval, methods, *(tuple(names[k] for k in np.flatnonzero(those)) for those in (kept, turned)))


def _sure_orders(stacked: Sequence[Floats]) -> Floats:
    """(columns, couples of methods): which of two has the higher Q beyond chance, as −1 and 1; 0 where that is open.

    By Student's t of the differences of Q pair by pair, at a level that allows for all that are looked at.

    Not by the draws: of six pairs that happen to agree every draw agrees, which is no chance of one in a thousand.
    """
    first, second = np.triu_indices(len(stacked[0]), 1)
    allowed = (1 - LEVEL) / 2 / (len(stacked) * len(first))
    sure = []
    for advantages in stacked:
        quality = 1 - np.abs(advantages).max(axis=2)  # (methods, pairs), of each pair alone
        gaps = quality[first] - quality[second]
        n_pairs = gaps.shape[1]
        least = special.stdtrit(n_pairs - 1, 1 - allowed) * gaps.std(axis=1, ddof=1) / np.sqrt(n_pairs)
        mean = gaps.mean(axis=1)
        sure.append(np.where(np.abs(mean) > least + 1e-12, np.sign(mean), 0.0))
    return np.array(sure)


def _ranked(columns: Sequence[ByMethod]) -> tuple[str, ...]:
    """Methods that are in every column and completed as many pairs as any of it."""
    most = [max((len(found) for found in column.values()), default=0) for column in columns]
    return tuple(
        method
        for method in (columns[0] if columns else ())
        if all(method in c and len(c[method]) == n for c, n in zip(columns, most, strict=True))
    )


def _resampled(advantages: Floats, rng: np.random.Generator) -> Floats:
    """(methods, pairs, adversaries) -> (draws, methods, adversaries): means over pairs drawn with replacement."""
    n_pairs = advantages.shape[1]
    share = rng.multinomial(n_pairs, np.full(n_pairs, 1 / n_pairs), size=N_DRAWS) / n_pairs  # (draws, pairs)
    return np.asarray(np.einsum("dp,mpa->dma", share, advantages))


def _orders(means: Floats) -> Floats:
    """(draws, methods, adversaries) -> (draws, couples of methods): which of two has the higher Q, as −1, 0 or 1."""
    quality = 1 - np.abs(means).max(axis=2)  # (draws, methods)
    first, second = np.triu_indices(quality.shape[1], 1)
    gap = quality[:, first] - quality[:, second]
    return np.asarray(np.sign(np.where(np.abs(gap) < 1e-12, 0.0, gap)))  # what differs by rounding alone is a tie


def _mean_tau(orders: Sequence[Floats], couples: Couples) -> Floats:
    """(draws,) mean τ_b over couples; a column that ties all methods agrees with none, and counts as 0."""
    found = []
    for one, other in couples:
        x, y = orders[one], orders[other]
        untied = np.count_nonzero(x, axis=1) * np.count_nonzero(y, axis=1)
        found.append((x * y).sum(axis=1) / np.sqrt(np.maximum(untied, 1)))
    return np.asarray(np.mean(found, axis=0))
