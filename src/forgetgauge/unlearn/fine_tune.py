"""Fine-tune: go on training on the retain set, θ ← θ − η ∇L_R, and hope that the rest fades (catastrophic forgetting).

The baseline of Golatkar et al. 2020 and Warnecke et al. 2023. Nothing acts against F, so what it forgets is what
moving on forgets: it is cheap, keeps the utility, and mostly stays near None.
"""

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
class FineTune:
    """Descent on L_R, all layers."""

    strength: ClassVar[Strength] = Strength("lr", weakest=1e-3, strongest=1.0)
    published: ClassVar[Published] = Published(
        {"lr": 0.01, "epochs": 10, "batch_norm": "train"},
        "nobody's own recipe: the generic rate and epochs of the code of Fan et al. 2024",
    )
    idle: ClassVar[Idle] = {"momentum": IDLE["momentum"]}
    added_later: ClassVar[Mapping[str, str]] = {"optimiser": "sgd"}
    lr: float = 0.01
    momentum: float = 0.9
    weight_decay: float = 0.0
    epochs: int = 10
    batch_size: int = 64
    optimiser: Optimiser = "sgd"
    """For language models `adamw` is usual, which knows no momentum."""
    batch_norm: Literal["frozen", "train"] = "frozen"
    """`frozen` is eval mode; `train`, as published, moves the running statistics to R's (and turns dropout on)."""

    def __post_init__(self) -> None:
        check_steps(self.lr, self.epochs, self.batch_size)

    def unlearn(self, model: nn.Module, retain: Points, forget: Points, context: Context) -> nn.Module:
        """Train a copy further; the forget set is not looked at."""
        model = copy.deepcopy(model).train(self.batch_norm == "train")
        self._passes.alone(
            lambda at: retain.task.loss(model(retain.x[at]), retain.y[at]), model.parameters(), retain, context
        )
        return model.eval()

    def unlearn_many(self, requests: Sequence[Request]) -> list[nn.Module]:
        """All of them in one stack, where their models can be one."""
        return unlearn_stacked(requests, self, self._stacked, of_records=True)

    def _stacked(self, stack: Stack, requests: Sequence[Request]) -> list[nn.Module]:
        retained = [r.retain for r in requests]
        return self._passes.stacked(stack, requests, retained, train=self.batch_norm == "train", by_rate=True)

    @property
    def _passes(self) -> Passes:
        steps = Steps(self.lr, self.momentum, self.weight_decay, self.optimiser)
        return Passes(self.epochs, self.batch_size, steps)
