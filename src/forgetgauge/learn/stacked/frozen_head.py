"""Token losses under a last layer that is not trained, whose logits are never kept."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from forgetgauge.learn.device import kernels_on

LOGITS_KEPT = 2**28
"""Numbers: so many logits are there at once."""


def losses_under_frozen_head(states: Tensor, head: Tensor, targets: Tensor) -> Tensor:
    """(m,) cross-entropies of (m,) targets, of (m, d) states and a last layer (vocab, d) that is not trained.

    Logits are never kept: what autograd would keep is a number for every token and every word of the vocabulary,
    several times over.
    """
    each: Tensor = _FrozenHead.apply(states, head, targets)  # type: ignore[no-untyped-call]
    return each


class _FrozenHead(torch.autograd.Function):
    """Of a cross-entropy the gradient by a state is (p − e_target) · weights, which is computed at once, since the
    weights get none."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, head: Tensor, targets: Tensor) -> Tensor:
        rows = max(1, LOGITS_KEPT // len(head))
        losses, gradients = [], []
        for some, wanted in zip(torch.split(states, rows), torch.split(targets, rows), strict=True):
            each, differences = _cross_entropies(some @ head.T, wanted, ctx.needs_input_grad[0])
            losses.append(each)
            if differences is not None:
                gradients.append(differences @ head)
        ctx.save_for_backward(*gradients)
        return torch.cat(losses)

    @staticmethod
    def backward(ctx: Any, *given: Tensor) -> tuple[Tensor | None, None, None]:
        gradient = torch.cat(ctx.saved_tensors) if len(ctx.saved_tensors) > 1 else ctx.saved_tensors[0]
        return (gradient * given[0][:, None]).to(gradient.dtype), None, None


def _cross_entropies(logits: Tensor, targets: Tensor, with_gradient: bool) -> tuple[Tensor, Tensor | None]:
    """(m, vocab), (m,) -> (m,) in float32, and p − e_target in the logits' precision; these may be overwritten."""
    kernels = kernels_on(logits.device, "blocks")
    if kernels is not None:
        return kernels.cross_entropies(logits, targets, with_gradient=with_gradient), logits if with_gradient else None
    log_p = logits.float().log_softmax(1)
    losses = -log_p.gather(1, targets[:, None])[:, 0]
    if not with_gradient:
        return losses, None
    p = log_p.exp_()
    p.scatter_add_(1, targets[:, None], p.new_full((len(p), 1), -1.0))
    return losses, p.to(logits.dtype)
