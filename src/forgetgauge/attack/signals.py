"""What a black-box adversary sees of a model: one row per point, in float64, computed once in eval mode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from forgetgauge.errors import unknown_name
from forgetgauge.game.arrays import Floats
from forgetgauge.tasks.classification import CLASSIFICATION
from forgetgauge.tasks.task import Ints, Labels, Task


@dataclass(frozen=True)
class Signals:
    """Outputs and labels of some points under one model, or of several models one after another."""

    outputs: npt.NDArray[np.float32]
    """(n, n_outputs) what the model gives: of a classifier, the logits."""
    labels: Labels
    """(n,) true labels: the adversary knows them."""
    points: npt.NDArray[np.int64] | None = None
    """(n,) positions of the points in D, for attacks that know each point of D; None for other points."""
    background: Signals | None = None
    """The same model's signals on the shadow half, none of which it saw; where an attack asked for them."""
    columns: Mapping[str, npt.NDArray[np.float32]] = field(default_factory=dict)
    """Columns, each (n,), where an attack asked for them."""
    task: Task = CLASSIFICATION
    """What outputs and labels mean."""
    _read: dict[str, Floats] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("outputs", "labels"):
            object.__setattr__(self, name, read_only(getattr(self, name)))
        object.__setattr__(self, "columns", {name: read_only(column) for name, column in self.columns.items()})
        if self.outputs.ndim != 2 or len(self.outputs) != len(self.labels):
            raise ValueError(f"outputs of shape {self.outputs.shape} do not fit {len(self.labels)} labels")
        if not np.isfinite(self.outputs).all():
            raise ValueError("the model's outputs hold NaN or infinite values")

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, which: npt.NDArray[np.int64]) -> Signals:
        """Some of the points, or all in another order; the background is the same."""
        points = None if self.points is None else self.points[which]
        columns = {name: column[which] for name, column in self.columns.items()}
        return Signals(self.outputs[which], self.labels[which], points, self.background, columns, self.task)

    def read(self, name: str) -> Floats:
        """One of the task's signals, computed once: `loss`, `statistic`, of a classifier `confidence` and others."""
        if name not in self._read:
            if name not in self.task.signals:
                raise ValueError(unknown_name(f"signal of the task {self.task.name}", name, self.task.signals))
            self._read[name] = read_only(self.task.signals[name](self.outputs, self.labels))
        return self._read[name]

    @property
    def classes(self) -> Ints:
        """(n,) the class of each point, for thresholds that are learnt class by class; all 0 where there are none."""
        return self.task.classes(self.labels)

    @property
    def n_classes(self) -> int:
        """Number of classes in the whole data set; 1 where there are none."""
        return self.outputs.shape[1] if self.task.has_classes else 1


@dataclass(frozen=True)
class Reading:
    """A score that is one of the task's signals, or its negative: larger is more member-like."""

    name: str
    sign: float = 1.0

    @property
    def reads(self) -> frozenset[str]:
        """The signal that it cannot do without."""
        return frozenset({self.name})

    def __call__(self, signals: Signals) -> Floats:
        """(n,) of each point."""
        value = signals.read(self.name)
        return value if self.sign == 1 else self.sign * value


CORRECTNESS = Reading("correctness")
CONFIDENCE = Reading("confidence")
NEGATIVE_ENTROPY = Reading("entropy", -1.0)
NEGATIVE_MODIFIED_ENTROPY = Reading("modified-entropy", -1.0)
NEGATIVE_LOSS = Reading("loss", -1.0)
STATISTIC = Reading("statistic")
GAP = Reading("gap")
NEGATIVE_BASE_DIFFERENCE = Reading("base-difference", -1.0)
NEGATIVE_ZLIB_RATIO = Reading("zlib-ratio", -1.0)
NEGATIVE_PARAPHRASED_LOSS = Reading("paraphrased-loss", -1.0)
NEGATIVE_8_BIT_LOSS = Reading("8-bit-loss", -1.0)


def read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same numbers; an adversary that writes into them fails, for others read them too."""
    view = array.view()
    view.flags.writeable = False
    return view
