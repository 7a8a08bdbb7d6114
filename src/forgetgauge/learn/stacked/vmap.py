"""Many models of one architecture as one: their parameters stacked, their forward pass vmapped.

A step of a small model on a CPU is mostly overhead; a stack pays it once for all members. The members never mix:
their losses are summed, so each gradient is that of the member alone, and batch-norm statistics are stacked buffers
that vmap updates member by member. Equal to training alone up to the order of float additions.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

Loss = Callable[[Tensor, Tensor], Tensor]


class Stack:
    """K models of one architecture, trained together and then taken apart again."""

    def __init__(self, models: Sequence[nn.Module]) -> None:
        parameters, self.buffers = stack_module_state(list(models))
        self.parameters = {name: p.detach().requires_grad_(p.requires_grad) for name, p in parameters.items()}
        self._models = models
        self._mould = copy.deepcopy(models[0])

    def loss(self, loss: Loss, x: Tensor, y: Tensor) -> Tensor:
        """Sum over members of loss(model(x), y); x is (K, batch, …), y is (K, batch)."""

        def one(parameters: dict[str, Tensor], buffers: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
            return loss(functional_call(self._mould, (parameters, buffers), (x,)), y)

        losses: Tensor = vmap(one)(self.parameters, self.buffers, x, y)
        return losses.sum()

    def members(self) -> list[nn.Module]:
        """The models again, each with its slice of the stack."""
        with torch.no_grad():
            for member, model in enumerate(self._models):
                for name, parameter in model.named_parameters():
                    parameter.copy_(self.parameters[name][member])
                for name, buffer in model.named_buffers():
                    buffer.copy_(self.buffers[name][member])
        return list(self._models)


def why_solo(model: nn.Module, x: Tensor, y: Tensor, loss: Loss) -> str | None:
    """The reason why models like this cannot be stacked, or None where they can; x and y are a few example points."""
    drawing = draws_random_numbers(model)
    if drawing:
        return drawing
    try:
        trial = Stack([copy.deepcopy(model), copy.deepcopy(model)])
        trial.loss(loss, torch.stack([x, x]), torch.stack([y, y])).backward()  # type: ignore[no-untyped-call]
    except (RuntimeError, ValueError) as error:
        return str(error).splitlines()[0]
    alone = copy.deepcopy(model)
    alone(x)
    for name, buffer in alone.named_buffers():
        if not torch.allclose(buffer.double(), trial.buffers[name][0].double(), atol=1e-5):
            return f"its buffer {name} is not updated in place"
    return None


def draws_random_numbers(model: nn.Module) -> str | None:
    """Which part of a model draws random numbers in train mode; None where none is known to."""
    for name, module in model.named_modules():
        if isinstance(module, nn.modules.dropout._DropoutNd) and module.p > 0:
            return f"{name or type(module).__name__} draws random numbers of its own"
    return None
