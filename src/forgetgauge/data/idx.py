"""The idx format of MNIST: two zero bytes, a type, the number of dimensions, their sizes (big-endian), the content."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np
import numpy.typing as npt

from forgetgauge.errors import UserError

UNSIGNED_BYTES = 8  # the only type these data sets use


def read_idx(path: Path, n_dims: int) -> npt.NDArray[np.uint8]:
    """The array in `path`, or in `path` with `.gz` where only that exists."""
    path, content = _content(path)
    header = 4 + 4 * n_dims
    magic = UNSIGNED_BYTES << 8 | n_dims
    if len(content) < header or content[:4] != struct.pack(">I", magic):
        found = int.from_bytes(content[:4], "big")
        raise UserError(f"{path}: begins with the number {found}, not with {magic}: no idx file of this sort")
    shape = struct.unpack(f">{n_dims}I", content[4:header])
    if len(content) - header != math.prod(shape) or not shape[0]:
        dims = " × ".join(map(str, shape))
        raise UserError(f"{path}: {len(content) - header:,} bytes of content, but its header says {dims}")
    return np.frombuffer(content, np.uint8, offset=header).reshape(shape)


def _content(path: Path) -> tuple[Path, bytes]:
    packed = path.with_name(f"{path.name}.gz")
    try:
        if path.is_file() or not packed.is_file():
            return path, path.read_bytes()
        path = packed
        with gzip.open(packed) as source:
            return packed, source.read()
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UserError(f"{path}: not a whole .gz file: {error}") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
