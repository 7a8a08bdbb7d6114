"""Threes against eights as linear models are shown them (Guo et al. 2020): pixels − ½, every image of norm 1.

Label 0 is a three, 1 an eight. A row of norm 1 has a gradient of norm at most 1, which certified removal counts on.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from forgetgauge.data.dataset import Dataset
from forgetgauge.data.folders import locate, mendable
from forgetgauge.data.mnist import read_part

THREE, EIGHT = 3, 8


def load_digits_three_eight() -> Dataset:
    """183 threes and 174 eights of scikit-learn's embedded digits, 1 × 8 × 8; there is no official test set."""
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
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
