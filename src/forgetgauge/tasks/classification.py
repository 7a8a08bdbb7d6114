"""Classification: a label is the number of a class, an output the logits of all classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from forgetgauge.tasks.task import Floats, Ints, Labels, Outputs, Task

if TYPE_CHECKING:
    from torch import Tensor

MOST_CLASSES = 1_000_000
"""A model has an output for each: a larger label is the name of something, not the number of a class."""
LOG_FLOOR = 1e-30  # logs are taken of max(p, LOG_FLOOR)


@dataclass(frozen=True)
class Classification(Task):
    """Told apart by cross-entropy, judged by accuracy."""

    name = "classification"
    utility_name = "accuracy"
    has_classes = True

    def checked_labels(self, raw: npt.NDArray[Any]) -> Ints:
        """Whole numbers 0, 1, … of any type."""
        wrong = ValueError("labels must be one whole number 0, 1, … per point")
        if raw.ndim != 1 or raw.dtype.kind not in "biuf" or not np.isfinite(raw).all():
            raise wrong
        labels: Ints = raw.astype(np.int64)
        if not np.array_equal(labels, raw) or (len(labels) and labels.min() < 0):
            raise wrong
        if len(labels) and labels.max() >= MOST_CLASSES:
            raise ValueError(
                f"label {labels.max()} would be the last of as many classes; number those that there are, "
                "np.unique(labels, return_inverse=True)[1]"
            )
        return labels

    def n_outputs(self, labels: Labels) -> int:
        """One output for each class up to the largest label, whether or not all classes have points."""
        return int(labels.max()) + 1

    def classes(self, labels: Labels) -> Ints:
        """The labels themselves."""
        return labels

    def utility(self, outputs: Outputs, labels: Labels) -> float:
        """Accuracy: the share of points whose largest logit is that of the label."""
        return float(np.mean(predicted(outputs) == labels))

    def made_up(
        self, n_points: int, n_classes: int, member: npt.NDArray[np.bool_], rng: np.random.Generator
    ) -> tuple[Outputs, Labels]:
        """The logit of the label is larger by 2, that of a member's by 4."""
        labels = np.arange(n_points) % n_classes
        logits = rng.normal(size=(n_points, n_classes)).astype(np.float32)
        logits[np.arange(n_points), labels] += 2 + 2 * member
        return logits, labels

    def loss(self, outputs: Tensor, labels: Tensor, reduction: str = "mean") -> Tensor:
        """Cross-entropy."""
        from torch.nn import functional

        return functional.cross_entropy(outputs, labels, reduction=reduction)

    def loss_gradient(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """∂(−log p_label)/∂logits = p − e_label."""
        import torch

        classes = torch.arange(outputs.shape[-1], device=outputs.device)
        return outputs.softmax(-1) - (labels[..., None] == classes).to(outputs.dtype)

    def plain_outputs(self, given: Tensor, n_points: int, n_outputs: int) -> Tensor | None:
        """Logits, or for two classes one logit z a point, which stands for the pair (0, z): the sigmoid of z."""
        import torch

        if given.shape == (n_points, n_outputs):
            return given
        if n_outputs == 2 and given.shape in ((n_points,), (n_points, 1)):
            z = given.reshape(-1)
            return torch.stack([torch.zeros_like(z), z], dim=1)
        return None

    def why_unfit(self, given: Tensor, n_points: int, n_outputs: int) -> str:
        """Named by the classes."""
        shape = tuple(given.shape)
        if shape[:1] == (n_points,) and len(shape) <= 2:
            each = "1 output" if len(shape) == 1 or shape[1] == 1 else f"{shape[1]} outputs"
            return f" gives {each} for each point, but the data have {n_outputs} classes"
        return f"{super().why_unfit(given, n_points, n_outputs)} logits"


def predicted(logits: Outputs) -> Ints:
    """(n,) the class of the largest logit, the first of equal ones."""
    result: Ints = logits.argmax(axis=1)
    return result


def are_probabilities(outputs: Outputs, rounding: float) -> bool:
    """Whether every row (of at least one) lies in [0, 1] and adds up to 1, up to rounding: many logits never do so."""
    if len(outputs) == 0 or outputs.min() < 0 or outputs.max() > 1:
        return False
    return bool((np.abs(outputs.sum(axis=1) - 1) <= rounding).all())


def posterior(logits: Outputs, labels: Labels) -> Floats:
    """(n, n_classes) softmax."""
    shifted = logits.astype(np.float64)
    shifted -= shifted.max(axis=1, keepdims=True)
    exponentials = np.exp(shifted)
    result: Floats = exponentials / exponentials.sum(axis=1, keepdims=True)
    return result


def log_posterior(logits: Outputs, labels: Labels) -> Floats:
    """(n, n_classes) log of the softmax, at least log LOG_FLOOR."""
    shifted = logits.astype(np.float64)
    shifted -= shifted.max(axis=1, keepdims=True)
    exact = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    result: Floats = np.maximum(exact, np.log(LOG_FLOOR))
    return result


def correctness(logits: Outputs, labels: Labels) -> Floats:
    """1 where the prediction is the label, else 0."""
    return np.asarray(predicted(logits) == labels, dtype=np.float64)


def confidence(logits: Outputs, labels: Labels) -> Floats:
    """p_y, the probability of the true label."""
    p = posterior(logits, labels)
    result: Floats = np.take_along_axis(p, labels[:, None], axis=1)[:, 0]
    return result


def entropy(logits: Outputs, labels: Labels) -> Floats:
    """−Σ p log p."""
    p = posterior(logits, labels)
    result: Floats = -(p * _log(p)).sum(axis=1)
    return result


def modified_entropy(logits: Outputs, labels: Labels) -> Floats:
    """−(1 − p_y) log p_y − Σ_{i≠y} p_i log(1 − p_i): 0 for a certain correct prediction, ∞ for a certain wrong one."""
    p = posterior(logits, labels)
    p_true = np.take_along_axis(p, labels[:, None], axis=1)[:, 0]
    others = p * _log(1 - p)
    others[np.arange(len(labels)), labels] = 0
    result: Floats = -((1 - p_true) * _log(p_true) + others.sum(axis=1))
    return result


def log_odds(logits: Outputs, labels: Labels) -> Floats:
    """φ = log p_y − log Σ_{i≠y} p_i, from the logits: exact where p_y rounds to 0 or 1, and never infinite."""
    true, others = _true_and_other_logits(logits, labels)
    top = others.max(axis=1, keepdims=True)
    result: Floats = true - top[:, 0] - np.log(np.exp(others - top).sum(axis=1))
    return result


def cross_entropy(logits: Outputs, labels: Labels) -> Floats:
    """−log p_y to full precision: log(1 + e^−φ)."""
    return np.logaddexp(0.0, -log_odds(logits, labels))


def logit_gap(logits: Outputs, labels: Labels) -> Floats:
    """z_y − max_{i≠y} z_i: positive where the prediction is the label."""
    true, others = _true_and_other_logits(logits, labels)
    result: Floats = true - others.max(axis=1)
    return result


def _true_and_other_logits(logits: Outputs, labels: Labels) -> tuple[Floats, Floats]:
    """((n,), (n, n_classes − 1)) in float64."""
    n, n_classes = logits.shape
    is_true = np.arange(n_classes) == labels[:, None]
    values = logits.astype(np.float64)
    return values[is_true], values[~is_true].reshape(n, n_classes - 1)


def _log(p: Floats) -> Floats:
    return np.log(np.maximum(p, LOG_FLOOR))


Classification.signals = {
    "correctness": correctness,
    "confidence": confidence,
    "entropy": entropy,
    "modified-entropy": modified_entropy,
    "posterior": posterior,
    "log-posterior": log_posterior,
    "loss": cross_entropy,
    "statistic": log_odds,
    "gap": logit_gap,
}

CLASSIFICATION = Classification()
