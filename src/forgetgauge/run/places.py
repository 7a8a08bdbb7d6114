"""The sets of points that a job stands for: R, F and T of a target, the members of a shadow or reference model.

A model of the IC test is trained and unlearned on points with the labels it was taught, and looked at with the true
ones. The version of the labels is one tensor for all sets of a job, so that they count as one data set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from forgetgauge.attack.adversary import Role
from forgetgauge.game.splits import SwapPair
from forgetgauge.metrics.ic import exchanged
from forgetgauge.plan.draws import draw_confused, draw_reference, draw_shadow, draw_swap_pair
from forgetgauge.plan.graph import CONFUSED, PAIR, SHADOW_HALF, TARGET_HALF

if TYPE_CHECKING:
    from forgetgauge.data.dataset import Points


@dataclass(frozen=True)
class Places:
    """The sets of points that a job's identity stands for."""

    which: Mapping[str, Any]
    points: Points
    target_index: npt.NDArray[np.int64]
    shadow_index: npt.NDArray[np.int64]

    @property
    def target(self) -> Points:
        """D."""
        return self.points.subset(self.target_index)

    @property
    def shadow(self) -> Points:
        """The shadow half."""
        return self.points.subset(self.shadow_index)

    @cached_property
    def _known(self) -> npt.NDArray[np.int64]:
        """What the model's sets are drawn from: D, the shadow half, or for reference models both."""
        pools = {
            "target": [self.target_index],
            "shadow": [self.shadow_index],
            "reference": [self.target_index, self.shadow_index],
            "confused": [self.target_index],
        }
        return np.concatenate(pools[self.which["role"]])

    @property
    def elsewhere(self) -> Points:
        """Points the model never saw and that are not of T: validation data for unlearners."""
        if self.which["role"] == "shadow":
            return self.target
        return self.points.subset(np.setdiff1d(self.shadow_index, self.training.index))

    @cached_property
    def pair(self) -> SwapPair:
        """The swap pair of a target model."""
        where = self.which
        n = len(self.target_index)
        return draw_swap_pair(where["data"], n, where["seed"], where["fraction"], where["alpha"], where["pair"])

    def look_at(self, what: str) -> Points:
        """F ∪ T of the pair in the order of its first side, all of D, all of the shadow half, or S of the IC test, with
        true labels."""
        if what == PAIR:
            return self.points.subset(self.target_index[self.pair.points])
        if what == CONFUSED:
            return self.points.subset(self.forget.index)
        return {TARGET_HALF: self.target, SHADOW_HALF: self.shadow}[what]

    @cached_property
    def _sets(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
        """(retained, forgotten, unseen) positions in `_known`."""
        where = self.which
        if where["role"] == "target":
            side = self.pair.sides[where["side"]]
            return side.retain, side.forget, side.unseen
        if where["role"] == "confused":
            labels, classes = self.points.host_labels[self.target_index], self._exchanged_classes
            drawn_by = (where["seed"], where["fraction"], where["size"], where["which"])
            members, forgotten = draw_confused(where["data"], labels, *drawn_by, classes)
            return np.flatnonzero(members & ~forgotten), np.flatnonzero(forgotten), np.flatnonzero(~members)
        drawn = (where["seed"], where["fraction"], where["size"], where["which"], where.get("forget", 0))
        if where["role"] == "shadow":
            members, forgotten = draw_shadow(where["data"], len(self.shadow_index), *drawn)
        else:
            sizes = (len(self.target_index), len(self.shadow_index))
            members, forgotten = draw_reference(where["data"], sizes, *drawn)
        return np.flatnonzero(members & ~forgotten), np.flatnonzero(forgotten), np.flatnonzero(~members)

    @property
    def _exchanged_classes(self) -> tuple[int, int]:
        first, second = self.which["labels"]["exchanged"]
        return first, second

    @cached_property
    def _taught(self) -> Points:
        """The whole data set with the labels that the model was taught: the true ones but in the IC test."""
        if self.which["role"] != "confused":
            return self.points
        confused = np.zeros(len(self.points.whole_labels), dtype=bool)
        confused[self._known[self._sets[1]]] = True
        labels = exchanged(self.points.host_labels, confused, self._exchanged_classes)
        whole = self.points.whole_labels
        return replace(self.points, whole_labels=whole.new_tensor(labels))

    @property
    def retain(self) -> Points:
        """R."""
        return self._taught.subset(self._known[self._sets[0]])

    @property
    def forget(self) -> Points:
        """F."""
        return self._taught.subset(self._known[self._sets[1]])

    @property
    def unseen(self) -> Points:
        """T; of shadow and reference models, all that they were not trained on."""
        return self.points.subset(self._known[self._sets[2]])

    @property
    def training(self) -> Points:
        """R ∪ F."""
        return self._taught.subset(np.concatenate([self.retain.index, self.forget.index]))

    def role_of_each(self, points: Points) -> npt.NDArray[np.int8]:
        """(n,) what a shadow or reference model had to do with each of these points."""
        retained, forgotten = (np.isin(points.index, part.index) for part in (self.retain, self.forget))
        unlearned = "forget" in self.which
        role = np.full(len(points), Role.OUT, dtype=np.int8)
        role[retained] = Role.NEITHER if unlearned else Role.IN
        role[forgotten] = Role.IN
        return role
