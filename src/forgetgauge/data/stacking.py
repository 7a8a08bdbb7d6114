"""A torch Dataset as two tensors: its items are read once, in order, so a random transform is drawn once for each."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset as TorchDataset
from torch.utils.data import IterableDataset

from forgetgauge.errors import UserError


def is_torch_dataset(thing: Any) -> bool:
    """Whether it is one of torch's own data sets, map-style or not."""
    return isinstance(thing, TorchDataset)


def stacked(dataset: Any, name: str) -> tuple[Tensor, Tensor]:
    """((n, …) inputs, (n,) labels) of a map-style data set whose items are pairs (input, label)."""
    if isinstance(dataset, IterableDataset) or not hasattr(dataset, "__len__"):
        raise UserError(f"data '{name}': an iterable torch Dataset has no length; give a map-style one")
    if len(dataset) == 0:
        raise UserError(f"data '{name}': no points")
    inputs: list[Tensor] = []
    labels: list[Tensor] = []
    for index in range(len(dataset)):
        point, label = _item(dataset, index, name)
        if inputs and point.shape != inputs[0].shape:
            raise UserError(
                f"data '{name}': item {index} has shape {tuple(point.shape)}, but item 0 has {tuple(inputs[0].shape)}: "
                "crop or pad them to one shape"
            )
        inputs.append(point)
        labels.append(label)
    return torch.stack(inputs), torch.stack(labels)


def _item(dataset: Any, index: int, name: str) -> tuple[Tensor, Tensor]:
    item = dataset[index]
    if not (isinstance(item, tuple | list) and len(item) == 2):
        raise UserError(f"data '{name}': item {index} is a {type(item).__name__}, not a pair (input, label)")
    point, label = (_tensor(part) for part in item)
    if point is None:
        raise UserError(
            f"data '{name}': the input of item {index} is a {type(item[0]).__name__}, not a tensor or array: "
            "give the data set a transform that makes it one"
        )
    if label is None or label.numel() != 1:
        raise UserError(f"data '{name}': the label of item {index} is not one number")
    return point, label.reshape(())


def _tensor(part: Any) -> Tensor | None:
    if isinstance(part, Tensor):
        return part.detach().cpu()
    if isinstance(part, np.ndarray | np.generic | int | float) and np.asarray(part).dtype.kind in "biuf":
        return torch.as_tensor(np.asarray(part))
    return None
