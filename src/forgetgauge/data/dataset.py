"""A data set in memory: one tensor of inputs, one of labels, and a digest that names the pair."""

from __future__ import annotations

import functools
import hashlib
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import ArrayLike

from forgetgauge.code import code_digest
from forgetgauge.data.items import CHANNELS
from forgetgauge.errors import UserError, needs_extra
from forgetgauge.probing import has
from forgetgauge.tasks.classification import CLASSIFICATION
from forgetgauge.tasks.task import Ints, Labels, Task

try:
    import torch
    from torch import Tensor
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise needs_extra("torch") from None

_AT_ONCE = 2**24


@dataclass(frozen=True)
class Scaling:
    """From pixels 0 … 255 to what a model is given: (pixel / 255 − mean) / deviation, channel by channel."""

    mean: tuple[float, ...]
    deviation: tuple[float, ...]

    def __call__(self, pixels: Tensor) -> Tensor:
        """(…, channels, height, width) bytes -> float32 of the same shape."""
        mean, deviation = self._on(pixels.device)
        return (pixels.float() / 255 - mean) / deviation

    @functools.lru_cache(maxsize=8)  # noqa: B019 - a handful of scalings live as long as the process
    def _on(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """Sent to a device once: a step that is captured as a CUDA graph cannot fetch from the host."""
        mean, deviation = (torch.tensor(numbers).view(-1, 1, 1).to(device) for numbers in (self.mean, self.deviation))
        return mean, deviation


@dataclass(frozen=True)
class Points:
    """Some points of a data set, by index; the tensors themselves are shared, so a thousand subsets cost nothing."""

    whole_inputs: Tensor
    """(n_all, …) the whole data set's inputs as they are stored: images as bytes, a quarter of their float size."""
    whole_labels: Tensor
    """(n_all,) the whole data set's labels."""
    index: npt.NDArray[np.int64]
    """(n,) which of them these points are."""
    scaling: Scaling | None = None
    """How stored bytes become a model's input; None where they are stored ready for use."""
    task: Task = CLASSIFICATION
    """What the labels mean."""
    whole_groups: Ints | None = None
    """(n_all,) the group (user, document, person) of each point of the whole data set, where it is known."""

    @staticmethod
    def of(
        inputs: Tensor,
        labels: Tensor,
        scaling: Scaling | None = None,
        task: Task = CLASSIFICATION,
        groups: Ints | None = None,
    ) -> Points:
        """All points of two tensors."""
        return Points(inputs, labels, np.arange(len(inputs)), scaling, task, groups)

    def subset(self, index: npt.NDArray[np.int64]) -> Points:
        """The points at these positions of the whole data set."""
        return replace(self, index=np.asarray(index, dtype=np.int64))

    def copied(self) -> Points:
        """These points with tensors of their own."""
        return replace(self, whole_inputs=self.whole_inputs.clone(), whole_labels=self.whole_labels.clone())

    @property
    def fingerprints(self) -> dict[str, int]:
        """Name -> fingerprint of each tensor."""
        tensors = {"whole_inputs": self.whole_inputs, "whole_labels": self.whole_labels}
        return {name: fingerprint(tensor) for name, tensor in tensors.items()}

    def on(self, device: torch.device) -> Points:
        """The same points with their tensors on a device; itself where they are there already."""
        if self.device == device:
            return self
        return replace(self, whole_inputs=self.whole_inputs.to(device), whole_labels=self.whole_labels.to(device))

    @property
    def groups(self) -> Ints | None:
        """(n,) the group of each of these points, where it is known."""
        return None if self.whole_groups is None else self.whole_groups[self.index]

    def __len__(self) -> int:
        return len(self.index)

    @property
    def device(self) -> torch.device:
        """Where the tensors are."""
        return self.whole_inputs.device

    @cached_property
    def n_outputs(self) -> int:
        """How many numbers a model gives for a point."""
        return self.task.n_outputs(self.host_labels)

    @cached_property
    def n_classes(self) -> int:
        """Of the whole data set, whatever classes these points happen to have; 1 where labels are no classes."""
        return int(self.host_classes.max()) + 1

    def inputs_at(self, at: Tensor) -> Tensor:
        """What a model is given at these positions of the whole data set; `at` may have any shape."""
        return self.scaled(self.stored_at(at))

    @property
    def are_numbers(self) -> bool:
        """Whether a model is given real numbers, and not such inputs as token ids."""
        return self.inputs_at(torch.zeros(1, dtype=torch.int64)).is_floating_point()

    def stored_at(self, at: Tensor) -> Tensor:
        """Inputs as they are stored."""
        return self.whole_inputs[at]

    def scaled(self, stored: Tensor) -> Tensor:
        """Stored inputs as a model is given them."""
        return self.scaling(stored) if self.scaling else stored

    @cached_property
    def host_labels(self) -> Labels:
        """(n_all,) the whole data set's labels in the host's memory."""
        labels: Labels = self.whole_labels.cpu().numpy()
        return labels

    @cached_property
    def host_classes(self) -> Ints:
        """(n_all,) the whole data set's classes, all 0 where labels are no classes."""
        return self.task.classes(self.host_labels)

    @cached_property
    def x(self) -> Tensor:
        """(n, …) inputs."""
        return self.inputs_at(torch.from_numpy(self.index))

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
    """SHA-256 over inputs and labels, and groups where there are any: the data set's name in every job's key."""
    test: Points | None = None
    columns: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict)
    """What else is known of each point, (n,) each: no model sees it, a report shows Q by it."""

    @staticmethod
    def of(
        name: str,
        inputs: Tensor,
        labels: Tensor,
        *,
        test: tuple[Tensor, Tensor] | None = None,
        scaling: Scaling | None = None,
        task: Task = CLASSIFICATION,
        groups: ArrayLike | None = None,
        columns: Mapping[str, npt.NDArray[Any]] | None = None,
    ) -> Dataset:
        """Check the tensors and name them by their content.

        `groups` tells of which group (user, document, person) each point is, (n,) whole numbers or names, for games in
        which whole groups are forgotten.
        """
        problem = _problem(inputs, labels, task) or (_problem(*test, task) if test else None)
        short = [key for key, column in (columns or {}).items() if len(column) != len(labels)]
        problem = problem or (f"the column {short[0]} is not of {len(labels)} points" if short else None)
        if problem:
            raise UserError(f"data '{name}': {problem}")
        named = None if groups is None else _checked_groups(name, groups, len(inputs))
        parts = [inputs, labels, *(test or ())]
        return Dataset(
            name=name,
            points=Points.of(inputs, labels, scaling, task, named),
            digest=_with_groups(_digest(parts, scaling, task), named),
            test=Points.of(*test, scaling, task) if test else None,
            columns=dict(columns or {}),
        )

    def copied(self) -> Dataset:
        """The same with tensors of its own, checked and named by their content as it is now."""
        points, test = self.points.copied(), None if self.test is None else self.test.copied()
        tested = None if test is None else (test.whole_inputs, test.whole_labels)
        return Dataset.of(
            self.name,
            points.whole_inputs,
            points.whole_labels,
            test=tested,
            scaling=points.scaling,
            task=points.task,
            groups=points.whole_groups,
            columns={name: column.copy() for name, column in self.columns.items()},
        )

    def grouped_by(self, groups: ArrayLike) -> Dataset:
        """The same points with the group of each, which the data set does not know itself."""
        if self.points.whole_groups is not None:
            raise UserError(f"data '{self.name}' knows its groups: leave the other ones out")
        named = _checked_groups(self.name, groups, len(self.points.whole_labels))
        return replace(self, points=replace(self.points, whole_groups=named), digest=_with_groups(self.digest, named))

    @property
    def task(self) -> Task:
        """What the labels mean."""
        return self.points.task


def _problem(inputs: Tensor, labels: Tensor, task: Task) -> str | None:
    if len(inputs) != len(labels):
        return f"{len(inputs)} inputs but {len(labels)} labels"
    if len(inputs) == 0:
        return "no points"
    try:
        stored = task.checked_labels(labels.cpu().numpy())
    except ValueError as error:
        return str(error)
    if torch.from_numpy(stored).dtype != labels.dtype:
        return f"labels must be {stored.dtype}, but they are {str(labels.dtype).removeprefix('torch.')}"
    if inputs.is_complex():
        return "inputs are complex numbers: give their real and imaginary parts, as channels or columns"
    if _has_channels_last(inputs):
        shape = tuple(inputs.shape[1:])
        return f"images of {shape} have their channels last; put them first, with x.transpose(0, 3, 1, 2)"
    if inputs.is_floating_point() and not bool(torch.isfinite(inputs).all()):
        return "inputs hold NaN or infinite values"
    return None


def _has_channels_last(inputs: Tensor) -> bool:
    """Bytes are images; of other numbers what has the sides of a picture: not so 512 maps of 4 × 4, or 9 sensors."""
    if inputs.dim() != 4 or inputs.shape[1] in CHANNELS or inputs.shape[3] not in CHANNELS:
        return False
    short, long = sorted(inputs.shape[1:3])
    return inputs.dtype == torch.uint8 or (short > max(CHANNELS) and long <= 2 * short)


def _checked_groups(name: str, groups: ArrayLike, n_points: int) -> Ints:
    """(n_points,) whole numbers, copied and read-only; names of groups are numbered in alphabetical order."""
    if np.ma.is_masked(groups):
        raise UserError(f"data '{name}': some of the groups are masked; whose group is a point that has none?")
    given = np.asarray(groups, dtype=None if has(groups, "__array__") else object)  # else None becomes a name
    for kind in (str, bytes, float):
        if given.dtype == object and all(isinstance(one, kind) for one in given.flat):
            given = given.astype(kind)
    if given.dtype == object and all(isinstance(one, Integral) and -(2**63) <= int(one) < 2**63 for one in given.flat):
        given = given.astype(bool if any(isinstance(one, bool) for one in given.flat) else np.int64)
    if given.dtype.kind in "US":
        if not np.char.str_len(np.char.strip(given)).all():
            raise UserError(f"data '{name}': a name in groups is blank; whose group is a point that has none?")
        given = np.unique(given, return_inverse=True)[1].reshape(given.shape)
    if given.dtype.kind not in "iu":
        what = "of several types, or too large" if given.dtype == object else f"of type {given.dtype}"
        raise UserError(f"data '{name}': groups must be whole numbers or names, but they are {what}")
    if given.shape != (n_points,):
        raise UserError(f"data '{name}': groups of shape {given.shape}, not one for each of {n_points} points")
    named = given.astype(np.int64)
    named.flags.writeable = False
    return named


def _digest(parts: Sequence[Tensor], scaling: Scaling | None, task: Task) -> str:
    if scaling is not None:
        parts = [*parts, torch.tensor([scaling.mean, scaling.deviation], dtype=torch.float64)]
    digest = tensor_digest(parts)
    if task == CLASSIFICATION:
        return digest  # as it was before there were other tasks
    shipped = type(task).__module__.startswith("forgetgauge.")
    return hashlib.sha256(f"{digest} {task.name} {'' if shipped else code_digest(task)}".encode()).hexdigest()


def _with_groups(digest: str, groups: Ints | None) -> str:
    if groups is None:
        return digest  # as it was before there were groups
    return hashlib.sha256(f"{digest} groups".encode() + groups.astype("<i8").tobytes()).hexdigest()


def fingerprint(tensor: Tensor) -> int:
    """Changes when a value of the tensor does; many times as fast as a digest, and on a GPU computed there."""
    values = tensor.detach().contiguous().flatten().view(torch.uint8)
    if values.device.type == "cpu":
        held: npt.NDArray[np.uint8] = values.numpy()
        return zlib.crc32(held.data)
    total = 0
    for start in range(0, len(values), _AT_ONCE):
        part = values[start : start + _AT_ONCE].long()
        places = torch.arange(start, start + len(part), device=part.device)
        total = (31 * total + int((part * (places * 2654435761 % 65521 + 1)).sum())) % 2**61
    return total


def tensor_digest(tensors: Sequence[Tensor]) -> str:
    """SHA-256 over shapes, types and bytes."""
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(f"{tensor.dtype}{tuple(tensor.shape)}".encode())
        digest.update(tensor.contiguous().cpu().numpy().tobytes())
    return digest.hexdigest()
