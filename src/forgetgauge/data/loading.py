"""From a name (or the user's own arrays) to a Dataset, read once per process."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from forgetgauge import plugins
from forgetgauge.data.dataset import Dataset
from forgetgauge.errors import UserError


def load_dataset(name: str) -> Dataset:
    """The data set behind a catalogue name, a bound object or `module:function`."""
    made = plugins.data.load(name)
    return _read(made, name) if callable(made) else as_dataset(made, name)


@functools.lru_cache(maxsize=2)
def _read(read: Callable[[], Any], name: str) -> Dataset:
    return as_dataset(read(), name)


def as_dataset(thing: Any, name: str) -> Dataset:
    """A Dataset as it is, or one made of the pair (inputs, labels), arrays or tensors."""
    if isinstance(thing, Dataset):
        return thing
    if not (isinstance(thing, tuple | list) and len(thing) == 2):
        raise UserError(f"data '{name}' is neither a Dataset nor a pair (inputs, labels)")
    try:
        inputs, labels = (torch.as_tensor(np.asarray(part)) for part in thing)
    except (TypeError, ValueError) as error:
        raise UserError(f"data '{name}': inputs and labels must be arrays of numbers: {error}") from None
    if labels.is_floating_point() and not torch.equal(labels, labels.trunc()):
        raise UserError(f"data '{name}': labels must be one whole number 0, 1, … per point")
    if inputs.dtype == torch.uint8:  # images as cameras give them
        inputs = inputs.float() / 255
    if inputs.dtype == torch.float64:
        inputs = inputs.float()
    return Dataset.of(name, inputs, labels.long())
