"""The points that a model meets, on the device: R, F and T of a target, the members of a shadow or reference model.

A model of the IC test is trained and unlearned on points with the labels it was taught, and looked at with the true
ones. The version of the labels is one tensor for all sets of a job, so that they count as one data set.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from forgetgauge.attack.adversary import Role
from forgetgauge.game.arrays import Ints
from forgetgauge.game.splits import SwapPair
from forgetgauge.metrics.scores import exchanged
from forgetgauge.plan.graph import CONFUSED, PAIR, SHADOW_HALF, TARGET_HALF
from forgetgauge.plan.subjects import PointSets, Subject, Target

if TYPE_CHECKING:
    from forgetgauge.data.dataset import Points


@dataclass(frozen=True)
class Places:
    """The point sets of one subject."""

    subject: Subject
    points: Points
    target_index: Ints
    shadow_index: Ints
    sets: PointSets

    @staticmethod
    def of(subject: Subject, points: Points, target_index: Ints, shadow_index: Ints) -> Places:
        """Of a data set and its two halves."""
        sets = subject.point_sets(target_index, shadow_index, points.host_labels)
        return Places(subject, points, target_index, shadow_index, sets)

    @property
    def target(self) -> Points:
        """D."""
        return self.points.subset(self.target_index)

    @property
    def shadow(self) -> Points:
        """The shadow half."""
        return self.points.subset(self.shadow_index)

    @property
    def elsewhere(self) -> Points:
        """Points the model never saw and that are not of T: validation data for unlearners."""
        return self.points.subset(self.sets.elsewhere)

    @cached_property
    def pair(self) -> SwapPair:
        """The swap pair of a target model."""
        assert isinstance(self.subject, Target)
        return self.subject.swap_pair(len(self.target_index))

    def look_at(self, what: str) -> Points:
        """F ∪ T of the pair in the order of its first side, all of D, all of the shadow half, or S of the IC test, with
        true labels."""
        if what == PAIR:
            return self.points.subset(self.target_index[self.pair.points])
        if what == CONFUSED:
            return self.points.subset(self.forget.index)
        return {TARGET_HALF: self.target, SHADOW_HALF: self.shadow}[what]

    @cached_property
    def _taught(self) -> Points:
        """The whole data set with the labels that the model was taught: the true ones but in the IC test."""
        if self.subject.exchanged is None:
            return self.points
        confused = np.zeros(len(self.points.whole_labels), dtype=bool)
        confused[self.sets.forget] = True
        labels = exchanged(self.points.host_labels, confused, self.subject.exchanged)
        whole = self.points.whole_labels
        return replace(self.points, whole_labels=whole.new_tensor(labels))

    @property
    def retain(self) -> Points:
        """R."""
        return self._taught.subset(self.sets.retain)

    @property
    def forget(self) -> Points:
        """F."""
        return self._taught.subset(self.sets.forget)

    @property
    def unseen(self) -> Points:
        """T; of shadow and reference models, all that they were not trained on."""
        return self.points.subset(self.sets.unseen)

    @property
    def training(self) -> Points:
        """R ∪ F."""
        return self._taught.subset(self.sets.training)

    def role_of_each(self, points: Points, *, unlearned: bool) -> npt.NDArray[np.int8]:
        """(n,) what a shadow or reference model, perhaps an unlearned one, had to do with each of these points."""
        retained, forgotten = (np.isin(points.index, part.index) for part in (self.retain, self.forget))
        role = np.full(len(points), Role.OUT, dtype=np.int8)
        role[retained] = Role.NEITHER if unlearned else Role.IN
        role[forgotten] = Role.IN
        return role
