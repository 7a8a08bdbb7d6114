"""scikit-learn's diabetes data: small, real and embedded, with a real number to predict."""

from __future__ import annotations

import numpy as np
import torch

from forgetgauge.data.dataset import Dataset
from forgetgauge.tasks.regression import REGRESSION

LABEL_MEAN, LABEL_STD = 152.1, 77.0  # of the measure of the disease's progression


def load_diabetes() -> Dataset:
    """442 patients, ten measurements each, and how far the disease went within a year; there is no official test set.

    Measurements have mean 0 and deviation 1, labels are told in deviations from their mean.
    """
    from sklearn.datasets import load_diabetes as read_diabetes

    measured, progression = read_diabetes(return_X_y=True)
    inputs = torch.tensor(measured * np.sqrt(len(measured)), dtype=torch.float32)
    labels = torch.tensor((progression - LABEL_MEAN) / LABEL_STD, dtype=torch.float32)
    return Dataset.of("diabetes", inputs, labels, task=REGRESSION)
