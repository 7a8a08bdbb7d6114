"""Random relabelling: F gets labels that are wrong, and the model is trained on F̃ ∪ R (Graves et al. 2021, Amnesiac).

The wrong labels are drawn once, uniformly over the other classes. What is unlearned that way is no longer like an
unseen point: a model that avoids the true label on F betrays F as surely as one that knows it.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from forgetgauge.data.dataset import Points
from forgetgauge.errors import UserError
from forgetgauge.learn.descent import batch_positions, batches_per_epoch, check_steps, descend, own_randomness
from forgetgauge.unlearn.unlearner import Context


@dataclass(frozen=True)
class RandomRelabel:
    """Adam on the cross-entropy of F̃ ∪ R, shuffled together."""

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
        both = retain.subset(np.concatenate([forget.index, retain.index]))
        labels = torch.cat([wrong_labels(forget, context.streams.generator("labels")), retain.y])
        with own_randomness(context.streams):
            descend(
                lambda at: F.cross_entropy(model(both.x[at]), labels[at]),
                model.parameters(),
                batch_positions(len(both), self.batch_size, self.epochs, context.streams.generator("order")),
                n_steps=self.epochs * batches_per_epoch(len(both), self.batch_size),
                lr=self.lr,
                optimiser="adamw",  # without decay it is Adam
            )
        context.n_gradients += self.epochs * len(both)
        return model.eval()


def wrong_labels(points: Points, rng: np.random.Generator) -> Tensor:
    """(n,) one of the other classes for each point, each with probability 1 / (K − 1)."""
    if points.n_classes < 2:
        raise UserError("random-relabel: the data set has one class only, so no label is wrong")
    steps = torch.from_numpy(rng.integers(1, points.n_classes, len(points)))
    return (points.y + steps) % points.n_classes
