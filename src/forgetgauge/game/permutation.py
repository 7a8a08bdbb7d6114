"""The permutation test of "no different from Retrain", and the noise floor that Q has by chance.

Under Retrain the models know R alone; given them, which k of the 2k points are called forgotten is a uniformly random
choice. So the measured statistic is one more draw among those of random relabellings, and its p-value is exact: no
assumption about how points or models depend on each other.
"""

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from forgetgauge.game.advantage import PairOutcome
from forgetgauge.game.arrays import Floats, Ints

_CHUNK_ENTRIES = 250_000  # 2 MB of float64 for each of the few arrays in flight: they stay in the cache
_FEW_KINDS = 8  # drawing a kind's count costs as much as labelling about eight points
_TOLERANCE = 1e-12  # sums in another order differ by rounding; a tie must count as a tie


@dataclass(frozen=True)
class NoiseFloor:
    """max_a |Adv_a| as random relabellings make it, and how rarely it is as large as measured."""

    mean: float
    q95: float
    p_value: float
    at_level: float
    """At the level asked for, the test calls every larger max_a |Adv_a| visible; 1 where so few relabellings cannot."""
    pair_q95: float
    """The 95 % quantile of the largest |Adv_a| in any single pair: what the worst pair may be by chance."""


def noise_floors(
    methods: Sequence[Sequence[PairOutcome]],
    rng: np.random.Generator,
    n_relabellings: int = 2000,
    level: float = 0.95,
) -> list[NoiseFloor]:
    """Relabel a random k of each pair's 2k points as forgotten, ``n_relabellings`` times; one noise floor per method.

    One relabelling serves all adversaries and all seeds of a pair. p = (1 + #{relabelled ≥ observed}) / (1 + B). Each
    method gets what it would get alone with an equal generator; what is drawn alike is drawn once.
    """
    if n_relabellings < 1:
        raise ValueError(f"the permutation test needs at least one relabelling, not {n_relabellings}")
    for outcomes in methods:
        if len({outcome.n_adversaries for outcome in outcomes}) != 1:
            raise ValueError("the permutation test needs at least one pair, all measured with the same adversaries")
    sums = [np.zeros((n_relabellings, outcomes[0].n_adversaries)) for outcomes in methods]  # each (B, J)
    peaks = [np.zeros(n_relabellings) for _ in methods]  # each (B,): the largest |advantage| in any single pair
    groups = [(list(range(len(methods))), rng)]  # methods for which everything was drawn alike so far
    for pair in range(max(map(len, methods), default=0)):
        groups = [split for members, own in groups for split in _relabelled(methods, members, pair, own, sums, peaks)]
    return [
        _against(outcomes, total / len(outcomes), peak, level)
        for outcomes, total, peak in zip(methods, sums, peaks, strict=True)
    ]


def _against(outcomes: Sequence[PairOutcome], relabelled: Floats, peaks: Floats, level: float) -> NoiseFloor:
    """The measured statistic beside those of relabelled means over pairs, (B, n_adversaries), and of single pairs."""
    observed = float(np.abs(np.mean([outcome.advantage for outcome in outcomes], axis=0)).max())
    statistic = np.abs(relabelled).max(axis=1)  # (B,)
    n_larger = int((1 - level) * (1 + len(statistic)) + 1e-9) - 1  # with at most so many, p is at most 1 − level
    return NoiseFloor(
        mean=float(statistic.mean()),
        q95=float(np.quantile(statistic, 0.95)),
        p_value=(1 + int((statistic >= observed - _TOLERANCE).sum())) / (1 + len(statistic)),
        at_level=float(np.sort(statistic)[-1 - n_larger]) if n_larger >= 0 else 1.0,
        pair_q95=float(np.quantile(peaks, 0.95)),
    )


def _relabelled(
    methods: Sequence[Sequence[PairOutcome]],
    members: Sequence[int],
    pair: int,
    rng: np.random.Generator,
    sums: Sequence[Floats],
    peaks: Sequence[Floats],
) -> list[tuple[list[int], np.random.Generator]]:
    """Adds the relabelled advantages of one pair to ``sums`` and ``peaks`` of some methods; returns who draws alike.

    A draw depends on nothing but the numbers of points of each kind.
    """
    kinds = {which: _kinds(methods[which][pair]) for which in members if pair < len(methods[which])}
    alike: dict[bytes, list[int]] = {}
    for which, (_, counts) in kinds.items():
        alike.setdefault(counts.tobytes(), []).append(which)
    if not alike:
        return []
    generators = [copy.deepcopy(rng) for _ in range(len(alike) - 1)] + [rng]
    for together, own in zip(alike.values(), generators, strict=True):
        counts = kinds[together[0]][1]
        n_relabellings, at_once = len(sums[together[0]]), max(1, _CHUNK_ENTRIES // len(counts))
        for start in range(0, n_relabellings, at_once):
            rows = slice(start, min(start + at_once, n_relabellings))
            forgotten = _random_counts(counts, int(counts.sum()) // 2, rows.stop - rows.start, own)
            found = _advantages([kinds[which][0] for which in together], counts, forgotten)
            for which, advantages in zip(together, found, strict=True):
                sums[which][rows] += advantages
                peaks[which][rows] = np.maximum(peaks[which][rows], np.abs(advantages).max(axis=1))
    return list(zip(alike.values(), generators, strict=True))


def _kinds(outcome: PairOutcome) -> tuple[Floats, Ints]:
    """(weight and differences of each kind of point, (n_kinds, 1 + J); how many points are of it, (n_kinds,)).

    Points of equal weight and equal differences are exchangeable: all that matters of a relabelling is how many of each
    kind it calls forgotten, which is multivariate hypergeometric. Ten thousand points are mostly of a few dozen kinds.
    """
    rows = np.column_stack([outcome.weight / outcome.weight.sum(), outcome.differences])  # (2k, 1 + J)
    kinds, counts = _distinct(rows)
    if len(kinds) > len(rows) // _FEW_KINDS:
        return rows, np.ones(len(rows), dtype=np.int64)
    return kinds, counts


def _distinct(rows: Floats) -> tuple[Floats, Ints]:
    """``np.unique(rows, axis=0, return_counts=True)``, which takes ten times as long."""
    ascending = rows[np.lexsort(rows.T[::-1])]  # by the first column, then the second, …
    starts = np.flatnonzero(np.concatenate([[True], (ascending[1:] != ascending[:-1]).any(axis=1)]))
    return ascending[starts], np.diff(starts, append=len(rows))


def _random_counts(counts: Ints, n_forget: int, n: int, rng: np.random.Generator) -> Floats:
    """How many points of each kind n independent uniformly random relabellings call forgotten, (n, n_kinds)."""
    if len(counts) == counts.sum():  # every point is a kind of its own: those with the smallest of 2k random keys
        keys = rng.random((n, len(counts)))
        largest = np.partition(keys, n_forget - 1, axis=1)[:, n_forget - 1 : n_forget]
        return (keys <= largest).astype(np.float64)
    return rng.multivariate_hypergeometric(counts, n_forget, size=n).astype(np.float64)


def _advantages(kinds: Sequence[Floats], counts: Ints, forgotten: Floats) -> list[Floats]:
    """Each method's ½(mean_F d − mean_T d) under each row of ``forgotten``, (n, n_adversaries), from its kinds."""
    weighted = [np.column_stack([own[:, :1], own[:, :1] * own[:, 1:]]) for own in kinds]  # mass, mass times difference
    ends = np.cumsum([own.shape[1] for own in weighted])[:-1]
    in_forget, in_unseen = (
        np.split(members @ np.concatenate(weighted, axis=1), ends, axis=1)
        for members in (forgotten, counts - forgotten)
    )
    return [
        (_mean(forget[:, 1:], forget[:, :1]) - _mean(unseen[:, 1:], unseen[:, :1])) / 2
        for forget, unseen in zip(in_forget, in_unseen, strict=True)
    ]


def _mean(total: Floats, mass: Floats) -> Floats:
    """total / mass, and 0 where a relabelling gave a set no mass at all: any fixed value keeps the p-value exact."""
    return np.divide(total, mass, out=np.zeros_like(total), where=mass > 0)
