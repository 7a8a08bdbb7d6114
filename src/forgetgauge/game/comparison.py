"""Is method A better than method B? Paired intervals of Q_A − Q_B, and how stable a ranking is from pair to pair.

Both methods are measured on the same pairs, so what a split or an original model adds to both cancels in their
difference. The target is the difference of the two qualities, each with its own best adversary:
Q_A − Q_B = max_b |Adv_b(B)| − max_a |Adv_a(A)|.

Upper end: for B's truly best adversary b with its sign s, and for *any* a and sign s′, the difference is at most
sAdv_b(B) − s′Adv_a(A), and at most sAdv_b(B). Each has a paired interval; the smallest of their 2J + 1 upper ends is
a bound at Bonferroni's level, and the largest of those over b needs no adjustment, since only the best b counts. The
lower end is the same with A and B exchanged. Each end misses in at most α/2. No choice is made on the data, so the
interval is valid however the adversaries depend on each other, if pairs are normal. A contrast on which all pairs
agree exactly has the distribution-free interval instead.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt

import numpy as np
from scipy import special

from forgetgauge.game.advantage import PairOutcome
from forgetgauge.game.arrays import Floats, frozen_floats
from forgetgauge.game.intervals import (
    MIN_PAIRS,
    Basis,
    Interval,
    agree,
    check_level,
    check_outcomes,
    lower_bounds,
    welch_contrasts,
)
from forgetgauge.game.quality import quality_plugin


@dataclass(frozen=True)
class Comparison:
    """Q of the first method minus Q of the second."""

    difference: float
    """Difference of the two plug-in qualities; always inside the interval."""
    interval: Interval
    """For the difference of the true qualities."""

    @property
    def first_is_better(self) -> bool:
        """Whether the whole interval lies above 0."""
        return self.interval.low > 0

    @property
    def second_is_better(self) -> bool:
        """Whether the whole interval lies below 0."""
        return self.interval.high < 0


def compare(first: Sequence[PairOutcome], second: Sequence[PairOutcome], level: float = 0.95) -> Comparison:
    """The paired interval of Q_first − Q_second; both methods on the same pairs, in the same order."""
    check_level(level)
    _check_paired(first, second)
    each = 1 - (1 - level) / (2 * first[0].n_adversaries + 1)  # two-sided level of each of the 2J + 1 intervals
    means = [np.mean([outcome.advantage for outcome in outcomes], axis=0) for outcomes in (first, second)]
    low, high = -_upper_end(first, second, each), _upper_end(second, first, each)
    interval = Interval(max(-1.0, low), min(1.0, high), level, _basis(first))
    return Comparison(quality_plugin(means[0]) - quality_plugin(means[1]), interval)


def compare_all(
    methods: Mapping[str, Sequence[PairOutcome]], level: float = 0.95, *, simultaneous: bool = True
) -> dict[tuple[str, str], Comparison]:
    """Every method against every later one; when ``simultaneous`` all intervals hold together (Bonferroni)."""
    check_level(level)
    couples = list(combinations(methods, 2))
    each = 1 - (1 - level) / max(1, len(couples)) if simultaneous else level
    return {(one, other): compare(methods[one], methods[other], each) for one, other in couples}


def kendall_tau(first: Floats, second: Floats) -> float:
    """Kendall's τ_b of two rankings of the same things, (n,) each; NaN where one of them ties everything. What is equal
    up to rounding is a tie."""
    x, y = (np.round(frozen_floats(ranking, "a ranking"), 12) for ranking in (first, second))
    if x.ndim != 1 or x.shape != y.shape:
        raise ValueError(f"two rankings must rank the same things, but their shapes are {x.shape} and {y.shape}")
    upper = np.triu_indices(len(x), 1)
    order_x, order_y = (np.sign(v[:, None] - v)[upper] for v in (x, y))  # (n(n−1)/2,) each
    untied = float(np.count_nonzero(order_x)) * float(np.count_nonzero(order_y))
    return float((order_x * order_y).sum()) / sqrt(untied) if untied > 0 else float("nan")


def rank_stability(by_pair: Floats) -> float:
    """Mean over pairs of Kendall's τ between the pair's own ranking and the ranking over all pairs.

    ``by_pair`` holds signed advantages, (n_methods ≥ 2, n_pairs, n_adversaries); both rankings are by the plug-in Q. 1
    means that every pair ranks the methods alike. A pair that ties all methods shows no agreement and counts as 0.
    Each pair is part of the overall ranking, so among methods that do not differ the mean is above 0.
    """
    values = frozen_floats(by_pair, "advantages by pair")
    if values.ndim != 3 or len(values) < 2 or 0 in values.shape:
        raise ValueError(f"a ranking needs (methods ≥ 2, pairs, adversaries), but the shape is {values.shape}")
    overall = 1 - np.abs(values.mean(axis=1)).max(axis=1)  # (M,)
    of_pair = 1 - np.abs(values).max(axis=2)  # (M, P)
    return float(np.mean(np.nan_to_num([kendall_tau(overall, pair) for pair in of_pair.T])))


def _upper_end(worse: Sequence[PairOutcome], better: Sequence[PairOutcome], level: float) -> float:
    """An upper bound of max_b |Adv_b(worse)| − max_a |Adv_a(better)|."""
    ends = _over_pairs if _basis(worse) == "over pairs" else welch_contrasts
    low, high = ends(worse, better, level)
    # θ_b − c for c in {θ_a, −θ_a, 0}: a set that is its own negative, so −θ_b − c is bounded by −low as well
    return float(max(high.min(axis=1).max(), (-low).min(axis=1).max()))


def _over_pairs(worse: Sequence[PairOutcome], better: Sequence[PairOutcome], level: float) -> tuple[Floats, Floats]:
    """Both ends of Student's t intervals of θ_b − c, each (J, 2J + 1); bounded ones where all pairs agree."""
    theirs, ours = (np.array([outcome.advantage for outcome in outcomes]) for outcomes in (worse, better))
    subtracted = np.concatenate([ours, -ours, np.zeros((len(ours), 1))], axis=1)  # (P, 2J + 1)
    contrast = theirs[:, :, None] - subtracted[:, None, :]  # (P, J, 2J + 1)
    half = special.stdtrit(len(worse) - 1, (1 + level) / 2) * contrast.std(axis=0, ddof=1) / sqrt(len(worse))
    centre = contrast.mean(axis=0)
    low, high = centre - half, centre + half
    if (alike := agree(contrast)).any():  # by coincidence, or because two methods decide alike on every point
        halved = contrast[:, alike].T / 2  # in [−1, 1]
        low[alike] = 2 * lower_bounds(halved, (1 - level) / 2)
        high[alike] = -2 * lower_bounds(-halved, (1 - level) / 2)
    return low, high


def _basis(outcomes: Sequence[PairOutcome]) -> Basis:
    return "over pairs" if len(outcomes) >= MIN_PAIRS else "given these models"


def _check_paired(first: Sequence[PairOutcome], second: Sequence[PairOutcome]) -> None:
    for outcomes in (first, second):
        check_outcomes(outcomes)
    if len(first) != len(second):
        raise ValueError(f"methods are compared on the same pairs, but there are {len(first)} and {len(second)}")
    if first[0].n_adversaries != second[0].n_adversaries:
        raise ValueError("methods are compared by the same adversaries, but their numbers differ")
    for one, other in zip(first, second, strict=True):
        if not (np.array_equal(one.in_forget, other.in_forget) and np.array_equal(one.weight, other.weight)):
            raise ValueError("methods are compared on the same pairs, but their forgotten points or weights differ")
