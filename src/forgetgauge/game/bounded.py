"""Bounds for means of signed advantages that assume nothing but independent pairs: every value lies in [−1, 1].

With y = (1 + x)/2 in [0, 1], a gambler who doubts that the mean of y is at most m stakes a share c of what he has on
every pair: ∏(1 − c + c y/m). If the mean is at most m this has expectation at most 1, and so has any mixture over c
that was fixed beforehand; by Markov's inequality it reaches 1/α with probability at most α. The smallest m at which
the mixture stays below 1/α is a lower confidence bound (betting, Waudby-Smith and Ramdas 2024, with a mixture in place
of a strategy, so that the order of pairs cannot matter). For independent pairs the mixture is a martingale: the bound
holds as well where the number of pairs was chosen after looking at the first of them.

The mixture: half on c = 1, which is the best there is where pairs agree, half spread evenly over 0 < c < 1. For several
adversaries and both signs the mean of their mixtures has expectation at most 1 if none has a larger advantage: this is
never worse than Bonferroni's correction, which asks the largest of them to reach 2J/α.
"""

import math

import numpy as np

from forgetgauge.game.arrays import Floats, frozen_floats

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_SHARES = np.append((1 + _NODES) / 2, 1.0)  # c
_LOG_PRIOR = np.log(np.append(_WEIGHTS / 4, 0.5))  # sums to 1; exact for 31 pairs, valid for any
_HALVINGS = 32
_LEAST = 1e-12


def lower_bounds(values: Floats, miss: float) -> Floats:
    """(..., P) values in [−1, 1] of P pairs -> (...) bounds, each above the mean with probability ``miss`` at most."""
    return _lower_bounds(np.asarray(values, dtype=np.float64)[..., None, :], miss)


def advantage_floor(by_pair: Floats, level: float = 0.95) -> Floats:
    """(..., P, J) signed advantages -> (...) lower confidence bounds of sup_a |Adv_a|, one-sided at ``level``.

    They survive the choice among J adversaries of two signs each, and are at least 0.
    """
    values = frozen_floats(by_pair, "advantages by pair")
    if values.ndim < 2 or 0 in values.shape or np.abs(values).max() > 1 + 1e-9:
        raise ValueError(f"advantages by pair are (pairs, adversaries) in [-1, 1], but their shape is {values.shape}")
    of_each = np.swapaxes(values, -1, -2)  # (..., J, P)
    return np.maximum(0, _lower_bounds(np.concatenate([of_each, -of_each], axis=-2), 1 - level))


def _lower_bounds(values: Floats, miss: float) -> Floats:
    """(..., K, P) -> (...): the mean above which not all K may lie, by bisection: the capital falls in the mean."""
    if not 0 < miss < 1:
        raise ValueError(f"the probability of a miss lies strictly between 0 and 1, not at {miss}")
    shifted = np.clip((1 + values) / 2, 0, 1)
    low, high = np.full(values.shape[:-2], _LEAST), np.ones(values.shape[:-2])
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        rejected = _log_capital(shifted, middle) >= -math.log(miss)
        low, high = np.where(rejected, middle, low), np.where(rejected, high, middle)
    return np.asarray(2 * np.where(low > _LEAST, low, 0.0) - 1)


def _log_capital(shifted: Floats, mean: Floats) -> Floats:
    """The logarithm of the capital, averaged over the prior of c and over K, for (..., K, P) in [0, 1]."""
    gain = shifted / mean[..., None, None]
    with np.errstate(divide="ignore"):  # all in, and lost
        total = np.log(1 + _SHARES[:, None] * (gain[..., None, :] - 1)).sum(axis=-1)  # (..., K, shares)
    total = (total + _LOG_PRIOR).reshape(*mean.shape, -1)
    peak = total.max(axis=-1)  # finite, since c < 1 loses nothing for good
    return np.asarray(peak + np.log(np.exp(total - peak[..., None]).sum(axis=-1) / shifted.shape[-2]))
