"""The point sets of a run: what a worker holds of the data, and which of it each model meets.

A target has R, F and T; a shadow or reference model has its members and what it never saw. A model of the IC test is
trained and unlearned on points with the labels it was taught, and looked at with the true ones. The version of the
labels is one tensor for all sets of a job, so that they count as one data set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from forgetgauge.attack.adversary import Role
from forgetgauge.attack.reference import hardest, memorisation
from forgetgauge.data.data_warnings import cut_groups, data_warnings
from forgetgauge.errors import UserError
from forgetgauge.game import sensitivity
from forgetgauge.game.arrays import Ints
from forgetgauge.game.parts import coded
from forgetgauge.game.splits import SwapPair, Units
from forgetgauge.metrics.scores import exchanged
from forgetgauge.plan.graph import CONFUSED, PAIR, TARGET_HALF
from forgetgauge.plan.jobs import DRAW, InitialiseJob
from forgetgauge.plan.subjects import Halves, Hardest, PointSets, Subject, Target
from forgetgauge.run.adversary import panel_of
from forgetgauge.run.assignments import Sources
from forgetgauge.store.objects import Artefact

if TYPE_CHECKING:
    import torch
    from torch import nn

    from forgetgauge.data.dataset import Dataset, Points
    from forgetgauge.learn.learner import Learner
    from forgetgauge.unlearn.memory import Memory


Key = TypeVar("Key")
Held = TypeVar("Held")


@dataclass(frozen=True)
class SubjectPoints:
    """The point sets of one subject, on the device; points and labels as the model meets them."""

    subject: Subject
    points: Points
    target_index: Ints
    shadow_index: Ints
    sets: PointSets
    target_groups: Ints | None
    """(|D|,) the group of each point of the target half, where it is known."""
    hardest: Hardest | None = None
    """Where what is forgotten is of them."""

    @staticmethod
    def of(
        subject: Subject,
        points: Points,
        target_index: Ints,
        shadow_index: Ints,
        hardest: Hardest | None = None,
        sets: PointSets | None = None,
    ) -> SubjectPoints:
        """Of a data set and its two halves, and the hardest points of these where what is forgotten is of them; the
        sets may be known already."""
        halves, groups = (target_index, shadow_index), points.whole_groups
        found = sets or subject.point_sets(*halves, points.host_labels, groups, hardest)
        return SubjectPoints(subject, points, *halves, found, points.subset(target_index).groups, hardest)

    @property
    def elsewhere(self) -> Points:
        """Points the model never saw and that are not of T: validation data for unlearners."""
        return self.points.subset(self.sets.elsewhere)

    @cached_property
    def pair(self) -> SwapPair:
        """The swap pair of a target model."""
        assert isinstance(self.subject, Target)
        among = None if self.hardest is None else self.hardest.target
        return self.subject.swap_pair(len(self.target_index), self.target_groups, among)

    def look_at(self, what: str) -> Points:
        """F ∪ T of the pair in the order of its first side, all of D, all of the shadow half, or S of the IC test, with
        true labels."""
        if what == PAIR:
            return self.points.subset(self.target_index[self.pair.points])
        if what == CONFUSED:
            return self.points.subset(self.sets.forget)
        return self.points.subset(self.target_index if what == TARGET_HALF else self.shadow_index)

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
        """R, the points that stay."""
        return self._taught.subset(self.sets.retain)

    @property
    def forget(self) -> Points:
        """F, the points that are to be forgotten."""
        return self._taught.subset(self.sets.forget)

    @property
    def unseen(self) -> Points:
        """T; of shadow and reference models, all that they were not trained on."""
        return self.points.subset(self.sets.unseen)

    @property
    def training(self) -> Points:
        """R ∪ F, what the model is trained on."""
        return self._taught.subset(self.sets.training)

    def role_of_each(self, points: Points, *, unlearned: bool) -> npt.NDArray[np.int8]:
        """(n,) what a shadow or reference model, perhaps an unlearned one, had to do with each of these points."""
        retained, forgotten = (np.isin(points.index, part.index) for part in (self.retain, self.forget))
        role = np.full(len(points), Role.OUT, dtype=np.int8)
        role[retained] = Role.NEITHER if unlearned else Role.IN
        role[forgotten] = Role.IN
        return role


NOTHING: Mapping[str, Artefact] = MappingProxyType({})


def hardest_in(inputs: Mapping[str, Artefact]) -> Hardest | None:
    """The hardest points, where a job reads them."""
    if DRAW not in inputs:
        return None
    arrays = inputs[DRAW].arrays
    return Hardest(arrays["hardest"].astype(np.bool_), arrays["shadow hardest"].astype(np.bool_))


# -- what a worker holds -----------------------------------------------------------------------------------------------

N_DATASETS = 2
"""How many data sets are kept in memory, for sweeps over data sets."""
N_SUBJECTS = 64
"""Of how many subjects the drawn sets are: as many as a stack has members."""


class WorkerData:
    """The data sets of one worker, on its device; torch is imported by the first job that needs either."""

    def __init__(self, sources: Sources, device: str = "cpu") -> None:
        self.sources = sources
        self._device_name = device
        self._read: dict[str, Dataset] = {}
        self._on_device: dict[str, Dataset] = {}
        self._lent: dict[str, tuple[Points, dict[str, int]]] = {}
        self._drawn: dict[Halves, tuple[Ints, Ints]] = {}
        self._sets: dict[Subject, PointSets] = {}
        self._moulds: dict[str, nn.Module] = {}

    @cached_property
    def memory(self) -> Memory:
        """What shipped methods found of models while strengths are tried."""
        from forgetgauge.unlearn.memory import Memory

        return Memory()

    def let_go(self) -> None:
        """Give up what can be made again: memory is short."""
        self.memory.clear()
        self._moulds.clear()

    @cached_property
    def device(self) -> torch.device:
        """Where models and data are; looked for when the first assignment needs torch."""
        import torch

        from forgetgauge.learn.device import choose_device

        chosen = choose_device(self._device_name)
        if chosen.type == "cuda":  # kernels and graphs are launched where torch is, not where their tensors are
            torch.cuda.set_device(chosen)
        return chosen

    @property
    def is_on_gpu(self) -> bool:
        """False too where no assignment has asked for a device yet."""
        return "device" in vars(self) and self.device.type == "cuda"

    def mould(self, key: str, learner: Learner, points: Points) -> nn.Module:
        """A model to be copied, into whose copies weights are poured; `key` names what decides its architecture."""
        from forgetgauge.run.model_jobs import mould

        if key not in self._moulds:
            _keep(self._moulds, key, mould(learner, points))
        return self._moulds[key]

    def dataset(self, halves: Halves) -> Dataset:
        """The data set itself, as it was when the run was planned; read before the user's methods can harm it."""
        digest = halves.data
        if digest not in self._read:
            _keep(self._read, digest, self.sources.dataset(digest))
        return self._read[digest]

    def hold(self, dataset: Dataset) -> None:
        """Keep a data set that somebody else has read, who answers for its digest."""
        _keep(self._read, dataset.digest, dataset)

    def on_device(self, halves: Halves) -> Dataset:
        """The data set on the worker's device, moved there once."""
        digest = halves.data
        if digest not in self._on_device:
            dataset = self.dataset(halves)
            test = dataset.test.on(self.device) if dataset.test is not None else None
            _keep(self._on_device, digest, replace(dataset, points=dataset.points.on(self.device), test=test))
        return self._on_device[digest]

    @contextmanager
    def points_for(self, halves: Halves, *, own: bool) -> Iterator[Points]:
        """All points, on the device; for the user's own code in tensors that no other code shares.

        Own code that changes them, or the base of language models, fails; whoever comes next is lent a fresh copy.
        """
        if not own:
            yield self.on_device(halves).points
            return
        from forgetgauge.models.causal_lm import bases_lent

        digest = halves.data
        if digest not in self._lent:
            points = self.on_device(halves).points.copied()
            self._lent = {digest: (points, points.fingerprints)}  # one at a time: it is a copy of the whole data set
        points, before = self._lent[digest]
        changed = ["its data"]
        try:
            with bases_lent():
                yield points
            changed = [name for name, found in points.fingerprints.items() if found != before[name]]
        finally:
            self._moulds.clear()  # it may have changed what they hold in common with its models
            if changed:
                del self._lent[digest]
        if changed:
            raise UserError(
                f"it changed {' and '.join(changed)} in place, which all methods share; change copies (retain.x and "
                "retain.y are copies already)"
            )

    def drawn(self, halves: Halves) -> tuple[Ints, Ints]:
        """The target half and the shadow half; who reads them leaves them as they are."""
        if halves not in self._drawn:
            points = self.dataset(halves).points
            _keep(self._drawn, halves, halves.draw(len(points), points.whole_groups))
        return self._drawn[halves]

    def points_of(
        self, subject: Subject, points: Points | None = None, inputs: Mapping[str, Artefact] = NOTHING
    ) -> SubjectPoints:
        """The subject's sets of points, on the device; of tensors that `points_for` lent, where they are given.

        `inputs` are the job's, among which are the hardest points where its sets hang on them.
        """
        here, halves, hardest = self.on_device(subject.halves).points, self.drawn(subject.halves), hardest_in(inputs)
        if points is not None and points is not here:  # for the user's own code, which may change what it is given
            return SubjectPoints.of(subject, points, halves[0].copy(), halves[1].copy(), hardest)
        known = None if hardest is not None else self._sets.get(subject)
        found = SubjectPoints.of(subject, here, *halves, hardest, known)
        if hardest is None and known is None:
            _keep(self._sets, subject, found.sets, N_SUBJECTS)
        return found


def _keep(held: dict[Key, Held], key: Key, new: Held, most: int = N_DATASETS) -> None:
    """Beside the others that were held last."""
    while len(held) >= most:
        del held[next(iter(held))]
    held[key] = new


# -- the first job of a game -------------------------------------------------------------------------------------------


def initialise(job: InitialiseJob, inputs: Mapping[str, Artefact], data: WorkerData) -> Artefact:
    """What every later phase of a game shares."""
    target, shadow = data.drawn(job.halves)
    dataset = data.dataset(job.halves)
    labels = dataset.points.host_labels[target]
    groups, shadow_groups = (job.halves.drawn_groups(dataset.points.subset(half).groups) for half in (target, shadow))
    weight = sensitivity_weights(job.sensitivity, labels, target, data.sources, groups)
    arrays: dict[str, npt.NDArray[Any]] = {"target": target, "labels": labels, "weight": weight}
    if groups is not None:
        arrays["group"] = groups
    if inputs:
        for half, names, own in (("target", "", groups), ("shadow", "shadow ", shadow_groups)):
            panel = panel_of(half, inputs, dataset.task)
            assert panel is not None
            scores = memorisation(panel)
            n_drawn = Units.of(len(scores), own).n
            arrays[f"{names}hardest"] = hardest(scores, round(job.hardest * n_drawn), own)
            arrays[f"{names}memorisation"] = scores
    columns = {name: column for name in job.columns if (column := coded(dataset.columns[name])) is not None}
    arrays |= {f"column {name}": codes[target] for name, (_, codes) in columns.items()}
    named = {"columns": {name: values for name, (values, _) in columns.items()}} if columns else {}
    cut = cut_groups(dataset.points.groups, f"data '{dataset.name}'") if groups is None else []
    return Artefact(arrays, {"doubts": [*data_warnings(dataset), *cut], **named})


def sensitivity_weights(
    how: Mapping[str, Any], labels: Ints, target: Ints, sources: Sources, groups: Ints | None = None
) -> npt.NDArray[np.float64]:
    """(|D|,) P_D, normalised over the target half; where groups are drawn a group weighs as its mean point does."""
    weight = _weights_of_points(how, labels, target, sources)
    return weight if groups is None else sensitivity.by_group(weight, groups)


def _weights_of_points(how: Mapping[str, Any], labels: Ints, target: Ints, sources: Sources) -> npt.NDArray[np.float64]:
    if how["kind"] == "by-class":
        return sensitivity.by_class(labels, {int(label): weight for label, weight in how["weights"].items()})
    if how["kind"] == "file":
        return sensitivity.checked(np.asarray(sources.weights[how["digest"]])[target], len(target))
    return sensitivity.uniform(len(target))
