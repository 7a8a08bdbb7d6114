"""A data set of the user's own arrays: types brought to what models take, images kept as bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from forgetgauge.data.dataset import Dataset, Scaling
from forgetgauge.errors import UserError
from forgetgauge.tasks.classification import CLASSIFICATION
from forgetgauge.tasks.task import Task

Pair = tuple[Any, Any]
CHANNELS = (1, 3, 4)


def dataset_of(
    name: str, train: Pair, test: Pair | None = None, *, copy: bool = False, task: Task = CLASSIFICATION
) -> Dataset:
    """A Dataset of (inputs, labels), arrays or tensors, and perhaps of a test set of the same sort.

    Bytes of four dimensions (points, channels, height, width) are images: they stay bytes and are scaled by their own
    mean and deviation over all of `train`. Other bytes become fractions of 255, other fractions float32. With `copy`,
    the data set shares no memory with what is given.
    """
    inputs, labels = _tensors(name, train, task, copy=copy)
    if test is None:
        return Dataset.of(name, inputs, labels, scaling=own_scaling(inputs), task=task)
    test_inputs, test_labels = _tensors(name, test, task, copy=copy)
    if test_inputs.shape[1:] != inputs.shape[1:] or test_inputs.dtype != inputs.dtype:
        raise UserError(f"data '{name}': test points are {_kind(test_inputs)}, but training points are {_kind(inputs)}")
    if task.has_classes and len(labels) and len(test_labels) and int(test_labels.max()) > int(labels.max()):
        raise UserError(
            f"data '{name}': the test set has label {int(test_labels.max())}, but the training labels end at "
            f"{int(labels.max())}"
        )
    test_set = test_inputs, test_labels
    return Dataset.of(name, inputs, labels, test=test_set, scaling=own_scaling(inputs), task=task)


def _tensors(name: str, pair: Pair, task: Task, *, copy: bool) -> tuple[Tensor, Tensor]:
    try:
        arrays = [np.asarray(part) for part in pair]
        inputs, numbers = (torch.as_tensor(array.copy() if copy else array) for array in arrays)
    except (TypeError, ValueError) as error:
        raise UserError(f"data '{name}': inputs and labels must be arrays of numbers: {error}") from None
    try:
        labels = torch.from_numpy(task.checked_labels(numbers.numpy()))
    except ValueError as error:
        raise UserError(f"data '{name}': {error}{_hint(task, numbers)}") from None
    if inputs.dtype == torch.uint8 and inputs.dim() == 4:
        if inputs.shape[-1] in CHANNELS and inputs.shape[1] not in CHANNELS:
            raise UserError(
                f"data '{name}': images of {tuple(inputs.shape[1:])} have their channels last; "
                "put them first, with x.transpose(0, 3, 1, 2)"
            )
    elif inputs.dtype == torch.uint8:
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
