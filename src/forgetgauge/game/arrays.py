"""Names for the three kinds of array the game passes around, and the checks every caller needs."""

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
