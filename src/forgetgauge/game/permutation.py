"""The permutation test of "no different from Retrain", and the noise floor that Q has by chance.

Under Retrain the models know R alone; given them, which k of the 2k points are called forgotten is a uniformly random
choice. So the measured statistic is one more draw among those of random relabellings, and its p-value is exact: no
assumption about how points or models depend on each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from forgetgauge.game.advantage import PairOutcome
from forgetgauge.game.arrays import Bools, Floats

_CHUNK_ENTRIES = 2_000_000  # 16 MB of float64 for each of the few arrays in flight
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
    """The signed SWAP advantages of one pair under random relabellings, (B, n_adversaries), chunk by chunk."""
    rows = max(1, _CHUNK_ENTRIES // len(outcome.in_forget))
    return np.concatenate(
        [
            _advantages(outcome, _random_labels(outcome.in_forget, min(rows, n_relabellings - start), rng))
            for start in range(0, n_relabellings, rows)
        ]
    )


def _random_labels(in_forget: Bools, n: int, rng: np.random.Generator) -> Floats:
    """n independent uniformly random relabellings, (n, 2k), as zeros and ones."""
    return rng.permuted(np.tile(in_forget, (n, 1)), axis=1).astype(np.float64)


def _advantages(outcome: PairOutcome, labels: Floats) -> Floats:
    """½(mean_F d − mean_T d) under each row of ``labels``, (n, n_adversaries)."""
    weight = outcome.weight / outcome.weight.sum()
    weighted = weight[:, None] * outcome.differences  # (2k, J)
    others = 1 - labels
    in_forget = _mean(labels @ weighted, labels @ weight[:, None])  # (n, J) / (n, 1)
    in_unseen = _mean(others @ weighted, others @ weight[:, None])
    return (in_forget - in_unseen) / 2


def _mean(total: Floats, mass: Floats) -> Floats:
    """total / mass, and 0 where a relabelling gave a set no mass at all: any fixed value keeps the p-value exact."""
    return np.divide(total, mass, out=np.zeros_like(total), where=mass > 0)
