"""Data sets that people have as objects: torch's, torchvision's, Hugging Face's, and loaders of any of them.

Asked for by what they can do and not by their class: `len`, and items by number. An item is a pair (input, label) or a
mapping of columns, an input a tensor, an array, a list of numbers or a picture. All are read once, in the order of the
data set, and stacked, so a random transform is drawn once for each.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, RandomSampler, SequentialSampler, SubsetRandomSampler
from torch.utils.data import Dataset as TorchDataset

from forgetgauge.errors import UserError, unknown_name
from forgetgauge.probing import has
from forgetgauge.wording import listed

Columns = tuple[str, str]
"""The names of the inputs and of the labels."""
INPUTS = ("pixel_values", "input_ids", "image", "images", "img", "x", "input", "inputs", "features", "data")
LABELS = ("label", "labels", "y", "target", "targets", "fine_label", "class")
"""Names by which the two columns are found where nobody says them, in this order."""
CHANNELS = (1, 3, 4)
PALETTES = ("P", "PA")
"""Modes of pictures whose pixels are numbers in a list of colours, another one for each picture."""
MASK = "attention_mask"
SPLITS = ("train", "test")
LEFT_OUT = ("validation", "valid", "val", "dev", "unsupervised", "extra")
"""Further sets that published data come with, which no game needs."""


def has_items(thing: Any) -> bool:
    """Whether it is a data set by its items, or a loader of one; arrays, tables and lists of numbers are not.

    Of lists, those of mappings and those of more than two pairs are: two of anything are inputs and labels.
    """
    if isinstance(thing, TorchDataset | DataLoader):
        return True
    if isinstance(thing, list) and thing:
        return isinstance(thing[0], Mapping) or (len(thing) > 2 and isinstance(thing[0], tuple) and len(thing[0]) == 2)
    if has(thing, "__array__") or isinstance(thing, type | Sequence | Mapping):
        return False
    return has(thing, "__len__") and has(thing, "__getitem__")


def splits_of(thing: Any, name: str) -> list[Any] | None:
    """[training] or [training, test] of a mapping by such names, as Hugging Face has it; None of anything else."""
    if not (isinstance(thing, Mapping) and "train" in thing):
        return None
    for key in thing:
        if key not in (*SPLITS, *LEFT_OUT):
            raise UserError(f"data '{name}': " + unknown_name("set", str(key), SPLITS))
    return [thing[name] for name in SPLITS if name in thing]


def stacked(dataset: Any, name: str, columns: Columns | None = None) -> tuple[Tensor, Tensor]:
    """((n, …) inputs, (n,) labels) of a data set or a loader."""
    if isinstance(dataset, DataLoader) and dataset.batch_sampler is not None:
        return _of_batches(dataset, name, columns)
    _refuse_endless(dataset, name)
    reader = _Reader(name, columns)
    points = [reader.point(item, f"item {index}") for index, item in enumerate(_items(dataset, name))]
    if not points:
        raise UserError(f"data '{name}': no points")
    for index, (point, _) in enumerate(points):
        if point.shape != points[0][0].shape:
            raise UserError(
                f"data '{name}': item {index} has shape {tuple(point.shape)}, but item 0 has "
                f"{tuple(points[0][0].shape)}: crop or pad them to one shape"
            )
    return torch.stack([point for point, _ in points]), torch.stack([label for _, label in points])


def _items(dataset: Any, name: str) -> Iterator[Any]:
    if isinstance(dataset, DataLoader):  # one that makes no batches
        return (dataset.collate_fn(dataset.dataset[index]) for index in _chosen(dataset, name))
    return (dataset[index] for index in range(len(dataset)))


def columns_of(table: Mapping[str, Any], name: str, columns: Columns | None = None) -> tuple[Any, Any]:
    """(inputs, labels) of a mapping of whole columns, as they are."""
    return _Reader(name, columns).two(table, "the mapping")


def _refuse_endless(dataset: Any, name: str) -> None:
    dataset = dataset.dataset if isinstance(dataset, DataLoader) else dataset
    if isinstance(dataset, IterableDataset) or not has(dataset, "__len__"):
        raise UserError(f"data '{name}': an iterable torch Dataset has no length; give a map-style one")


# -- loaders -----------------------------------------------------------------------------------------------------------


def _of_batches(loader: DataLoader[Any], name: str, columns: Columns | None) -> tuple[Tensor, Tensor]:
    """Every point of a loader's data set once, in its order, as the loader's own `collate_fn` makes batches of it."""
    _refuse_endless(loader, name)
    reader = _Reader(name, columns)
    parts = [reader.batch(batch, f"batch {i}") for i, batch in enumerate(_batches(loader, _chosen(loader, name)))]
    if not parts:
        raise UserError(f"data '{name}': no points")
    for i, (inputs, _) in enumerate(parts):
        if inputs.shape[1:] != parts[0][0].shape[1:]:
            raise UserError(
                f"data '{name}': points of batch {i} have shape {tuple(inputs.shape[1:])}, but those of batch 0 have "
                f"{tuple(parts[0][0].shape[1:])}: crop or pad all to one shape"
            )
    return torch.cat([inputs for inputs, _ in parts]), torch.cat([labels for _, labels in parts])


def _chosen(loader: DataLoader[Any], name: str) -> list[int]:
    """Which points a loader is about: shuffling and dropping the last batch change nothing of that."""
    own = loader.batch_size is None and loader.batch_sampler is not None
    sampler = loader.batch_sampler if own else loader.sampler
    n_points = len(loader.dataset)  # type: ignore[arg-type]
    if isinstance(sampler, SubsetRandomSampler):
        named = [int(index) for index in sampler.indices]
        outside = [index for index in named if not -n_points <= index < n_points]
        if outside:
            raise UserError(f"data '{name}': the loader's sampler names point {outside[0]}, but there are {n_points}")
        return sorted({index % n_points for index in named})  # -1 is the last one
    shows_each_once = isinstance(sampler, SequentialSampler) or (
        isinstance(sampler, RandomSampler) and not sampler.replacement
    )
    if shows_each_once and len(sampler) == n_points:  # type: ignore[arg-type]
        return list(range(n_points))
    raise UserError(
        f"data '{name}': a DataLoader with a sampler of its own ({type(sampler).__name__}) may show points twice or "
        "never; give its data set, or a Subset of it"
    )


def _batches(loader: DataLoader[Any], chosen: list[int]) -> Iterator[Any]:
    size = loader.batch_size or 256
    for start in range(0, len(chosen), size):
        items = [loader.dataset[index] for index in chosen[start : start + size]]
        yield loader.collate_fn(items)


# -- items and batches -------------------------------------------------------------------------------------------------


class _Reader:
    """Finds the two columns in the first item, and reads all by them."""

    def __init__(self, name: str, columns: Columns | None) -> None:
        self.name, self.columns = name, columns
        self.warned = False

    def point(self, item: Any, where: str) -> tuple[Tensor, Tensor]:
        """An input of any shape, and a label, which is one number."""
        given, wanted = self.two(item, where)
        label = _tensor(wanted)
        if label is None or label.numel() != 1:
            raise UserError(f"data '{self.name}': the label of {where} is not one number")
        return self._input(given, where), label.reshape(())

    def batch(self, batch: Any, where: str) -> tuple[Tensor, Tensor]:
        """(b, …) inputs and (b,) labels."""
        given, wanted = self.two(batch, where)
        inputs, labels = self._input(given, where), _tensor(wanted)
        if labels is None or inputs.dim() == 0 or labels.numel() != len(inputs):
            raise UserError(f"data '{self.name}': the labels of {where} are not one number for each point")
        return inputs, labels.reshape(-1)

    def two(self, item: Any, where: str) -> tuple[Any, Any]:
        """Input and label, or inputs and labels, as they are."""
        if isinstance(item, Mapping):
            if self.columns is None:
                self.columns = _found(item, self.name, where)
            missing = [column for column in self.columns if column not in item]
            if missing:
                raise UserError(
                    f"data '{self.name}': {where} has no column '{missing[0]}'; there are {listed(list(item))}"
                )
            self._look_at_mask(item)
            return item[self.columns[0]], item[self.columns[1]]
        if self.columns is not None:
            raise UserError(f"data '{self.name}': {where} is a {type(item).__name__}, which has no named columns")
        if not (isinstance(item, tuple | list) and len(item) == 2):
            raise UserError(
                f"data '{self.name}': {where} is a {type(item).__name__}, not a pair (input, label) or a mapping"
            )
        return item[0], item[1]

    def _look_at_mask(self, item: Mapping[str, Any]) -> None:
        """A model is given one tensor: it must know padding by the ids."""
        mask = None if self.warned or MASK not in item else _tensor(item[MASK])
        if mask is not None and not bool(mask.all()):
            self.warned = True
            warnings.warn(
                f"data '{self.name}': a model is given '{(self.columns or ('',))[0]}' alone, without '{MASK}': let it "
                "mask the padding by its id",
                stacklevel=2,
            )

    def _input(self, given: Any, where: str) -> Tensor:
        found = _tensor(given)
        if found is None:
            hint = (
                "turn it into numbers first"
                if isinstance(given, str)
                else "give the data set a transform that makes it one"
            )
            raise UserError(
                f"data '{self.name}': the input of {where} is a {type(given).__name__}, not a tensor or array: {hint}"
            )
        return found


def _found(item: Mapping[str, Any], name: str, where: str) -> Columns:
    """The two columns by their usual names."""
    inputs, labels = ([one for one in usual if one in item] for usual in (INPUTS, LABELS))
    if not inputs or not labels:
        raise UserError(
            f"data '{name}': which columns of {where} are input and label? There are {listed(list(item))}; "
            "say columns=(input, label)"
        )
    return inputs[0], labels[0]


def _tensor(part: Any) -> Tensor | None:
    """Numbers of any sort; of a picture (channels, height, width)."""
    if isinstance(part, Tensor):
        return part.detach().cpu()
    if isinstance(part, np.ndarray | np.generic | int | float):
        return None if np.ma.is_masked(part) else _numbers(np.asarray(part))
    if isinstance(part, list | tuple):
        if part and all(isinstance(one, Tensor) for one in part):
            return torch.stack([one.detach().cpu() for one in part]) if len({one.shape for one in part}) == 1 else None
        try:
            return _numbers(np.asarray(part))
        except ValueError:  # of several lengths
            return None
    if has(part, "__array_interface__") and has(part, "getbands"):  # a PIL image
        pixels = np.array(part.convert("RGB") if part.mode in PALETTES else part)
        return _numbers(np.moveaxis(pixels, -1, 0) if pixels.ndim == 3 else pixels[None])
    return None


def _numbers(array: npt.NDArray[Any]) -> Tensor | None:
    return torch.as_tensor(array) if array.dtype.kind in "biuf" else None
