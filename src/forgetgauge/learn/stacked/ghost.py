"""Steps of DP-SGD for a stack of models: sums of clipped per-example gradients, none ever stored, and the noise.

Norms first, layer by layer (`ghost_layers`), then with the clipping factors known the sum that DP-SGD wants, from the
same tensors: one backward pass where ghost clipping needs two. A ResNet-18's gradients take 45 MB an example; what is
kept here, at 32 × 32 pixels behind the ImageNet stem, about 2. The examples of a batch never mix: hence no batch norm.

A step is some 700 operations, which a GPU does faster than a host can order them, even for six ResNet-18s. So on a GPU
the sums are captured as a CUDA graph and replayed. Poisson batches differ in size: a graph for every multiple of 32.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch.fx
import torch.nn.functional as F
from torch import Tensor, nn

from forgetgauge.data.dataset import Points
from forgetgauge.learn.descent import Positions
from forgetgauge.learn.device import capture
from forgetgauge.learn.stacked.ghost_layers import Layer, Stacked, Use, layer_of
from forgetgauge.learn.stacked.members import NotStackable, own_labels, trace, unstack
from forgetgauge.models.resnet import PadShortcut
from forgetgauge.tasks.classification import CLASSIFICATION
from forgetgauge.tasks.task import Task

WIDTHS = 32
"""Captured batches are multiples of this wide: of 505 expected points, the widest of 16 draws is 505 to 600."""

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
        self._graph = trace(models[0])
        self._layers = _read(self._graph)
        each = [dict(model.named_parameters()) for model in models]
        self.parameters: Stacked = {name: torch.stack([own[name].detach() for own in each]) for name in each[0]}
        self._check_covers(models[0])

    def _check_covers(self, model: nn.Module) -> None:
        """Every parameter is of one layer and of no other."""
        known = {name for layer in self._layers.values() for name in layer.names}
        for name, _ in model.named_parameters(remove_duplicate=False):
            if name not in known:
                raise NotStackable(f"{name} is a parameter of no layer that is known to the engine")
            if name not in self.parameters:
                raise NotStackable(f"{name} is shared with another layer")

    def zeros(self) -> Stacked:
        """A sum to begin with."""
        return {name: torch.zeros_like(stacked) for name, stacked in self.parameters.items()}

    def add_clipped(self, into: Stacked, x: Tensor, y: Tensor, own: Tensor, clip_norm: float | None) -> Tensor:
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
        return unstack(self._models, self.parameters)

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
                raise NotStackable(f"{name} is used twice")
            used.add(name)
            layers[node.name] = layer_of(name, module)
        elif node.op not in ("placeholder", "output"):
            flattens = node.target is torch.flatten and node.args[1:] != (1,)
            if node.target not in _FUNCTIONS or flattens or node.kwargs.get("inplace"):
                raise NotStackable(f"{node.op} {node.target} is not known to the engine")
    return layers


def _check_part(name: str, module: nn.Module) -> None:
    """What a layer made is asked for its gradient later, so nobody may write over it."""
    if getattr(module, "inplace", False):
        raise NotStackable(f"{name} works in place")
    if isinstance(module, nn.Flatten) and module.start_dim != 1:
        raise NotStackable(f"{name} flattens the examples together")


def check_ghost(model: nn.Module, x: Tensor) -> None:
    """Refuse a model that cannot be a member here, by a forward pass over points like x."""
    GhostStack([model])._forward(x[None])


# -- a step ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Captured:
    """A step's sums for batches of one width, and where they read the batches from."""

    graph: torch.cuda.CUDAGraph
    index: Tensor
    own: Tensor


class ClippedSums:
    """Σ_i min(1, clip_norm / ‖g_i‖) g_i over each member's batch; None: no clip."""

    def __init__(
        self, stack: GhostStack, points: Sequence[Points], clip_norm: float | None, physical_batch_size: int
    ) -> None:
        self.stack, self.points, self.clip_norm, self.physical = stack, points[0], clip_norm, physical_batch_size
        self.labels = own_labels(points)
        self.total = stack.zeros()
        self._captured: dict[int, _Captured] = {}
        self._pool: Any = torch.cuda.graph_pool_handle() if points[0].device.type == "cuda" else None

    def of(self, batches: Sequence[Positions]) -> list[Tensor]:
        """(K, *shape) for each parameter; always the same tensors."""
        totals = list(self.total.values())
        torch._foreach_zero_(totals)
        for index, own in _chunks(batches, self.physical):
            if self.points.device.type == "cuda":
                self._replay(index, own)
            else:
                self._add(torch.from_numpy(index), torch.from_numpy(own))
        return totals

    def _add(self, index: Tensor, own: Tensor) -> None:
        self.stack.add_clipped(self.total, self.points.inputs_at(index), self.labels(index), own, self.clip_norm)

    def _replay(self, index: npt.NDArray[np.int64], own: npt.NDArray[np.bool_]) -> None:
        width = min(self.physical, -(-index.shape[1] // WIDTHS) * WIDTHS)
        if width not in self._captured:
            self._captured[width] = self._capture(len(index), width)
        step, beyond = self._captured[width], ((0, 0), (0, width - index.shape[1]))
        for here, array in ((step.index, np.pad(index, beyond)), (step.own, np.pad(own, beyond))):
            here.copy_(torch.from_numpy(array).pin_memory(), non_blocking=True)  # else the host waits for the GPU
        step.graph.replay()

    def _capture(self, k: int, width: int) -> _Captured:
        device = self.points.device
        index = torch.zeros((k, width), dtype=torch.int64, device=device)
        own = torch.zeros((k, width), dtype=torch.bool, device=device)  # nobody's: nothing is added by trying it out
        # Tried out in memory of its own: while a graph is captured a step takes twice as much.
        graph = capture(lambda: self._add(index, own), device, n_trials=1, pool=self._pool)
        return _Captured(graph, index, own)


class Noise:
    """N(0, deviation²) on the members' sums, each member's drawn from its own source as opacus draws it."""

    def __init__(self, deviation: float, like: Iterable[Tensor], sources: Sequence[torch.Generator]) -> None:
        self.deviation = deviation
        self.drawn = [torch.empty_like(stacked) for stacked in like if deviation > 0]
        # Hundreds of draws a step: their views are made once, and they are added all at once.
        self.draws = [(own, source) for drawn in self.drawn for own, source in zip(drawn, sources, strict=True)]

    def add_to(self, totals: list[Tensor]) -> None:
        """In place, parameter by parameter, (K, *shape) each."""
        for own, source in self.draws:
            own.normal_(0.0, self.deviation, generator=source)
        if self.drawn:
            torch._foreach_add_(totals, self.drawn)


def divide(totals: list[Tensor], sizes: Sequence[int]) -> None:
    """Each member's sums by its own expected batch size, in place."""
    if len(set(sizes)) == 1:
        torch._foreach_div_(totals, sizes[0])
        return
    size = torch.tensor(sizes, device=totals[0].device)
    for total in totals:
        total.div_(size.view(-1, *[1] * (total.dim() - 1)))


def in_parts(batch: Positions, physical: int) -> list[Positions]:
    """Parts of at most so many, of sizes that differ by one at most; one empty part where nobody was drawn."""
    return np.array_split(batch, max(1, -(-len(batch) // physical)))


def _chunks(
    batches: Sequence[Positions], physical: int
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]]:
    """(index, own), both (K, B): the members' batches side by side, the shorter filled up with points not their own."""
    widest = max(len(batch) for batch in batches)
    if widest == 0:
        return
    sizes = np.array([len(batch) for batch in batches])
    padded = np.stack([np.pad(batch, (0, widest - len(batch))) for batch in batches])  # (K, widest)
    for columns in in_parts(np.arange(widest), physical):
        yield padded[:, columns], columns[None] < sizes[:, None]
