"""CIFAR-10 and CIFAR-100 from their binary files; the pickled version is never read.

A record is one label byte (CIFAR-100: a coarse and a fine one, the fine one is used) and 3,072 bytes of pixels: red,
green, blue, each 32 × 32 row by row. The order is that of the official files.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from forgetgauge.data.dataset import Dataset, Scaling
from forgetgauge.data.folders import locate, mendable
from forgetgauge.errors import UserError

SHAPE = (3, 32, 32)
# Of pixels / 255 over the 50,000 training images of each, measured on the files whose digests stand in `files`.
CIFAR10_SCALING = Scaling((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616))
CIFAR100_SCALING = Scaling((0.5071, 0.4865, 0.4409), (0.2673, 0.2564, 0.2762))


def load_cifar10() -> Dataset:
    """50,000 training and 10,000 test images, 3 × 32 × 32, in ten classes."""
    folder = locate("cifar10")
    batches = [folder / f"data_batch_{i}.bin" for i in range(1, 6)]
    return _dataset("cifar10", batches, folder / "test_batch.bin", 1, 10, CIFAR10_SCALING)


def load_cifar100() -> Dataset:
    """50,000 training and 10,000 test images, 3 × 32 × 32, in a hundred (fine) classes."""
    folder = locate("cifar100")
    return _dataset("cifar100", [folder / "train.bin"], folder / "test.bin", 2, 100, CIFAR100_SCALING)


def _dataset(
    name: str, train: Sequence[Path], test: Path, n_label_bytes: int, n_classes: int, scaling: Scaling
) -> Dataset:
    with mendable(name):
        images, labels = zip(*(read_records(path, n_label_bytes, n_classes) for path in train), strict=True)
        test_images, test_labels = read_records(test, n_label_bytes, n_classes)
    return Dataset.of(
        name,
        torch.from_numpy(np.concatenate(images)),
        torch.from_numpy(np.concatenate(labels)),
        test=(torch.from_numpy(test_images), torch.from_numpy(test_labels)),
        scaling=scaling,
    )


def read_records(path: Path, n_label_bytes: int, n_classes: int) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """((n, 3, 32, 32) pixels, (n,) labels: the last label byte of each record)."""
    n_bytes = n_label_bytes + int(np.prod(SHAPE))
    try:
        content = np.fromfile(path, np.uint8)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    if len(content) == 0 or len(content) % n_bytes:
        raise UserError(f"{path}: {len(content):,} bytes are no whole number of records of {n_bytes:,} bytes")
    records = content.reshape(-1, n_bytes)
    labels = records[:, n_label_bytes - 1].astype(np.int64)
    if labels.max() >= n_classes:
        at = int(labels.argmax())
        raise UserError(f"{path}: record {at} has label {labels[at]}, but there are {n_classes} classes")
    return np.ascontiguousarray(records[:, n_label_bytes:]).reshape(-1, *SHAPE), labels
