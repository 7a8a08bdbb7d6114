"""SSD, selective synaptic dampening: weights that matter more for F than for the training set are shrunk towards 0.

No training and no randomness. SSD's paper defines the importance of a weight by gradients of single points; its code,
in which its selection weight of 10 was found, squares gradients of whole batches. A weight belongs to the importances
that it was chosen with: in a batch what points share adds up and what is their own averages out, so the two forms
select other weights. As F is a part of D = R ∪ F, per-sample importances obey I_F ≤ (|D| / |F|) · I_D, so per sample a
selection weight of |D| / |F| or more selects nothing; by batches there is no such bound. The defaults are the code's,
both (docs/decisions/0025-ssd-as-its-code-has-it.md).
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
from forgetgauge.learn.descent import Idle, Positions, batches_per_epoch
from forgetgauge.learn.stacked.traced import TracedStack
from forgetgauge.learn.stacked.trainer import stacked_squares
from forgetgauge.plan.strength import Published, Strength
from forgetgauge.unlearn.memory import recalled
from forgetgauge.unlearn.squared_gradients import (
    Tensors,
    loss_directions,
    mean_squares,
    squared_loss_gradient,
    trainable,
)
from forgetgauge.unlearn.stacked import originals_of, stacked_gradients, unlearn_stacked
from forgetgauge.unlearn.unlearner import Context, Request


@dataclass(frozen=True)
class SSD:
    """Where I_F > α I_D, θ is multiplied by min((λ I_D / I_F)^exponent, 1); importances in eval mode."""

    strength: ClassVar[Strength] = Strength("alpha", weakest=100.0, strongest=1.05)
    published: ClassVar[Published] = Published(
        {"alpha": 10.0, "dampening": 1.0, "importance": "published-batches"},
        "Foster et al. 2024, and their code, which squares the gradients of batches",
    )
    idle: ClassVar[Idle] = {"batch_size": ("importance", ("per-sample",))}
    alpha: float = 10.0
    """Selection weight: how many times more a weight must matter for F than for R ∪ F. 10 is published, for importances
    by batches; per sample it must be below |R ∪ F| / |F|, or nothing is selected."""
    dampening: float = 1.0
    """λ: smaller shrinks the selected weights more."""
    exponent: float = 1.0
    importance: Literal["per-sample", "equal-batches", "published-batches"] = "published-batches"
    """`per-sample`: the mean of squared per-sample gradients, the definition of SSD's paper. The other two are means
    over batches of squared batch gradients, whose scale depends on the batch size. `published-batches` is what the
    published code computes: batches in the order of the points, of R ∪ F those of R first, the last one short, so its
    few points count as much as a whole batch. Where F is smaller than a batch, I_F is that of a small batch and I_D
    that of large ones, so that many weights are selected. `equal-batches` has no short batch: F and R ∪ F are cut into
    batches of one and the same size, |F| at most."""
    batch_size: int = 128
    """Points in each batch of which a gradient is taken."""

    def __post_init__(self) -> None:
        if not (self.alpha >= 0 and self.dampening >= 0 and self.exponent >= 0):
            raise ValueError("alpha, dampening and exponent must not be negative")
        if self.batch_size < 1:
            raise ValueError("batch_size must be at least 1")

    def unlearn(self, model: nn.Module, retain: Points, forget: Points, context: Context) -> nn.Module:
        """Dampen a copy; buffers (batch norm's statistics) stay as they are."""
        request = Request(model, retain, forget, context)
        model = copy.deepcopy(model).eval()
        both = forget.subset(np.concatenate([retain.index, forget.index]))
        on_forget, on_all = recalled(
            self._what("alone"),
            [request],
            lambda: [self._importance(model, part, len(forget)) for part in (forget, both)],
        )
        context.n_gradients += sum(self._cost(part, len(forget)) for part in (forget, both))
        with torch.no_grad():
            for name, parameter in trainable(model).items():
                factor = dampening_factor(on_forget[name], on_all[name], self.alpha, self.dampening, self.exponent)
                parameter *= factor.to(parameter.dtype)
        return model

    def unlearn_many(self, requests: Sequence[Request]) -> list[nn.Module]:
        """All of them in one stack, where their models can be one."""
        return unlearn_stacked(requests, self, self._stacked, of_originals=True)

    def _what(self, precision: str) -> str:
        """All that decides the importances besides models and points: neither alpha nor the dampening does."""
        return f"importances {self.importance} {self.batch_size}, {precision}"

    def _importance(self, model: nn.Module, part: Points, n_forget: int) -> Tensors:
        if self.importance == "per-sample":
            return mean_squares(model, trainable(model), part.x, part.y, squared_loss_gradient(part.task))
        return mean_squared_batch_gradients(model, part, self._batches(len(part), n_forget))

    def _cost(self, part: Points, n_forget: int) -> int:
        return len(part) if self.importance == "per-sample" else sum(map(len, self._batches(len(part), n_forget)))

    def _stacked(self, stack: TracedStack, requests: Sequence[Request]) -> list[nn.Module]:
        originals, place = originals_of(requests)
        forgotten = [r.forget for r in originals]
        whole = [r.forget.subset(np.concatenate([r.retain.index, r.forget.index])) for r in originals]
        on_forget, on_all = recalled(
            self._what(stack.precision),
            originals,
            lambda: [self._importances(stack, originals, parts) for parts in (forgotten, whole)],
        )
        rows = []
        for r, at in zip(requests, place, strict=True):
            r.context.n_gradients += sum(self._cost(part, len(r.forget)) for part in (r.forget, whole[at]))
            alpha = r.strength_or(self.alpha)
            factor = dampening_factor(on_forget[at], on_all[at], alpha, self.dampening, self.exponent)  # 1 in gaps
            rows.append(stack.weights[at] * factor.to(stack.weights.dtype))
        return stack.copies(torch.stack(rows), place)

    def _importances(self, stack: TracedStack, requests: Sequence[Request], parts: Sequence[Points]) -> Tensor:
        """(K, P) float64, like `_importance`."""
        if self.importance == "per-sample":
            return stacked_squares(stack, parts, loss_directions(parts[0].task))
        cut = [self._batches(len(own), len(r.forget)) for own, r in zip(parts, requests, strict=True)]
        sizes = torch.ones((max(map(len, cut)), len(cut), 1), device=stack.device)  # whose batches ended adds 0
        for member, batches in enumerate(cut):
            sizes[: len(batches), member, 0] = torch.tensor([len(at) for at in batches], device=stack.device)
        total = torch.zeros_like(stack.weights, dtype=torch.float64)
        chosen = [[own.index[at] for at in batches] for own, batches in zip(parts, cut, strict=True)]
        for gradient, size in zip(stacked_gradients(stack, parts, chosen), sizes, strict=True):
            total += (gradient.double() / size).square()
        return total / torch.tensor([len(batches) for batches in cut], device=stack.device)[:, None]

    def _batches(self, n_points: int, n_forget: int) -> list[Positions]:
        """Positions of the points in each batch."""
        if self.importance == "published-batches":
            return np.split(np.arange(n_points), range(self.batch_size, n_points, self.batch_size))
        return list(equal_batches(n_points, -(-n_forget // batches_per_epoch(n_forget, self.batch_size))))


def dampening_factor(on_forget: Tensor, on_all: Tensor, alpha: float, dampening: float, exponent: float) -> Tensor:
    """What each weight is multiplied by; 1 where it is not selected, so that 0 / 0 is never taken."""
    selected = on_forget > alpha * on_all
    ratio = dampening * on_all / torch.where(selected, on_forget, 1.0)
    return torch.where(selected, ratio.pow(exponent).clamp(max=1.0), 1.0)


def mean_squared_batch_gradients(model: nn.Module, part: Points, batches: Sequence[Positions]) -> Tensors:
    """Mean over batches of (∇ mean loss of the batch)², in float64."""
    parameters = trainable(model)
    total = {name: torch.zeros_like(parameter, dtype=torch.float64) for name, parameter in parameters.items()}
    for at in batches:
        gradients = torch.autograd.grad(
            part.task.loss(model(part.x[at]), part.y[at]),
            list(parameters.values()),
            allow_unused=True,
            materialize_grads=True,
        )
        for name, gradient in zip(parameters, gradients, strict=True):
            total[name] += gradient.double().square()
    return {name: square / len(batches) for name, square in total.items()}


def equal_batches(n: int, size: int) -> Positions:
    """(ceil(n / size), size) positions: all points, dealt out like cards, so that no batch is one class of sorted data.

    Where n is no multiple of the size, the last batch is filled up from the first: a short one would have a larger
    squared gradient, and dropping it would leave points out. No point is twice in a batch, as size ≤ n.
    """
    n_batches = batches_per_epoch(n, size)
    dealt = np.concatenate([np.arange(first, n, n_batches) for first in range(n_batches)])
    return np.resize(dealt, (n_batches, size))
