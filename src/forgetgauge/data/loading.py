"""From a name (or the user's own arrays) to a Dataset, read once per process."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import torch

from forgetgauge import plugins
from forgetgauge.data.dataset import Dataset
from forgetgauge.errors import UserError


@functools.lru_cache(maxsize=2)
def load_dataset(name: str) -> Dataset:
    """The data set behind a catalogue name, a bound object or `module:function`."""
    made = plugins.data.load(name)
    return as_dataset(made() if callable(made) else made, name)


def as_dataset(thing: Any, name: str) -> Dataset:
    """A Dataset as it is, or one made of the pair (inputs, labels), arrays or tensors."""
    if isinstance(thing, Dataset):
        return thing
    if not (isinstance(thing, tuple | list) and len(thing) == 2):
        raise UserError(f"data '{name}' is neither a Dataset nor a pair (inputs, labels)")
    inputs, labels = (torch.as_tensor(np.asarray(part)) for part in thing)
    if inputs.dtype == torch.float64:
        inputs = inputs.float()
    return Dataset.of(name, inputs, labels.long())
