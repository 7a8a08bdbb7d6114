"""scikit-learn's handwritten digits: small, real, and embedded, so the default run needs no download."""

from __future__ import annotations

import torch

from forgetgauge.data.dataset import Dataset

PIXEL_MEAN, PIXEL_STD = 0.305, 0.376  # of pixels / 16 over all 1,797 images


def load_digits() -> Dataset:
    """1,797 images of 8 × 8 pixels in ten classes; there is no official test set."""
    from sklearn.datasets import load_digits as read_digits

    pixels, labels = read_digits(return_X_y=True)
    images = torch.tensor(pixels / 16, dtype=torch.float32).reshape(-1, 1, 8, 8)
    return Dataset.of("digits", (images - PIXEL_MEAN) / PIXEL_STD, torch.tensor(labels, dtype=torch.int64))
