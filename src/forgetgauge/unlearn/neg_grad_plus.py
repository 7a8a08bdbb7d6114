"""NegGrad+: descent on R and ascent on F at once, minimise β·L_R − (1−β)·L_F (Kurmanji et al. 2023).

Each batch of R is paired with a batch of F, which is gone through again as often as R needs it: in a fresh order each
time, where the published loop repeats the first. Unlike NegGrad it is held by R, but −L_F is still unbounded: β near 1.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from forgetgauge.data.dataset import Points
from forgetgauge.learn.descent import (
    IDLE,
    Idle,
    Optimiser,
    Steps,
    batch_positions,
    batches_per_epoch,
    check_steps,
    descend,
    own_randomness,
)
from forgetgauge.learn.stacked.members import NotStackable
from forgetgauge.learn.stacked.records import RecordStack
from forgetgauge.models.causal_lm import RecordModel
from forgetgauge.plan.strength import Strength
from forgetgauge.unlearn.paired import PairedPasses, Step, mean
from forgetgauge.unlearn.stacked import moved_records, products_of
from forgetgauge.unlearn.unlearner import Context, Request, one_by_one


@dataclass(frozen=True)
class NegGradPlus:
    """Descent on β·L_R − (1−β)·L_F; an epoch is one pass over R."""

    strength: ClassVar[Strength] = Strength("lr", weakest=1e-4, strongest=0.1)
    idle: ClassVar[Idle] = {"momentum": IDLE["momentum"]}
    added_later: ClassVar[Mapping[str, str]] = {"optimiser": "sgd"}
    beta: float = 0.95
    """β, the weight of the retain set; 1 is fine-tuning, 0 is NegGrad for as many steps as R has batches."""
    lr: float = 0.01
    momentum: float = 0.9
    weight_decay: float = 0.0
    epochs: int = 10
    batch_size: int = 64
    """Points in each batch of R and in each of F."""
    optimiser: Optimiser = "sgd"
    """For language models `adamw` is usual, which knows no momentum."""
    batch_norm: Literal["frozen", "train"] = "frozen"
    """`train` lets the running statistics drift to the forget set's batches, a membership signal in itself."""

    def __post_init__(self) -> None:
        check_steps(self.lr, self.epochs, self.batch_size)
        if not 0 <= self.beta <= 1:
            raise ValueError("beta must lie between 0 and 1")

    def unlearn(self, model: nn.Module, retain: Points, forget: Points, context: Context) -> nn.Module:
        """Descend and ascend from a copy of the model."""
        model = copy.deepcopy(model).train(self.batch_norm == "train")
        n_steps = self.epochs * batches_per_epoch(len(retain), self.batch_size)
        paired = batch_positions(  # n_steps passes are never all needed, nor are they drawn before they are
            len(forget), self.batch_size, n_steps, context.streams.generator("forget-order")
        )

        def loss(kept: Tensor) -> Tensor:
            lost = torch.from_numpy(next(paired))
            context.n_gradients += len(kept) + len(lost)
            on_retain = retain.task.loss(model(retain.x[kept]), retain.y[kept])
            on_forget = forget.task.loss(model(forget.x[lost]), forget.y[lost])
            return self.beta * on_retain - (1 - self.beta) * on_forget

        with own_randomness(context.streams):
            descend(
                loss,
                model.parameters(),
                batch_positions(len(retain), self.batch_size, self.epochs, context.streams.generator("order")),
                self._steps,
                n_steps=n_steps,
            )
        return model.eval()

    def unlearn_many(self, requests: Sequence[Request]) -> list[nn.Module]:
        """Language models all in one stack; others one after another."""
        if len(requests) > 1 and isinstance(requests[0].model, RecordModel):
            with suppress(NotStackable):
                return moved_records(requests, self._stacked)
        with products_of(requests):
            return one_by_one(self, requests)

    def _stacked(self, stack: RecordStack, requests: Sequence[Request]) -> list[nn.Module]:
        def objective(step: Step) -> Tensor:
            loss, tokens = stack.losses(step.given)
            return self.beta * mean(loss / tokens, step.kept) - (1 - self.beta) * mean(loss / tokens, step.lost)

        paired = PairedPasses(self.epochs, self.batch_size, self._steps, over="retain")
        return paired.descended(stack, requests, objective)

    @property
    def _steps(self) -> Steps:
        return Steps(self.lr, self.momentum, self.weight_decay, self.optimiser)
