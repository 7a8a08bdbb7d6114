"""Any adversary asked about a whole group: it decides on the mean margin of the group's points, against a threshold.

The threshold is the one that best tells the groups that shadow models were trained on from those they were not. An
attack that judges shadow models at some of the points only (where others leave them out) has it from random handfuls
of these margins, as large as a group; one that keeps none is a likelihood ratio, whose threshold is 0.
"""

from __future__ import annotations

import numpy as np

from forgetgauge.attack.adversary import Calibration, Panel, Role
from forgetgauge.attack.signals import Floats
from forgetgauge.game.arrays import Ints, group_means
from forgetgauge.game.strong import strong_threshold

N_PLAYS = 2000
"""Handfuls of margins of each shadow model."""


def means_of_groups(margin: Floats, group: Ints) -> Floats:
    """(n_groups,) the mean margin of each group, in the order of their names."""
    return group_means(margin, np.unique(group, return_inverse=True)[1])


def margins_by_group(margin: Floats, group: Ints, threshold: float) -> Floats:
    """(n,) how far the mean margin of each point's group is above the threshold."""
    place = np.unique(group, return_inverse=True)[1]
    return means_of_groups(margin, group)[place] - threshold


def calibrated_by_group(
    calibration: Calibration, shadows: Panel, group: Ints, rng: np.random.Generator
) -> tuple[float, Calibration]:
    """(the threshold of group means, how far these are above it for each shadow model; empty where it is not known).

    `calibration` holds margins of points, `group` names the group of each of the shadows' points, (n_points,).
    """
    if not calibration:
        return 0.0, ()
    rows = [(group[role == Role.IN], group[role == Role.OUT]) for role in shadows.role]
    if all(len(m) == len(i) and len(o) == len(n) for (m, o), (i, n) in zip(calibration, rows, strict=True)):
        means = [
            (means_of_groups(m, i), means_of_groups(o, n)) for (m, o), (i, n) in zip(calibration, rows, strict=True)
        ]
        threshold = _threshold(means, 1, rng)
        return threshold, tuple((own - threshold, other - threshold) for own, other in means)
    size = round(float(np.median(np.unique(group, return_counts=True)[1])))
    return _threshold(list(calibration), size, rng), ()


def _threshold(models: list[tuple[Floats, Floats]], n_queries: int, rng: np.random.Generator) -> float:
    members, others = ([side for side in sides if len(side)] for sides in zip(*models, strict=True))
    return strong_threshold(members, others, n_queries, N_PLAYS, rng)
