"""Means over pairs, seeds and models."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

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


def means_by_group(records: Iterable[tuple[int, Mapping[str, float]]]) -> dict[str, list[float]]:
    """Name -> the mean of each group that has it, in the order of the groups."""
    groups: dict[int, list[Mapping[str, float]]] = defaultdict(list)
    for group, record in records:
        groups[group].append(record)
    found: dict[str, list[float]] = defaultdict(list)
    for group in sorted(groups):
        for name, value in mean_of_each(groups[group]).items():
            found[name].append(value)
    return dict(found)
