"""The default learner: a torch model, an optimiser, a schedule; `fit` trains one, `fit_many` many as a stack."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from forgetgauge.data.dataset import Points
from forgetgauge.learn.augment import Augment, draw_moves, moved
from forgetgauge.learn.checkpoint import Moved
from forgetgauge.learn.descent import (
    IDLE,
    Idle,
    Optimiser,
    Positions,
    Schedule,
    Steps,
    batch_positions,
    batches_per_epoch,
    descend,
    own_randomness,
)
from forgetgauge.learn.device import products_in
from forgetgauge.learn.stacked.engines import Engine, VmapStack, choose_engine, on_streams
from forgetgauge.learn.stacked.members import fit_alike, own_labels
from forgetgauge.learn.stacked.traced import Precision, TracedStack
from forgetgauge.learn.stacked.trainer import Descent, Feed, batches_of
from forgetgauge.models.building import build_for
from forgetgauge.streams import Streams


@dataclass(frozen=True)
class Minibatch:
    """A recipe. The defaults are those of the embedded digits run; the weights of the last epoch are kept."""

    idle: ClassVar[Idle] = IDLE
    model: str = "small-cnn"
    model_params: Mapping[str, Any] = field(default_factory=dict)
    optimiser: Optimiser = "sgd"
    lr: float = 0.05
    momentum: float = 0.9
    weight_decay: float = 0.0
    schedule: Schedule = "cosine"
    milestones: tuple[float, ...] = ()
    """Where the schedule `steps` divides the rate by ten, as fractions of the training: [0.5, 0.75] of 200 epochs."""
    warmup: float = 0.0
    """Share of the training over which the rate rises from 0."""
    epochs: int = 30
    batch_size: int = 32
    augment: Augment = "none"
    """`flip-crop`: images mirrored and moved by up to four pixels, anew in every epoch."""
    precision: Precision = "float32"
    """Of activations on a GPU; weights, batch statistics and the head are float32 always. A CPU computes in float32."""

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch_size < 1:
            raise ValueError("epochs and batch_size must be at least 1")
        if not self.lr > 0 or self.momentum < 0 or self.weight_decay < 0:
            raise ValueError("lr must be greater than 0, momentum and weight_decay must not be negative")
        if not 0 <= self.warmup < 1:
            raise ValueError("warmup must be at least 0 and below 1")
        if not all(0 < milestone < 1 for milestone in self.milestones):
            raise ValueError("milestones are fractions of the training, between 0 and 1")
        if self.schedule == "steps" and not self.milestones:
            raise ValueError("the schedule steps has no effect without milestones")

    def build(self, points: Points, seed: int) -> nn.Module:
        """An untrained model for such points, where the points are."""
        return build_for(points, self.model, self.model_params, seed)

    def n_gradients(self, n_points: int) -> int:
        """Per-example gradients of one fit."""
        return self.epochs * n_points

    def fit(self, points: Points, streams: Streams) -> nn.Module:
        """One model, trained alone."""
        model = self.build(points, streams.seed("init")).train()
        index, moves = torch.from_numpy(points.index), streams.generator("augment")

        def loss(at: Tensor) -> Tensor:
            chosen = index[at]
            with self._autocast(points):
                outputs = model(self._inputs(points, chosen, [moves]))
            return points.task.loss(outputs.float(), points.whole_labels[chosen])

        with own_randomness(streams), self._products():
            descend(
                loss,
                model.parameters(),
                self._order(points, streams),
                self.steps,
                n_steps=self._n_steps(points),
                moved=Moved(model.state_dict(), [moves], draws_globally=True),
            )
        return model.eval()

    def fit_many(self, points: Sequence[Points], streams: Sequence[Streams]) -> list[nn.Module]:
        """Members of one stack by the engine that `engine` names; of several sizes where the engine allows it."""
        how: dict[str, Callable[[Sequence[Points], Sequence[Streams]], list[nn.Module]]] = {
            "traced": self._fit_traced,
            "vmap": self._fit_vmap,
            "streams": self._fit_on_streams,
            "solo": lambda points, streams: [self.fit(p, s) for p, s in zip(points, streams, strict=True)],
        }
        if not points:
            return []
        engine = self.engine(points)
        if engine.mixes_sizes:
            return how[engine.name](points, streams)
        sizes = [len(p) for p in points]
        return fit_alike(sizes, points, streams, lambda points, streams: how[self.engine(points).name](points, streams))

    def engine(self, points: Sequence[Points]) -> Engine:
        """What `fit_many` would train models on these points with, and why with nothing faster."""
        return choose_engine(self.build(points[0], 0).train(), points)

    @property
    def steps(self) -> Steps:
        """How it descends."""
        return Steps(
            self.lr,
            self.momentum,
            self.weight_decay,
            self.optimiser,
            self.schedule,
            tuple(self.milestones),
            self.warmup,
        )

    def _fit_traced(self, points: Sequence[Points], streams: Sequence[Streams]) -> list[nn.Module]:
        stack = TracedStack(
            [self.build(p, s.seed("init")).train() for p, s in zip(points, streams, strict=True)], self.precision
        )
        feeds = [self._feed(p, s) for p, s in zip(points, streams, strict=True)]
        widest = min(self.batch_size, max(len(p) for p in points))
        with self._products():
            Descent(stack, points[0], feeds, self.steps, batch_size=widest, augment=self.augment).run()
        return [model.eval() for model in stack.members([feed.n_steps for feed in feeds])]

    def _products(self) -> AbstractContextManager[None]:
        return products_in(tf32=self.precision == "tf32")

    def _fit_on_streams(self, points: Sequence[Points], streams: Sequence[Streams]) -> list[nn.Module]:
        with (
            own_randomness(streams[0]),
            self._products(),
        ):  # around all threads: both are global
            return on_streams(self.fit, points, streams)

    def _feed(self, points: Points, streams: Streams) -> Feed:
        batches = batches_of(points, self._order(points, streams))
        return Feed(batches, self._n_steps(points), streams.generator("augment"))

    def _fit_vmap(self, points: Sequence[Points], streams: Sequence[Streams]) -> list[nn.Module]:
        stack = VmapStack([self.build(p, s.seed("init")).train() for p, s in zip(points, streams, strict=True)])
        index = torch.from_numpy(np.stack([p.index for p in points]))  # (K, n)
        labels, moves = own_labels(points), [s.generator("augment") for s in streams]

        def loss(at: Tensor) -> Tensor:  # at: (K, batch)
            chosen = index.gather(1, at)
            with self._autocast(points[0]):
                return stack.loss(points[0].task.loss, self._inputs(points[0], chosen, moves), labels(chosen))

        orders = [self._order(p, s) for p, s in zip(points, streams, strict=True)]
        with self._products():
            descend(
                loss,
                stack.parameters.values(),
                map(np.stack, zip(*orders, strict=True)),
                self.steps,
                n_steps=self._n_steps(points[0]),
                moved=Moved(stack.parameters | stack.buffers, moves),
            )
        return [model.eval() for model in stack.members()]

    def _order(self, points: Points, streams: Streams) -> Iterable[Positions]:
        return batch_positions(len(points), self.batch_size, self.epochs, streams.generator("order"))

    def _n_steps(self, points: Points) -> int:
        return self.epochs * batches_per_epoch(len(points), self.batch_size)

    def _inputs(self, points: Points, chosen: Tensor, moves: Sequence[np.random.Generator]) -> Tensor:
        """Inputs at these positions, augmented; (K, batch) positions of K members or (batch,) of one."""
        stored = points.stored_at(chosen)
        if self.augment != "none":
            drawn = np.stack([draw_moves(chosen.shape[-1], rng) for rng in moves])
            stored = moved(stored, torch.from_numpy(drawn).to(stored.device).view(*chosen.shape, 3))
        return points.scaled(stored)

    def _autocast(self, points: Points) -> AbstractContextManager[object]:
        if self.precision == "bfloat16" and points.device.type == "cuda":
            return torch.autocast("cuda", torch.bfloat16)
        return nullcontext()
