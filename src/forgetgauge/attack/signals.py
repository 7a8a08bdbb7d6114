"""What a black-box adversary sees of a model: one row per point, in float64, computed once in eval mode."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
LOG_FLOOR = 1e-30  # logs are taken of max(p, LOG_FLOOR)


@dataclass(frozen=True)
class Signals:
    """Logits and labels of some points under one model, or of several models one after another."""

    logits: npt.NDArray[np.float32]
    """(n, n_classes)."""
    labels: npt.NDArray[np.int64]
    """(n,) true labels: the adversary knows them."""

    def __post_init__(self) -> None:
        if self.logits.ndim != 2 or len(self.logits) != len(self.labels):
            raise ValueError(f"logits of shape {self.logits.shape} do not fit {len(self.labels)} labels")
        if not np.isfinite(self.logits).all():
            raise ValueError("the model's logits hold NaN or infinite values")

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def n_classes(self) -> int:
        """Width of the logits."""
        return int(self.logits.shape[1])

    @cached_property
    def posterior(self) -> Floats:
        """(n, n_classes) softmax in float64."""
        shifted = self.logits.astype(np.float64)
        shifted -= shifted.max(axis=1, keepdims=True)
        exponentials = np.exp(shifted)
        result: Floats = exponentials / exponentials.sum(axis=1, keepdims=True)
        return result

    @cached_property
    def true_posterior(self) -> Floats:
        """(n,) probability of the true label."""
        return np.take_along_axis(self.posterior, self.labels[:, None], axis=1)[:, 0]


def correctness(signals: Signals) -> Floats:
    """1 where the prediction (first largest logit) is the label, else 0."""
    return np.asarray(signals.logits.argmax(axis=1) == signals.labels, dtype=np.float64)


def confidence(signals: Signals) -> Floats:
    """p_y."""
    return signals.true_posterior


def negative_entropy(signals: Signals) -> Floats:
    """Σ p log p: larger is more member-like."""
    p = signals.posterior
    result: Floats = (p * _log(p)).sum(axis=1)
    return result


def negative_modified_entropy(signals: Signals) -> Floats:
    """(1 − p_y) log p_y + Σ_{i≠y} p_i log(1 − p_i): 0 for a certain correct prediction, −∞ for a certain wrong one."""
    p, p_true = signals.posterior, signals.true_posterior
    others = p * _log(1 - p)
    others[np.arange(len(signals)), signals.labels] = 0
    result: Floats = (1 - p_true) * _log(p_true) + others.sum(axis=1)
    return result


def _log(p: Floats) -> Floats:
    return np.log(np.maximum(p, LOG_FLOOR))
