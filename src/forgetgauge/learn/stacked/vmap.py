"""A stack by vmap: the parameters of many models stacked, their forward pass vmapped.

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

from forgetgauge.learn.stacked.members import NotStackable, unstack

Loss = Callable[[Tensor, Tensor], Tensor]


class VmapStack:
    """K models of one architecture, trained as one and then taken apart again."""

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
        return unstack(self._models, self.parameters | self.buffers)


def check_vmap(model: nn.Module, x: Tensor, y: Tensor, loss: Loss) -> None:
    """Refuse a model that vmap cannot stack, by trying a step of two copies; x and y are a few example points."""
    check_draws_nothing(model)
    try:
        trial = VmapStack([copy.deepcopy(model), copy.deepcopy(model)])
        trial.loss(loss, torch.stack([x, x]), torch.stack([y, y])).backward()  # type: ignore[no-untyped-call]
    except (RuntimeError, ValueError) as error:
        raise NotStackable(str(error).splitlines()[0]) from None
    alone = copy.deepcopy(model)
    alone(x)
    for name, buffer in alone.named_buffers():
        if not torch.allclose(buffer.double(), trial.buffers[name][0].double(), atol=1e-5):
            raise NotStackable(f"its buffer {name} is not updated in place")


def check_draws_nothing(model: nn.Module) -> None:
    """Refuse a model with a part that is known to draw random numbers in train mode."""
    for name, module in model.named_modules():
        if isinstance(module, nn.modules.dropout._DropoutNd) and module.p > 0:
            raise NotStackable(f"{name or type(module).__name__} draws random numbers of its own")
