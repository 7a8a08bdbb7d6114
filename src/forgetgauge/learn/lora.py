"""LoRA fine-tuning of one frozen language model: AdamW with warm-up and decay, many adapters at once.

Full fine-tuning is the learner `minibatch` with `optimiser = "adamw"` on the same model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from forgetgauge.data.dataset import Points
from forgetgauge.errors import UserError
from forgetgauge.learn.descent import Positions, Steps, batch_positions, batches_per_epoch, descend
from forgetgauge.learn.device import products_in
from forgetgauge.learn.stacked.engines import Engine
from forgetgauge.learn.stacked.members import check_points
from forgetgauge.learn.stacked.records import record_stack
from forgetgauge.learn.stacked.traced import Precision
from forgetgauge.learn.stacked.trainer import Descent, Feed, batches_of
from forgetgauge.models.building import torch_seeded
from forgetgauge.models.causal_lm import base_of
from forgetgauge.models.lora import PROJECTIONS, LoraModel
from forgetgauge.models.transfer import sent
from forgetgauge.plugins.catalogue import call_by_name
from forgetgauge.streams import Streams
from forgetgauge.tasks.causal_lm import CAUSAL_LM


@dataclass(frozen=True)
class Lora:
    """A recipe; the base is read once, and of a model the adapters alone are trained and kept."""

    task: ClassVar[str] = CAUSAL_LM.name
    model: str = "causal-lm"
    model_params: Mapping[str, Any] = field(default_factory=dict)
    rank: int = 16
    alpha: float = 32.0
    """What the adapters' product is multiplied by is α/rank."""
    targets: tuple[str, ...] = PROJECTIONS
    """The last part of the names of the linear layers that get adapters."""
    lr: float = 2e-4
    weight_decay: float = 0.0
    schedule: Literal["constant", "cosine", "linear"] = "linear"
    warmup: float = 0.05
    """Share of the training over which the rate rises from 0."""
    epochs: int = 10
    batch_size: int = 16
    precision: Precision = "float32"
    """Of the base and the activations on a GPU; adapters are float32 always. A CPU computes in float32. Models
    that were not trained in float32 are asked in float32 with TF32's products."""

    def __post_init__(self) -> None:
        if self.model != "causal-lm":
            raise ValueError(f"lora trains adapters on the model causal-lm, not on '{self.model}'")
        if min(self.epochs, self.batch_size, self.rank) < 1 or not self.targets:
            raise ValueError("epochs, batch_size and rank must be at least 1, and targets must name a layer")
        if not self.lr > 0 or not self.alpha > 0 or self.weight_decay < 0 or not 0 <= self.warmup < 1:
            raise ValueError("lr and alpha must be greater than 0, weight_decay not negative, warmup in [0, 1)")

    def build(self, points: Points, seed: int) -> LoraModel:
        """Adapters that change nothing yet, where the points are."""
        if points.task != CAUSAL_LM:
            raise UserError(f"learner 'lora' is for data of the task {CAUSAL_LM.name}, not {points.task.name}")
        base = call_by_name(base_of, dict(self.model_params))
        with torch_seeded(seed):
            model = LoraModel(base, self.targets, self.rank, self.alpha)
        model = model if points.device.type == "cpu" else sent(model, points.device)
        if seed == 0:  # a mould, of which there is one before anything is trained
            model.refuse(points.whole_inputs)
        return model

    def n_gradients(self, n_points: int) -> int:
        """Per-example gradients of one fit."""
        return self.epochs * n_points

    def fit(self, points: Points, streams: Streams) -> nn.Module:
        """One model, trained alone by torch's own AdamW."""
        model = self.build(points, streams.seed("init"))
        index = torch.from_numpy(points.index)

        def loss(at: Tensor) -> Tensor:
            chosen = index[at]
            return points.task.loss(model(points.inputs_at(chosen)), points.whole_labels[chosen])

        n_steps = self._n_steps(points)
        descend(loss, model.parameters(), self._order(points, streams), self.steps, n_steps=n_steps)
        return model.eval()

    def fit_many(self, points: Sequence[Points], streams: Sequence[Streams]) -> list[nn.Module]:
        """All members at once, whatever the sizes of their sets."""
        if not points:
            return []
        check_points(points)
        models = [self.build(p, s.seed("init")) for p, s in zip(points, streams, strict=True)]
        stack = record_stack(models, points[0], self.precision)
        feeds = [Feed(batches_of(p, self._order(p, s)), self._n_steps(p)) for p, s in zip(points, streams, strict=True)]
        widest = min(self.batch_size, max(len(p) for p in points))
        with products_in(tf32=self.precision == "tf32"):
            Descent(stack, points[0], feeds, self.steps, batch_size=widest).run()
        return [model.eval() for model in stack.members()]

    def engine(self, points: Sequence[Points]) -> Engine:
        """Adapters on one base are always one stack."""
        return Engine("lora")

    @property
    def steps(self) -> Steps:
        """How it descends."""
        return Steps(
            self.lr, weight_decay=self.weight_decay, optimiser="adamw", schedule=self.schedule, warmup=self.warmup
        )

    def _order(self, points: Points, streams: Streams) -> Iterable[Positions]:
        return batch_positions(len(points), self.batch_size, self.epochs, streams.generator("order"))

    def _n_steps(self, points: Points) -> int:
        return self.epochs * batches_per_epoch(len(points), self.batch_size)
