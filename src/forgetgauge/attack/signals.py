"""What a black-box adversary sees of a model: one row per point, in float64, computed once in eval mode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

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
    points: npt.NDArray[np.int64] | None = None
    """(n,) positions of the points in D, for attacks that know each point of D; None for other points."""
    background: Signals | None = None
    """The same model's signals on the shadow half, none of which it saw; where an attack asked for them."""
    columns: Mapping[str, npt.NDArray[np.float32]] = field(default_factory=dict)
    """White-box columns, each (n,), where an attack asked for them."""

    def __post_init__(self) -> None:
        for name in ("logits", "labels"):
            object.__setattr__(self, name, read_only(getattr(self, name)))
        object.__setattr__(self, "columns", {name: read_only(column) for name, column in self.columns.items()})
        if self.logits.ndim != 2 or len(self.logits) != len(self.labels):
            raise ValueError(f"logits of shape {self.logits.shape} do not fit {len(self.labels)} labels")
        if not np.isfinite(self.logits).all():
            raise ValueError("the model's logits hold NaN or infinite values")

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, which: npt.NDArray[np.int64]) -> Signals:
        """Some of the points, or all in another order; the background is the same."""
        points = None if self.points is None else self.points[which]
        columns = {name: column[which] for name, column in self.columns.items()}
        return Signals(self.logits[which], self.labels[which], points, self.background, columns)

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


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same numbers; an adversary that writes into them fails, for others read them too."""
    view = array.view()
    view.flags.writeable = False
    return view


def are_probabilities(outputs: npt.NDArray[np.float32], rounding: float) -> bool:
    """Whether every row (of at least one) lies in [0, 1] and adds up to 1, up to rounding: many logits never do so."""
    if len(outputs) == 0 or outputs.min() < 0 or outputs.max() > 1:
        return False
    return bool((np.abs(outputs.sum(axis=1) - 1) <= rounding).all())


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


def log_odds(signals: Signals) -> Floats:
    """φ = log p_y − log Σ_{i≠y} p_i, from the logits: exact where p_y rounds to 0 or 1, and never infinite."""
    true, others = _true_and_other_logits(signals)
    top = others.max(axis=1, keepdims=True)
    result: Floats = true - top[:, 0] - np.log(np.exp(others - top).sum(axis=1))
    return result


def log_confidence(signals: Signals) -> Floats:
    """log p_y, minus the cross-entropy, to full precision: −log(1 + e^−φ)."""
    result: Floats = -np.logaddexp(0.0, -log_odds(signals))
    return result


def logit_gap(signals: Signals) -> Floats:
    """z_y − max_{i≠y} z_i: positive where the prediction is the label."""
    true, others = _true_and_other_logits(signals)
    result: Floats = true - others.max(axis=1)
    return result


def _true_and_other_logits(signals: Signals) -> tuple[Floats, Floats]:
    """((n,), (n, n_classes − 1)) in float64."""
    logits = signals.logits.astype(np.float64)
    is_true = np.arange(signals.n_classes) == signals.labels[:, None]
    return logits[is_true], logits[~is_true].reshape(len(signals), signals.n_classes - 1)


def _log(p: Floats) -> Floats:
    return np.log(np.maximum(p, LOG_FLOOR))
