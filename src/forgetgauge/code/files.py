"""Files whose content counts are recognised here by their names, called by names that hold elsewhere, and digested."""

from __future__ import annotations

import functools
import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any

WEIGHTS = r"pt|pth|bin|ckpt|safetensors|npz|npy|pkl|pickle|joblib|h5|hdf5|onnx|gguf|tar|json|yaml|yml|toml"
"""Endings of files that code reads its weights, arrays and settings from."""
_NAMES_WEIGHTS = re.compile(rf".+\.(?:{WEIGHTS})", re.IGNORECASE)


def names_weights(path: str | PurePath) -> bool:
    """Whether a path ends as files of weights, arrays and settings do."""
    return _NAMES_WEIGHTS.fullmatch(str(path)) is not None


def is_weights(text: str) -> bool:
    """Whether a text names a file of weights that is there; a text of 1000 characters names none."""
    return len(text) < 1000 and names_weights(text) and os.path.isfile(text)


def name_from_here(path: PurePath) -> str:
    """Relative where it lies in the current folder: another machine has that elsewhere."""
    here = os.getcwd()
    return os.path.relpath(path, here) if path.is_absolute() and path.is_relative_to(here) else str(path)


def file_digest(path: Path) -> str:
    """SHA-256 of a file, computed again only when it changed."""
    facts = path.stat()
    return _file_digest(str(path.resolve()), facts.st_mtime_ns, facts.st_size)


@functools.lru_cache(maxsize=256)
def _file_digest(path: str, _mtime: int, _size: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def files_named(params: Any) -> list[Path]:
    """Files of weights and settings that parameters name, at any depth."""
    return [Path(text) for text in _texts_in(params) if names_weights(text) and os.path.isfile(text)]


def folders_named(params: Any) -> list[str]:
    """Folders that parameters name, at any depth; a checkpoint's are looked into elsewhere."""
    return [str(text) for text in _texts_in(params, without="checkpoint") if str(text) and os.path.isdir(text)]


def _texts_in(params: Any, without: str | None = None) -> Iterator[str | PurePath]:
    """Texts and paths at any depth, but for what has the key `without`."""
    if isinstance(params, Mapping):
        for key, value in params.items():
            if without is None or key != without:
                yield from _texts_in(value, without)
    elif isinstance(params, list | tuple):
        for value in params:
            yield from _texts_in(value, without)
    elif isinstance(params, str | PurePath):
        yield params
