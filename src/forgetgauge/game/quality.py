"""Unlearning Quality Q = 1 − sup_A Adv(A, Ul) over a declared set of adversaries, and its interval.

This is where the absolute value and the maximum are taken: once, after every average, but for ``quality_by_pair``.
There are four numbers for Q, each with its own target.

* ``quality_by_pair``: 1 − max_a |Adv_a| of every swap pair on its own, the paper's SWAP test of one pair; its tables
  are means of such numbers. |·| and max are taken of the noise of single pairs, and no number of pairs makes that less.
* ``quality_plugin``: 1 − max_a |mean_a|, the paper's definition of Q on the pairs at hand. Its target is Q, and it is
  biased low too: |·| and max of noise, but of the mean's.
* ``quality``: the adversary and its sign chosen on other pairs than those that score it. Unbiased (before clipping) for
  the adversary chosen, hence optimistic about the maximum: by about 0.1 at |F| = 5 (docs/statistics.md).
* ``interval``: for Q itself at the level asked for, although the best adversary was looked for among J.

**The interval.** The two ends of the interval answer two questions. Its *upper* end ("some adversary has at least this
advantage") must survive the search, so it is Bonferroni's: max_a(|mean_a| − t_{1−α/2J} se_a). Its *lower* end ("none
has more than this") needs one interval to hold, that of the truly best adversary, whichever it is: max_a(|mean_a| +
t_{1−α/2} se_a) pays nothing for J. Together they miss in at most α: where the maximum m is large each end misses in at
most α/2; where it is near 0 the lower end cannot miss, and the upper one does in at most α. In between, with r = m/se
of the noisiest adversary, the miss is at most α/2 + min(α/2, P(|Z| + t_{1−α/2}S < r) + n(r)) + (J − 1)n(r), where n(r)
= P(Z > t_{1−α/2J}S + 2r) and S² ~ χ²/df. Integrated (tests/game/test_supremum.py), that is never above α + 0.0001 for 5
to 64 pairs and up to 64 adversaries, however they depend on each other, if the pairs' advantages are normal. A method
that fails in a few of its models is not normal: ``bounded_quality_interval`` assumes no distribution.

An adversary of whose decisions none differs between the two models of any pair showed nothing, and with its
distribution-free interval nothing could be said of Q. It widens the lower end only where no other adversary decided
anything either.

**Cross-fitting.** Choosing and scoring on the same pairs turns noise into advantage. In ``cross_fit`` the adversary
*and its sign* are chosen where |mean| is largest on one half of the pairs, and scored, with that sign, on the other
half; the scores of all halvings are averaged. Every summand is unbiased for the adversary it chose, so their mean is
unbiased for the mixture ``choice``, whatever the number of adversaries; it is at most the maximum, so it flatters the
method: hardly where an adversary stands out, by up to 0.1 at five forgotten points and eight adversaries
(docs/statistics.md).

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
from forgetgauge.game.arrays import Bools, Floats, frozen_floats
from forgetgauge.game.intervals import (
    MIN_PAIRS,
    ROUNDING,
    Interval,
    IntervalKind,
    advantage_floor,
    check_level,
    check_outcomes,
    lower_bounds,
    signed_interval,
    simultaneous_intervals,
)


def best_adversary(advantages: Floats) -> int:
    """The index of the adversary of largest |signed advantage|; the first of them on a tie."""
    return first_largest(np.abs(_checked(advantages)))


def first_largest(values: Floats) -> int:
    """The index of the largest of (n,) values; the first of those that differ from it by no more than rounding."""
    return int(np.argmax(values >= values.max() - ROUNDING))


def quality_plugin(advantages: Floats) -> float:
    """1 − max_a |Adv_a| from the mean signed advantage of each adversary, (n_adversaries,); biased low."""
    return 1 - float(np.abs(_checked(advantages)).max())


def quality_by_pair(by_pair: Floats) -> Floats:
    """(P,) 1 − max_a |½(Adv_s + Adv_s')| of each swap pair, from the signed ½(Adv_s + Adv_s') in (P, n_adversaries).

    Its mean is at most ``quality_plugin`` of the means: max_a |mean_p x| ≤ mean_p max_a |x|, Jensen's inequality.
    """
    return np.array([quality_plugin(pair) for pair in by_pair])


def quality_interval(intervals: Sequence[Interval], level: float) -> Interval:
    """The interval for Q that holds whenever all the given signed intervals hold.

    ``level`` is the probability with which they hold together. Each puts |Adv_a| in [max(0, low, −high),
    max(|low|, |high|)]; the maximum over adversaries lies between the largest of the lower and of the upper ends.
    """
    if not intervals:
        raise ValueError("the quality needs the interval of at least one adversary")
    least = max(max(0.0, interval.low, -interval.high) for interval in intervals)
    most = max(max(abs(interval.low), abs(interval.high)) for interval in intervals)
    return Interval(max(0.0, 1 - most), max(0.0, 1 - least), level, intervals[0].basis)


def _checked(advantages: Floats) -> Floats:
    values = frozen_floats(advantages, "advantages")
    if values.ndim != 1 or values.size == 0 or np.abs(values).max() > 1:
        raise ValueError("advantages must be one number in [-1, 1] for each of at least one adversary")
    return values


# -- chosen on one half, scored on the other ---------------------------------------------------------------------------

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
    n_blocks = min(POINT_BLOCKS, *(int((o.weight[side] > 0).sum()) for o in outcomes for side in o.sides))
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
    for side in outcome.sides:
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


# -- the interval of Q -------------------------------------------------------------------------------------------------


def supremum_interval(outcomes: Sequence[PairOutcome], level: float = 0.95, kind: IntervalKind = "student") -> Interval:
    """The interval of Q: its upper end adjusted for the number of adversaries, its lower end free of it."""
    if kind == "bounded":
        return bounded_quality_interval(_by_pair(outcomes), level)
    together = simultaneous_intervals(outcomes, level)
    alone = [signed_interval(outcomes, which, level) for which in counted_below(outcomes)]
    return supremum_interval_of(together, alone, level)


def counted_below(outcomes: Sequence[PairOutcome]) -> list[int]:
    """The adversaries that count for the lower end: those of whose decisions any differs, all where none does."""
    decided = np.any([outcome.differences.any(axis=0) for outcome in outcomes], axis=0)  # (J,)
    return [int(which) for which in np.flatnonzero(decided if decided.any() else ~decided)]


def supremum_interval_of(together: Sequence[Interval], alone: Sequence[Interval], level: float) -> Interval:
    """The same from signed intervals: those that all hold with ``level`` together, and those that do one by one."""
    adjusted = quality_interval(together, level)
    return Interval(quality_interval(alone, level).low, adjusted.high, level, adjusted.basis)


def bounded_quality_interval(by_pair: Floats, level: float = 0.95) -> Interval:
    """For Q, from (P, J) signed advantages of any distribution; each end misses with at most (1 − level)/2.

    The upper end survives the search for the best adversary. The lower end needs one bound to hold, that of the truly
    best adversary with its sign, whichever it is.
    """
    check_level(level)
    tail = (1 - level) / 2
    most = -lower_bounds(np.concatenate([by_pair, -by_pair], axis=1).T, tail).min()
    return Interval(float(1 - most), float(1 - advantage_floor(by_pair, 1 - tail)), level, "over pairs")


def _by_pair(outcomes: Sequence[PairOutcome]) -> Floats:
    check_outcomes(outcomes)
    return np.array([outcome.advantage for outcome in outcomes])
