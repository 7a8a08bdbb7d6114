"""From a name (or the user's own arrays) to a Dataset, read once per process."""

from __future__ import annotations

import functools
import inspect
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from forgetgauge import plugins
from forgetgauge.data.arrays import dataset_of, files_of, is_path, read_npz
from forgetgauge.data.dataset import Dataset
from forgetgauge.data.items import Columns, columns_of, has_items, splits_of, stacked
from forgetgauge.errors import UserError, placed_line_of, unknown_name
from forgetgauge.npz import UNREADABLE, read_array
from forgetgauge.plugins.catalogue import code_behind
from forgetgauge.tasks.classification import CLASSIFICATION
from forgetgauge.tasks.task import Task

_KINDS: dict[str, tuple[type, ...]] = {"int": (int,), "float": (int, float), "str": (str,), "bool": (bool,)}
"""What a parameter may be whose type a reader states in one word."""
_OTHER_FILES = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".parquet", ".npy", ".pt", ".pkl", ".h5", ".xlsx")
"""How files end that people have data in, and that are not read."""
NOTHING: Mapping[str, Any] = MappingProxyType({})


def load_dataset(name: str, params: Mapping[str, Any] = NOTHING) -> Dataset:
    """The data set behind a catalogue name, a bound object, `module:function`, or a path of `.npz` files.

    `params` are handed to the function that reads it, but for `task`, which says what the labels mean, and `groups`,
    which says of which group each point is.
    """
    params = dict(params)
    groups = params.pop("groups", None)
    dataset = _load(name, params, task_named(params.pop("task", None)))
    return dataset if groups is None else dataset.grouped_by(_groups_named(groups, len(dataset.points)))


def _load(name: str, params: Mapping[str, Any], task: Task | None) -> Dataset:
    if _is_path(name):
        _refuse(name, params)
        return _read_path(name, _stamp(Path(name)), task)
    _refuse_other_file(name)
    made = plugins.data.load(name)
    if not callable(made) or has_items(made):
        _refuse(name, params)
        is_kept = isinstance(made, Dataset) and plugins.data.is_bound(name)
        return _of_task(made, task) if is_kept else as_dataset(made, name, task)
    _check_params(name, made, params)
    return _read(made, name, json.dumps(params, sort_keys=True), task)


def _groups_named(groups: Any, n_points: int) -> npt.NDArray[Any]:
    """The group of each point: from a `.npy` file, or so many points that follow each other are one group."""
    if isinstance(groups, str):
        try:
            return read_array(Path(groups))
        except FileNotFoundError:
            raise UserError(f"data.groups: {groups}: no such file") from None
        except UNREADABLE as error:
            raise UserError(f"data.groups: {groups}: not a .npy file of numbers or names: {error}") from None
    if isinstance(groups, bool) or not isinstance(groups, int) or not 1 <= groups <= n_points:
        raise UserError(f"data.groups = {groups!r} is neither a .npy file nor a number of points from 1 to {n_points}")
    return np.arange(n_points) // groups


def task_named(name: str | None) -> Task | None:
    """The task behind a catalogue name, a bound object or `module:OBJECT`; None of None."""
    if name is None:
        return None
    if not isinstance(name, str):
        raise UserError(f"data.task = {name!r} is not a string")
    found = plugins.tasks.load(name)
    if not isinstance(found, Task):
        raise UserError(f"data.task: '{name}' is a {type(found).__name__}, not a Task")
    return found


def code_of_data(name: str) -> str:
    """What stands for the user's own code in a game's description; files of arrays have none."""
    _refuse_other_file(name)
    return "" if _is_path(name) else code_behind([(plugins.data, name)]).digest


def as_dataset(thing: Any, name: str, task: Task | None = None, columns: Columns | None = None) -> Dataset:
    """A Dataset, or one of whatever a user has: a pair (inputs, labels) of arrays, a mapping of columns, a data set by
    its items or a loader of one, two of these (training, test), or a mapping with `train` and perhaps `test`.

    It is a copy: nothing that the user's code does to its own arrays later on reaches it. Labels are numbers of classes
    unless a task says otherwise. `columns` names the inputs and the labels where items are mappings.
    """
    columns = _checked_columns(columns)
    if isinstance(thing, Dataset):
        _refuse_columns(name, columns)
        return _of_task(thing.copied(), task)
    task = task or CLASSIFICATION
    if isinstance(thing, Path):
        _refuse_columns(name, columns)
        return _read_path(str(thing), _stamp(thing), task)
    splits = splits_of(thing, name) or (list(thing) if _is_two(thing) and all(map(_is_set, thing)) else [thing])
    if not any(has_items(part) or isinstance(part, Mapping) for part in splits):
        _refuse_columns(name, columns)
    pairs = [_pair(part, name, columns) for part in splits]
    return dataset_of(name, *pairs, copy=not all(map(has_items, splits)), task=task)


def _pair(part: Any, name: str, columns: Columns | None) -> tuple[Any, Any]:
    """The inputs and the labels of one set, in whatever form it is given."""
    if has_items(part):
        with _users_code(name):
            return stacked(part, name, columns)
    if isinstance(part, Mapping):
        return columns_of(part, name, columns)
    if _is_two(part):
        return part[0], part[1]
    raise UserError(
        f"data '{name}' is neither a Dataset nor a pair (inputs, labels), and a {type(part).__name__} has no items"
    )


def _is_set(part: Any) -> bool:
    """Whether one of two things is a whole set, as in (training, test), and not the inputs or the labels of one.

    A pair of lists might be both, but only of a data set of two points, of which no game can be played.
    """
    if has_items(part) or isinstance(part, Mapping):
        return True
    return _is_two(part) and all(
        hasattr(one, "__len__") and not isinstance(one, str) and getattr(one, "ndim", 1) for one in part
    )


def _is_two(thing: Any) -> bool:
    return isinstance(thing, tuple | list) and len(thing) == 2


def _checked_columns(columns: Any) -> Columns | None:
    if columns is None:
        return None
    if not (_is_two(columns) and all(isinstance(one, str) for one in columns)):
        raise UserError(f'columns = {columns!r} are not the names of two columns, as in ("image", "label")')
    return columns[0], columns[1]


def _refuse_columns(name: str, columns: Columns | None) -> None:
    if columns is not None:
        raise UserError(f"data '{name}' has no named columns: leave columns={columns} out")


def _of_task(dataset: Dataset, task: Task | None) -> Dataset:
    if task is not None and task != dataset.task:
        raise UserError(f"data '{dataset.name}' is of the task {dataset.task.name}: it cannot be one of {task.name}")
    return dataset


@functools.lru_cache(maxsize=2)
def _read(read: Callable[..., Any], name: str, params: str, task: Task | None) -> Dataset:
    if name in plugins.data.entries:
        return _of_task(read(**json.loads(params)), task)
    with _users_code(name):
        made = read(**json.loads(params))
    return as_dataset(made, name, task)


@contextmanager
def _users_code(name: str) -> Iterator[None]:
    """What it raises is one line, which says where."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"data '{name}': {placed_line_of(error)}") from error


@functools.lru_cache(maxsize=2)
def _read_path(name: str, stamp: tuple[tuple[int, int], ...], task: Task | None) -> Dataset:
    """`stamp` is that of the files, so that what was written anew is read anew."""
    return read_npz(Path(name), task or CLASSIFICATION)


def _is_path(name: str) -> bool:
    """A name of the catalogue is never a folder that happens to be called so."""
    return is_path(name) and name not in plugins.data


def _refuse_other_file(name: str) -> None:
    """Say how a table, or whatever else is in a file, is brought."""
    if name in plugins.data or ":" in name or _is_path(name):
        return
    if name.lower().endswith(_OTHER_FILES) or os.path.isfile(name):  # unlike is_file of a path: no name is too long
        raise UserError(
            f"data '{name}': files are read as .npz, with arrays x and y; name a function that reads yours, as "
            "module:function, or give evaluate its arrays, data=(x, y)"
        )


def _stamp(path: Path) -> tuple[tuple[int, int], ...]:
    facts = [file.stat() for file in files_of(path) if file.exists()]
    return tuple((fact.st_mtime_ns, fact.st_size) for fact in facts)


def _refuse(name: str, params: Mapping[str, Any]) -> None:
    if params:
        raise UserError(f"data.params: '{name}' takes no parameters, but {', '.join(params)} is given")


def _check_params(name: str, read: Callable[..., Any], params: Mapping[str, Any]) -> None:
    """One line on a parameter the reader does not know, on one it needs, or on one of another type than it says."""
    try:
        signature = inspect.signature(read)
    except (TypeError, ValueError):  # a reader written in C has none
        return
    taken = signature.parameters.values()
    if any(parameter.kind == parameter.VAR_KEYWORD for parameter in taken):
        return
    names = [parameter.name for parameter in taken if parameter.kind != parameter.VAR_POSITIONAL]
    unknown = [key for key in params if key not in names]
    if unknown:
        if not names:
            _refuse(name, params)
        raise UserError(f"data.params: {unknown_name('key', unknown[0], names)}")
    try:
        signature.bind(**params)
    except TypeError as error:
        raise UserError(f"data.params: '{name}': {error}") from None
    for key, value in params.items():
        annotation = signature.parameters[key].annotation
        said = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
        kind = _KINDS.get(said)
        if kind is not None and (not isinstance(value, kind) or isinstance(value, bool) != (said == "bool")):
            raise UserError(f"data.params: '{name}': {key} = {value!r} is not of the type {said}")
