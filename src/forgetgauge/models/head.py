"""The last layer, found by module and never by shape: many a tensor has as many rows as there are classes."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from forgetgauge.errors import UserError

AT_ONCE = 1024
"""Points: a ResNet-18 on images of 32 × 32 takes 1.3 MiB a point."""
_USUAL_NAMES = ("head", "fc", "classifier", "linear")


def head_of(model: nn.Module) -> nn.Linear:
    """The linear layer that makes the logits: `model.head`, another usual name, or else the last linear module."""
    for name in _USUAL_NAMES:
        part = getattr(model, name, None)
        if isinstance(part, nn.Linear):
            return part
    linear = [module for module in model.modules() if isinstance(module, nn.Linear)]
    if not linear:
        raise UserError(f"{type(model).__name__} has no linear layer to call its head")
    return linear[-1]


@torch.no_grad()
def features_of(model: nn.Module, x: Tensor) -> Tensor:
    """(n, …) inputs -> (n, d) what the head is given, in the mode the model is in."""
    caught: list[Tensor] = []
    hook = head_of(model).register_forward_pre_hook(lambda _, args: caught.append(args[0]))
    try:
        for part in torch.split(x, AT_ONCE):
            model(part)
    finally:
        hook.remove()
    return torch.cat(caught)
