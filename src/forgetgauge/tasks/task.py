"""What a task promises: the only place that knows what the labels of a data set and the outputs of a model mean.

A new task is one file with a subclass of `Task`, an entry in `plugins/shipped.py` (or the name `module:OBJECT` in
a run file), and a data set that says it is of this task. Torch is imported inside the methods that are given tensors.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from torch import Tensor

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Outputs = npt.NDArray[np.float32]
"""(n, n_outputs) what a model gives for each point."""
Labels = npt.NDArray[Any]
"""(n,) whole numbers or real ones."""
Signal = Callable[[Outputs, Labels], Floats]
"""What an adversary may read of a model's outputs: (n,), or (n, …), in float64."""


class Task(ABC):
    """A kind of labels, and what a model of them is asked to do."""

    name: ClassVar[str]
    utility_name: ClassVar[str]
    """What `utility` is called in a report."""
    has_classes: ClassVar[bool]
    """Whether labels are the numbers of classes; methods and metrics that need classes are refused elsewhere."""
    wants_labels_that_differ: ClassVar[bool] = True
    """Whether there is nothing to learn where all points have one label."""
    outputs_by_head: ClassVar[bool] = True
    """Whether a model's last linear layer gives its outputs; methods that train it alone are refused elsewhere."""
    test_part: ClassVar[str] = "test"
    """What utility on a data set's test set is called; `outside` where that is of another kind than the points, so
    that it shows what else a model can do, and not what forgetting costs."""
    signals: ClassVar[Mapping[str, Signal]]
    """What adversaries may read, by name. Every task has `loss`; `statistic`, which is near to normally distributed
    over models and larger where a model fits the point better; and `gap`, the same in the unit of the outputs."""

    @abstractmethod
    def checked_labels(self, raw: npt.NDArray[Any]) -> Labels:
        """Labels as they are stored, (n,); ValueError says in a clause what is wrong with them."""

    @abstractmethod
    def n_outputs(self, labels: Labels) -> int:
        """How many numbers a model gives for a point, of the labels of a whole data set."""

    def classes(self, labels: Labels) -> Ints:
        """(n,) which points are of one kind, so that thresholds are learnt for them apart from others."""
        return np.zeros(len(labels), dtype=np.int64)

    @abstractmethod
    def utility(self, outputs: Outputs, labels: Labels) -> float | None:
        """How well a model does what it is for: the larger the better, and 1 at best; None where these points cannot
        show it."""

    def figures(self, outputs: Outputs, labels: Labels) -> dict[str, float]:
        """Further numbers about how well a model does, by what they are called; most tasks have none."""
        return {}

    @abstractmethod
    def made_up(
        self, n_points: int, n_classes: int, member: npt.NDArray[np.bool_], rng: np.random.Generator
    ) -> tuple[Outputs, Labels]:
        """Outputs that no model gave, for trying an adversary on: better for members. The labels never change."""

    # -- with torch ----------------------------------------------------------------------------------------------

    @abstractmethod
    def loss(self, outputs: Tensor, labels: Tensor, reduction: str = "mean") -> Tensor:
        """What training minimises: the `mean` over points, their `sum`, or `none` for (n,) losses."""

    @abstractmethod
    def loss_gradient(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """(…, n_outputs) ∂ loss / ∂ outputs at each point alone; labels are (…,)."""

    @abstractmethod
    def plain_outputs(self, given: Tensor, n_points: int, n_outputs: int) -> Tensor | None:
        """(n_points, n_outputs) of what a user's model gives, in any shape this task understands; None for others."""

    def why_unfit(self, given: Tensor, n_points: int, n_outputs: int) -> str:
        """After “model 'x'”: what is wrong where `plain_outputs` understands nothing."""
        return f", given {n_points} points, gives a tensor of shape {tuple(given.shape)}, not ({n_points}, {n_outputs})"
