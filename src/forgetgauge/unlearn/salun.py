"""SalUn: fine-tuning with random labels on F and true ones on R, of the weights that F's loss is most sensitive to.

The other weights stay as they are to the bit. Batch norm's running statistics are no weights: in train mode they move
on the batches of F and R, masked or not, as in the published code; `batch_norm = "frozen"` keeps them.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn

from forgetgauge.data.dataset import Points
from forgetgauge.learn.descent import (
    Positions,
    Steps,
    batch_positions,
    batches_per_epoch,
    check_steps,
    descend,
    own_randomness,
)
from forgetgauge.learn.stacked.members import NotStackable
from forgetgauge.learn.stacked.traced import TracedStack
from forgetgauge.learn.stacked.trainer import Batch, Feed
from forgetgauge.plan.strength import Published, Strength
from forgetgauge.unlearn.squared_gradients import Tensors, trainable
from forgetgauge.unlearn.stacked import descended, stacked_gradients, unlearn_stacked
from forgetgauge.unlearn.unlearner import Context, Request


@dataclass(frozen=True)
class SalUn:
    """SGD on the most salient weights; every epoch first the batches of F, then those of R."""

    strength: ClassVar[Strength] = Strength("lr", weakest=1e-5, strongest=0.1)
    published: ClassVar[Published] = Published(
        {"lr": 0.013, "fraction": 0.5, "epochs": 10, "batch_size": 256},
        "Fan et al. 2024, their code's README, for ResNet-18 and a tenth of CIFAR-10",
    )
    needs_classes: ClassVar[bool] = True
    fraction: float = 0.5
    """Share of all weights that may move: the largest |∇L_F| over the whole model, not layer by layer."""
    lr: float = 0.013
    momentum: float = 0.9
    weight_decay: float = 5e-4
    epochs: int = 10
    batch_size: int = 256
    batch_norm: Literal["frozen", "train"] = "train"
    """`train`: running statistics drift to the batches of F and R. A batch of one point never moves them."""

    def __post_init__(self) -> None:
        check_steps(self.lr, self.epochs, self.batch_size)
        if not 0 <= self.fraction <= 1:
            raise ValueError("fraction must be between 0 and 1")
        if self.momentum < 0 or self.weight_decay < 0:
            raise ValueError("momentum and weight_decay must not be negative")
        if self.batch_norm not in ("frozen", "train"):
            raise ValueError(f"batch_norm = {self.batch_norm!r} is neither 'frozen' nor 'train'")

    def unlearn(self, model: nn.Module, retain: Points, forget: Points, context: Context) -> nn.Module:
        """Tune a copy; the labels stored with F are used for the mask and never changed."""
        model = copy.deepcopy(model).eval()
        parameters, labels = trainable(model), context.streams.generator("labels")
        began = {name: parameter.detach().clone() for name, parameter in parameters.items()}

        def loss(at: Tensor) -> Tensor:
            _train_batch_norm(model, self.batch_norm == "train" and len(at) > 1)
            if at[0] < len(forget):
                drawn = labels.integers(forget.n_classes, size=len(at))
                return forget.task.loss(model(forget.x[at]), torch.from_numpy(drawn).to(forget.device))
            at = at - len(forget)
            return retain.task.loss(model(retain.x[at]), retain.y[at])

        @torch.no_grad()
        def restore(steps: torch.optim.Optimizer) -> None:
            # Masking gradients alone would let weight decay, and momentum with it, move the rest.
            for name, parameter in parameters.items():
                parameter.copy_(torch.where(mask[name], parameter, began[name]))
                velocity = steps.state[parameter].get("momentum_buffer")
                if velocity is not None:
                    velocity.masked_fill_(~mask[name], 0.0)

        with own_randomness(context.streams):
            mask = most_salient(forget_gradient(model, forget, self.batch_size), self.fraction)
            model.train()
            descend(
                loss,
                parameters.values(),
                _positions(len(forget), len(retain), self, context.streams.generator("order")),
                self._steps,
                n_steps=self._n_steps(retain, forget),
                after_step=restore,
            )
        context.n_gradients += self._cost(retain, forget)
        return model.eval()

    def unlearn_many(self, requests: Sequence[Request]) -> list[nn.Module]:
        """All of them in one stack, where their models can be one."""
        return unlearn_stacked(requests, self, self._stacked)

    def _stacked(self, stack: TracedStack, requests: Sequence[Request]) -> list[nn.Module]:
        parts, train = [p for r in requests for p in (r.forget, r.retain)], self.batch_norm == "train"
        if train and stack.statistics and any(self._has_single(part) for part in parts):
            raise NotStackable("a batch of one point is not to move running statistics, the others are")
        frozen, began = ~self._masks(stack, requests), stack.weights.clone()

        def restore(weights: Tensor, velocity: Tensor) -> None:
            weights.copy_(torch.where(frozen, began, weights))
            velocity.masked_fill_(frozen, 0.0)

        feeds = [Feed(self._batches(r), self._n_steps(r.retain, r.forget), lr=r.strength) for r in requests]
        models = descended(
            stack, parts, feeds, self._steps, batch_size=self.batch_size, train=train, after_step=restore
        )
        for r in requests:
            r.context.n_gradients += self._cost(r.retain, r.forget)
        return models

    def _masks(self, stack: TracedStack, requests: Sequence[Request]) -> Tensor:
        """(K, P) each member's `most_salient`, in the model's own order (of equal gradients the first are kept)."""
        batches = [np.split(r.forget.index, range(self.batch_size, len(r.forget), self.batch_size)) for r in requests]
        total = torch.zeros_like(stack.weights)
        for gradient in stacked_gradients(stack, [r.forget for r in requests], batches):
            total += gradient
        masks = []
        for model, table in zip(stack.models, stack.tables_of(total), strict=True):
            masks.append(most_salient({name: table[name] for name, _ in model.named_parameters()}, self.fraction))
        return stack.rows_of(masks) > 0

    def _batches(self, request: Request) -> Iterator[Batch]:
        retain, forget, streams = request.retain, request.forget, request.context.streams
        labels, n_forget, taught = streams.generator("labels"), len(forget), retain.y.cpu().numpy()
        for at in _positions(n_forget, len(retain), self, streams.generator("order")):
            if at[0] < n_forget:
                yield Batch(forget.index[at], labels.integers(forget.n_classes, size=len(at)))
            else:
                yield Batch(retain.index[at - n_forget], taught[at - n_forget])

    @property
    def _steps(self) -> Steps:
        return Steps(lr=self.lr, momentum=self.momentum, weight_decay=self.weight_decay)

    def _n_steps(self, retain: Points, forget: Points) -> int:
        return self.epochs * sum(batches_per_epoch(len(part), self.batch_size) for part in (forget, retain))

    def _cost(self, retain: Points, forget: Points) -> int:
        return len(forget) + self.epochs * (len(forget) + len(retain))

    def _has_single(self, part: Points) -> bool:
        """Whether its smallest batch is one point."""
        return len(part) // batches_per_epoch(len(part), self.batch_size) == 1


def forget_gradient(model: nn.Module, forget: Points, batch_size: int) -> Tensors:
    """Σ over F of ∇L, in the mode the model is in: every point weighs the same.

    The published code sums the mean gradients of batches, in which the points of a short last batch weigh more.
    """
    parameters = trainable(model)
    total = {name: torch.zeros_like(parameter) for name, parameter in parameters.items()}
    for x, y in zip(torch.split(forget.x, batch_size), torch.split(forget.y, batch_size), strict=True):
        loss = forget.task.loss(model(x), y, reduction="sum")
        gradients = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True, materialize_grads=True)
        for name, gradient in zip(parameters, gradients, strict=True):
            total[name] += gradient
    return total


def most_salient(gradient: Tensors, fraction: float) -> Tensors:
    """True for the ⌊fraction · P⌋ entries of largest size over all tensors; of equal ones, the first."""
    sizes = torch.cat([tensor.abs().flatten() for tensor in gradient.values()])
    n_kept = math.floor(fraction * len(sizes) + 1e-9)  # 0.29 · 100 is 28.999…
    kept = torch.zeros(len(sizes), dtype=torch.bool, device=sizes.device)
    kept[torch.argsort(sizes, descending=True, stable=True)[:n_kept]] = True
    parts = torch.split(kept, [tensor.numel() for tensor in gradient.values()])
    return {name: part.view_as(tensor) for (name, tensor), part in zip(gradient.items(), parts, strict=True)}


def _positions(n_forget: int, n_retain: int, how: SalUn, rng: np.random.Generator) -> Iterator[Positions]:
    """F's points are 0 … |F| − 1, R's follow; no batch has both."""
    for _ in range(how.epochs):
        yield from batch_positions(n_forget, how.batch_size, 1, rng)
        yield from (n_forget + at for at in batch_positions(n_retain, how.batch_size, 1, rng))


def _train_batch_norm(model: nn.Module, training: bool) -> None:
    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.train(training)
