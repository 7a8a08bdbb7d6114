"""What to warn of in a data set that can be read: classes without points, inputs that stand there twice, groups
that a game cuts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from forgetgauge.game.arrays import Ints

if TYPE_CHECKING:
    from forgetgauge.data.dataset import Dataset


COPIES = 0.05
"""Share of points that have a copy, from which on it is said; the known data sets have none or a few."""
_CHUNK_BYTES = 1 << 24


def data_warnings(dataset: Dataset) -> list[str]:
    """Doubts about a whole data set, a sentence each."""
    what = f"data '{dataset.name}'"
    return [
        *label_gaps(np.unique(dataset.points.host_classes), what),
        *copied_inputs(dataset.points.whole_inputs.cpu().numpy(), what),
    ]


def cut_groups(groups: Ints | None, what: str) -> list[str]:
    """Of a game that draws points one by one: whether the points belong to groups, which it then cuts."""
    n_groups = 0 if groups is None else len(np.unique(groups))
    if groups is None or n_groups == len(groups):
        return []
    return [
        f"{what}: its {len(groups)} points belong to {n_groups} groups, but the game draws points one by one. What a "
        "model forgets of a group it may still know from the group's other points, so Q does not say what is left of a "
        'forgotten group; game.by = "group" draws whole groups.'
    ]


def label_gaps(present: Ints, what: str) -> list[str]:
    """A warning where the labels that occur, given in ascending order, leave gaps."""
    n_absent = int(present[-1]) + 1 - len(present)
    if n_absent == 0:
        return []
    shown = [str(label) for label in present[:6]] + (["…"] if len(present) > 6 else [])
    return [
        f"{what}: the labels are {', '.join(shown)}, so {n_absent} of the {int(present[-1]) + 1} classes from 0 to "
        f"{present[-1]} have no point; number the classes 0, 1, … without gaps."
    ]


def copied_inputs(inputs: npt.NDArray[np.generic], what: str) -> list[str]:
    """Whether many of the inputs, (n, …), are equal to another one, bit by bit."""
    _, kinds, counts = np.unique(fingerprints(inputs), return_inverse=True, return_counts=True)
    n_copies = int(counts[counts > 1].sum())
    if n_copies < COPIES * len(inputs) or n_copies == 0:
        return []
    first = np.flatnonzero(kinds == np.flatnonzero(counts > 1)[0])[:2]
    return [
        f"{what}: {n_copies} of {len(inputs)} inputs stand there more than once ({first[0]} and {first[1]} are equal, "
        "for example). What one copy is made to forget, another may keep, so Q is untrue; remove the copies."
    ]


def fingerprints(inputs: npt.NDArray[np.generic]) -> npt.NDArray[np.uint64]:
    """(n,) a number of each input, a random combination of its words; different inputs agree in one of 10¹² cases."""
    n = len(inputs)
    rows = np.ascontiguousarray(inputs).reshape(n, -1).view(np.uint8).reshape(n, -1)
    n_words = -(-rows.shape[1] // 8)
    factors = np.random.default_rng(0).integers(1, 1 << 64, n_words, dtype=np.uint64)
    found = np.empty(n, dtype=np.uint64)
    step = max(1, _CHUNK_BYTES // (8 * n_words))
    for start in range(0, n, step):
        part = rows[start : start + step]
        words = np.zeros((len(part), 8 * n_words), dtype=np.uint8)
        words[:, : part.shape[1]] = part
        scattered = words.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        found[start : start + step] = (scattered ^ (scattered >> np.uint64(32))) @ factors  # high bits reach low ones
    return found
