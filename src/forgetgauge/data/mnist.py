"""MNIST and Fashion-MNIST from their idx files, plain or compressed, padded to the models' 32 × 32 pixels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from forgetgauge.data.dataset import Dataset, Scaling
from forgetgauge.data.folders import locate, mendable
from forgetgauge.data.idx import read_idx
from forgetgauge.errors import UserError

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
