"""The permutation test of "no different from Retrain", and the noise floor that Q has by chance.

Under Retrain the models know R alone; given them, which k of the 2k points are called forgotten is a uniformly random
choice. So the measured statistic is one more draw among those of random relabellings, and its p-value is exact: no
assumption about how points or models depend on each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from forgetgauge.game.advantage import PairOutcome
from forgetgauge.game.arrays import Floats, Ints

_CHUNK_ENTRIES = 2_000_000  # 16 MB of float64 for each of the few arrays in flight
_FEW_KINDS = 8  # drawing a kind's count costs as much as labelling about eight points
_TOLERANCE = 1e-12  # sums in another order differ by rounding; a tie must count as a tie


@dataclass(frozen=True)
class NoiseFloor:
    """max_a |Adv_a| as measured, and as random relabellings make it."""

    observed: float
    mean: float
    q95: float
    p_value: float
    n_relabellings: int


def noise_floor(outcomes: Sequence[PairOutcome], rng: np.random.Generator, n_relabellings: int = 2000) -> NoiseFloor:
    """Relabel a random k of each pair's 2k points as forgotten, ``n_relabellings`` times.

    One relabelling serves all adversaries and all seeds of a pair. p = (1 + #{relabelled ≥ observed}) / (1 + B).
    """
    if n_relabellings < 1:
        raise ValueError(f"the permutation test needs at least one relabelling, not {n_relabellings}")
    if len({outcome.n_adversaries for outcome in outcomes}) != 1:
        raise ValueError("the permutation test needs at least one pair, all measured with the same adversaries")
    observed = float(np.abs(np.mean([outcome.advantage for outcome in outcomes], axis=0)).max())
    relabelled = sum(_relabelled_advantages(outcome, rng, n_relabellings) for outcome in outcomes)  # (B, J)
    statistic = np.abs(relabelled / len(outcomes)).max(axis=1)  # (B,)
    return NoiseFloor(
        observed=observed,
        mean=float(statistic.mean()),
        q95=float(np.quantile(statistic, 0.95)),
        p_value=(1 + int((statistic >= observed - _TOLERANCE).sum())) / (1 + n_relabellings),
        n_relabellings=n_relabellings,
    )


def _relabelled_advantages(outcome: PairOutcome, rng: np.random.Generator, n_relabellings: int) -> Floats:
    """The signed SWAP advantages of one pair under random relabellings, (B, n_adversaries).

    Points of equal weight and equal differences are exchangeable: all that matters of a relabelling is how many of each
    kind it calls forgotten, which is multivariate hypergeometric. Ten thousand points are mostly of a few dozen kinds.
    """
    rows = np.column_stack([outcome.weight / outcome.weight.sum(), outcome.differences])  # (2k, 1 + J)
    kinds, counts = np.unique(rows, axis=0, return_counts=True)
    n_forget = int(outcome.in_forget.sum())
    if len(kinds) > len(rows) // _FEW_KINDS:
        kinds, counts = rows, np.ones(len(rows), dtype=np.int64)
    rows_at_once = max(1, _CHUNK_ENTRIES // len(kinds))
    return np.concatenate(
        [
            _advantages(kinds, counts, _random_counts(counts, n_forget, min(rows_at_once, n_relabellings - start), rng))
            for start in range(0, n_relabellings, rows_at_once)
        ]
    )


def _random_counts(counts: Ints, n_forget: int, n: int, rng: np.random.Generator) -> Floats:
    """How many points of each kind n independent uniformly random relabellings call forgotten, (n, n_kinds)."""
    if len(counts) == counts.sum():  # every point is a kind of its own: those with the smallest of 2k random keys
        keys = rng.random((n, len(counts)))
        largest = np.partition(keys, n_forget - 1, axis=1)[:, n_forget - 1 : n_forget]
        return (keys <= largest).astype(np.float64)
    return rng.multivariate_hypergeometric(counts, n_forget, size=n).astype(np.float64)


def _advantages(kinds: Floats, counts: Ints, forgotten: Floats) -> Floats:
    """½(mean_F d − mean_T d) under each row of ``forgotten``, (n, n_adversaries), from kinds (weight, d)."""
    weighted = np.column_stack([kinds[:, :1], kinds[:, :1] * kinds[:, 1:]])  # mass, then mass times difference
    in_forget = forgotten @ weighted
    in_unseen = (counts - forgotten) @ weighted
    return (_mean(in_forget[:, 1:], in_forget[:, :1]) - _mean(in_unseen[:, 1:], in_unseen[:, :1])) / 2


def _mean(total: Floats, mass: Floats) -> Floats:
    """total / mass, and 0 where a relabelling gave a set no mass at all: any fixed value keeps the p-value exact."""
    return np.divide(total, mass, out=np.zeros_like(total), where=mass > 0)
