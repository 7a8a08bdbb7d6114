"""Which engine trains a stack of models: the fastest that knows the architecture.

traced   a GPU's kernels for all members at once (traced.py); members may have sets of different sizes
vmap     any architecture without random numbers or odd buffers, members of equal size (`VmapStack`)
streams  a GPU, one member per CUDA stream, for what vmap refuses
solo     one after another
ghost    DP-SGD of all members at once, each example's gradient clipped (ghost.py)
opacus   DP-SGD of one after another, by opacus
lora     adapters of all members on one frozen base (records.py)

A step of a small model on a CPU is mostly overhead; a stack by vmap pays it once for all members. The members never
mix: their losses are summed, so each gradient is that of the member alone, and batch-norm statistics are stacked
buffers that vmap updates member by member. Equal to training alone up to the order of float additions.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from forgetgauge.data.dataset import Points
from forgetgauge.learn.device import is_out_of_memory
from forgetgauge.learn.stacked.members import NotStackable, check_points, reason_against, unstack
from forgetgauge.learn.stacked.traced import TracedStack
from forgetgauge.streams import Streams

N_STREAMS = 8
Loss = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Engine:
    """What trains the members, and the reason why nothing faster does."""

    name: Literal["traced", "vmap", "streams", "solo", "ghost", "opacus", "lora"]
    reason: str = ""

    @property
    def mixes_sizes(self) -> bool:
        """Whether members of one stack may have sets of different sizes."""
        return self.name != "vmap"


def choose_engine(model: nn.Module, points: Sequence[Points]) -> Engine:
    """The fastest for models like this (in train mode) on these points."""
    apart = reason_against(check_points, points)
    if apart is not None:
        return Engine("solo", apart)
    on_gpu = points[0].device.type == "cuda"
    not_traced = reason_against(TracedStack, [copy.deepcopy(model)]) if on_gpu else "the kernels are for a GPU"
    if not_traced is None:
        return Engine("traced")
    if len(points) == 1:
        return Engine("solo", "a stack of one is a model alone")
    x, y = points[0].subset(points[0].index[:4]).x, points[0].subset(points[0].index[:4]).y
    no_vmap = reason_against(check_vmap, copy.deepcopy(model), x, y, points[0].task.loss)
    if no_vmap is None:
        return Engine("vmap", not_traced)
    if on_gpu and reason_against(check_draws_nothing, model) is None:
        return Engine("streams", no_vmap)
    return Engine("solo", no_vmap)


def on_streams(
    fit: Callable[[Points, Streams], nn.Module], points: Sequence[Points], streams: Sequence[Streams]
) -> list[nn.Module]:
    """Fit each member in a thread with a CUDA stream of its own; none of them may draw from a global generator."""

    def one(p: Points, s: Streams) -> nn.Module:
        with torch.cuda.stream(torch.cuda.Stream(p.device)):  # type: ignore[no-untyped-call]
            model = fit(p, s)
            torch.cuda.current_stream(p.device).synchronize()
        return model

    with ThreadPoolExecutor(N_STREAMS) as pool:
        return list(pool.map(one, points, streams))


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
        if is_out_of_memory(error):
            raise
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
