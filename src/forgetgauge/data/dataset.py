"""A data set in memory: one tensor of inputs, one of labels, and a digest that names the pair."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from forgetgauge.errors import UserError


@dataclass(frozen=True)
class Points:
    """Some points of a data set, by index; the tensors themselves are shared, so a thousand subsets cost nothing."""

    whole_inputs: Tensor
    """(n_all, …) the whole data set's inputs."""
    whole_labels: Tensor
    """(n_all,) the whole data set's labels."""
    index: npt.NDArray[np.int64]
    """(n,) which of them these points are."""

    @staticmethod
    def of(inputs: Tensor, labels: Tensor) -> Points:
        """All points of two tensors."""
        return Points(inputs, labels, np.arange(len(inputs)))

    def subset(self, index: npt.NDArray[np.int64]) -> Points:
        """The points at these positions of the whole data set."""
        return Points(self.whole_inputs, self.whole_labels, np.asarray(index, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.index)

    @property
    def n_classes(self) -> int:
        """Of the whole data set, whatever classes these points happen to have."""
        return int(self.whole_labels.max()) + 1

    @cached_property
    def x(self) -> Tensor:
        """(n, …) inputs."""
        return self.whole_inputs[torch.from_numpy(self.index)]

    @cached_property
    def y(self) -> Tensor:
        """(n,) labels."""
        return self.whole_labels[torch.from_numpy(self.index)]


@dataclass(frozen=True)
class Dataset:
    """Inputs and labels to play the game with, and (where the data set has one) the official test set, for utility."""

    name: str
    points: Points
    digest: str
    """SHA-256 over inputs and labels: the data set's name in every job's key."""
    test: Points | None = None

    @staticmethod
    def of(name: str, inputs: Tensor, labels: Tensor, *, test: tuple[Tensor, Tensor] | None = None) -> Dataset:
        """Check the tensors and name them by their content."""
        problem = _problem(inputs, labels) or (_problem(*test) if test else None)
        if problem:
            raise UserError(f"data '{name}': {problem}")
        parts = [inputs, labels, *(test or ())]
        return Dataset(
            name=name,
            points=Points.of(inputs, labels),
            digest=tensor_digest(parts),
            test=Points.of(*test) if test else None,
        )


def _problem(inputs: Tensor, labels: Tensor) -> str | None:
    if len(inputs) != len(labels):
        return f"{len(inputs)} inputs but {len(labels)} labels"
    if len(inputs) == 0:
        return "no points"
    if labels.dtype != torch.int64 or labels.dim() != 1 or int(labels.min()) < 0:
        return "labels must be one whole number 0, 1, … per point"
    if inputs.is_floating_point() and not bool(torch.isfinite(inputs).all()):
        return "inputs hold NaN or infinite values"
    return None


def tensor_digest(tensors: Sequence[Tensor]) -> str:
    """SHA-256 over shapes, types and bytes."""
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(f"{tensor.dtype}{tuple(tensor.shape)}".encode())
        digest.update(tensor.contiguous().cpu().numpy().tobytes())
    return digest.hexdigest()
