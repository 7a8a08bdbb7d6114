"""The one gradient loop: training, fine-tuning and ascent are this loop with another loss."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from forgetgauge.learn.checkpoint import Moved, Resumed
from forgetgauge.models.building import torch_seeded
from forgetgauge.streams import Streams

Optimiser = Literal["sgd", "adamw", "rmsprop"]
Schedule = Literal["constant", "cosine", "steps", "linear"]
Positions = npt.NDArray[np.int64]
Idle = Mapping[str, tuple[str, tuple[Any, ...]]]
"""Setting -> another one, and the values of that with which it changes nothing."""
IDLE: Idle = {"momentum": ("optimiser", ("adamw",)), "milestones": ("schedule", ("constant", "cosine", "linear"))}


def batch_positions(n: int, batch_size: int, epochs: int, rng: np.random.Generator) -> Iterator[Positions]:
    """Every epoch a fresh order, cut into ceil(n / batch_size) batches whose sizes differ by one at most.

    Equal batches, because a last batch of one point would break batch norm and weigh that point batch_size-fold.
    """
    for _ in range(epochs):
        yield from np.array_split(rng.permutation(n), batches_per_epoch(n, batch_size))


def batches_per_epoch(n: int, batch_size: int) -> int:
    """ceil(n / batch_size)."""
    return -(-n // batch_size)


def check_steps(lr: float, epochs: int, batch_size: int) -> None:
    """Refuse settings no descent can have; 0 epochs or a rate of 0 leave a model as it is."""
    if lr < 0 or epochs < 0 or batch_size < 1:
        raise ValueError("lr and epochs must not be negative, batch_size must be at least 1")


def rate_factor(schedule: Schedule, step: int, n_steps: int, milestones: tuple[float, ...] = ()) -> float:
    """What the learning rate is multiplied by at a step; milestones are fractions of the whole training."""
    if schedule == "cosine":
        return 0.5 * (1 + math.cos(math.pi * step / n_steps))
    if schedule == "steps":
        return float(0.1 ** sum(step >= milestone * n_steps - 1e-9 for milestone in milestones))
    if schedule == "linear":
        return 1 - step / n_steps
    return 1.0


@dataclass(frozen=True)
class Steps:
    """How a descent goes down: the optimiser and its rate at each step."""

    lr: float
    momentum: float = 0.0
    weight_decay: float = 0.0
    optimiser: Optimiser = "sgd"
    schedule: Schedule = "constant"
    milestones: tuple[float, ...] = ()
    warmup: float = 0.0
    """Share of the steps over which the rate rises from 0; the schedule spans the rest."""

    def rate(self, step: int, n_steps: int) -> float:
        """The learning rate at a step, counted from 0."""
        rising = round(self.warmup * n_steps)
        if step < rising:
            return self.lr * (step + 1) / (rising + 1)
        return self.lr * rate_factor(self.schedule, step - rising, n_steps - rising, self.milestones)

    def optimiser_of(self, parameters: Iterable[Tensor]) -> torch.optim.Optimizer:
        """torch's own."""
        if self.optimiser == "adamw":
            return torch.optim.AdamW(parameters, lr=self.lr, weight_decay=self.weight_decay)
        kind = torch.optim.SGD if self.optimiser == "sgd" else torch.optim.RMSprop
        return kind(parameters, lr=self.lr, momentum=self.momentum, weight_decay=self.weight_decay)


@contextmanager
def own_randomness(streams: Streams) -> Iterator[None]:
    """Dropout and the like draw from a stream of the job's own; torch's global generators are left as they were."""
    with torch_seeded(streams.seed("dropout")):
        yield


def descend(
    loss: Callable[[Tensor], Tensor],
    parameters: Iterable[Tensor],
    batches: Iterable[npt.NDArray[np.int64]],
    steps: Steps,
    *,
    n_steps: int,
    after_step: Callable[[torch.optim.Optimizer], None] | None = None,
    moved: Moved | None = None,
) -> None:
    """Minimise `loss(positions)` over the batches, changing the parameters in place; `after_step` may correct them.

    With `moved`, all that a step changes besides, a long descent keeps checkpoints and goes on from one.
    """
    optimiser = steps.optimiser_of(list(parameters))
    going_on = None if moved is None else Resumed(moved, optimiser)
    for step, batch in enumerate(batches):
        if going_on is not None and step < going_on.n_done:
            continue
        for group in optimiser.param_groups:
            group["lr"] = steps.rate(step, n_steps)
        optimiser.zero_grad()
        loss(torch.from_numpy(batch)).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        if after_step is not None:
            after_step(optimiser)
        if going_on is not None:
            going_on.keep(step + 1)
    optimiser.zero_grad()  # or a model would keep its last gradients for as long as it lives
