"""Which way a score points: from training points to others on shadow models, from F to T in the game; beyond chance?

Who was a member of a shadow model, and who is in F rather than in T, are random draws. Given the answers, a direction
is therefore measured against what other draws would have given, in standard deviations z: no assumption about the
models. The normal distribution stands for the permutations; they are bounded, so its tails are the heavier ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from forgetgauge.game.advantage import PairOutcome
from forgetgauge.game.arrays import Bools, Floats, Ints

DECIDED = 3.0
"""Standard deviations at which a block of shadow models has a direction: chance gives as much in 0.3 % of blocks."""


@dataclass(frozen=True)
class Lean:
    """How far the scores of members lie above those of others."""

    auc: float
    """P(member above other) + ½P(equal), compared within classes."""
    z: float
    """Its distance from ½ in standard deviations of chance."""

    @property
    def sign(self) -> int:
        """1 where members have the larger scores, −1 where they have the smaller ones, 0 where chance may decide."""
        return 0 if abs(self.z) < DECIDED else 1 if self.z > 0 else -1


def membership_lean(scores: Floats, member: Bools, classes: Ints, points: Ints | None = None) -> Lean:
    """Of shadow rows, (n,) each: ranks are compared within a class, one direction for all classes together.

    A class counts by van Elteren's weights. Rows of one of ``points`` are dependent, so the variance is that of the
    sums over points; without them every row is a point of its own.
    """
    total, pairs = np.zeros(len(scores)), 0.0
    for own in np.unique(classes):
        rows = np.flatnonzero(classes == own)
        n, n_members = len(rows), int(member[rows].sum())
        ranks = mid_ranks(scores[rows])
        total[rows] = (ranks - (n + 1) / 2) * (member[rows] - n_members / n) / (n + 1)
        pairs += n_members * (n - n_members) / (n + 1)
    if pairs == 0:
        return Lean(0.5, 0.0)
    by_point = total if points is None else np.bincount(np.unique(points, return_inverse=True)[1], weights=total)
    spread = float(np.sqrt((by_point**2).sum()))
    return Lean(float(0.5 + total.sum() / pairs), float(total.sum() / spread) if spread > 0 else 0.0)


def mid_ranks(values: Floats) -> Floats:
    """(n,) 1 … n in ascending order, equal values at the mean of their ranks."""
    _, position, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[position], dtype=np.float64)


def rank_differences(first: Floats, second: Floats) -> Floats:
    """d_i = (rank of i under m − rank under m')/2k: ½(mean_F d − mean_T d) is then the swap AUC − ½ (equal weights).

    ``first`` and ``second`` are margins of the two sides, (n_seeds, 2k) each; seeds are averaged.
    """
    ranks = [np.mean([mid_ranks(seed) for seed in side], axis=0) for side in (first, second)]
    return np.asarray((ranks[0] - ranks[1]) / first.shape[1], dtype=np.float64)


def chance_spread(outcome: PairOutcome) -> Floats:
    """(n_adversaries,) standard deviation of a pair's advantages when a random half of its points is called F.

    Exact for equal weights; others are linearised.
    """
    share = outcome.weight / outcome.weight.mean()
    moved = share[:, None] * (outcome.differences - share @ outcome.differences / len(share))
    return np.asarray(moved.std(axis=0, ddof=1) / np.sqrt(len(share)), dtype=np.float64)


def z_by_pair(outcomes: Sequence[PairOutcome]) -> Floats:
    """(n_pairs, n_adversaries) advantages in standard deviations of chance; 0 where chance moves nothing."""
    return np.array([_over(outcome.advantage, chance_spread(outcome)) for outcome in outcomes])


def z_over_pairs(outcomes: Sequence[PairOutcome]) -> Floats:
    """(n_adversaries,) the same of the mean over pairs."""
    advantage = np.sum([outcome.advantage for outcome in outcomes], axis=0)
    return _over(advantage, np.sqrt(np.sum([chance_spread(outcome) ** 2 for outcome in outcomes], axis=0)))


def rarer_than(chance: float) -> float:
    """The z that a standard normal variable exceeds with this probability."""
    return -NormalDist().inv_cdf(chance)


def differ_by_themselves(outcomes: Sequence[PairOutcome], chance: float = 1e-3) -> bool:
    """Whether F of the first side and its T differ whatever the models do; said of a random draw with this ``chance``.

    What both models of a pair answer about a point, added up, is alike for a point that the first was to forget and for
    one that the second was, if a random draw decided which is which: what unlearning leaves to see cancels in the sum.
    The difference of its means is normal to a good approximation; every pair and adversary is looked at.
    """
    z = []
    for outcome in outcomes:
        if outcome.decisions is not None:
            total = outcome.decisions.sum(axis=(0, 1)).astype(np.float64)  # (points, adversaries)
            total = total if outcome.grouped is None else outcome.grouped.means(total)
            spread = 2 * total.std(axis=0, ddof=1) / np.sqrt(len(total))
            z.append(_over(total[outcome.in_forget].mean(axis=0) - total[~outcome.in_forget].mean(axis=0), spread))
    return bool(z) and float(np.abs(z).max()) > rarer_than(chance / (2 * np.size(z)))


def decides_nothing(decisions: Sequence[Bools]) -> Bools:
    """(n_adversaries,) whether an adversary answers the same of all points of each model, on every pair.

    Each element is (sides, seeds, points, n_adversaries). Such an adversary's advantage is 0 whatever the model.
    """
    alike = [(says == says[:, :, :1]).all(axis=(0, 1, 2)) for says in decisions]
    return np.asarray(np.all(alike, axis=0))


def _over(value: Floats, spread: Floats) -> Floats:
    return np.divide(value, spread, out=np.zeros_like(value), where=spread > 1e-12)
