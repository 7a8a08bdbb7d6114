"""Files of numpy arrays from strangers: what they claim is looked at before anything of them is expanded."""

from __future__ import annotations

import io
import math
import zipfile
import zlib
from collections.abc import Callable, Collection
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

LONGEST_HEADER = 10_000
"""Bytes in which an array says what it is; numpy reads no more, but expands all of it first."""
LARGEST = 8 * 2**30
"""Bytes that all arrays of a file together may take."""
UNREADABLE = (ValueError, OSError, EOFError, zipfile.BadZipFile, zlib.error, OverflowError, RuntimeError, MemoryError)
"""What numpy and zipfile raise of a file that is not what it says."""


def read_arrays(path: Path, wanted: Collection[str] | None = None) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a `.npz` file, in its order; what is not `wanted` is an empty array, and not expanded.

    UNREADABLE is raised where the file is no such file, an array is not as long as it claims, or all are too large.
    """
    with path.open("rb") as file:
        if file.read(6) == b"\x93NUMPY":
            raise ValueError("it is a single array")
    with zipfile.ZipFile(path) as archive:
        names = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        n_bytes = 0
        for name, info in names.items():
            claimed = checked_claim(archive, info)
            n_bytes += claimed if wanted is None or name in wanted else 0
        _refuse_large(n_bytes)
        arrays = {}
        for name, info in names.items():
            if wanted is not None and name not in wanted:
                arrays[name] = np.empty(0)
                continue
            with archive.open(info) as file:
                arrays[name] = np.lib.format.read_array(file, allow_pickle=False)
        return arrays


def read_array(path: Path) -> npt.NDArray[Any]:
    """The array of a `.npy` file."""
    with path.open("rb") as file:
        claimed, header = _claim(file)
        if claimed + header != path.stat().st_size:
            raise ValueError(f"it claims {claimed:,} bytes, but {path.stat().st_size - header:,} are stored")
        _refuse_large(claimed)
        file.seek(0)
        return np.lib.format.read_array(file, allow_pickle=False)


def checked_claim(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> int:
    """Bytes that an array of a `.npz` file takes: ValueError where other than these are stored."""
    with archive.open(info) as file:
        claimed, header = _claim(file)
    if claimed + header != info.file_size:
        name, stored = info.filename.removesuffix(".npy"), info.file_size - header
        raise ValueError(f"{name} claims {claimed:,} bytes, but {stored:,} are stored")
    return claimed


_HEADERS: dict[tuple[int, int], tuple[int, Callable[[IO[bytes]], Any]]] = {
    (1, 0): (2, np.lib.format.read_array_header_1_0),
    (2, 0): (4, np.lib.format.read_array_header_2_0),
}
"""Version of the format -> (bytes in which the header's length is written, who reads it from there on)."""


def _claim(file: IO[bytes]) -> tuple[int, int]:
    """(bytes that an array claims to take, bytes of its header)."""
    version = np.lib.format.read_magic(file)
    if version not in _HEADERS:
        raise ValueError(f"an array of version {version[0]}.{version[1]}, which is not known")
    width, read = _HEADERS[version]
    length = file.read(width)
    n_bytes = int.from_bytes(length, "little")
    if n_bytes > LONGEST_HEADER:
        raise ValueError(f"a header of {n_bytes:,} bytes, more than {LONGEST_HEADER:,}")
    shape, _, dtype = read(io.BytesIO(length + file.read(n_bytes)))
    if dtype.hasobject:
        raise ValueError("Object arrays cannot be loaded: they are pickled")
    if any(size < 0 for size in shape):
        raise ValueError(f"an array of shape {shape}")
    return math.prod(shape) * dtype.itemsize, file.tell()


def _refuse_large(n_bytes: int) -> None:
    if n_bytes > LARGEST:
        raise ValueError(f"its arrays would take {n_bytes / 2**30:,.0f} GiB, more than {LARGEST // 2**30}")
