"""K models of one architecture as one: traced once, then computed forwards and backwards for all members at once.

`TracedStack` reads a model's graph by torch.fx and computes it on stacks of activations, (K, batch, height, width,
channels). A convolution with its batch norm, residual and ReLU is one step; all weights of a member are one row of one
matrix, so that an optimiser is a handful of operations whatever the network. Each member's batch-norm statistics are
its own. Every step knows its own gradient: no graph of autograd is built, and a whole step of training can be captured
once and replayed by a GPU. A model with a part that is not known here is refused by `NotStackable`.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn

from forgetgauge.learn.device import kernels_on
from forgetgauge.learn.stacked import ops as plain_ops
from forgetgauge.learn.stacked.kernels.folded import convolution as folded
from forgetgauge.learn.stacked.kernels.folded.machine import Machine, gpu
from forgetgauge.learn.stacked.members import NotStackable, trace, unstack
from forgetgauge.learn.stacked.reader import Reader
from forgetgauge.learn.stacked.steps import ALIGNMENT, Gradients, Slot, Step, Sums, Tape

Precision = Literal["float32", "tf32", "bfloat16"]


class TracedStack:
    """The stack; `weights` (K, P) are its parameters, `gradient` (K, P) what `backward` writes."""

    def __init__(self, models: Sequence[nn.Module], precision: Precision = "float32", looks_at: int = 0) -> None:
        """`looks_at` is how many points the data set has of which members will only be asked about some."""
        self.models, self.looks_at = list(models), looks_at
        frozen = [name for name, parameter in models[0].named_parameters() if not parameter.requires_grad]
        if frozen or not any(True for _ in models[0].parameters()):
            raise NotStackable(f"its parameter {frozen[0]} is frozen" if frozen else "it has no parameters")
        self.device = next(models[0].parameters()).device
        self.dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
        self.precision, self.tf32 = precision, precision == "tf32"
        self.ops = kernels_on(self.device, "ops") or plain_ops
        self.machine: Machine | None = gpu(self.device) if precision == "bfloat16" else None
        self._compiled = False
        self.slots: dict[str, Slot] = {}
        self.width = 0
        self.statistics: dict[str, tuple[Tensor, Tensor]] = {}
        graph = trace(models[0])
        self.input = next(node.name for node in graph.graph.nodes if node.op == "placeholder")
        self.steps = Reader(self, graph).read()
        self.output = self.steps[-1].makes
        self.readers: dict[str, list[Step]] = {}
        """The steps that read a value, in order."""
        for step in self.steps:
            for name in step.reads_all:
                self.readers.setdefault(name, []).append(step)
        names = {name for name, _ in models[0].named_parameters()}
        if names != set(self.slots):
            raise NotStackable(f"its parameter {min(names ^ set(self.slots))} is used by no known part, or twice")
        self.weights = self.rows_of([dict(model.named_parameters()) for model in models])
        self.gradient = torch.zeros_like(self.weights)
        self._low = self.weights if self.dtype == torch.float32 else torch.empty_like(self.weights, dtype=self.dtype)

    # -- between models and rows ---------------------------------------------------------------------------------

    def add_slot(self, name: str, parameter: Tensor, order: tuple[int, ...] | None = None) -> Slot:
        """A place in the row for a parameter."""
        if name in self.slots:
            raise NotStackable(f"its parameter {name} is used twice")
        order = tuple(range(parameter.dim())) if order is None else order
        slot = self.slots[name] = Slot(self.width, tuple(parameter.shape[axis] for axis in order), order)
        self.width = -(-slot.stop // ALIGNMENT) * ALIGNMENT
        return slot

    def add_statistics(self, name: str) -> tuple[Tensor, Tensor]:
        """Running mean and variance of a batch norm, (K, C) each."""
        mods = [model.get_submodule(name) for model in self.models]
        mean, var = (torch.stack([getattr(m, which).detach().float() for m in mods]).clone()
                     for which in ("running_mean", "running_var"))  # fmt: skip
        self.statistics[name] = mean, var
        return mean, var

    def rows_of(self, tensors: Sequence[dict[str, Tensor]]) -> Tensor:
        """(K, P) from K tables of tensors shaped like the parameters."""
        rows = torch.zeros((len(tensors), self.width), device=self.device, dtype=torch.float32)
        with torch.no_grad():
            for name, slot in self.slots.items():
                stacked = torch.stack([table[name].detach().to(self.device) for table in tensors])
                rows[:, slot.start : slot.stop] = slot.from_model(stacked)
        return rows

    def tables_of(self, rows: Tensor) -> list[dict[str, Tensor]]:
        """The inverse: K tables of tensors shaped like the parameters."""
        whole = {name: slot.to_model(rows) for name, slot in self.slots.items()}
        return [{name: stacked[k].contiguous() for name, stacked in whole.items()} for k in range(len(rows))]

    @property
    def is_weight(self) -> Tensor:
        """(P,) whether a place in a row holds a weight."""
        held = torch.zeros(self.width, dtype=torch.bool, device=self.device)
        for slot in self.slots.values():
            held[slot.start : slot.stop] = True
        return held

    @torch.no_grad()
    def members(self, n_batches: Sequence[int] | None = None) -> list[nn.Module]:
        """The models with what was learnt; `n_batches` is how many batches each batch norm of a member has seen."""
        stacked = {name: slot.to_model(self.weights) for name, slot in self.slots.items()}
        for name, (mean, var) in self.statistics.items():
            stacked |= {f"{name}.running_mean": mean, f"{name}.running_var": var}
        for model, more in zip(self.models, n_batches or [0] * len(self.models), strict=True):
            for name in self.statistics:
                model.get_buffer(f"{name}.num_batches_tracked").add_(more)
        return unstack(self.models, stacked)

    @torch.no_grad()
    def copies(self, rows: Tensor, of: Sequence[int]) -> list[nn.Module]:
        """Copies of these members as they came, each with the weights of its row."""
        models = [copy.deepcopy(self.models[member]) for member in of]
        return unstack(models, {name: slot.to_model(rows) for name, slot in self.slots.items()})

    # -- computing -----------------------------------------------------------------------------------------------

    def parameter(self, slot: Slot) -> Tensor:
        """(K, *shape) in the precision of the activations."""
        return slot.of(self._low)

    @torch.no_grad()
    def forward(
        self,
        x: Tensor,
        n_valid: Tensor | None = None,
        *,
        train: bool = False,
        keep: bool = False,
        sums: Sums = "gradient",
    ) -> tuple[Tensor, Tape]:
        """(K, B, …) inputs -> (K, B, n_outputs) float32, and what `backward` needs (with `keep`)."""
        if n_valid is None:
            n_valid = torch.full((len(x),), x.shape[1], device=x.device, dtype=torch.int32)
        if self._low is not self.weights:
            self._low.copy_(self.weights)
        if self.machine is not None and not self._compiled:
            self._compile(x.shape[2:])
        x = (x.movedim(2, -1) if x.dim() > 3 else x).to(self.dtype).contiguous()
        tape = Tape({self.input: x}, n_valid, self.machine, train, keep, sums)
        for step in self.steps:
            step.forward(self, tape)
        return tape.read(self.output).float(), tape

    def _compile(self, point: torch.Size) -> None:
        """The folded kernels for points of this shape; without them training is slower, and nothing else."""
        assert self.machine is not None
        known = self.machine, str(self.models[0]), point
        if known in _COMPILED:
            self._compiled = True
            return
        try:
            folded.compile_all(self.machine, convolutions_of(self.models[0], point))
            _COMPILED.add(known)
        except RuntimeError as error:
            warnings.warn(f"models are trained by slower kernels: {error}", stacklevel=2)
            self.machine = None
        self._compiled = True

    @torch.no_grad()
    def backward(self, tape: Tape, d_outputs: Tensor) -> None:
        """Write the gradient of Σ outputs · d_outputs into `gradient`."""
        d_values: Gradients = {self.output: d_outputs}
        for step in reversed(self.steps):
            step.backward(self, tape, d_values)


_COMPILED: set[tuple[Machine, str, torch.Size]] = set()
"""Architectures, each as it prints, whose kernels for points of a shape are ready in this process."""


def convolutions_of(model: nn.Module, point: torch.Size) -> list[folded.Shape]:
    """The shapes of a model's square convolutions on points of this shape."""
    found = []

    def see(module: nn.Module, given: tuple[Tensor, ...], made: Tensor) -> None:
        assert isinstance(module, nn.Conv2d)
        if module.kernel_size == (3, 3):
            shape = folded.Shape(module.in_channels, module.out_channels, given[0].shape[-1], module.stride[0])
            found.append(shape)

    hollow = copy.deepcopy(model).to("meta")
    for module in hollow.modules():
        if isinstance(module, nn.Conv2d):
            module.register_forward_hook(see)
    hollow(torch.empty((2, *point), device="meta"))
    return found
