"""Which points are memorised most: how much surer models are of a point that they were trained on (Feldman 2020).

mem(x) = E[p(x) | x was trained on] − E[p(x) | it was not], over models that were trained on random parts of the data;
p = exp(−loss), of a classifier the probability that it gives the label. A forget set of such points is the hardest one:
of these a model has most to forget, and an adversary most to see.
"""

from __future__ import annotations

import numpy as np

from forgetgauge.attack.adversary import Panel
from forgetgauge.attack.reference import means_in_and_out, panel_values
from forgetgauge.attack.signals import NEGATIVE_LOSS, Floats
from forgetgauge.game.arrays import Bools, Ints, group_means
from forgetgauge.game.splits import Units


def memorisation(panel: Panel) -> Floats:
    """(n_points,) mean of exp(−loss) over the models that saw the point, minus that over those that did not.

    A point that all models saw, or none, takes the mean difference over the other points.
    """
    seen, unseen = means_in_and_out(np.exp(panel_values(panel, NEGATIVE_LOSS)), panel.role)
    return np.asarray(seen - unseen, dtype=np.float64)


def hardest(scores: Floats, n_hardest: int, groups: Ints | None = None) -> Bools:
    """(n_points,) whether a point is one of so many with the largest scores; of groups, those whose mean is largest.

    Of points that tie for the last places the first ones are taken.
    """
    units = Units.of(len(scores), groups)
    place = np.arange(len(scores)) if units.of_point is None else units.of_point
    return units.members(np.argsort(-group_means(scores, place), kind="stable")[:n_hardest])
