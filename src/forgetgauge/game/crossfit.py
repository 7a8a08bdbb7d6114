"""The best adversary chosen on one half of the evidence and scored on the other half.

Choosing and scoring on the same pairs turns noise into advantage. Here the adversary *and its sign* are chosen where
|mean| is largest on one half of the pairs, and scored, with that sign, on the other half; the scores of all halvings
are averaged. Every summand is unbiased for the adversary it chose, so their mean is unbiased for the mixture
``choice``, whatever the number of adversaries; it is at most the maximum, so it flatters the method: hardly where an
adversary stands out, by up to 0.1 at five forgotten points and eight adversaries (docs/statistics.md).

Halvings rather than leaving one pair out, and all of them rather than one: at 8 pairs and 8 useless adversaries the
standard deviation is 0.27 of a pair's own, against 0.42 for a single halving and 0.55 for leaving one pair out
(docs/statistics.md). The result does not depend on the order of the pairs, up to ``ENUMERATED`` of them.

With fewer than ``MIN_PAIRS`` pairs the halves are made of points, F and T alike in both. Points share the noise of
their models, so what is unbiased then is a statement about these models only, and ``basis`` says so.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Literal, TypeAlias

import numpy as np

from forgetgauge.game.advantage import PairOutcome
from forgetgauge.game.arrays import Bools, Floats
from forgetgauge.game.intervals import MIN_PAIRS, ROUNDING, check_outcomes

ENUMERATED = 12  # 924 halves; of 16 pairs, 64 evenly spaced halves have a spread 3 % above that of all 12 870
POINT_BLOCKS = 8

CrossFitBasis: TypeAlias = Literal["over pairs", "over points", "plug-in"]


@dataclass(frozen=True, eq=False)
class CrossFit:
    """A cross-fitted advantage, and which adversaries it is about."""

    advantage: float
    """Unclipped: below 0 when the chosen adversary did worse than chance where it was scored."""
    choice: Floats
    """(n_adversaries,) how often each was chosen, with its sign: the target is choice · true signed advantages."""
    basis: CrossFitBasis
    """What the halves are made of; "plug-in" where a set has a single point and nothing can be halved."""


def cross_fit(outcomes: Sequence[PairOutcome]) -> CrossFit:
    """The advantage of the adversary chosen on other pairs, or on other points below ``MIN_PAIRS`` pairs."""
    check_outcomes(outcomes)
    by_pair = np.array([outcome.advantage for outcome in outcomes])  # (P, J)
    if len(outcomes) >= MIN_PAIRS:
        return cross_fit_pairs(by_pair)
    n_blocks = min(POINT_BLOCKS, *(int((o.weight[side] > 0).sum()) for o in outcomes for side in _sides(o)))
    if n_blocks >= 2:
        return _cross_fit_points(outcomes, n_blocks)
    mean = by_pair.mean(axis=0)
    choice = _choices(mean[None])[0]
    return CrossFit(float(choice @ mean), choice, "plug-in")


def cross_fit_pairs(by_pair: Floats) -> CrossFit:
    """The cross-fitted advantage of signed advantages by pair, (P ≥ 2, n_adversaries)."""
    if by_pair.ndim != 2 or len(by_pair) < 2:
        raise ValueError(f"cross-fitting needs at least two pairs, but the shape is {by_pair.shape}")
    scored = _halves(len(by_pair))  # (H, P)
    sums = scored.astype(np.float64) @ by_pair  # (H, J)
    sizes = scored.sum(axis=1)[:, None]  # (H, 1)
    chosen = _choices((by_pair.sum(axis=0) - sums) / (len(by_pair) - sizes))
    return _average(chosen, sums / sizes, sizes, "over pairs")


def _cross_fit_points(outcomes: Sequence[PairOutcome], n_blocks: int) -> CrossFit:
    """Every set of every pair is dealt into blocks, point by point in its own order; half of the blocks score."""
    scored = _halves(n_blocks)
    advantages = [
        np.mean([_advantage_of_blocks(o, blocks, n_blocks) for o in outcomes], axis=0) for blocks in (scored, ~scored)
    ]  # each (H, J)
    return _average(_choices(advantages[1]), advantages[0], scored.sum(axis=1)[:, None], "over points")


def _advantage_of_blocks(outcome: PairOutcome, blocks: Bools, n_blocks: int) -> Floats:
    """½(mean_F d − mean_T d) over the points of the blocks in each row of ``blocks``, (H, n_adversaries)."""
    means = []
    for side in _sides(outcome):
        weight, values = outcome.weight[side], outcome.differences[side]
        drawn = weight > 0
        weight, values = weight[drawn] / weight.max(), values[drawn]
        dealt = np.arange(len(weight)) % n_blocks == np.arange(n_blocks)[:, None]  # (B, points)
        mass, total = dealt @ weight, dealt @ (weight[:, None] * values)  # (B,), (B, J)
        means.append((blocks @ total) / (blocks @ mass)[:, None])
    return np.asarray((means[0] - means[1]) / 2, dtype=np.float64)


def _average(chosen: Floats, scores: Floats, sizes: Floats, basis: CrossFitBasis) -> CrossFit:
    """The mean over halvings, each weighted by how much it scored: every pair then counts alike."""
    share = sizes / sizes.sum()
    choice = (share * chosen).sum(axis=0)
    return CrossFit(float((share * chosen * scores).sum()), choice, basis)


def _choices(means: Floats) -> Floats:
    """(H, J) ±1 at the adversary of largest |mean| of each row and 0 elsewhere; tied adversaries share the choice.

    Equal up to rounding is a tie, also of the two signs of a mean of 0: the choice depends neither on the order of
    pairs, points or adversaries nor on which of F and T is called forgotten.
    """
    size = np.abs(means)
    tied = size >= size.max(axis=1, keepdims=True) - ROUNDING
    signs = np.where(size > ROUNDING, np.sign(means), 0.0)
    return np.asarray(tied * signs / tied.sum(axis=1, keepdims=True))


@lru_cache(maxsize=64)
def _halves(n: int) -> Bools:
    """(H, n) the halves of n things that are scored, each beside its complement; both sizes when n is odd.

    Up to ``ENUMERATED`` things all of them, beyond that those spaced evenly around a circle, at up to 32 spacings.
    """
    if n <= ENUMERATED:
        members = np.array(list(combinations(range(n), n // 2)))
    else:
        strides = [stride for stride in range(1, n // 2 + 1) if math.gcd(stride, n) == 1][:32]
        steps = np.arange(n // 2)
        members = np.concatenate([(np.arange(n)[:, None] + stride * steps) % n for stride in strides])
    halves = np.zeros((len(members), n), dtype=np.bool_)
    halves[np.arange(len(members))[:, None], members] = True
    if n % 2 == 1:  # of an even number the complements are among them already
        halves = np.concatenate([halves, ~halves])
    halves.flags.writeable = False
    return halves


def _sides(outcome: PairOutcome) -> tuple[Bools, Bools]:
    return outcome.in_forget, ~outcome.in_forget
