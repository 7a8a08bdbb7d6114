"""Regression: a label is a real number, an output the number that a model expects in its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from forgetgauge.tasks.task import Floats, Labels, Outputs, Task

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Regression(Task):
    """Fitted by squared error, judged by R²."""

    name = "regression"
    utility_name = "R²"
    has_classes = False

    def checked_labels(self, raw: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """Finite real numbers."""
        if raw.ndim != 1 or raw.dtype.kind not in "biuf":
            raise ValueError("labels must be one real number per point")
        labels = raw.astype(np.float32)
        if not np.isfinite(labels).all():
            raise ValueError("labels hold NaN or infinite values")
        return labels

    def n_outputs(self, labels: Labels) -> int:
        """One."""
        return 1

    def utility(self, outputs: Outputs, labels: Labels) -> float | None:
        """R² = 1 − Σ r² / Σ (y − ȳ)², ȳ being the mean of these labels; 0 is what their mean would get.

        It is not defined where all labels are the same, as in a set of one point.
        """
        if labels.min() == labels.max():
            return None
        squares = ((labels - labels.mean(dtype=np.float64)) ** 2).sum()
        return float(1 - (residual(outputs, labels) ** 2).sum() / squares)

    def made_up(
        self, n_points: int, n_classes: int, member: npt.NDArray[np.bool_], rng: np.random.Generator
    ) -> tuple[Outputs, Labels]:
        """Residuals of deviation 1, of members ½."""
        labels = np.linspace(-1, 1, n_points, dtype=np.float32)
        return (labels + rng.normal(size=n_points) / (1 + member)).astype(np.float32)[:, None], labels

    def loss(self, outputs: Tensor, labels: Tensor, reduction: str = "mean") -> Tensor:
        """Squared error."""
        from torch.nn import functional

        return functional.mse_loss(outputs[..., 0], labels, reduction=reduction)

    def loss_gradient(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """∂(ŷ − y)²/∂ŷ = 2(ŷ − y)."""
        return 2 * (outputs - labels[..., None])

    def plain_outputs(self, given: Tensor, n_points: int, n_outputs: int) -> Tensor | None:
        """(n, 1), or (n,)."""
        return given.reshape(n_points, 1) if given.shape in ((n_points, 1), (n_points,)) else None


def residual(outputs: Outputs, labels: Labels) -> Floats:
    """ŷ − y."""
    result: Floats = outputs[:, 0].astype(np.float64) - labels.astype(np.float64)
    return result


def squared_error(outputs: Outputs, labels: Labels) -> Floats:
    """(ŷ − y)²."""
    result: Floats = residual(outputs, labels) ** 2
    return result


def closeness(outputs: Outputs, labels: Labels) -> Floats:
    """−|ŷ − y|: in the unit of the label, and larger where the model fits the point better."""
    return -np.abs(residual(outputs, labels))


Regression.signals = {"residual": residual, "loss": squared_error, "statistic": closeness, "gap": closeness}

REGRESSION = Regression()
