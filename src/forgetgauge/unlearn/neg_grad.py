"""NegGrad: gradient ascent on the forget set, θ ← θ + η ∇L_F. Fast, blind to R, and unbounded: η × steps decide."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import nn

from forgetgauge.data.dataset import Points
from forgetgauge.learn.descent import IDLE, Idle, Optimiser, Steps, check_steps
from forgetgauge.learn.stacked.trainer import Stack
from forgetgauge.plan.strength import Published, Strength
from forgetgauge.unlearn.stacked import Passes, unlearn_stacked
from forgetgauge.unlearn.unlearner import Context, Request


@dataclass(frozen=True)
class NegGrad:
    """Descent on −L_F, without weight decay (it would pull towards 0 on top of the ascent)."""

    strength: ClassVar[Strength] = Strength("lr", weakest=1e-6, strongest=0.1)
    published: ClassVar[Published] = Published(
        {"lr": 0.01, "epochs": 10, "batch_size": 256},
        "its authors give no recipe; the rate, epochs and batches of GA.py in the code of Fan et al. 2024",
    )
    idle: ClassVar[Idle] = {"momentum": IDLE["momentum"]}
    added_later: ClassVar[Mapping[str, str]] = {"optimiser": "sgd"}
    lr: float = 1e-3
    momentum: float = 0.9
    epochs: int = 5
    batch_size: int = 32
    optimiser: Optimiser = "sgd"
    """For language models `adamw` is usual, which knows no momentum."""
    batch_norm: Literal["frozen", "train"] = "frozen"
    """`train` lets the running statistics drift to the forget set's batches, a membership signal in itself."""

    def __post_init__(self) -> None:
        check_steps(self.lr, self.epochs, self.batch_size)

    def unlearn(self, model: nn.Module, retain: Points, forget: Points, context: Context) -> nn.Module:
        """Ascend from a copy of the model."""
        model = copy.deepcopy(model).train(self.batch_norm == "train")
        self._passes.alone(
            lambda at: -forget.task.loss(model(forget.x[at]), forget.y[at]), model.parameters(), forget, context
        )
        return model.eval()

    def unlearn_many(self, requests: Sequence[Request]) -> list[nn.Module]:
        """All of them in one stack, where their models can be one."""
        return unlearn_stacked(requests, self, self._stacked, of_records=True)

    def _stacked(self, stack: Stack, requests: Sequence[Request]) -> list[nn.Module]:
        forgotten, train = [r.forget for r in requests], self.batch_norm == "train"
        return self._passes.stacked(stack, requests, forgotten, train=train, sign=-1.0, by_rate=True)

    @property
    def _passes(self) -> Passes:
        return Passes(self.epochs, self.batch_size, Steps(lr=self.lr, momentum=self.momentum, optimiser=self.optimiser))
