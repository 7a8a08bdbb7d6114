"""Names for the three kinds of array the game passes around, the checks every caller needs, and the means of groups."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]
Ints: TypeAlias = NDArray[np.int64]


def frozen_floats(values: object, what: str) -> Floats:
    """A read-only float64 copy of ``values``; ValueError when one of them is not a finite number."""
    array = np.array(values, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{what} must be finite numbers, but {int((~np.isfinite(array)).sum())} of them are not")
    array.flags.writeable = False
    return array


def frozen_bools(values: object, what: str) -> Bools:
    """A read-only copy of ``values``, which must already be booleans: 0/1 indices would silently mean another thing."""
    array = np.array(values)
    if array.dtype != np.bool_:
        raise ValueError(f"{what} must be booleans, not {array.dtype}")
    array.flags.writeable = False
    return array


def group_means(values: NDArray[np.float64] | NDArray[np.bool_], group: Ints) -> Floats:
    """(n_groups,) or (n_groups, n_columns) mean of each group's rows; groups are numbered 0, 1, … without a gap."""
    sizes = np.bincount(group)
    if values.ndim == 1:
        return np.asarray(np.bincount(group, weights=values) / sizes, dtype=np.float64)
    return np.stack([np.bincount(group, weights=column) / sizes for column in values.T], axis=1)
