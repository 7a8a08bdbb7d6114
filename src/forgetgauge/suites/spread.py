"""One set of models, grouped by two in two ways: as swap pairs, and as pairs of independent random splits.

Of P swap pairs, s₁, …, s_P are independent and uniform over S_α, and so are their swaps s'₁, …, s'_P. So (s₁, s₂),
(s'₁, s'₂), (s₃, s₄), … are pairs of independent random splits, as many as swap pairs and of the very same models: the
training cost is equal to the last gradient, and so is the mean over all repetitions.

How far do the estimates scatter over repetitions? With V = Var Adv_s and ρ the correlation of Adv_s and Adv_s', which
are exchangeable,

    Var ½(Adv_s + Adv_s') = ½V(1 + ρ)        Var ½(Adv_s₁ + Adv_s₂) = ½V

so random splits need 1/(1 + ρ) times the models for the same precision. ρ is negative where points differ: a set that
happens to be easy is F on one side and T on the other. Both are unbiased for E Adv_s.

All of it follows from the sum and the contrast of the two sides, which are uncorrelated (Pitman and Morgan). Taken as
normal – they are means of many decisions – their sample variances are independent multiples of χ² with P − 1 degrees
of freedom, which gives the intervals of `compare_spreads`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from forgetgauge.game.adversary import lookup_acceptance
from forgetgauge.game.arrays import Floats, frozen_floats
from forgetgauge.game.intervals import check_level
from forgetgauge.game.quality import quality_by_pair
from forgetgauge.game.splits import Split, SwapPair
from forgetgauge.records import Record

MIN_PAIRS = 4
"""Two random repetitions of each side; fewer have no spread to speak of."""


@dataclass(frozen=True)
class Deviation(Record):
    """A standard deviation over repetitions, with its interval."""

    value: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class AdversaryRecord(Record):
    """One adversary's signed advantage against one method, over repetitions."""

    mean: float
    """The mean over all splits, and so in both groupings."""
    swap: list[float]
    """½(Adv_s + Adv_s') of each swap pair."""
    random: list[float]
    """½(Adv_s₁ + Adv_s₂) of each two independent splits; the same models in another grouping."""
    swap_deviation: Deviation
    """Interval by χ²."""
    random_deviation: Deviation
    """Over all groupings, of which `random` shows one; interval by χ² with Satterthwaite's degrees of freedom."""
    correlation: float | None
    """ρ of Adv_s and Adv_s'; None where nothing varies."""
    variance_ratio: float | None
    """Variance for random splits / for swap pairs = 1/(1 + ρ); None where swap pairs do not vary."""
    variance_ratio_interval: tuple[float, float] | None
    """By the F distribution (Pitman and Morgan)."""


@dataclass(frozen=True)
class QualityRecord(Record):
    """Q of single repetitions: 1 − the largest |advantage| of two models, as the paper estimates it; biased low."""

    swap: list[float]
    random: list[float]
    swap_mean: float
    random_mean: float
    swap_deviation: Deviation
    """Interval by the jackknife over blocks of two swap pairs, which are two random repetitions too; approximate."""
    random_deviation: Deviation


@dataclass(frozen=True)
class MethodRecord(Record):
    """One unlearning method."""

    by_adversary: dict[str, AdversaryRecord]
    quality: QualityRecord


@dataclass(frozen=True)
class LookupRecord(Record):
    """The look-up adversary of Proposition 3.7, which looks at no model: the same against every method."""

    queries: int | None
    """How many points it may ask for; None: as many as it likes."""
    swap: list[float]
    random: list[float]


@dataclass(frozen=True)
class SwapVsRandom(Record):
    """What the whole experiment found: `swap-vs-random.json`."""

    takeaway: str
    """One sentence per finding, from the numbers."""
    repetitions: int
    """Of either grouping; each repetition is two splits, so two unlearned models per method and seed."""
    adversary: str
    """The one drawn: of the largest |mean advantage| against any method."""
    methods: dict[str, MethodRecord]
    lookup: list[LookupRecord]
    level: float
    settings: dict[str, Any]
    """Data, α, set sizes, seed and learner of the run."""
    environment: dict[str, str]
    digests: dict[str, str]
    """SHA-256 of the data and of all decisions that went in."""
    schema: int = 1


TwoSplits = tuple[Split, Split]


def swap_estimates(by_split: Floats) -> Floats:
    """(P, …): ½(Adv_s + Adv_s') of each swap pair, from Adv_s and Adv_s' in (P, 2, …)."""
    return np.asarray(by_split.mean(axis=1), dtype=np.float64)


def random_estimates(by_split: Floats) -> Floats:
    """(P, …): ½(Adv_s₁ + Adv_s₂), ½(Adv_s'₁ + Adv_s'₂), ½(Adv_s₃ + Adv_s₄), … from (P, 2, …) with an even P."""
    blocks = by_split.reshape(-1, 2, *by_split.shape[1:])  # (P/2, neighbours, sides, …)
    return np.asarray(blocks.mean(axis=1).reshape(by_split.shape[0], *by_split.shape[2:]), dtype=np.float64)


def as_swap_pairs(pairs: Sequence[SwapPair]) -> list[TwoSplits]:
    """The two splits of each swap pair, (s, s')."""
    return [pair.sides for pair in pairs]


def as_random_pairs(pairs: Sequence[SwapPair]) -> list[TwoSplits]:
    """The two splits behind each of `random_estimates`, in its order."""
    neighbours = zip(pairs[::2], pairs[1::2], strict=True)
    return [(first.sides[side], second.sides[side]) for first, second in neighbours for side in (0, 1)]


def lookup_advantages(groups: Sequence[TwoSplits], weights: Floats, n_queries: float) -> Floats:
    """(P,) what the look-up adversary of Proposition 3.7 gains on each group, its table made for that group; exact.

    It looks at no model, so these are its advantages against every method, Retrain included.
    """
    return np.array([_lookup_advantage(group, weights, n_queries) for group in groups])


def _lookup_advantage(group: TwoSplits, weights: Floats, n_queries: float) -> float:
    forget, unseen = ([lookup_acceptance(group, split, bit, weights, n_queries) for split in group] for bit in (0, 1))
    return float(np.mean(np.subtract(forget, unseen)))


def compare_spreads(by_split: Floats, level: float = 0.95) -> AdversaryRecord:
    """From Adv_s and Adv_s' of P swap pairs, (P, 2).

    The variance for random splits is the sample variance averaged over *all* ways to group the s by two, and the s' by
    two: half the sample variance of single splits. The groups in a picture are one of these ways.
    """
    check_level(level)
    values = frozen_floats(by_split, "advantages by split")
    if values.ndim != 2 or values.shape[1] != 2 or len(values) < MIN_PAIRS or len(values) % 2:
        raise ValueError(f"a spread needs both sides of an even number, at least {MIN_PAIRS} pairs, not {values.shape}")
    df = len(values) - 1
    of_sum = _variance(values[:, 0] + values[:, 1])
    of_contrast = _variance(values[:, 0] - values[:, 1])
    both = of_sum + of_contrast
    # Satterthwaite: between P − 1 degrees of freedom, where one of the two is all, and 2(P − 1), where they are equal
    df_of_both = df * both**2 / (of_sum**2 + of_contrast**2) if both > 0 else df
    return AdversaryRecord(
        mean=float(values.mean()),
        swap=swap_estimates(values).tolist(),
        random=random_estimates(values).tolist(),
        swap_deviation=_deviation(of_sum / 4, df, level),
        random_deviation=_deviation(both / 8, df_of_both, level),
        correlation=(of_sum - of_contrast) / both if both > 0 else None,
        variance_ratio=both / (2 * of_sum) if of_sum > 0 else None,
        variance_ratio_interval=_ratio_interval(of_contrast / of_sum, df, level) if of_sum > 0 else None,
    )


def quality_spread(by_split: Floats, level: float = 0.95) -> QualityRecord:
    """Q of each repetition in both groupings, from (pairs, sides, adversaries)."""
    swap, random = (quality_by_pair(estimates(by_split)) for estimates in (swap_estimates, random_estimates))
    return QualityRecord(
        swap=swap.tolist(),
        random=random.tolist(),
        swap_mean=float(swap.mean()),
        random_mean=float(random.mean()),
        swap_deviation=jackknife_deviation(swap.reshape(-1, 2), level),
        random_deviation=jackknife_deviation(random.reshape(-1, 2), level),
    )


def jackknife_deviation(blocks: Floats, level: float = 0.95) -> Deviation:
    """The deviation of all numbers in [0, 1] of (B, n) blocks; blocks are independent, numbers inside one need not be.

    For Q, which is not normal: |·| and a maximum were taken. The interval is Student's t around the logarithm, whose
    standard error is the jackknife's over blocks. In simulations with 5, 10 and 20 blocks of two, 95 % covered 90 to
    95 % (a percentile bootstrap covered 70 to 90 %).
    """
    check_level(level)
    value, n_blocks = float(blocks.std(ddof=1)), len(blocks)
    without_one = np.array([np.delete(blocks, i, axis=0).std(ddof=1) for i in range(n_blocks)])
    if value == 0:
        return Deviation(0.0, (0.0, 0.0))
    if not (without_one > 0).all():
        return Deviation(value, (0.0, 1.0))
    error = math.sqrt((n_blocks - 1) * float(np.var(np.log(without_one))))
    factor = math.exp(min(float(special.stdtrit(n_blocks - 1, (1 + level) / 2)) * error, 700.0))
    return Deviation(value, (value / factor, min(value * factor, 1.0)))


def _ratio_interval(quotient: float, df: int, level: float) -> tuple[float, float]:
    """Of ½(1 + γ), γ = (1 − ρ)/(1 + ρ), for which (s²_contrast / s²_sum) / γ ~ F(df, df).

    The square root of an F(n, n) quantile is c + √(1 + c²) with c = t_n/√n, so Student's quantile will do.
    """
    c = float(special.stdtrit(df, (1 + level) / 2)) / math.sqrt(df)
    factor = (c + math.sqrt(1 + c * c)) ** 2
    return (1 + quotient / factor) / 2, (1 + quotient * factor) / 2


def _deviation(variance: float, df: float, level: float) -> Deviation:
    """A standard deviation with its interval, since df·s²/σ² ~ χ²(df)."""
    return Deviation(math.sqrt(variance), deviation_interval(math.sqrt(variance), df, level))


def deviation_interval(deviation: float, df: float, level: float) -> tuple[float, float]:
    """Of the standard deviation of normal values, from a sample's: df·s²/σ² ~ χ²(df)."""
    low, high = (deviation * math.sqrt(df / special.chdtri(df, tail)) for tail in ((1 - level) / 2, (1 + level) / 2))
    return low, high


def _variance(values: Floats) -> float:
    """Variance of the sample; one so small that it is rounding alone counts as 0."""
    variance = float(np.var(values, ddof=1))
    return variance if variance > 1e-30 else 0.0
