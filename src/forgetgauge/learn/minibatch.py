"""The default learner: a torch model, an optimiser, a schedule; `fit` trains one, `fit_many` a stack of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from forgetgauge.data.dataset import Points
from forgetgauge.learn.descent import Optimiser, Schedule, batch_positions, batches_per_epoch, descend, own_randomness
from forgetgauge.learn.stack import Stack, why_solo
from forgetgauge.models.building import build_model
from forgetgauge.streams import Streams


@dataclass(frozen=True)
class Minibatch:
    """A recipe. The defaults are those of the embedded digits run; the weights of the last epoch are kept."""

    model: str = "small-cnn"
    model_params: Mapping[str, Any] = field(default_factory=dict)
    optimiser: Optimiser = "sgd"
    lr: float = 0.05
    momentum: float = 0.9
    weight_decay: float = 0.0
    schedule: Schedule = "cosine"
    milestones: tuple[float, ...] = ()
    """Where the schedule `steps` divides the rate by ten, as fractions of the training: [0.5, 0.75] of 200 epochs."""
    epochs: int = 30
    batch_size: int = 32

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch_size < 1:
            raise ValueError("epochs and batch_size must be at least 1")
        if not self.lr > 0 or self.momentum < 0 or self.weight_decay < 0:
            raise ValueError("lr must be greater than 0, momentum and weight_decay must not be negative")

    def build(self, points: Points, seed: int) -> nn.Module:
        """An untrained model for such points."""
        return build_model(self.model, self.model_params, tuple(points.whole_inputs.shape[1:]), points.n_classes, seed)

    def n_gradients(self, n_points: int) -> int:
        """Per-example gradients of one fit."""
        return self.epochs * n_points

    def fit(self, points: Points, streams: Streams) -> nn.Module:
        """One model, trained alone."""
        model = self.build(points, streams.seed("init")).train()
        with own_randomness(streams):
            self._descend(
                lambda at: F.cross_entropy(model(points.x[at]), points.y[at]),
                model.parameters(),
                len(points),
                [streams],
            )
        return model.eval()

    def fit_many(self, points: Sequence[Points], streams: Sequence[Streams]) -> list[nn.Module]:
        """Models on sets of equal size train as one stack; those that cannot be stacked train one by one."""
        fitted: dict[int, nn.Module] = {}
        for size in sorted({len(p) for p in points}):
            members = [i for i, p in enumerate(points) if len(p) == size]
            group, their_streams = [points[i] for i in members], [streams[i] for i in members]
            fit_group = self._fit_alone if self.why_solo(group) else self._fit_stack
            fitted.update(zip(members, fit_group(group, their_streams), strict=True))
        return [fitted[i] for i in range(len(points))]

    def why_solo(self, points: Sequence[Points]) -> str | None:
        """Why models on these points would be trained one by one; None where they train as a stack."""
        if len(points) == 1:
            return "a stack of one is a model alone"
        if any(p.whole_inputs is not points[0].whole_inputs for p in points):
            return "the points are of different data sets"
        return why_solo(self.build(points[0], 0).train(), points[0].x[:4], points[0].y[:4], F.cross_entropy)

    def _fit_alone(self, points: Sequence[Points], streams: Sequence[Streams]) -> list[nn.Module]:
        return [self.fit(p, s) for p, s in zip(points, streams, strict=True)]

    def _fit_stack(self, points: Sequence[Points], streams: Sequence[Streams]) -> list[nn.Module]:
        stack = Stack([self.build(p, s.seed("init")).train() for p, s in zip(points, streams, strict=True)])
        index = torch.from_numpy(np.stack([p.index for p in points]))  # (K, n)

        def loss(at: Tensor) -> Tensor:  # at: (K, batch)
            chosen = index.gather(1, at)
            return stack.loss(F.cross_entropy, points[0].inputs_at(chosen), points[0].whole_labels[chosen])

        self._descend(loss, stack.parameters.values(), len(points[0]), streams)
        return [model.eval() for model in stack.members()]

    def _descend(self, loss: Any, parameters: Any, n: int, streams: Sequence[Streams]) -> None:
        orders = [batch_positions(n, self.batch_size, self.epochs, s.generator("order")) for s in streams]
        alone = len(streams) == 1
        descend(
            loss,
            parameters,
            orders[0] if alone else map(np.stack, zip(*orders, strict=True)),
            n_steps=self.epochs * batches_per_epoch(n, self.batch_size),
            lr=self.lr,
            momentum=self.momentum,
            weight_decay=self.weight_decay,
            optimiser=self.optimiser,
            schedule=self.schedule,
            milestones=self.milestones,
        )
