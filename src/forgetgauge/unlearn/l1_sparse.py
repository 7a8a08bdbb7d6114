"""ℓ1-sparse: fine-tuning under a fading ℓ1 penalty, L_R + γ_t ‖θ‖₁ with γ_t = γ (1 − t/E) in epoch t = 0 … E−1.

Jia et al. 2023: sparse models unlearn better, so the penalty prunes while the fine-tuning forgets, and then leaves the
stage. γ adds to the gradient of every weight alike, whatever the model's size: too large, and all of them shrink to 0.
"""

from __future__ import annotations

import copy
import itertools
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from forgetgauge.data.dataset import Points
from forgetgauge.learn.descent import Steps, batches_per_epoch, check_steps
from forgetgauge.plan.strength import Published, Strength
from forgetgauge.unlearn.stacked import Passes
from forgetgauge.unlearn.unlearner import Context


@dataclass(frozen=True)
class L1Sparse:
    """SGD on L_R + γ_t ‖θ‖₁ over all trainable parameters, biases and norm layers included."""

    strength: ClassVar[Strength] = Strength("gamma", weakest=1e-6, strongest=0.01)
    published: ClassVar[Published] = Published(
        {"gamma": 5e-4, "lr": 0.01, "epochs": 10},
        "Jia et al. 2023, as their method is usually run: their code has one default for all methods",
    )
    gamma: float = 5e-4
    """γ, the penalty's weight in the first epoch; 0 is fine-tuning."""
    lr: float = 0.01
    momentum: float = 0.9
    weight_decay: float = 0.0
    epochs: int = 10
    batch_size: int = 64
    batch_norm: Literal["frozen", "train"] = "frozen"
    """`frozen` is eval mode; `train`, as published, moves the running statistics to R's (and turns dropout on)."""

    def __post_init__(self) -> None:
        check_steps(self.lr, self.epochs, self.batch_size)
        if self.gamma < 0:
            raise ValueError("gamma must not be negative")

    def unlearn(self, model: nn.Module, retain: Points, forget: Points, context: Context) -> nn.Module:
        """Train a copy further under the penalty; the forget set is not looked at."""
        model = copy.deepcopy(model).train(self.batch_norm == "train")
        penalised = [parameter for parameter in model.parameters() if parameter.requires_grad]
        per_epoch, step = batches_per_epoch(len(retain), self.batch_size), itertools.count()

        def loss(at: Tensor) -> Tensor:
            gamma = self.gamma * (1 - next(step) // per_epoch / self.epochs)
            size = torch.stack([parameter.abs().sum() for parameter in penalised]).sum()
            return retain.task.loss(model(retain.x[at]), retain.y[at]) + gamma * size

        steps = Steps(lr=self.lr, momentum=self.momentum, weight_decay=self.weight_decay)
        Passes(self.epochs, self.batch_size, steps).alone(loss, model.parameters(), retain, context)
        return model.eval()
