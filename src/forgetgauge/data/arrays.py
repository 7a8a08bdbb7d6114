"""A data set of the user's own: arrays, or an `.npz`.

Types are brought to what models take; images are kept as bytes. An `.npz` is one file with x, y and perhaps x_test,
y_test, or a folder with train.npz and test.npz; `groups` beside x and y tells of which group each point is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from forgetgauge.data.dataset import Dataset, Scaling
from forgetgauge.errors import UserError
from forgetgauge.npz import UNREADABLE, checked_claim
from forgetgauge.tasks.classification import CLASSIFICATION
from forgetgauge.tasks.task import Task

Pair = tuple[Any, Any]


def dataset_of(
    name: str,
    train: Pair,
    test: Pair | None = None,
    *,
    copy: bool = False,
    task: Task = CLASSIFICATION,
    groups: ArrayLike | None = None,
    columns: Mapping[str, npt.NDArray[Any]] | None = None,
) -> Dataset:
    """A Dataset of (inputs, labels), arrays or tensors, and perhaps of a test set of the same sort.

    Bytes of four dimensions (points, channels, height, width) are images: they stay bytes and are scaled by their own
    mean and deviation over all of `train`. Other bytes become fractions of 255, other fractions float32. With `copy`,
    the data set shares no memory with what is given. `groups` names the group of each point of `train`.
    """
    inputs, labels = _tensors(name, train, task, copy=copy)
    if test is None:
        return Dataset.of(name, inputs, labels, scaling=own_scaling(inputs), task=task, groups=groups, columns=columns)
    test_inputs, test_labels = _tensors(name, test, task, copy=copy)
    if test_inputs.shape[1:] != inputs.shape[1:] or test_inputs.dtype != inputs.dtype:
        raise UserError(f"data '{name}': test points are {_kind(test_inputs)}, but training points are {_kind(inputs)}")
    if task.has_classes and len(labels) and len(test_labels) and int(test_labels.max()) > int(labels.max()):
        raise UserError(
            f"data '{name}': the test set has label {int(test_labels.max())}, but the training labels end at "
            f"{int(labels.max())}"
        )
    test_set = test_inputs, test_labels
    return Dataset.of(
        name, inputs, labels, test=test_set, scaling=own_scaling(inputs), task=task, groups=groups, columns=columns
    )


def _tensors(name: str, pair: Pair, task: Task, *, copy: bool) -> tuple[Tensor, Tensor]:
    try:
        if any(np.ma.is_masked(part) for part in pair):
            raise UserError(f"data '{name}': some values are masked: put numbers in their place, as x.filled(0) does")
        arrays = [np.asarray(part) for part in pair]
        if arrays[1].dtype.kind in "OSU":
            raise UserError(f"data '{name}': labels are words: number them, np.unique(labels, return_inverse=True)[1]")
        inputs, numbers = (torch.as_tensor(array.copy() if copy else array) for array in arrays)
    except (TypeError, ValueError) as error:
        raise UserError(f"data '{name}': inputs and labels must be arrays of numbers: {error}") from None
    try:
        labels = torch.from_numpy(task.checked_labels(numbers.numpy()))
    except ValueError as error:
        raise UserError(f"data '{name}': {error}{_hint(task, numbers)}") from None
    if inputs.dtype == torch.uint8 and inputs.dim() != 4:
        inputs = inputs.float() / 255
    elif inputs.is_floating_point() or inputs.dtype == torch.bool:
        inputs = inputs.float()
    return inputs, labels


def _hint(task: Task, labels: Tensor) -> str:
    real = task.has_classes and labels.is_floating_point() and labels.dim() == 1 and bool(labels.isfinite().all())
    return '; for real numbers say task = "regression"' if real else ""


def _kind(inputs: Tensor) -> str:
    return f"{str(inputs.dtype).removeprefix('torch.')} of shape {tuple(inputs.shape[1:])}"


def own_scaling(images: Tensor) -> Scaling | None:
    """Mean and deviation of each channel over all images; None for what is not stored as bytes."""
    if images.dtype != torch.uint8:
        return None
    value = np.arange(256) / 255
    means, deviations = [], []
    for channel in range(images.shape[1]):
        counts = np.zeros(256, dtype=np.int64)  # exact, whatever the order, and never a float copy of the images
        for start in range(0, len(images), 4096):
            counts += np.bincount(images[start : start + 4096, channel].numpy().ravel(), minlength=256)
        mean = float(np.average(value, weights=counts)) if counts.any() else 0.0
        deviation = float(np.sqrt(np.average((value - mean) ** 2, weights=counts))) if counts.any() else 0.0
        means.append(mean)
        deviations.append(deviation or 1.0)  # a channel of one colour carries nothing: leave it at 0
    return Scaling(tuple(means), tuple(deviations))


# -- npz files ---------------------------------------------------------------------------------------------------------


def is_path(name: str) -> bool:
    """Whether a data set's name is a file or folder of arrays: it ends in `.npz`, or it is a folder."""
    return name.endswith(".npz") or os.path.isdir(name)  # unlike is_dir of a path: no error where a name is too long


def files_of(path: Path) -> list[Path]:
    """The files that make up the data set, training first."""
    if not path.is_dir():
        return [path]
    test = path / "test.npz"
    return [path / "train.npz", test] if test.exists() else [path / "train.npz"]


def read_npz(path: Path, task: Task) -> Dataset:
    """The data set in a file or folder, named as the path was given. Pickled objects are refused, never loaded."""
    train, *test = files_of(path)
    with _opened(train) as arrays:
        named = [key for key in ("x", "y", "groups") if key != "groups" or key in arrays]
        tested = [key for key in ("x_test", "y_test") if key in arrays]
    inputs, labels, *groups = _arrays(train, named)
    if test:
        test_set: Pair | None = _pair(test[0], ("x", "y"))
    else:
        test_set = _pair(train, ("x_test", "y_test")) if tested else None
    named_groups, columns = groups[0] if groups else None, _columns(train, len(labels))
    return dataset_of(str(path), (inputs, labels), test_set, task=task, groups=named_groups, columns=columns)


def _columns(path: Path, n_points: int) -> dict[str, npt.NDArray[Any]]:
    """Further arrays of the file with a word or a whole number for each point, by which Q is shown."""
    found: dict[str, npt.NDArray[Any]] = {}
    with _opened(path) as arrays:
        for info in arrays.zip.infolist():
            name = info.filename.removesuffix(".npy")
            if name in ("x", "y", "x_test", "y_test", "groups"):
                continue
            with suppress(*UNREADABLE):  # nobody asked for it
                checked_claim(arrays.zip, info)
                found[name] = arrays[name]
    return {name: own for name, own in found.items() if own.dtype.kind in "biuU" and own.shape == (n_points,)}


def _pair(path: Path, keys: tuple[str, str]) -> Pair:
    first, second = _arrays(path, keys)
    return first, second


def _arrays(path: Path, keys: Sequence[str]) -> list[Any]:
    with _opened(path) as arrays:
        missing = [key for key in keys if key not in arrays]
        if missing:
            raise UserError(f"{path}: holds no array '{missing[0]}'; there are {', '.join(arrays) or 'none'}")
        try:
            for info in arrays.zip.infolist():
                if info.filename.removesuffix(".npy") in keys:
                    checked_claim(arrays.zip, info)
            return [arrays[key] for key in keys]
        except UNREADABLE as error:
            raise UserError(f"{path}: {' or '.join(keys)} cannot be read: {_why(error)}") from None


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    try:
        source = path.open("rb")
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    with source:
        try:
            opened = np.load(source, allow_pickle=False)
        except UNREADABLE as error:
            raise UserError(f"{path}: not an .npz file: {_why(error)}") from None
        if not isinstance(opened, np.lib.npyio.NpzFile):
            raise UserError(f"{path}: a single array, not an .npz file with x and y")
        with opened:
            yield opened


def _why(error: Exception) -> str:
    """numpy's own words tell how to load a pickle all the same."""
    return "pickled objects are never loaded; save arrays of numbers" if "pickle" in str(error) else str(error)
