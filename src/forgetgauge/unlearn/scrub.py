"""SCRUB: a student that disobeys its teacher on F and obeys on R (Kurmanji et al. 2023).

The teacher is the original, frozen. Each of the first `msteps` epochs begins with a pass over F that maximises
d = T² · KL(p_teacher^(1/T) ‖ p_student^(1/T)); every epoch then passes over R minimising γ·L_R + α·d. One optimiser
does both, its momentum and weight decay included. The student starts as its teacher, where d is at its minimum and has
no gradient: with frozen batch norm the first ascent hardly moves, and F is pushed away from the second epoch on.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from torch import Tensor, nn

from forgetgauge.data.dataset import Points
from forgetgauge.learn.descent import (
    Idle,
    Positions,
    Steps,
    batch_positions,
    batches_per_epoch,
    check_steps,
    descend,
    own_randomness,
)
from forgetgauge.plan.strength import Published, Strength
from forgetgauge.streams import Streams
from forgetgauge.unlearn.bad_teacher import kl_divergence, log_posterior
from forgetgauge.unlearn.unlearner import Context


@dataclass(frozen=True)
class Scrub:
    """SGD, up on F and down on R in turns."""

    strength: ClassVar[Strength] = Strength("lr", weakest=1e-5, strongest=0.05)
    published: ClassVar[Published] = Published(
        {"lr": 5e-4, "epochs": 3, "msteps": 2, "batch_norm": "train"}, "Kurmanji et al. 2023, their code"
    )
    needs_classes: ClassVar[bool] = True
    idle: ClassVar[Idle] = {"forget_batch_size": ("msteps", (0,))}
    gamma: float = 0.99
    """γ, the weight of the cross-entropy on R."""
    alpha: float = 0.001
    """α, the weight of the distance to the teacher on R."""
    temperature: float = 4.0
    msteps: int = 2
    """How many epochs begin with a pass over F; 0 leaves only the descent on R."""
    lr: float = 5e-4
    momentum: float = 0.9
    weight_decay: float = 5e-4
    decay_epochs: tuple[int, ...] = (3, 5, 9)
    """After each of these epochs the rate is divided by ten."""
    epochs: int = 3
    batch_size: int = 128
    """Points in each batch of R."""
    forget_batch_size: int = 32
    """Points in each batch of F."""
    batch_norm: Literal["frozen", "train"] = "frozen"
    """`frozen` is eval mode; `train`, as published, lets the running statistics drift to F's batches and to R's."""

    def __post_init__(self) -> None:
        check_steps(self.lr, self.epochs, min(self.batch_size, self.forget_batch_size))
        if min(self.gamma, self.alpha, self.msteps) < 0:
            raise ValueError("gamma, alpha and msteps must not be negative")
        if not self.temperature > 0:
            raise ValueError("temperature must be greater than 0")

    def unlearn(self, model: nn.Module, retain: Points, forget: Points, context: Context) -> nn.Module:
        """Teach a copy of the model."""
        student = copy.deepcopy(model)
        both = retain.subset(np.concatenate([forget.index, retain.index]))
        teacher = log_posterior(student, both, self.temperature)  # (n, K)
        student.train(self.batch_norm == "train")

        def loss(at: Tensor) -> Tensor:  # a batch is of F alone or of R alone
            context.n_gradients += len(at)
            logits = student(both.x[at])
            soft = (logits / self.temperature).log_softmax(1)
            distance = self.temperature**2 * kl_divergence(teacher[at], soft)
            if at[0] < len(forget):
                return -distance
            return self.gamma * both.task.loss(logits, both.y[at]) + self.alpha * distance

        n_steps = self._steps_until(self.epochs, len(forget), len(retain))
        with own_randomness(context.streams):
            descend(
                loss,
                student.parameters(),
                self._batches(len(forget), len(retain), context.streams),
                Steps(
                    lr=self.lr,
                    momentum=self.momentum,
                    weight_decay=self.weight_decay,
                    schedule="steps",
                    milestones=tuple(
                        self._steps_until(e, len(forget), len(retain)) / max(n_steps, 1) for e in self.decay_epochs
                    ),
                ),
                n_steps=n_steps,
            )
        return student.eval()

    def _batches(self, n_forget: int, n_retain: int, streams: Streams) -> Iterator[Positions]:
        """Positions in F ∪ R, F first."""
        retain_order, forget_order = streams.generator("order"), streams.generator("forget-order")
        for epoch in range(self.epochs):
            if epoch < self.msteps:
                yield from batch_positions(n_forget, self.forget_batch_size, 1, forget_order)
            for batch in batch_positions(n_retain, self.batch_size, 1, retain_order):
                yield n_forget + batch

    def _steps_until(self, epoch: int, n_forget: int, n_retain: int) -> int:
        """Steps of the first `epoch` epochs."""
        ascents = min(epoch, self.msteps) * batches_per_epoch(n_forget, self.forget_batch_size)
        return ascents + epoch * batches_per_epoch(n_retain, self.batch_size)
