"""Means over pairs, seeds and models."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np


def mean(values: Sequence[float]) -> float:
    """0 of nothing."""
    return float(np.mean(values)) if values else 0.0


def mean_of_each(records: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """By name, over the records that have it."""
    columns: dict[str, list[float]] = defaultdict(list)
    for record in records:
        for name, value in record.items():
            columns[name].append(value)
    return {name: mean(values) for name, values in columns.items()}
