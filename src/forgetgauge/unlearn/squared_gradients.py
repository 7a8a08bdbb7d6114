"""Mean squares of per-sample gradients: the diagonal Fisher information and the importances of SSD.

Each point's gradient is squared before the mean is taken; the square of a batch's mean gradient is another quantity
(it shrinks with the batch size). Points go through vmap in chunks, so memory is a few chunks of gradients however many
points and classes there are; a model that vmap cannot take is differentiated point by point.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn
from torch.func import functional_call, vjp, vmap

from forgetgauge.learn.columns import gradients_at_once
from forgetgauge.learn.device import is_out_of_memory
from forgetgauge.learn.stacked.trainer import StackedDirections
from forgetgauge.tasks.task import Task

Tensors = dict[str, Tensor]
Pull = Callable[[Tensor], Tensors]
"""v ↦ ∂(v · logits)/∂θ for the logits of one point."""
Directions = Callable[[Tensor, Tensor], Tensor]
"""((K,) logits, () label) ↦ (m, K): the v whose pulled-back squares are summed."""


def trainable(model: nn.Module) -> Tensors:
    """The parameters that training moved, by name; a frozen one cannot remember the forget set."""
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}


def squared_loss_gradient(task: Task) -> Directions:
    """(1, K) directions of (∇ loss)²: for cross-entropy p − e_y."""
    return lambda outputs, label: task.loss_gradient(outputs, label)[None]


def loss_directions(task: Task) -> StackedDirections:
    """The direction of (∇ loss)² for a stack's (K, B, C) outputs and (K, B) labels."""
    return lambda outputs, labels: [task.loss_gradient(outputs, labels)]


def squared_score_under_the_model(logits: Tensor, label: Tensor) -> Tensor:
    """(K, K) directions of Σ_y p_y (∇ −log p_y)², whatever the label.

    With the logit Jacobian J this is, coordinate by coordinate, the variance of J_y under y ~ p; centred before it is
    squared, so that nothing cancels and no entry falls below 0.
    """
    p = logits.softmax(0)
    return p.sqrt()[:, None] * (p[None] - torch.eye(len(p), dtype=p.dtype, device=p.device))


@torch.no_grad()  # what stays out of `parameters` wants gradients too, and would keep every chunk in memory
def mean_squares(model: nn.Module, parameters: Tensors, x: Tensor, y: Tensor, directions: Directions) -> Tensors:
    """(1/n) Σ_i Σ_v (∂(v · logits_i)/∂θ_j)² over v in directions(logits_i, y_i), in float64 and the model's mode."""

    def of_point(values: Tensors, x: Tensor, y: Tensor) -> Tensors:
        logits, pull, *_ = vjp(lambda values: functional_call(model, values, (x[None],))[0], values)
        return _sum_of_squares(lambda v: pull(v)[0], directions(logits, y))

    def of_chunk(x: Tensor, y: Tensor) -> Tensors:
        return {name: square.sum(0) for name, square in vmap(of_point, in_dims=(None, 0, 0))(values, x, y).items()}

    @torch.enable_grad()
    def of_point_alone(x: Tensor, y: Tensor) -> Tensors:  # x: (1, …), y: (1,)
        logits = model(x)[0]
        return _sum_of_squares(lambda v: _pull_back(logits, parameters, v), directions(logits.detach(), y[0]))

    values = {name: parameter.detach() for name, parameter in parameters.items()}
    size = gradients_at_once(sum(value.numel() for value in values.values()), x.device, x[0].numel())
    whole = size > 1 and _works(of_chunk, x[:2], y[:2])
    total = {name: torch.zeros_like(value, dtype=torch.float64) for name, value in values.items()}
    for start in range(0, len(x), size if whole else 1):
        at = slice(start, start + (size if whole else 1))
        for name, part in (of_chunk if whole else of_point_alone)(x[at], y[at]).items():
            total[name] += part
    return {name: square / len(x) for name, square in total.items()}


def _sum_of_squares(pull: Pull, directions: Tensor) -> Tensors:
    total: Tensors = {}
    for v in directions.unbind():  # one after the other: K Jacobian rows at once would be K times the memory
        for name, gradient in pull(v).items():
            square = gradient.square()
            total[name] = total[name] + square if name in total else square
    return total


def _pull_back(logits: Tensor, parameters: Mapping[str, Tensor], v: Tensor) -> Tensors:
    gradients = torch.autograd.grad(
        logits, list(parameters.values()), v, retain_graph=True, allow_unused=True, materialize_grads=True
    )
    return dict(zip(parameters, gradients, strict=True))


def _works(of_chunk: Callable[[Tensor, Tensor], Tensors], x: Tensor, y: Tensor) -> bool:
    """Whether vmap can take the model: not those that branch on values, or that draw random numbers in eval mode."""
    try:
        of_chunk(x, y)
    except (RuntimeError, ValueError) as error:
        if is_out_of_memory(error):
            raise
        return False
    return True
