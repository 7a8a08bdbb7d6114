"""Handwritten digits: scikit-learn's embedded ones, MNIST and Fashion-MNIST, and threes against eights.

scikit-learn's are small, real, and embedded, so the default run needs no download. MNIST's files have the idx format
(two zero bytes, a type, the number of dimensions, their sizes, big-endian, and the content), plain or compressed;
images are padded to the models' 32 × 32 pixels.

Threes against eights are shown as linear models are shown them (Guo et al. 2020): pixels − ½, every image of norm 1.
Label 0 is a three, 1 an eight. A row of norm 1 has a gradient of norm at most 1, which certified removal counts on.
"""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from forgetgauge.data.dataset import Dataset, Scaling
from forgetgauge.data.folders import locate, mendable
from forgetgauge.errors import UserError

# -- the idx format ----------------------------------------------------------------------------------------------------

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


PIXEL_MEAN, PIXEL_STD = 0.305, 0.376  # of pixels / 16 over all 1,797 images


# -- the data sets -----------------------------------------------------------------------------------------------------


def embedded_digits() -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """((1797, 64) pixels in 0 … 16, (1797,) labels): scikit-learn's file, read without a second's import of it."""
    found = find_spec("sklearn")
    file = Path(found.origin).parent / "datasets/data/digits.csv.gz" if found and found.origin else None
    if file is None or not file.is_file():  # a version that keeps it elsewhere, or none
        from sklearn.datasets import load_digits as read_digits

        pixels, labels = read_digits(return_X_y=True)
        return pixels, labels
    rows = np.loadtxt(file, delimiter=",")
    return rows[:, :-1], rows[:, -1].astype(np.int64)


def load_digits() -> Dataset:
    """1,797 images of 8 × 8 pixels in ten classes; there is no official test set."""
    pixels, labels = embedded_digits()
    images = torch.tensor(pixels / 16, dtype=torch.float32).reshape(-1, 1, 8, 8)
    return Dataset.of("digits", (images - PIXEL_MEAN) / PIXEL_STD, torch.tensor(labels, dtype=torch.int64))


SIZES = (28, 32)
N_CLASSES = 10
# Of pixels / 255 over the 60,000 training images as published, 28 × 28. MNIST's are measured on the files whose digests
# stand in `files`; Fashion-MNIST's are those of its users, since no copy was at hand.
MNIST_SCALING = Scaling((0.1307,), (0.3081,))
FASHION_SCALING = Scaling((0.2860,), (0.3530,))


def load_mnist(size: int = 32) -> Dataset:
    """60,000 training and 10,000 test images of digits, 1 × `size` × `size`: 28 as published, 32 with a black frame."""
    return _dataset("mnist", size, MNIST_SCALING)


def load_fashion_mnist(size: int = 32) -> Dataset:
    """60,000 training and 10,000 test images of clothes, in MNIST's format."""
    return _dataset("fashion-mnist", size, FASHION_SCALING)


def _dataset(name: str, size: int, scaling: Scaling) -> Dataset:
    if size not in SIZES:
        raise UserError(f"data '{name}': size = {size!r} is not one of {', '.join(map(str, SIZES))}")
    folder = locate(name)
    with mendable(name):
        images, labels = map(torch.from_numpy, read_part(folder, "train", size))
        test_images, test_labels = map(torch.from_numpy, read_part(folder, "t10k", size))
    return Dataset.of(name, images, labels, test=(test_images, test_labels), scaling=scaling)


def read_part(folder: Path, part: str, size: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """((n, 1, size, size) pixels, (n,) labels) of `train` or `t10k`."""
    images = read_idx(folder / f"{part}-images-idx3-ubyte", 3)
    labels = read_idx(folder / f"{part}-labels-idx1-ubyte", 1).astype(np.int64)
    if images.shape[1:] != (28, 28):
        raise UserError(f"{folder / part}-images-idx3-ubyte: images of {images.shape[1:]} pixels instead of (28, 28)")
    if len(images) != len(labels):
        raise UserError(f"{folder}: {len(images):,} images but {len(labels):,} labels in the {part} files")
    if labels.max() >= N_CLASSES:
        at = int(labels.argmax())
        raise UserError(f"{folder / part}-labels-idx1-ubyte: label {at} is {labels[at]}, not one of 0 to 9")
    frame = (size - 28) // 2
    return np.pad(images[:, None], ((0, 0), (0, 0), (frame, frame), (frame, frame))), labels


# -- threes against eights ---------------------------------------------------------------------------------------------

THREE, EIGHT = 3, 8


def load_digits_three_eight() -> Dataset:
    """183 threes and 174 eights of scikit-learn's embedded digits, 1 × 8 × 8; there is no official test set."""
    pixels, labels = embedded_digits()
    return Dataset.of("digits-3-8", *_prepared(pixels.reshape(-1, 1, 8, 8) / 16, labels))


def load_mnist_three_eight() -> Dataset:
    """MNIST's 6,131 threes and 5,851 eights, 1 × 28 × 28, and the 1,984 of its test part; read from MNIST's files."""
    folder = locate("mnist")
    with mendable("mnist"):
        parts = [read_part(folder, part, 28) for part in ("train", "t10k")]
    train, test = (_prepared(pixels / 255, labels) for pixels, labels in parts)
    return Dataset.of("mnist-3-8", *train, test=test)


def _prepared(images: npt.NDArray[np.float64], labels: npt.NDArray[np.int64]) -> tuple[Tensor, Tensor]:
    """(n, 1, height, width) pixels in 0 … 1 of all digits -> threes and eights as they are shown, and their labels."""
    wanted = (labels == THREE) | (labels == EIGHT)
    shifted = images[wanted] - 0.5
    norms = np.linalg.norm(shifted.reshape(len(shifted), -1), axis=1)
    rows = shifted / norms[:, None, None, None]
    return torch.tensor(rows, dtype=torch.float32), torch.tensor(labels[wanted] == EIGHT, dtype=torch.int64)
