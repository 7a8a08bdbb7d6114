"""The user's own `.npz`: one file with x, y and perhaps x_test, y_test, or a folder with train.npz and test.npz."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from forgetgauge.data.arrays import dataset_of
from forgetgauge.data.dataset import Dataset
from forgetgauge.errors import UserError
from forgetgauge.tasks.task import Task


def is_path(name: str) -> bool:
    """Whether a data set's name is a file or folder of arrays: it ends in `.npz`, or it is a folder."""
    return name.endswith(".npz") or (name != "" and Path(name).is_dir())


def files_of(path: Path) -> list[Path]:
    """The files that make up the data set, training first."""
    if not path.is_dir():
        return [path]
    test = path / "test.npz"
    return [path / "train.npz", test] if test.exists() else [path / "train.npz"]


def read_npz(path: Path, task: Task) -> Dataset:
    """The data set in a file or folder, named as the path was given. Pickled objects are refused, never loaded."""
    train, *test = files_of(path)
    if test:
        return dataset_of(str(path), _pair(train, ("x", "y")), _pair(test[0], ("x", "y")), task=task)
    with _opened(train) as arrays:
        tested = [key for key in ("x_test", "y_test") if key in arrays]
    test_set = _pair(train, ("x_test", "y_test")) if tested else None
    return dataset_of(str(path), _pair(train, ("x", "y")), test_set, task=task)


def _pair(path: Path, keys: Sequence[str]) -> tuple[Any, Any]:
    with _opened(path) as arrays:
        missing = [key for key in keys if key not in arrays]
        if missing:
            raise UserError(f"{path}: holds no array '{missing[0]}'; there are {', '.join(arrays) or 'none'}")
        try:
            return arrays[keys[0]], arrays[keys[1]]
        except (ValueError, zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise UserError(f"{path}: {' or '.join(keys)} cannot be read: {_why(error)}") from None


@contextmanager
def _opened(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        source = path.open("rb")
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    with source:
        try:
            opened = np.load(source, allow_pickle=False)
        except (ValueError, EOFError, zipfile.BadZipFile) as error:
            raise UserError(f"{path}: not an .npz file: {_why(error)}") from None
        if not isinstance(opened, np.lib.npyio.NpzFile):
            raise UserError(f"{path}: a single array, not an .npz file with x and y")
        with opened:
            yield opened


def _why(error: Exception) -> str:
    """numpy's own words tell how to load a pickle all the same."""
    return "pickled objects are never loaded; save arrays of numbers" if "pickle" in str(error) else str(error)
