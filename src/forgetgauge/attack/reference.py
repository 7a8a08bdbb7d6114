"""What attacks that know each point of D share: other models' values at a point, on either side of membership.

Values are (n_models, n_points), roles likewise; what is learned is one number per point. A shadow model is judged as a
target would be by leaving it out: its points are compared with the other shadow models only.

From such values also follows which points are memorised most (Feldman 2020): mem(x) = E[p(x) | x was trained on] −
E[p(x) | it was not], over models that were trained on random parts of the data; p = exp(−loss), of a classifier the
probability that it gives the label. A forget set of such points is the hardest one: of these a model has most to
forget, and an adversary most to see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from forgetgauge.attack.adversary import Panel, Role
from forgetgauge.attack.signals import NEGATIVE_LOSS, Signals
from forgetgauge.game.arrays import Bools, Floats, Ints, group_means
from forgetgauge.game.splits import Units


def panel_values(panel: Panel, scorer: Callable[[Signals], Floats]) -> Floats:
    """(n_models, n_points) the scorer's value of every model at every point."""
    return np.stack([scorer(panel.model(which)) for which in range(panel.n_models)])


def mean_where(values: Floats, used: Bools) -> tuple[Floats, Ints]:
    """((n_points,) mean over the models that are used, how many these are); 0 where none is."""
    count = used.sum(axis=0)
    result: Floats = np.where(used, values, 0.0).sum(axis=0) / np.maximum(count, 1)
    return result, count


@dataclass(frozen=True)
class Side:
    """The models on one side of membership: those that saw a point, or those that did not."""

    used: Bools
    """(n_models, n_points) whether the model is on this side of the point."""
    n: Ints
    """(n_points,) how many models are."""
    mean: Floats
    """(n_points,) mean of their values; 0 where there are none."""
    expected: Floats
    """(n_points,) the mean that the other side makes likely: its own, moved by the mean difference of the sides over
    the points that have both; where it has no models, the mean of this side over all points."""


def sides(values: Floats, role: npt.NDArray[np.int8]) -> tuple[Side, Side]:
    """The models that saw a point, and those that did not."""
    is_in, is_out = role == Role.IN, role == Role.OUT
    (mean_in, n_in), (mean_out, n_out) = mean_where(values, is_in), mean_where(values, is_out)
    if not n_in.any() or not n_out.any():
        raise ValueError("knowing a point's two sides needs models that saw points and models that did not")
    centre_in, centre_out = values[is_in].mean(), values[is_out].mean()
    both = (n_in > 0) & (n_out > 0)
    difference = (mean_in - mean_out)[both].mean() if both.any() else centre_in - centre_out
    return (
        Side(is_in, n_in, mean_in, np.where(n_out > 0, mean_out + difference, centre_in)),
        Side(is_out, n_out, mean_out, np.where(n_in > 0, mean_in - difference, centre_out)),
    )


def means_in_and_out(values: Floats, role: npt.NDArray[np.int8]) -> tuple[Floats, Floats]:
    """(n_points,) mean over the models that saw the point, and over those that did not.

    A point without models on one side takes the mean that its other side makes likely.
    """
    mean_in, mean_out = (np.where(side.n > 0, side.mean, side.expected) for side in sides(values, role))
    return mean_in, mean_out


@dataclass(frozen=True)
class LeftOut:
    """A shadow model in the place of the target, and the points at which the other shadow models can judge it."""

    values: Floats
    """(n,) its own."""
    classes: Ints
    """(n,)."""
    member: Bools
    """(n,) whether it saw the point."""
    others: Floats
    """(n_models − 1, n) the others' values there."""
    role: npt.NDArray[np.int8]
    """(n_models − 1, n) the others' roles there."""

    @property
    def others_out(self) -> Floats:
        """(n,) mean of the others that did not see the point."""
        return mean_where(self.others, self.role == Role.OUT)[0]


def leave_one_out(values: Floats, panel: Panel, unseen_by_another: bool) -> Iterator[LeftOut]:
    """Each shadow model in turn; `unseen_by_another`: only at points that some other model did not see."""
    if panel.n_models < 2:
        raise ValueError("leaving one shadow model out needs two or more shadow models")
    for which in range(panel.n_models):
        others = np.arange(panel.n_models) != which
        at = panel.role[which] != Role.NEITHER
        if unseen_by_another:
            at &= (panel.role[others] == Role.OUT).any(axis=0)
        yield LeftOut(
            values[which, at],
            panel.task.classes(panel.labels)[at],
            panel.role[which, at] == Role.IN,
            values[others][:, at],
            panel.role[others][:, at],
        )


def points_of(signals: Signals, n_points: int) -> Ints:
    """The positions in D of the points, which this attack must know."""
    if signals.points is None:
        raise ValueError(
            "this attack knows the points of D one by one: signals without their positions cannot be scored"
        )
    if len(signals) and not 0 <= signals.points.min() <= signals.points.max() < n_points:
        raise ValueError(f"this attack was fitted on {n_points} points of D, and is asked about others")
    return signals.points


def background_of(signals: Signals, n_points: int) -> Signals:
    """The model's signals on the shadow half, all of it and in its order."""
    if signals.background is None:
        raise ValueError("this attack compares with the shadow half: the model's signals there are missing")
    if len(signals.background) != n_points:
        raise ValueError(f"signals on {len(signals.background)} points of the shadow half do not fit {n_points}")
    return signals.background


def needed(panel: Panel | None, what: str) -> Panel:
    """The panel that was asked for."""
    if panel is None:
        raise ValueError(f"this attack cannot be fitted without {what}")
    return panel


# -- which points are memorised most -----------------------------------------------------------------------------------


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
