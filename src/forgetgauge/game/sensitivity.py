"""The sensitivity distribution P_D: how often the oracle shows each point of D, as weights that sum to one."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from forgetgauge.game.arrays import Floats, Ints, frozen_floats


def uniform(n: int) -> Floats:
    """Every point equally often: n weights of 1/n."""
    if n < 1:
        raise ValueError(f"a sensitivity distribution needs at least one point, not {n}")
    return np.full(n, 1.0 / n)


def by_class(labels: Ints, class_weight: Mapping[int, float]) -> Floats:
    """P_D(i) proportional to the weight of i's class; every class that occurs must be named."""
    missing = sorted({int(label) for label in labels} - set(class_weight))
    if missing:
        raise ValueError(f"class_weight names no weight for class {missing[0]}; it names {sorted(class_weight)}")
    return checked([class_weight[int(label)] for label in labels], len(labels))


def by_group(weights: Floats, groups: Ints) -> Floats:
    """P_D of points whose groups are drawn: a group weighs what its points weigh on average, however many they are.

    Under the swap groups change places, not points: with equal weights each group is shown equally often, and each of
    its points equally often among them.
    """
    _, place, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    return checked(weights / sizes[place], len(groups))


def checked(weights: ArrayLike, n: int) -> Floats:
    """``weights`` as a distribution over n points; ValueError unless they are n finite numbers ≥ 0, not all zero."""
    array = frozen_floats(weights, "sensitivity weights")
    if array.shape != (n,):
        raise ValueError(
            f"sensitivity weights must be one number for each of {n} points, but their shape is {array.shape}"
        )
    if array.size > 0 and array.min() < 0:
        raise ValueError(
            f"sensitivity weights must not be negative, but that of point {int(array.argmin())} is {array.min()}"
        )
    # Dividing by the largest first keeps the total finite and away from underflow, whatever the scale.
    largest = array.max(initial=0.0)
    if largest == 0:
        raise ValueError("sensitivity weights must not all be zero")
    scaled = array / largest
    return np.asarray(scaled / scaled.sum(), dtype=np.float64)


def restricted(weights: Floats, points: Ints, name: str = "set") -> Floats:
    """P_D conditioned on S, in the order of ``points``; ValueError when P_D(S) = 0, where it is undefined."""
    if len(points) > 0 and points.max() >= len(weights):
        raise ValueError(f"there are sensitivity weights for {len(weights)} points, so none for point {points.max()}")
    if weights[points].sum() == 0:
        raise ValueError(f"the sensitivity distribution gives the {name} of {len(points)} points no mass")
    return checked(weights[points], len(points))
