"""Splits s = (R, F, T) of a data set, their swap, and the set S_α of all of them.

A split is three sorted arrays of point indices. The third set T of the paper is called ``unseen`` here, because the
official test set of a data set is another thing.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from forgetgauge.game.arrays import Bools, Ints

_LARGEST_DENOMINATOR = 10**9


@dataclass(frozen=True, eq=False)
class Split:
    """The ordered split s = (R, F, T): disjoint, |F| = |T| ≥ 1, each set sorted and read-only.

    R may be empty here (the paper's toy example keeps it out of sight); ``split_sizes`` refuses to draw such a split.
    Where ``groups`` names the group of each point, (n,), no group is cut and |F| = |T| counts groups.
    """

    retain: Ints
    forget: Ints
    unseen: Ints
    groups: Ints | None = None

    def __post_init__(self) -> None:
        for name in ("retain", "forget", "unseen"):
            object.__setattr__(self, name, _sorted_indices(getattr(self, name), name))
        sizes = len(self.forget), len(self.unseen)
        if self.groups is not None:
            within = [set(self.groups[part].tolist()) for part in (self.retain, self.forget, self.unseen)]
            if len(set.union(*within)) < sum(map(len, within)):
                raise ValueError("the points of a group must all be in one set of the split")
            sizes = len(within[1]), len(within[2])
        if sizes[0] != sizes[1]:
            what = "points" if self.groups is None else "groups"
            raise ValueError(f"forget and unseen must be of one size, but they have {sizes[0]} and {sizes[1]} {what}")
        if len(self.forget) == 0:
            raise ValueError("a split needs at least one point to forget")
        everything = np.concatenate([self.retain, self.forget, self.unseen])
        values, counts = np.unique(everything, return_counts=True)
        if len(values) < len(everything):
            raise ValueError(f"point {values[counts > 1][0]} appears more than once in the split")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Split):
            return NotImplemented
        return (
            np.array_equal(self.retain, other.retain)
            and np.array_equal(self.forget, other.forget)
            and np.array_equal(self.unseen, other.unseen)
        )

    @property
    def n(self) -> int:
        """|D|, the number of points in the three sets together."""
        return len(self.retain) + len(self.forget) + len(self.unseen)

    def swapped(self) -> "Split":
        """s' = (R, T, F): the same retain set, with forget and unseen exchanged."""
        return Split(self.retain, self.unseen, self.forget, self.groups)


@dataclass(frozen=True)
class SwapPair:
    """A split and its swap: the two experiments of one SWAP test, which share R."""

    split: Split

    @property
    def sides(self) -> tuple[Split, Split]:
        """The split and its swap, (s, s')."""
        return self.split, self.split.swapped()

    @property
    def points(self) -> Ints:
        """F followed by T of the first side: the order in which every decision array of the pair is kept."""
        return np.concatenate([self.split.forget, self.split.unseen])

    @property
    def in_forget(self) -> Bools:
        """For each of ``points``, whether the first side forgets it: first True, then False."""
        return np.repeat([True, False], [len(self.split.forget), len(self.split.unseen)])

    @property
    def groups(self) -> Ints | None:
        """The group of each of ``points``; None where single points were drawn."""
        return None if self.split.groups is None else self.split.groups[self.points]


def split_sizes(n: int, alpha: float | Fraction, unit: str = "point") -> tuple[int, int]:
    """(|R|, k) for |D| = n and unlearning portion α = |F| / |R ∪ F|.

    k is αn/(1+α) rounded to the nearest integer, halves upwards; what is left over goes to R. The rounding is exact: a
    float α is first read as the nearest fraction with a denominator of at most 10⁹, so that 0.1 means 1/10 and
    1/3 means one third. α = 1 is refused, because R would be empty and there would be nothing to retrain on.
    """
    if n < 0:
        raise ValueError(f"a data set cannot have {n} points")
    if not 0 < alpha <= 1:
        raise ValueError(f"alpha must lie in (0, 1], but it is {alpha}")
    exact = Fraction(alpha).limit_denominator(_LARGEST_DENOMINATOR)
    k = math.floor(exact * n / (1 + exact) + Fraction(1, 2))
    if k < 1:
        raise ValueError(
            f"alpha = {alpha} of {n} {unit}s leaves no {unit} to forget; use more {unit}s or a larger alpha"
        )
    if 2 * k >= n:
        raise ValueError(
            f"alpha = {alpha} of {n} {unit}s forgets {k} and keeps {k} unseen, which leaves no {unit} to retain; "
            f"use more {unit}s or a smaller alpha"
        )
    return n - 2 * k, k


@dataclass(frozen=True, eq=False)
class Units:
    """What is drawn at random: n points one by one, or n groups, whose points stay together."""

    n: int
    of_point: Ints | None = None
    """(points,) which unit, from 0, each point is of; None where every point is its own."""

    @staticmethod
    def of(n_points: int, groups: Ints | None = None) -> "Units":
        """The points themselves, or the groups that (n_points,) ``groups`` names."""
        if groups is None:
            return Units(n_points)
        names, of_point = np.unique(groups, return_inverse=True)
        return Units(len(names), of_point.astype(np.int64))

    def points_in(self, drawn: Ints) -> Ints:
        """The points of these units, unit after unit in the order they were drawn in."""
        if self.of_point is None:
            return drawn
        place = np.full(self.n, -1, dtype=np.int64)
        place[drawn] = np.arange(len(drawn))
        points = np.flatnonzero(place[self.of_point] >= 0)
        return np.asarray(points[np.argsort(place[self.of_point[points]], kind="stable")], dtype=np.int64)

    def containing(self, points: Bools) -> Ints:
        """The units that have some of these (points,), in ascending order."""
        return np.flatnonzero(points) if self.of_point is None else np.unique(self.of_point[points])

    def members(self, drawn: Ints) -> Bools:
        """(points,) whether a point is of one of these units."""
        chosen = np.zeros(self.n, dtype=np.bool_)
        chosen[drawn] = True
        return chosen if self.of_point is None else chosen[self.of_point]


def draw_split(
    n: int,
    alpha: float | Fraction,
    rng: np.random.Generator,
    groups: Ints | None = None,
    among: Bools | None = None,
) -> Split:
    """One split of the points 0 … n−1, uniform over S_α; with ``groups``, (n,), the groups are split so.

    F and T are of the points that ``among``, (n,), names, all where it is None; what is left of these is in R too.
    """
    units = Units.of(n, groups)
    _, k = split_sizes(units.n, alpha)
    eligible = np.arange(units.n) if among is None else units.containing(among)
    if len(eligible) < 2 * k:
        raise ValueError(f"F and T are {2 * k}, but there are {len(eligible)} to draw them from; use a smaller alpha")
    order = rng.permutation(eligible)
    retain = np.concatenate([order[2 * k :], np.setdiff1d(np.arange(units.n), eligible)])
    sets = [units.points_in(part) for part in (retain, order[:k], order[k : 2 * k])]
    return Split(sets[0], sets[1], sets[2], groups)


def draw_pair(
    n: int,
    alpha: float | Fraction,
    rng: np.random.Generator,
    groups: Ints | None = None,
    among: Bools | None = None,
) -> SwapPair:
    """One swap pair whose first side is uniform over S_α (and so is the second)."""
    return SwapPair(draw_split(n, alpha, rng, groups, among))


def _sorted_indices(points: Ints, name: str) -> Ints:
    array = np.asarray(points)
    if array.ndim != 1 or (array.size > 0 and not np.issubdtype(array.dtype, np.integer)):
        raise ValueError(f"{name} must be a list of point indices, not {array.dtype} of shape {array.shape}")
    array = np.sort(array.astype(np.int64))
    if array.size > 0 and array[0] < 0:
        raise ValueError(f"{name} holds the index {array[0]}; point indices start at 0")
    array.flags.writeable = False
    return array
