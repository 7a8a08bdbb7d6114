"""Confidence intervals for signed SWAP advantages.

The target is the expected signed SWAP advantage over s ~ U(S_α), over training and over unlearning, given the data set
D, its target and shadow halves, and the fitted adversary. It says nothing about new data.

Given those, swap pairs are independent draws, so the interval is Student's t over per-pair means, with seeds averaged
inside each pair. Seeds and points are not resampled on top: their noise is already in the spread of the pair means,
and counting it twice makes the interval too wide. With fewer than ``MIN_PAIRS`` pairs the spread over pairs is itself
too uncertain; what can be said then is about these models only, and ``basis`` says so.

Student's t takes the pairs' advantages as roughly normal. Where all of them agree exactly they are not, and nowhere do
points stand in for pairs: the interval is then the distribution-free one (``bounded_interval``), as wherever it is
asked for. It assumes nothing but independent pairs with values in [−1, 1].

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
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from scipy import special

from forgetgauge.game.advantage import PairOutcome
from forgetgauge.game.arrays import Bools, Floats, frozen_floats

MIN_PAIRS = 5
ROUNDING = 1e-12
"""Advantages that differ by less are equal: sums of the same numbers in another order differ that much."""

Basis: TypeAlias = Literal["over pairs", "given these models"]
IntervalKind: TypeAlias = Literal["student", "bounded"]


@dataclass(frozen=True)
class Interval:
    """low ≤ target ≤ high in a share ``level`` of experiments; ``basis`` says what is redrawn in those experiments."""

    low: float
    high: float
    level: float
    basis: Basis

    def __post_init__(self) -> None:
        check_level(self.level)
        if not self.low <= self.high:
            raise ValueError(f"an interval must not end before it starts, but it goes from {self.low} to {self.high}")


def pair_interval(by_pair: Floats, level: float = 0.95) -> Interval:
    """Student's t over the signed advantages of P ≥ 2 pairs, (P,), each already averaged over its seeds.

    Pairs that agree exactly give an interval of width zero; ``signed_interval`` does not use it there.
    """
    values = frozen_floats(by_pair, "advantages by pair")
    if values.ndim != 1 or len(values) < 2:
        raise ValueError(f"an interval over pairs needs at least two pairs, but the shape is {values.shape}")
    standard_error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return _around(float(values.mean()), standard_error, len(values) - 1, level, "over pairs")


def welch_interval(outcomes: Sequence[PairOutcome], adversary: int, level: float = 0.95) -> Interval:
    """Welch's interval over points, for the models at hand: the points are the only thing taken as drawn.

    SE² of a pair is ¼(Var mean_F d + Var mean_T d); pairs combine as √(Σ SE²)/P, with Satterthwaite's degrees of
    freedom. Where a set has one point of positive weight, nothing is known about its spread: the interval is [−1, 1].
    Where all points move alike (no decision differs, every decision is right), it ends at the share that may have gone
    unseen.
    """
    check_level(level)
    check_outcomes(outcomes)
    columns = [outcome.differences[:, [adversary]] for outcome in outcomes]
    covariances, degrees = covariances_of_means(columns, outcomes)
    centre = np.mean([outcome.advantage[adversary] for outcome in outcomes])
    low, high = welch_ends(np.asarray(centre), covariances[:, 0, 0], degrees, _n_points(outcomes), level)
    return Interval(float(low), float(high), level, "given these models")


def welch_contrasts(
    first: Sequence[PairOutcome], second: Sequence[PairOutcome], level: float = 0.95
) -> tuple[Floats, Floats]:
    """Both ends of Welch's intervals of θ_b − c, (J, 2J + 1) each: b of ``first``, c a θ_a of ``second``, a −θ_a, or 0.

    All at once, from the covariances of the 2J means on the same points: Var(b ∓ a) = Var b + Var a ∓ 2 Cov(b, a).
    """
    columns = [np.hstack([one.differences, other.differences]) for one, other in zip(first, second, strict=True)]
    covariances, degrees = covariances_of_means(columns, first)
    n, (ours, theirs) = first[0].n_adversaries, _mean_advantages(first, second)
    alone = np.diagonal(covariances, axis1=1, axis2=2)  # (2P, 2J)
    apart, shared = alone[:, :n, None] + alone[:, None, n:], 2 * covariances[:, :n, n:]  # (2P, J, J)
    variances = np.concatenate([apart - shared, apart + shared, alone[:, :n, None]], axis=2) / 4
    scale = np.concatenate([apart, apart, alone[:, :n, None]], axis=2).sum(axis=0)
    variances[:, variances.sum(axis=0) < 1e-13 * scale] = 0  # what rounding leaves of two that move alike
    centre = ours[:, None] - np.concatenate([theirs, -theirs, [0.0]])
    low, high = welch_ends(centre / 2, np.maximum(variances, 0), degrees, _n_points(first), level)
    return 2 * low, 2 * high


def welch_ends(
    centre: Floats, variances: Floats, degrees: Floats, n_points: int, level: float
) -> tuple[Floats, Floats]:
    """Of the mean over P pairs, (...), from the variances of every mean_F d and mean_T d, (2P, ...), and their (2P,)
    degrees of freedom."""
    if (degrees <= 0).any():
        return np.full(centre.shape, -1.0), np.full(centre.shape, 1.0)
    total = variances.sum(axis=0)
    moves = total >= 1e-30  # a spread below rounding is no spread, and Satterthwaite's quotient would be 0/0
    each = (variances**2).T / degrees  # (..., 2P), the dimensions of `centre` reversed
    satterthwaite = np.divide(total**2, each.sum(axis=-1).T, out=np.ones(centre.shape), where=moves)
    spread = special.stdtrit(satterthwaite, (1 + level) / 2) * np.sqrt(total) / len(variances)
    half = np.where(moves, spread, unseen_share(n_points, level))
    return np.clip(centre - half, -1.0, 1.0), np.clip(centre + half, -1.0, 1.0)


def _n_points(outcomes: Sequence[PairOutcome]) -> int:
    return sum(int((outcome.weight > 0).sum()) for outcome in outcomes)


def _mean_advantages(*methods: Sequence[PairOutcome]) -> list[Floats]:
    return [np.mean([outcome.advantage for outcome in outcomes], axis=0) for outcomes in methods]


def unseen_share(n_points: int, level: float) -> float:
    """The largest share p of points that differ, of which n may hold none by chance: (1 − p)^n = (1 − level)/2."""
    return float(1 - ((1 - level) / 2) ** (1 / n_points))


def bounded_interval(by_pair: Floats, level: float = 0.95) -> Interval:
    """For the mean signed advantage of P ≥ 1 pairs, (P,), whatever its distribution; each end misses (1 − level)/2."""
    check_level(level)
    values = frozen_floats(by_pair, "advantages by pair")
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(f"an interval over pairs needs at least one pair, but the shape is {values.shape}")
    low, minus_high = lower_bounds(np.array([values, -values]), (1 - level) / 2)
    return Interval(float(low), float(-minus_high), level, "over pairs")


def signed_interval(
    outcomes: Sequence[PairOutcome], adversary: int, level: float = 0.95, kind: IntervalKind = "student"
) -> Interval:
    """The interval of one adversary: over pairs when there are at least ``MIN_PAIRS``, else given these models.

    Advantages of pairs are discrete, so all may agree, and a spread of 0 would claim certainty from a handful of pairs:
    then, and where ``kind`` asks for it, the interval assumes no distribution. That includes pairs which all have an
    advantage of 0, on which no decision differs: that five pairs showed nothing does not say what a sixth would.
    """
    check_outcomes(outcomes)
    by_pair = np.array([outcome.advantage[adversary] for outcome in outcomes])
    if kind == "bounded":
        return bounded_interval(by_pair, level)
    if len(outcomes) < MIN_PAIRS:
        return welch_interval(outcomes, adversary, level)
    return bounded_interval(by_pair, level) if agree(by_pair) else pair_interval(by_pair, level)


def agree(by_pair: Floats) -> Bools:
    """Whether all pairs have the same value, up to rounding, along the first axis."""
    return np.asarray(np.ptp(by_pair, axis=0) < ROUNDING)


def simultaneous_intervals(outcomes: Sequence[PairOutcome], level: float = 0.95) -> list[Interval]:
    """One interval per adversary, all of which hold together with probability at least ``level`` (Bonferroni)."""
    check_level(level)
    check_outcomes(outcomes)
    n_adversaries = outcomes[0].n_adversaries
    each = 1 - (1 - level) / n_adversaries
    return [signed_interval(outcomes, adversary, each) for adversary in range(n_adversaries)]


def covariances_of_means(columns: Sequence[Floats], outcomes: Sequence[PairOutcome]) -> tuple[Floats, Floats]:
    """Of the weighted means of (2k, K) values over F and over T of each of P pairs: (2P, K, K), and (2P,) degrees of
    freedom."""
    sides = [(values[side], o.weight[side]) for values, o in zip(columns, outcomes, strict=True) for side in o.sides]
    covariances, degrees = zip(*(_covariance_of_means(*side) for side in sides), strict=True)
    return np.array(covariances), np.array(degrees)


def _covariance_of_means(values: Floats, weight: Floats) -> tuple[Floats, float]:
    """The estimated covariances (K, K) of weighted means of (n, K) values, and their degrees of freedom.

    With shares w̃ and S_j = Σ w̃^j, Σ w̃²(d − mean)² has expectation σ²(S₂ − 2S₃ + S₂²) for independent d of variance
    σ², while the mean has variance σ²S₂; the quotient corrects it exactly (n/(n−1) for equal weights, giving s²/n). The
    degrees of freedom are 1/S₂ − 1, one less than the effective number of points."""
    share = weight / weight.sum()
    second, third = float((share**2).sum()), float((share**3).sum())
    expected = second - 2 * third + second**2
    if np.count_nonzero(share) < 2 or expected <= 0:
        return np.zeros((values.shape[1],) * 2), 0.0
    scaled = share[:, None] * (values - share @ values)
    return scaled.T @ scaled * (second / expected), 1 / second - 1


def _around(centre: float, standard_error: float, df: float, level: float, basis: Basis) -> Interval:
    half = float(special.stdtrit(df, (1 + level) / 2)) * standard_error if standard_error > 0 else 0.0
    low, high = (max(-1.0, min(1.0, end)) for end in (centre - half, centre + half))
    return Interval(low, high, level, basis)


def check_level(level: float) -> None:
    """ValueError unless 0 < level < 1."""
    if not 0 < level < 1:
        raise ValueError(f"a confidence level lies strictly between 0 and 1, not at {level}")


def check_outcomes(outcomes: Sequence[PairOutcome]) -> None:
    """ValueError unless there is at least one pair, and every pair was measured with as many adversaries."""
    if not outcomes:
        raise ValueError("an interval needs the outcome of at least one pair")
    if len({outcome.n_adversaries for outcome in outcomes}) > 1:
        raise ValueError("every pair must be measured with the same adversaries, but their numbers differ")


# -- bounds for pairs of any distribution ------------------------------------------------------------------------------

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
