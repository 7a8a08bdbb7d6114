"""Which model a job is about, and which points of the data set this model meets.

A subject is a target (the model that is attacked), a shadow or reference model (from which adversaries learn), or a
model of the IC test. Its identity is part of the keys of its jobs and names the random draws of its points, so the
spelling of an identity never changes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from forgetgauge.game.arrays import Bools, Ints
from forgetgauge.game.splits import SwapPair
from forgetgauge.plan.draws import (
    GROUP,
    POINT,
    draw_confused,
    draw_halves,
    draw_reference,
    draw_shadow,
    draw_swap_pair,
)


@dataclass(frozen=True)
class Halves:
    """The two halves of a data set in one game: the target half D, and the shadow half."""

    data: str
    """Digest of the data set."""
    seed: int
    fraction: float
    by: str = POINT
    """What is drawn, here and for every model: points, or groups."""

    @property
    def identity(self) -> dict[str, Any]:
        """What stands for the halves in keys."""
        by = {} if self.by == POINT else {"by": self.by}
        return {"data": self.data, "seed": self.seed, "fraction": self.fraction, **by}

    def drawn_groups(self, groups: Ints | None) -> Ints | None:
        """Of the groups that the data set knows, those that are drawn: all, or None where single points are."""
        return groups if self.by == GROUP else None

    def draw(self, n: int, groups: Ints | None = None) -> tuple[Ints, Ints]:
        """Positions of the target half and of the shadow half among the n points of the data set."""
        return draw_halves(self.data, n, self.seed, self.fraction, self.drawn_groups(groups))


@dataclass(frozen=True, eq=False)
class Hardest:
    """The points that are memorised most, from which F and T are drawn; fixed before any draw of these."""

    target: Bools
    """(|D|,) of the target half."""
    shadow: Bools
    """(|S|,) whether a point of the shadow half is one of them."""


@dataclass(frozen=True)
class PointSets:
    """The points a model meets, as positions in the whole data set."""

    retain: Ints
    forget: Ints
    unseen: Ints
    """T; of all but targets, everything of its pool that the model was not trained on."""
    elsewhere: Ints
    """Points the model never saw and that are not of T: validation data for unlearners."""

    @property
    def training(self) -> Ints:
        """What the model is trained on: R, then F. A learner of the user's own gets them in another order."""
        return np.concatenate([self.retain, self.forget])


@dataclass(frozen=True)
class Subject(ABC):
    """A model that is trained, and perhaps made to forget."""

    role: ClassVar[str]
    halves: Halves

    @property
    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """What stands for the subject in keys."""

    @property
    @abstractmethod
    def hangs_on_hardest(self) -> bool:
        """Whether its points depend on which are the hardest, where F and T are drawn from these."""

    @property
    @abstractmethod
    def exchanged(self) -> tuple[int, int] | None:
        """The two classes whose labels are exchanged in F while the model learns, if any."""

    @abstractmethod
    def point_sets(
        self, target: Ints, shadow: Ints, labels: Ints, groups: Ints | None = None, hardest: Hardest | None = None
    ) -> PointSets:
        """Its points, given the two halves of the data set and the labels and groups of the whole of it; what is
        forgotten, and T, are of the hardest points, where these are asked for."""


@dataclass(frozen=True)
class Target(Subject):
    """A model that is attacked: of one side of one swap pair."""

    role = "target"
    alpha: float
    pair: int
    side: int
    replicate: int | None = None
    """Which of several trainings on one split; None where it makes no difference."""

    exchanged = None

    @property
    def identity(self) -> dict[str, Any]:
        split = {"role": self.role, "alpha": self.alpha, "pair": self.pair, "side": self.side}
        return {**self.halves.identity, **split, **_replicate(self.replicate)}

    hangs_on_hardest = True

    def swap_pair(self, n: int, groups: Ints | None = None, hardest: Bools | None = None) -> SwapPair:
        """The pair, whose indices are positions in the target half of n points with these groups."""
        halves, drawn = self.halves, self.halves.drawn_groups(groups)
        return draw_swap_pair(halves.data, n, halves.seed, halves.fraction, self.alpha, self.pair, drawn, hardest)

    def point_sets(
        self, target: Ints, shadow: Ints, labels: Ints, groups: Ints | None = None, hardest: Hardest | None = None
    ) -> PointSets:
        among = None if hardest is None else hardest.target
        side = self.swap_pair(len(target), _at(groups, target), among).sides[self.side]
        retain, forget = target[side.retain], target[side.forget]
        return PointSets(retain, forget, target[side.unseen], _never_seen(shadow, retain, forget))


@dataclass(frozen=True)
class Helper(Subject):
    """A model that adversaries learn from: trained on as many points as a target, and perhaps asked to forget some."""

    size: int
    which: int
    forget: int | None = None
    """How many points it is asked to forget; None for a model that is only trained."""

    exchanged = None

    @property
    def identity(self) -> dict[str, Any]:
        forget = {} if self.forget is None else {"forget": self.forget}
        return {**self.halves.identity, "role": self.role, "size": self.size, "which": self.which, **forget}

    @property
    def _drawn_by(self) -> tuple[int, float, int, int, int]:
        return self.halves.seed, self.halves.fraction, self.size, self.which, self.forget or 0


@dataclass(frozen=True)
class Shadow(Helper):
    """A helper that knows points of the shadow half alone."""

    role = "shadow"
    hangs_on_hardest = True

    def point_sets(
        self, target: Ints, shadow: Ints, labels: Ints, groups: Ints | None = None, hardest: Hardest | None = None
    ) -> PointSets:
        own = self.halves.drawn_groups(_at(groups, shadow))
        among = None if hardest is None else hardest.shadow
        drawn = draw_shadow(self.halves.data, len(shadow), *self._drawn_by, own, among)
        return PointSets(*_parts(shadow, *drawn), target)


@dataclass(frozen=True)
class Reference(Helper):
    """A helper that knows points of both halves, as many of each."""

    role = "reference"

    @property
    def hangs_on_hardest(self) -> bool:
        return self.forget is not None

    def point_sets(
        self, target: Ints, shadow: Ints, labels: Ints, groups: Ints | None = None, hardest: Hardest | None = None
    ) -> PointSets:
        of_each = [self.halves.drawn_groups(_at(groups, half)) for half in (target, shadow)]
        own = None if of_each[0] is None or of_each[1] is None else (of_each[0], of_each[1])
        among = None if hardest is None else hardest.target
        sizes = (len(target), len(shadow))
        drawn = draw_reference(self.halves.data, sizes, *self._drawn_by, own, among, self.role)
        retain, forget, unseen = _parts(np.concatenate([target, shadow]), *drawn)
        return PointSets(retain, forget, unseen, _never_seen(shadow, retain, forget))


@dataclass(frozen=True)
class Scorer(Reference):
    """A reference model that no adversary learns from: it shows which points are memorised most."""

    role = "scorer"


@dataclass(frozen=True)
class Confused(Subject):
    """A model of the IC test: trained on as many points of D as a target, with two classes exchanged in F."""

    role = "confused"
    hangs_on_hardest = False
    size: int
    which: int
    classes: tuple[int, int]
    replicate: int | None = None
    """Which of the trainings on one split it is, as for a target; None where there is one."""

    @property
    def exchanged(self) -> tuple[int, int]:
        return self.classes

    @property
    def identity(self) -> dict[str, Any]:
        labels = {"exchanged": list(self.classes), "which": self.which}
        drawn = {"role": self.role, "size": self.size, "which": self.which, "labels": labels}
        return {**self.halves.identity, **drawn, **_replicate(self.replicate)}

    def point_sets(
        self, target: Ints, shadow: Ints, labels: Ints, groups: Ints | None = None, hardest: Hardest | None = None
    ) -> PointSets:
        halves = self.halves
        drawn_by = (halves.seed, halves.fraction, self.size, self.which, self.classes)
        drawn = draw_confused(halves.data, labels[target], *drawn_by, halves.drawn_groups(_at(groups, target)))
        retain, forget, unseen = _parts(target, *drawn)
        return PointSets(retain, forget, unseen, _never_seen(shadow, retain, forget))


def _at(groups: Ints | None, points: Ints) -> Ints | None:
    return None if groups is None else groups[points]


def _replicate(replicate: int | None) -> dict[str, int]:
    return {} if replicate is None else {"replicate": replicate}


def _parts(pool: Ints, members: Bools, forgotten: Bools) -> tuple[Ints, Ints, Ints]:
    """(retained, forgotten, unseen) of the pool."""
    return pool[members & ~forgotten], pool[forgotten], pool[~members]


def _never_seen(half: Ints, retain: Ints, forget: Ints) -> Ints:
    """The points that the model never saw, in ascending order."""
    return np.setdiff1d(half, np.concatenate([retain, forget]))
