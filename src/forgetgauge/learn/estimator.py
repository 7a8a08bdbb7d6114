"""scikit-learn's estimators as learners, and whatever else has their methods: no gradients, no epochs.

A model is an `nn.Module` around a fitted estimator, so that whoever asks a model about points need not know: it is
given inputs and gives logits. Its state is the estimator's, kept as bytes without pickles (`estimator_state`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from forgetgauge import plugins
from forgetgauge.data.dataset import Points
from forgetgauge.errors import UserError, unknown_name
from forgetgauge.learn.estimator_state import estimator_of, state_bytes
from forgetgauge.streams import Streams
from forgetgauge.tasks.task import Task

FLOOR = float(np.finfo(np.float32).eps)
"""Probabilities below it count as it: a forest says 0 of most classes, whose logarithm no attack could use."""

N_CHECKED = 200
"""About so many training points at which the decision function and the predictions are compared."""


class FittedEstimator(nn.Module):
    """A fitted estimator as a model. Your own method may change `model.estimator`, or put another one there."""

    def __init__(self, like: Any, task: Task, n_outputs: int) -> None:
        super().__init__()
        self.like = like
        """As the run names it, not fitted."""
        self.task, self.n_outputs = task, n_outputs
        self.estimator: Any = None
        """The fitted one; None before that."""

    def forward(self, x: Tensor) -> Tensor:
        """(n, …) inputs -> (n, n_outputs) logits or, of a regression, numbers."""
        rows = _rows(x)
        if self.estimator is None:
            return torch.zeros(len(rows), self.n_outputs, device=x.device)
        outputs = self._logits(rows) if self.task.has_classes else self.estimator.predict(rows).reshape(len(rows), 1)
        return torch.from_numpy(np.ascontiguousarray(outputs, dtype=np.float32)).to(x.device)

    def check_decisions(self, x: Tensor) -> None:
        """UserError where its decision function has its maximum at another class than it predicts, for most points.

        Probabilities need not: there are classifiers that predict by a threshold of their own.
        """
        has = partial(hasattr, self.estimator)
        if not self.task.has_classes or has("predict_proba") or not has("decision_function"):
            return
        rows = _rows(x)
        n_other = int((self._logits(rows).argmax(axis=1) != self.estimator.predict(rows)).sum())
        if 2 * n_other > len(rows):
            raise UserError(
                f"{type(self.estimator).__name__}: the largest number of its decision_function is of another class "
                f"than it predicts for {n_other} of {len(rows)} of its training points; it needs one for each class"
            )

    def _logits(self, rows: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Logarithms of probabilities where it has them, else its decision function, else its word alone."""
        if hasattr(self.estimator, "predict_proba"):
            found = np.asarray(self.estimator.predict_proba(rows), dtype=np.float64)
            return np.log(np.maximum(self._spread(found, "predict_proba", 0.0), FLOOR))
        if hasattr(self.estimator, "decision_function"):
            found = np.asarray(self.estimator.decision_function(rows), dtype=np.float64)
            found = np.stack([np.zeros_like(found), found], axis=1) if found.ndim == 1 else found
            return self._spread(found, "decision_function", float(found.min(initial=0.0)) - 1.0)
        said = np.asarray(self.estimator.predict(rows), dtype=np.int64)
        return np.log(np.maximum(np.eye(self.n_outputs)[said], FLOOR))

    def _spread(self, found: npt.NDArray[np.float64], by: str, otherwise: float) -> npt.NDArray[np.float64]:
        """Columns of the classes it was shown among those of all classes."""
        seen = np.asarray(self.estimator.classes_, dtype=np.int64)
        if found.ndim != 2 or found.shape[1] != len(seen):
            raise UserError(
                f"{type(self.estimator).__name__}: {by} gave an array of {found.shape}, but there must be a "
                f"column for each class it was trained on, {len(seen)} in all"
            )
        whole = np.full((len(found), self.n_outputs), otherwise)
        whole[:, seen] = found
        return whole

    def get_extra_state(self) -> Tensor:
        """All of the estimator, as bytes."""
        if self.estimator is None:
            return torch.zeros(0, dtype=torch.uint8)
        return torch.from_numpy(state_bytes(self.estimator, self.like))

    def set_extra_state(self, state: Tensor) -> None:
        """The estimator that these bytes are of."""
        self.estimator = estimator_of(state.cpu().numpy(), self.like) if len(state) else None


@dataclass(frozen=True)
class EstimatorLearner:
    """Calls `fit(X, y)` of a copy of the estimator; X has one row of numbers for each point.

    Every `random_state` among its parameters is drawn for each training, whatever it was: two trainings with one seed
    would not be two.
    """

    has_gradients: ClassVar[bool] = False
    model: str = "sklearn.linear_model:LogisticRegression"
    """A class or an estimator, by name."""
    model_params: Mapping[str, Any] = field(default_factory=dict)
    """Parameters of the class."""

    def build(self, points: Points, seed: int) -> FittedEstimator:
        """A model that is not fitted, and says 0."""
        like = self._like(points.task)
        return FittedEstimator(like, points.task, points.n_outputs)

    def fit(self, points: Points, streams: Streams) -> FittedEstimator:
        """One model."""
        from sklearn.base import clone

        model = self.build(points, 0)
        model.estimator = clone(model.like)
        drawn = {key: _seed(streams, key) for key in sorted(model.like.get_params(deep=True)) if _is_seed(key)}
        model.estimator.set_params(**drawn)
        model.estimator.fit(_rows(points.x), points.y.cpu().numpy())
        model.check_decisions(points.x[:: max(1, len(points.x) // N_CHECKED)])
        return model.eval()

    def fit_many(self, points: Sequence[Points], streams: Sequence[Streams]) -> list[nn.Module]:
        """One after another."""
        return [self.fit(p, s) for p, s in zip(points, streams, strict=True)]

    def n_gradients(self, n_points: int) -> int:
        """None are taken."""
        return 0

    def _like(self, task: Task) -> Any:
        from sklearn.base import clone, is_classifier, is_regressor

        thing = plugins.models.load(self.model)
        if not is_estimator(thing):
            raise UserError(f"model '{self.model}' is no estimator of scikit-learn's: no fit, get_params or set_params")
        try:
            if isinstance(thing, type):
                like = thing(**self.model_params)
            else:
                unknown = [key for key in self.model_params if key not in thing.get_params(deep=True)]
                if unknown:
                    raise UserError(unknown_name("parameter", unknown[0], list(thing.get_params(deep=True))))
                like = clone(thing).set_params(**self.model_params)
        except (TypeError, ValueError, RuntimeError, UserError) as error:
            raise UserError(f"model '{self.model.partition('@')[0]}': {error}") from None
        if not (is_classifier if task.has_classes else is_regressor)(like):
            needed = "classifier" if task.has_classes else "regressor"
            raise UserError(f"model '{type(like).__name__}' is no {needed}, but the task is {task.name}")
        if _compares_pairs(like):
            raise UserError(
                f"model '{type(like).__name__}': decision_function_shape = 'ovo' has a number for each pair of "
                "classes; say 'ovr', which has one for each class"
            )
        return like


def is_estimator(thing: Any) -> bool:
    """Whether it is an estimator, or a class of them, by its methods."""
    return all(callable(getattr(thing, name, None)) for name in ("fit", "get_params", "set_params"))


def _compares_pairs(like: Any) -> bool:
    """Whether an SVC is in it with a number for each pair of classes: of three classes there are three pairs."""
    params = like.get_params(deep=True).items()
    asked = any(key.split("__")[-1] == "decision_function_shape" and value == "ovo" for key, value in params)
    return asked and not hasattr(like, "predict_proba")


def _rows(x: Tensor) -> npt.NDArray[Any]:
    """(n, features) of inputs of any shape."""
    return x.detach().cpu().reshape(len(x), -1).numpy()


def _is_seed(key: str) -> bool:
    return key == "random_state" or key.endswith("__random_state")


def _seed(streams: Streams, key: str) -> int:
    return streams.seed(key) % 2**32
