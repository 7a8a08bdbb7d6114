"""Q of a part of the points, such as a class: the game whose P_D is 0 on all other points.

The swap is as fair to a part as it is to the whole: what both models of a pair answer about a point is compared with
what they answer about it elsewhere in the pair, and under Retrain the difference is 0 on average for every point.

One adversary is looked at, which was chosen among all on the same pairs, and several parts; all their intervals hold
together with probability at least the level asked for (Bonferroni over parts and adversaries: for parts alone, all of
two parts were covered in 83 % of games of 8 pairs and 9 adversaries).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from forgetgauge.game.advantage import PairOutcome, paired_differences
from forgetgauge.game.arrays import Bools, Floats
from forgetgauge.game.intervals import Interval, IntervalKind, check_level, signed_interval

CLASS = "class"
"""The column that labels make, where they are classes."""
TEXT = "text"
"""The column that holds what people read of a point: it is shown on request, and makes no parts."""
MOST_PARTS = 128
"""A column with more different values is not looked at: intervals that hold for all of them together say nothing."""

Codes: TypeAlias = NDArray[np.uint8]
"""(n_points,) which of the column's values each point has."""


@dataclass(frozen=True, eq=False)
class Part:
    """What an adversary gains on a part of the points."""

    by_pair: Floats
    """(P',) signed advantage on each pair that has points of the part in F and in T."""
    interval: Interval
    """For its mean; it holds together with those of the other parts."""
    n_points: int
    """Points of the part, summed over those pairs."""

    @property
    def advantage(self) -> float:
        """Its mean over pairs, signed."""
        return float(self.by_pair.mean())


def restricted(outcome: PairOutcome, members: Bools) -> PairOutcome | None:
    """The pair with P_D restricted to some of its points; None where F or T has none of them.

    Where groups were drawn, a group counts by its points that are left.
    """
    points = outcome.grouped or outcome
    weight = np.where(members, points.weight, 0.0)
    if any(not weight[side].sum() > 0 for side in (points.in_forget, ~points.in_forget)):
        return None
    if outcome.grouped is None or outcome.decisions is None:
        return replace(outcome, weight=weight)
    by_point = paired_differences(*outcome.decisions).mean(axis=0)
    return replace(outcome.grouped, weight=weight).outcome(by_point)


def advantage_by_part(
    outcomes: Sequence[PairOutcome],
    members: Sequence[Sequence[Bools]],
    adversary: int,
    level: float = 0.95,
    kind: IntervalKind = "student",
    n_looks: int | None = None,
) -> list[Part | None]:
    """Of each part, for which ``members`` says of every pair which of its points belong to it; None where no pair has
    such points on both sides.

    ``n_looks`` is how many parts are looked at altogether, these and others. Any of the adversaries may be asked for,
    also the one that showed most on these very pairs.
    """
    check_level(level)
    n_adversaries = outcomes[0].n_adversaries if outcomes else 1
    each = 1 - (1 - level) / (n_adversaries * (n_looks or max(1, len(members))))
    return [_part(outcomes, of_part, adversary, each, kind) for of_part in members]


def _part(
    outcomes: Sequence[PairOutcome], members: Sequence[Bools], adversary: int, level: float, kind: IntervalKind
) -> Part | None:
    found = [(restricted(outcome, own), int(own.sum())) for outcome, own in zip(outcomes, members, strict=True)]
    kept = [outcome for outcome, _ in found if outcome is not None]
    if not kept:
        return None
    return Part(
        np.array([outcome.advantage[adversary] for outcome in kept]),
        signed_interval(kept, adversary, level, kind),
        sum(n_points for outcome, n_points in found if outcome is not None),
    )


def coded(values: NDArray[Any]) -> tuple[list[str], Codes] | None:
    """(names of the different values in their order, which of them each is); None where they are too many, or one."""
    different, codes = np.unique(values, return_inverse=True)
    if not 1 < len(different) <= MOST_PARTS:
        return None
    return [str(value) for value in different.tolist()], codes.astype(np.uint8)
