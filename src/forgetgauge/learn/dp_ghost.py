"""Sums of clipped per-example gradients of many models at once, no example's gradient ever stored.

Norms first, layer by layer (`ghost_layers`), then with the clipping factors known the sum that DP-SGD wants, from the
same tensors: one backward pass where ghost clipping needs two. A ResNet-18's gradients take 45 MB an example; what is
kept here, at 32 × 32 pixels behind the ImageNet stem, about 2. The examples of a batch never mix: hence no batch norm.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch
import torch.fx
import torch.nn.functional as F
from torch import Tensor, nn

from forgetgauge.learn.ghost_layers import Gradients, Layer, NoGhost, Use, layer_of
from forgetgauge.models.outputs import has_hooks
from forgetgauge.models.resnet import PadShortcut
from forgetgauge.tasks.classification import CLASSIFICATION
from forgetgauge.tasks.task import Task

_PARTS = (
    nn.ReLU,
    nn.Tanh,
    nn.GELU,
    nn.Flatten,
    nn.Identity,
    nn.MaxPool2d,
    nn.AvgPool2d,
    nn.AdaptiveAvgPool2d,
    PadShortcut,
)
"""Without parameters, and each example for itself: they are given all members' examples as one batch."""

_FUNCTIONS: tuple[Any, ...] = (operator.add, torch.add, F.relu, torch.relu, torch.flatten)


class GhostStack:
    """K models of one architecture; `parameters` are theirs, stacked, to be moved by any elementwise optimiser."""

    def __init__(self, models: Sequence[nn.Module], task: Task = CLASSIFICATION) -> None:
        self._models, self._task = list(models), task
        self._graph = _trace(models[0])
        self._layers = _read(self._graph)
        each = [dict(model.named_parameters()) for model in models]
        self.parameters: Gradients = {name: torch.stack([own[name].detach() for own in each]) for name in each[0]}
        self._check_covers(models[0])

    def _check_covers(self, model: nn.Module) -> None:
        """Every parameter is of one layer and of no other."""
        known = {name for layer in self._layers.values() for name in layer.names}
        for name, _ in model.named_parameters(remove_duplicate=False):
            if name not in known:
                raise NoGhost(f"{name} is a parameter of no layer that is known to it")
            if name not in self.parameters:
                raise NoGhost(f"{name} is shared with another layer")

    def zeros(self) -> Gradients:
        """A sum to begin with."""
        return {name: torch.zeros_like(stacked) for name, stacked in self.parameters.items()}

    def add_clipped(self, into: Gradients, x: Tensor, y: Tensor, own: Tensor, clip_norm: float | None) -> Tensor:
        """Add Σ_i min(1, clip_norm / ‖g_i‖) g_i over a member's own examples, g_i of its loss; None: no clip.

        x (K, B, …), y (K, B), own (K, B) false where a member's batch is shorter. Gives the norms ‖g_i‖, (K, B).
        """
        uses, made = self._forward(x)
        loss = self._task.loss(made, y.flatten(), reduction="sum")
        ups = torch.autograd.grad(loss, [use.out for use in uses])
        with torch.no_grad():
            norms = torch.zeros_like(own, dtype=x.dtype)
            if clip_norm is not None:
                for use, up in zip(uses, ups, strict=True):
                    norms += use.layer.squared_norms(use.read, up)
                norms.sqrt_()
            factor = own.to(x.dtype)
            if clip_norm is not None:
                factor = factor * (clip_norm / (norms + 1e-6)).clamp(max=1.0)  # 1e-6 as opacus has it
            for use, up in zip(uses, ups, strict=True):
                use.layer.add_weighted(into, use.read, up, factor)
        return norms

    def members(self) -> list[nn.Module]:
        """The models with what was learnt."""
        with torch.no_grad():
            for k, model in enumerate(self._models):
                for name, parameter in model.named_parameters():
                    parameter.copy_(self.parameters[name][k])
        return self._models

    def _forward(self, x: Tensor) -> tuple[list[Use], Tensor]:
        """What each layer read and made, and the outputs (K · B, n_outputs)."""
        k, values, uses = len(x), dict[str, Any](), list[Use]()
        with torch.enable_grad():
            for node in self._graph.graph.nodes:
                given = torch.fx.map_arg(node.args, lambda arg: values[arg.name])
                if node.op == "placeholder":
                    values[node.name] = x.flatten(0, 1)
                elif node.op == "output":
                    return uses, given[0]
                elif node.name in self._layers:
                    use = self._layers[node.name].read(given[0], k, self.parameters)
                    uses.append(use)
                    values[node.name] = use.shaped(use.out)
                elif node.op == "call_module":
                    values[node.name] = self._graph.get_submodule(str(node.target))(*given)
                else:
                    values[node.name] = node.target(*given, **node.kwargs)
        raise AssertionError("a traced graph ends with its output")


# -- reading a model ---------------------------------------------------------------------------------------------------


class _Tracer(torch.fx.Tracer):
    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return isinstance(m, PadShortcut) or super().is_leaf_module(m, module_qualified_name)


def _trace(model: nn.Module) -> torch.fx.GraphModule:
    if has_hooks(model):
        raise NoGhost("it has forward hooks, which torch.fx does not see")
    try:
        return torch.fx.GraphModule(model, _Tracer().trace(model))
    except Exception as error:  # fx raises many kinds
        raise NoGhost(f"torch.fx cannot trace it: {str(error).splitlines()[0]}") from None


def _read(graph: torch.fx.GraphModule) -> dict[str, Layer]:
    """Node -> layer, of all parts with parameters; each may be used once, else its gradient is of two uses."""
    layers: dict[str, Layer] = {}
    used: set[str] = set()
    for node in graph.graph.nodes:
        name = str(node.target)
        if node.op == "call_module":
            module = graph.get_submodule(name)
            if isinstance(module, _PARTS):
                _check_part(name, module)
                continue
            if name in used:
                raise NoGhost(f"{name} is used twice")
            used.add(name)
            layers[node.name] = layer_of(name, module)
        elif node.op not in ("placeholder", "output"):
            flattens = node.target is torch.flatten and node.args[1:] != (1,)
            if node.target not in _FUNCTIONS or flattens or node.kwargs.get("inplace"):
                raise NoGhost(f"{node.op} {node.target} is not known to it")
    if sum(node.op == "placeholder" for node in graph.graph.nodes) != 1:
        raise NoGhost("its forward takes more than one argument")
    return layers


def _check_part(name: str, module: nn.Module) -> None:
    """What a layer made is asked for its gradient later, so nobody may write over it."""
    if getattr(module, "inplace", False):
        raise NoGhost(f"{name} works in place")
    if isinstance(module, nn.Flatten) and module.start_dim != 1:
        raise NoGhost(f"{name} flattens the examples together")


def why_no_ghost(model: nn.Module, x: Tensor) -> str | None:
    """The reason why models like this are trained one after another on points like x; None where together."""
    try:
        GhostStack([model])._forward(x[None])
    except NoGhost as reason:
        return str(reason)
    return None
