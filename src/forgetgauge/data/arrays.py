"""A data set of the user's own arrays: types brought to what models take, images kept as bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from forgetgauge.data.dataset import Dataset, Scaling
from forgetgauge.errors import UserError

Pair = tuple[Any, Any]
CHANNELS = (1, 3, 4)


def dataset_of(name: str, train: Pair, test: Pair | None = None, *, copy: bool = False) -> Dataset:
    """A Dataset of (inputs, labels), arrays or tensors, and perhaps of a test set of the same sort.

    Bytes of four dimensions (points, channels, height, width) are images: they stay bytes and are scaled by their own
    mean and deviation over all of `train`. Other bytes become fractions of 255, other fractions float32. With `copy`,
    the data set shares no memory with what is given.
    """
    inputs, labels = _tensors(name, train, copy=copy)
    if test is None:
        return Dataset.of(name, inputs, labels, scaling=own_scaling(inputs))
    test_inputs, test_labels = _tensors(name, test, copy=copy)
    if test_inputs.shape[1:] != inputs.shape[1:] or test_inputs.dtype != inputs.dtype:
        raise UserError(f"data '{name}': test points are {_kind(test_inputs)}, but training points are {_kind(inputs)}")
    if len(labels) and len(test_labels) and int(test_labels.max()) > int(labels.max()):
        raise UserError(
            f"data '{name}': the test set has label {int(test_labels.max())}, but the training labels end at "
            f"{int(labels.max())}"
        )
    return Dataset.of(name, inputs, labels, test=(test_inputs, test_labels), scaling=own_scaling(inputs))


def _tensors(name: str, pair: Pair, *, copy: bool) -> tuple[Tensor, Tensor]:
    try:
        arrays = [np.asarray(part) for part in pair]
        inputs, labels = (torch.as_tensor(array.copy() if copy else array) for array in arrays)
    except (TypeError, ValueError) as error:
        raise UserError(f"data '{name}': inputs and labels must be arrays of numbers: {error}") from None
    if labels.is_floating_point() and not torch.equal(labels, labels.trunc()):
        raise UserError(f"data '{name}': labels must be one whole number 0, 1, … per point")
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
    return inputs, labels.long()


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
