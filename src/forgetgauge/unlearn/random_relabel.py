"""Random relabelling: F gets labels that are wrong, and the model is trained on F̃ ∪ R (Graves et al. 2021, Amnesiac).

The wrong labels are drawn once, uniformly over the other classes. What is unlearned that way is no longer like an
unseen point: a model that avoids the true label on F betrays F as surely as one that knows it.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn

from forgetgauge.data.dataset import Points
from forgetgauge.errors import UserError
from forgetgauge.learn.descent import Steps, check_steps
from forgetgauge.learn.stacked.traced import TracedStack
from forgetgauge.plan.strength import Published, Strength
from forgetgauge.unlearn.stacked import Passes, unlearn_stacked
from forgetgauge.unlearn.unlearner import Context, Request


@dataclass(frozen=True)
class RandomRelabel:
    """Adam on the cross-entropy of F̃ ∪ R, shuffled together."""

    strength: ClassVar[Strength] = Strength("lr", weakest=1e-6, strongest=0.01)
    published: ClassVar[Published] = Published(
        {"lr": 1e-4, "epochs": 3, "batch_size": 128, "batch_norm": "train"}, "Graves et al. 2021, their code"
    )
    needs_classes: ClassVar[bool] = True
    lr: float = 1e-4
    epochs: int = 3
    batch_size: int = 128
    batch_norm: Literal["frozen", "train"] = "frozen"
    """`frozen` is eval mode; `train`, as published, moves the running statistics to F ∪ R (and turns dropout on)."""

    def __post_init__(self) -> None:
        check_steps(self.lr, self.epochs, self.batch_size)

    def unlearn(self, model: nn.Module, retain: Points, forget: Points, context: Context) -> nn.Module:
        """Train a copy on the wrong labels of F and the right ones of R."""
        model = copy.deepcopy(model).train(self.batch_norm == "train")
        both, labels = _relabelled(retain, forget, context)
        self._passes.alone(lambda at: both.task.loss(model(both.x[at]), labels[at]), model.parameters(), both, context)
        return model.eval()

    def unlearn_many(self, requests: Sequence[Request]) -> list[nn.Module]:
        """All of them in one stack, where their models can be one."""
        return unlearn_stacked(requests, self, self._stacked)

    def _stacked(self, stack: TracedStack, requests: Sequence[Request]) -> list[nn.Module]:
        parts = [_relabelled(r.retain, r.forget, r.context) for r in requests]
        return self._passes.stacked(
            stack,
            requests,
            [both for both, _ in parts],
            train=self.batch_norm == "train",
            labels=[labels.cpu().numpy() for _, labels in parts],
            by_rate=True,
        )

    @property
    def _passes(self) -> Passes:
        steps = Steps(lr=self.lr, optimiser="adamw")  # without decay it is Adam
        return Passes(self.epochs, self.batch_size, steps)


def _relabelled(retain: Points, forget: Points, context: Context) -> tuple[Points, Tensor]:
    """F ∪ R and its (n,) labels, those of F wrong."""
    both = retain.subset(np.concatenate([forget.index, retain.index]))
    return both, torch.cat([wrong_labels(forget, context.streams.generator("labels")), retain.y])


def wrong_labels(points: Points, rng: np.random.Generator) -> Tensor:
    """(n,) one of the other classes for each point, each with probability 1 / (K − 1)."""
    if points.n_classes < 2:
        raise UserError("random-relabel: the data set has one class only, so no label is wrong")
    steps = torch.from_numpy(rng.integers(1, points.n_classes, len(points)))
    return (points.y + steps.to(points.device)) % points.n_classes
