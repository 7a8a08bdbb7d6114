"""What a worker holds: its device, the data sets it has moved there, and the points of them that a job stands for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from forgetgauge.errors import UserError
from forgetgauge.game.arrays import Ints
from forgetgauge.plan.subjects import Halves, Subject
from forgetgauge.run.assignments import Sources
from forgetgauge.run.places import Places

if TYPE_CHECKING:
    import torch

    from forgetgauge.data.dataset import Dataset, Points

N_DATASETS = 2
"""As many as are kept in memory, for sweeps over data sets."""


class Holdings:
    """Of one worker; torch is imported by the first job that needs a device or data."""

    def __init__(self, sources: Sources, device: str = "cpu") -> None:
        self.sources = sources
        self._device_name = device
        self._read: dict[str, Dataset] = {}
        self._on_device: dict[str, Dataset] = {}
        self._lent: dict[str, tuple[Points, dict[str, int]]] = {}

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

    def dataset(self, halves: Halves) -> Dataset:
        """The data set itself, as it was when the run was planned; read before the user's methods can harm it."""
        from forgetgauge.data.loading import load_dataset

        digest = halves.data
        if digest not in self._read:
            data = self.sources.datasets[digest]
            dataset = load_dataset(data.name, data.params)
            if dataset.digest != digest:
                raise UserError(f"data '{data.name}' changed since the run was planned; run the same command again")
            _keep(self._read, digest, dataset)
        return self._read[digest]

    def here(self, halves: Halves) -> Dataset:
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

        Own code that changes them fails; whoever comes next is lent a fresh copy.
        """
        if not own:
            yield self.here(halves).points
            return
        digest = halves.data
        if digest not in self._lent:
            points = self.here(halves).points.copied()
            self._lent = {digest: (points, points.fingerprints)}  # one at a time: it is a copy of the whole data set
        points, before = self._lent[digest]
        changed = ["its data"]
        try:
            yield points
            changed = [name for name, found in points.fingerprints.items() if found != before[name]]
        finally:
            if changed:
                del self._lent[digest]
        if changed:
            raise UserError(
                f"it changed {' and '.join(changed)} in place, which all methods share; change copies (retain.x and "
                "retain.y are copies already)"
            )

    def drawn(self, halves: Halves) -> tuple[Ints, Ints]:
        """The target half and the shadow half."""
        return halves.draw(len(self.dataset(halves).points))

    def places(self, subject: Subject, points: Points | None = None) -> Places:
        """The subject's sets of points, on the device; of tensors that `points_for` lent, where they are given."""
        return Places.of(subject, points or self.here(subject.halves).points, *self.drawn(subject.halves))


def _keep(held: dict[str, Dataset], digest: str, dataset: Dataset) -> None:
    """Beside one other at most, the one held last."""
    while len(held) >= N_DATASETS:
        del held[next(iter(held))]
    held[digest] = dataset
