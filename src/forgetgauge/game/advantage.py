"""Signed advantages: what one adversary gains on one split, on a swap pair, and as a paired difference.

No absolute value is taken in this module. |·| and the maximum over adversaries come last (``quality``): taken earlier,
they turn noise into advantage.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from forgetgauge.game.arrays import Bools, Floats, frozen_bools, frozen_floats


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
    every single model, where the differences come from decisions.
    """

    differences: Floats
    in_forget: Bools
    weight: Floats
    decisions: Bools | None = None

    def __post_init__(self) -> None:
        differences = frozen_floats(self.differences, "differences")
        if differences.ndim != 2 or differences.shape[1] == 0:
            raise ValueError(f"differences must have the shape (points, adversaries), but it is {differences.shape}")
        if differences.size > 0 and np.abs(differences).max() > 1:
            raise ValueError("differences of probabilities must lie in [-1, 1]")
        in_forget, weight = _labels(self.in_forget, self.weight, differences)
        if 2 * int(in_forget.sum()) != len(in_forget):
            raise ValueError(f"half of the {len(in_forget)} points must be in forget, but {int(in_forget.sum())} are")
        object.__setattr__(self, "differences", differences)
        object.__setattr__(self, "in_forget", in_forget)
        object.__setattr__(self, "weight", weight)

    @property
    def k(self) -> int:
        """The number of points to forget, |F| = |T|."""
        return len(self.in_forget) // 2

    @property
    def sides(self) -> tuple[Bools, Bools]:
        """Who is in F, and who is in T; (2k,) each."""
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


def outcome_of_decisions(
    says_forget: ArrayLike, says_forget_swapped: ArrayLike, in_forget: ArrayLike, weight: ArrayLike
) -> PairOutcome:
    """The outcome of one pair from both sides' decisions, each (n_seeds, 2k, n_adversaries)."""
    by_seed = paired_differences(says_forget, says_forget_swapped)
    if by_seed.ndim != 3 or by_seed.shape[0] == 0:
        raise ValueError(f"decisions must have the shape (seeds, points, adversaries), but it is {by_seed.shape}")
    both = np.asarray([says_forget, says_forget_swapped])
    decisions = frozen_bools(both, "decisions") if both.dtype == np.bool_ else None  # of probabilities there are none
    return PairOutcome(by_seed.mean(axis=0), np.asarray(in_forget), np.asarray(weight), decisions)


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
