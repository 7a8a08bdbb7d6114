"""The one gradient loop: training, fine-tuning and ascent are this loop with another loss."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from forgetgauge.streams import Streams

Optimiser = Literal["sgd", "adamw"]
Schedule = Literal["constant", "cosine", "steps"]
Positions = npt.NDArray[np.int64]


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
    return 1.0


@contextmanager
def own_randomness(streams: Streams) -> Iterator[None]:
    """Dropout and the like draw from a stream of the job's own; torch's global generator is left as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(streams.seed("dropout"))
        yield


def descend(
    loss: Callable[[Tensor], Tensor],
    parameters: Iterable[Tensor],
    batches: Iterable[npt.NDArray[np.int64]],
    *,
    n_steps: int,
    lr: float,
    momentum: float = 0.0,
    weight_decay: float = 0.0,
    optimiser: Optimiser = "sgd",
    schedule: Schedule = "constant",
    milestones: tuple[float, ...] = (),
    after_step: Callable[[torch.optim.Optimizer], None] | None = None,
) -> None:
    """Minimise `loss(positions)` over the batches, changing the parameters in place; `after_step` may correct them."""
    parameters = list(parameters)
    if optimiser == "adamw":
        steps: torch.optim.Optimizer = torch.optim.AdamW(parameters, lr=lr, weight_decay=weight_decay)
    else:
        steps = torch.optim.SGD(parameters, lr=lr, momentum=momentum, weight_decay=weight_decay)
    for step, batch in enumerate(batches):
        for group in steps.param_groups:
            group["lr"] = lr * rate_factor(schedule, step, n_steps, milestones)
        steps.zero_grad()
        loss(torch.from_numpy(batch)).backward()  # type: ignore[no-untyped-call]
        steps.step()
        if after_step is not None:
            after_step(steps)
