"""Signed advantages: what one adversary gains on one split, on a swap pair, and as a paired difference.

No absolute value is taken in this module. |·| and the maximum over adversaries come last (``quality``): taken earlier,
they turn noise into advantage.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from forgetgauge.game.arrays import Bools, Floats, Ints, frozen_bools, frozen_floats, group_means


def signed_advantage(says_forget: ArrayLike, in_forget: ArrayLike, weight: ArrayLike) -> float:
    """P(A=1 | x in F) − P(A=1 | x in T) for one split, the summand of Definition 3.1.

    ``says_forget`` holds decisions or probabilities of accepting, (n,); ``weight`` is P_D on these points, any scale.
    """
    accepted = _probabilities(says_forget)
    if accepted.ndim != 1:
        raise ValueError(f"decisions of one adversary must be a list, but their shape is {accepted.shape}")
    return float(_contrast(accepted, *_labels(in_forget, weight, accepted)))


def swap_advantage(
    says_forget: ArrayLike, says_forget_swapped: ArrayLike, in_forget: ArrayLike, weight: ArrayLike
) -> float:
    """½(Adv_s + Adv_s'), signed: the mean of the two sides of a swap pair.

    Both decision arrays are over the same points; ``in_forget`` tells who is in F of the first side.
    """
    side = frozen_bools(in_forget, "in_forget")
    return (signed_advantage(says_forget, side, weight) + signed_advantage(says_forget_swapped, ~side, weight)) / 2


def paired_differences(says_forget: ArrayLike, says_forget_swapped: ArrayLike) -> Floats:
    """d_i = A(m, i) − A(m', i), with m and m' the models of the two sides: what the swap changed for point i."""
    first, second = _probabilities(says_forget), _probabilities(says_forget_swapped)
    if first.shape != second.shape:
        raise ValueError(
            f"the two sides must decide on the same points, but their shapes are {first.shape} and {second.shape}"
        )
    return np.asarray(first - second, dtype=np.float64)


def advantage_of_differences(differences: Floats, in_forget: Bools, weight: Floats) -> Floats:
    """½(mean_F d − mean_T d), the signed SWAP advantage, for d of shape (2k,) or (2k, n_adversaries)."""
    contrast = _contrast(differences, in_forget, weight) / 2
    return np.clip(contrast, -1.0, 1.0)  # weighted means of ±1 can be off by rounding


@dataclass(frozen=True, eq=False)
class PairOutcome:
    """What was measured on one swap pair: the paired differences of every adversary, averaged over seeds.

    ``differences`` (2k, n_adversaries) in [−1, 1]; ``in_forget`` (2k,), half of it True: who is in F of the first side;
    ``weight`` (2k,), P_D in any scale; ``decisions`` (2 sides, n_seeds, 2k, n_adversaries), what was decided about
    every single model, where the differences come from decisions. The 2k are what was drawn: points, or groups of
    points. Of groups the differences are means over their points, weighted by P_D, and ``grouped`` says of which points
    the decisions are.
    """

    differences: Floats
    in_forget: Bools
    weight: Floats
    decisions: Bools | None = None
    grouped: "Grouped | None" = None

    def __post_init__(self) -> None:
        differences = frozen_floats(self.differences, "differences")
        if differences.ndim != 2 or differences.shape[1] == 0:
            raise ValueError(f"differences must have the shape (points, adversaries), but it is {differences.shape}")
        if differences.size > 0 and np.abs(differences).max() > 1:
            raise ValueError("differences of probabilities must lie in [-1, 1]")
        in_forget, weight = _labels(self.in_forget, self.weight, differences)
        if 2 * int(in_forget.sum()) != len(in_forget):
            what = "points" if self.grouped is None else "groups"
            raise ValueError(f"half of the {len(in_forget)} {what} must be in forget, but {int(in_forget.sum())} are")
        object.__setattr__(self, "differences", differences)
        object.__setattr__(self, "in_forget", in_forget)
        object.__setattr__(self, "weight", weight)

    @property
    def k(self) -> int:
        """The number of points to forget, |F| = |T|; where groups are drawn, of groups."""
        return len(self.in_forget) // 2

    @property
    def sides(self) -> tuple[Bools, Bools]:
        """(2k,) each: which points are in F of the first side, and which are in F of the second."""
        return self.in_forget, ~self.in_forget

    @property
    def n_adversaries(self) -> int:
        """How many adversaries were measured."""
        return int(self.differences.shape[1])

    @cached_property
    def advantage(self) -> Floats:
        """The signed SWAP advantage of every adversary, (n_adversaries,)."""
        value = advantage_of_differences(self.differences, self.in_forget, self.weight)
        value.flags.writeable = False
        return value


@dataclass(frozen=True, eq=False)
class Grouped:
    """The points of a pair whose groups were drawn. The groups are the unit of every statistic: points of one group
    come and go together, so only groups can be exchanged by chance."""

    group: Ints
    """(n_points,) which of the pair's 2k groups, from 0, each point is of."""
    in_forget: Bools
    """(n_points,) who is in F of the first side."""
    weight: Floats
    """(n_points,) P_D in any scale."""

    @staticmethod
    def of(group: ArrayLike, in_forget: ArrayLike, weight: ArrayLike) -> "Grouped":
        """From the group of each point by any number; ValueError where a group is cut."""
        place = np.unique(np.asarray(group), return_inverse=True)[1]
        side, mass = frozen_bools(in_forget, "in_forget"), frozen_floats(weight, "weight")
        if not place.shape == side.shape == mass.shape:
            raise ValueError(f"groups {place.shape}, in_forget {side.shape} and weight {mass.shape} must be of points")
        if not np.isin(group_means(side, place), (0, 1)).all():
            raise ValueError("the points of a group must all be in F or all in T")
        return Grouped(place.astype(np.int64), side, mass)

    @cached_property
    def of_groups(self) -> tuple[Bools, Floats]:
        """(2k,) each: which groups are in F of the first side, and P_D of each group."""
        in_forget = np.zeros(int(self.group.max()) + 1, dtype=np.bool_)
        in_forget[self.group] = self.in_forget
        return in_forget, np.asarray(np.bincount(self.group, weights=self.weight), dtype=np.float64)

    def means(self, values: Floats) -> Floats:
        """(2k, n_columns) means over each group's points, weighted by P_D, of (n_points, n_columns); 0 without mass."""
        mass = self.of_groups[1]
        total = np.stack([np.bincount(self.group, weights=self.weight * column) for column in values.T], axis=1)
        means = np.divide(total, mass[:, None], out=np.zeros_like(total), where=mass[:, None] > 0)
        return np.clip(means, values.min(initial=0), values.max(initial=0))  # weighted means can be off by rounding

    def outcome(self, differences: Floats, decisions: Bools | None = None) -> PairOutcome:
        """The pair's outcome, from (n_points, n_adversaries) differences."""
        return PairOutcome(self.means(differences), *self.of_groups, decisions, self)


def outcome_of_decisions(
    says_forget: ArrayLike,
    says_forget_swapped: ArrayLike,
    in_forget: ArrayLike,
    weight: ArrayLike,
    group: ArrayLike | None = None,
) -> PairOutcome:
    """The outcome of one pair from both sides' decisions, each (n_seeds, n_points, n_adversaries).

    ``group`` names the group of each point where groups were drawn.
    """
    by_seed = paired_differences(says_forget, says_forget_swapped)
    if by_seed.ndim != 3 or by_seed.shape[0] == 0:
        raise ValueError(f"decisions must have the shape (seeds, points, adversaries), but it is {by_seed.shape}")
    both = np.asarray([says_forget, says_forget_swapped])
    decisions = frozen_bools(both, "decisions") if both.dtype == np.bool_ else None  # of probabilities there are none
    return outcome_of_differences(by_seed.mean(axis=0), in_forget, weight, group, decisions)


def outcome_of_differences(
    differences: Floats,
    in_forget: ArrayLike,
    weight: ArrayLike,
    group: ArrayLike | None = None,
    decisions: Bools | None = None,
) -> PairOutcome:
    """The outcome of one pair from what the swap changed for each point, (n_points, n_adversaries)."""
    if group is None:
        return PairOutcome(differences, np.asarray(in_forget), np.asarray(weight), decisions)
    return Grouped.of(group, in_forget, weight).outcome(differences, decisions)


def _contrast(values: Floats, in_forget: Bools, weight: Floats) -> Floats:
    """Weighted mean over F minus weighted mean over T, along the first axis."""
    forget, unseen = weight[in_forget], weight[~in_forget]
    return np.asarray(forget @ values[in_forget] / forget.sum() - unseen @ values[~in_forget] / unseen.sum())


def _probabilities(says_forget: ArrayLike) -> Floats:
    accepted = frozen_floats(says_forget, "decisions")
    if accepted.size > 0 and (accepted.min() < 0 or accepted.max() > 1):
        raise ValueError("decisions must be booleans or probabilities in [0, 1]")
    return accepted


def _labels(in_forget: ArrayLike, weight: ArrayLike, values: Floats) -> tuple[Bools, Floats]:
    """Labels and weights of the points along the first axis of ``values``, checked; both sets have positive mass."""
    side, scaled = frozen_bools(in_forget, "in_forget"), frozen_floats(weight, "weight")
    n = values.shape[:1]
    if side.shape != n or scaled.shape != n:
        raise ValueError(f"in_forget {side.shape} and weight {scaled.shape} must have one entry per point, {n}")
    if (scaled < 0).any():
        raise ValueError("weight must not be negative")
    for name, members in (("forget", side), ("unseen", ~side)):
        if not scaled[members].sum() > 0:
            raise ValueError(f"the {name} set has no mass, so its acceptance probability is undefined")
    return side, scaled
