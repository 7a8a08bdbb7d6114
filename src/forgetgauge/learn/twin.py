"""K models of one architecture as one: traced once, then played forwards and backwards for all members together.

`Twin` reads a model's graph with torch.fx and plays it on stacks of activations, (K, batch, height, width, channels).
A convolution with its batch norm, residual and ReLU is one step; all weights of a member are one row of one matrix, so
that an optimiser is a handful of operations whatever the network. Each member's batch-norm statistics are its own.
Gradients are computed by playing the steps backwards: no graph of autograd is built, and a whole step of training can
be captured once and replayed by a GPU. A model with a part that is not known here is `Unstackable`, with the reason.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Literal

import torch
import torch.fx
import torch.nn.functional as F
from torch import Tensor, nn

from forgetgauge.learn import ops as plain_ops
from forgetgauge.learn.ops import Norm, Window
from forgetgauge.models.resnet import PadShortcut

Precision = Literal["float32", "tf32", "bfloat16"]
Sums = Literal["gradient", "squares"]
"""What the backward pass adds up over the examples: their gradients, or the squares of each example's own."""


ALIGNMENT = 16
"""Every parameter begins at a multiple of this, so that a GPU can read it in wide pieces; the gaps stay 0."""


class Unstackable(Exception):
    """Why a model has no twin."""


@dataclass(frozen=True)
class Slot:
    """Where a parameter lies in a member's row, and how it is turned: convolution weights have their outputs last."""

    start: int
    shape: tuple[int, ...]
    """In the twin's own order of axes."""
    order: tuple[int, ...]
    """own.shape[i] = model.shape[order[i]]."""

    @property
    def stop(self) -> int:
        """One past its last place."""
        n = 1
        for size in self.shape:
            n *= size
        return self.start + n

    def of(self, rows: Tensor) -> Tensor:
        """(K, *shape) view of rows (K, P)."""
        return rows[:, self.start : self.stop].view(len(rows), *self.shape)

    def to_model(self, rows: Tensor) -> Tensor:
        """(K, *model shape): the parameter as the model has it."""
        back = [self.order.index(axis) + 1 for axis in range(len(self.order))]
        return self.of(rows).permute(0, *back)

    def from_model(self, stacked: Tensor) -> Tensor:
        """The inverse, flat: (K, size)."""
        return stacked.permute(0, *(axis + 1 for axis in self.order)).reshape(len(stacked), -1)


@dataclass
class _Play:
    """One pass over a batch."""

    values: dict[str, Tensor]
    saved: dict[str, Any] = field(default_factory=dict)
    n_valid: Tensor = field(default_factory=lambda: torch.empty(0))
    train: bool = True
    keep: bool = True
    sums: Sums = "gradient"


class Twin:
    """The stack; `weights` (K, P) are its parameters, `gradient` (K, P) what `backward` writes."""

    def __init__(self, models: Sequence[nn.Module], precision: Precision = "float32") -> None:
        self.models = list(models)
        frozen = [name for name, parameter in models[0].named_parameters() if not parameter.requires_grad]
        if frozen or not any(True for _ in models[0].parameters()):
            raise Unstackable(f"its parameter {frozen[0]} is frozen" if frozen else "it has no parameters")
        self.device = next(models[0].parameters()).device
        self.dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32
        self.tf32 = precision == "tf32"
        self.ops = _ops_for(self.device)
        self.slots: dict[str, Slot] = {}
        self.width = 0
        self.statistics: dict[str, tuple[Tensor, Tensor]] = {}
        graph = _trace(models[0])
        self.input = next(node.name for node in graph.graph.nodes if node.op == "placeholder")
        self.steps = _Reader(self, graph).read()
        self.output = self.steps[-1].makes
        names = {name for name, _ in models[0].named_parameters()}
        if names != set(self.slots):
            raise Unstackable(f"its parameter {min(names ^ set(self.slots))} is used by no known part, or twice")
        self.weights = self.rows_of([dict(model.named_parameters()) for model in models])
        self.gradient = torch.zeros_like(self.weights)
        self._low = self.weights if self.dtype == torch.float32 else torch.empty_like(self.weights, dtype=self.dtype)

    # -- between models and rows ---------------------------------------------------------------------------------

    def add_slot(self, name: str, parameter: Tensor, order: tuple[int, ...] | None = None) -> Slot:
        """A place in the row for a parameter."""
        if name in self.slots:
            raise Unstackable(f"its parameter {name} is used twice")
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
        for k, (model, table) in enumerate(zip(self.models, self.tables_of(self.weights), strict=True)):
            for name, parameter in model.named_parameters():
                parameter.copy_(table[name])
            for name, (mean, var) in self.statistics.items():
                buffers = dict(model.get_submodule(name).named_buffers())
                buffers["running_mean"].copy_(mean[k])
                buffers["running_var"].copy_(var[k])
                if n_batches is not None:
                    buffers["num_batches_tracked"] += n_batches[k]
        return self.models

    # -- playing -------------------------------------------------------------------------------------------------

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
    ) -> tuple[Tensor, _Play]:
        """(K, B, …) inputs -> (K, B, n_classes) float32 logits, and what `backward` needs (with `keep`)."""
        if n_valid is None:
            n_valid = torch.full((len(x),), x.shape[1], device=x.device, dtype=torch.int32)
        if self._low is not self.weights:
            self._low.copy_(self.weights)
        x = x.permute(0, 1, 3, 4, 2).to(self.dtype).contiguous() if x.dim() == 5 else x.to(self.dtype)
        play = _Play({self.input: x}, n_valid=n_valid, train=train, keep=keep, sums=sums)
        for step in self.steps:
            step.forward(self, play)
        return play.values[self.output].float(), play

    @torch.no_grad()
    def backward(self, play: _Play, d_logits: Tensor) -> None:
        """Writes the gradient of Σ logits · d_logits into `gradient`."""
        d_values = {self.output: d_logits}
        for step in reversed(self.steps):
            step.backward(self, play, d_values)


class _Step:
    """A part of the network: reads some values, makes one."""

    makes: str

    def forward(self, twin: Twin, play: _Play) -> None:
        raise NotImplementedError

    def backward(self, twin: Twin, play: _Play, d_values: dict[str, Tensor]) -> None:
        raise NotImplementedError


@dataclass(eq=False)
class _ConvNorm(_Step):
    """relu(norm(conv(x)) + residual); norm, residual and ReLU may each be absent."""

    reads: str
    makes: str
    window: Window
    weight: Slot
    bias: Slot | None = None
    norm: tuple[str, Slot, Slot, float, float] | None = None
    """Name, γ, β, momentum, epsilon."""
    residual: str | None = None
    relu: bool = False

    def forward(self, twin: Twin, play: _Play) -> None:
        x = play.values[self.reads]
        residual = play.values[self.residual] if self.residual else None
        moments = self.norm is not None and play.train
        y, parts = twin.ops.convolve(
            x, twin.parameter(self.weight), self.window, play.n_valid if moments else None, twin.tf32
        )
        if self.bias is not None:
            y += twin.parameter(self.bias)[:, None, None, None]
        if self.norm is None:
            z = y if residual is None else y + residual
            norm, play.values[self.makes] = None, z.relu() if self.relu else z
        else:
            name, gamma, beta, momentum, epsilon = self.norm
            scales = gamma.of(twin.weights), beta.of(twin.weights)
            running = twin.statistics[name]
            if play.train:
                n_pixels = y.shape[2] * y.shape[3]
                norm = twin.ops.finish_moments(parts, play.n_valid, n_pixels, *scales, running, momentum, epsilon)
            else:
                norm = Norm.of(*running, *scales, epsilon)
            play.values[self.makes] = twin.ops.scale_shift(y, norm, residual, self.relu)
        if play.keep:
            play.saved[self.makes] = y, norm

    def backward(self, twin: Twin, play: _Play, d_values: dict[str, Tensor]) -> None:
        x, z, up = play.values[self.reads], play.values[self.makes], d_values.pop(self.makes).contiguous()
        y, norm = play.saved[self.makes]
        if self.norm is None:
            g = up * (z > 0) if self.relu else up
            down, side = g, g
        else:
            _, gamma, beta, *_ = self.norm
            d_gamma, d_beta = gamma.of(twin.gradient), beta.of(twin.gradient)
            down, side = twin.ops.norm_gradient(
                up, y, z, norm, play.n_valid, d_gamma, d_beta,
                residual=self.residual is not None, relu=self.relu, train=play.train,
            )  # fmt: skip
            if play.sums == "squares":
                _squared_scale_gradients(up, y, z, norm, play.n_valid, d_gamma, d_beta, self.relu)
        if self.residual:
            _add(d_values, self.residual, side)
        squares = play.sums == "squares"
        if self.bias is not None:
            each = down.float().sum((2, 3))  # (K, B, C)
            self.bias.of(twin.gradient).copy_((each.square() if squares else each).sum(1))
        flat = twin.gradient[:, self.weight.start : self.weight.stop]
        twin.ops.weight_gradient(x, down, self.window, flat, squares, twin.tf32)
        if self.reads != twin.input:
            weight, plus = twin.parameter(self.weight), d_values.pop(self.reads, None)
            d_values[self.reads] = twin.ops.convolve_back(down, weight, self.window, x.shape, plus, twin.tf32)


@dataclass(eq=False)
class _Linear(_Step):
    """The layer is small and its products are few: float32 whatever the rest is."""

    reads: str
    makes: str
    weight: Slot
    bias: Slot | None

    def forward(self, twin: Twin, play: _Play) -> None:
        out = torch.bmm(play.values[self.reads].float(), self.weight.of(twin.weights).transpose(1, 2))
        if self.bias is not None:
            out += self.bias.of(twin.weights)[:, None]
        play.values[self.makes] = out

    def backward(self, twin: Twin, play: _Play, d_values: dict[str, Tensor]) -> None:
        x, up = play.values[self.reads].float(), d_values.pop(self.makes).float()
        if self.reads != twin.input:
            _add(d_values, self.reads, torch.bmm(up, self.weight.of(twin.weights)))
        if play.sums == "squares":  # of the outer product up ⊗ x of each example
            x, up = x.square(), up.square()
        self.weight.of(twin.gradient).copy_(torch.bmm(up.transpose(1, 2), x))
        if self.bias is not None:
            self.bias.of(twin.gradient).copy_(up.sum(1))


@dataclass(eq=False)
class _Other(_Step):
    """A part without parameters of its own: its gradient is autograd's."""

    reads: tuple[str, ...]
    makes: str
    function: Callable[..., Tensor]

    def forward(self, twin: Twin, play: _Play) -> None:
        given = [play.values[name] for name in self.reads]
        if not play.keep:
            play.values[self.makes] = self.function(*given)
            return
        given = [value.detach().requires_grad_() for value in given]
        with torch.enable_grad():
            made = self.function(*given)
        play.values[self.makes], play.saved[self.makes] = made.detach(), (given, made)

    def backward(self, twin: Twin, play: _Play, d_values: dict[str, Tensor]) -> None:
        given, made = play.saved[self.makes]
        up = d_values.pop(self.makes).to(made.dtype)
        for name, gradient in zip(self.reads, torch.autograd.grad(made, given, up, retain_graph=True), strict=True):
            if name != twin.input:
                _add(d_values, name, gradient)


@dataclass(eq=False)
class _Affine(_Step):
    """A part with parameters that mixes no examples (group and layer norms), its gradient autograd's."""

    reads: str
    makes: str
    function: Callable[..., Tensor]
    slots: tuple[Slot, ...]

    def forward(self, twin: Twin, play: _Play) -> None:
        x = play.values[self.reads].detach().requires_grad_(play.keep)
        parameters = [slot.of(twin.weights).detach().requires_grad_(play.keep) for slot in self.slots]
        with torch.set_grad_enabled(play.keep):
            made = self.function(x, *parameters)
        play.values[self.makes] = made.detach()
        if play.keep:
            play.saved[self.makes] = x, parameters, made

    def backward(self, twin: Twin, play: _Play, d_values: dict[str, Tensor]) -> None:
        if play.sums == "squares":
            raise Unstackable("squared gradients of single examples are known for batch norms only")
        x, parameters, made = play.saved[self.makes]
        up = d_values.pop(self.makes).to(made.dtype)
        d_x, *d_parameters = torch.autograd.grad(made, [x, *parameters], up, retain_graph=True)
        for slot, gradient in zip(self.slots, d_parameters, strict=True):
            slot.of(twin.gradient).copy_(gradient)
        if self.reads != twin.input:
            _add(d_values, self.reads, d_x)


def _squared_scale_gradients(
    up: Tensor, y: Tensor, z: Tensor, norm: Norm, n_valid: Tensor, d_gamma: Tensor, d_beta: Tensor, relu: bool
) -> None:
    """Σ over examples of (∂/∂γ)² and (∂/∂β)²: each example's own sum over pixels, squared."""
    own = (torch.arange(y.shape[1], device=y.device) < n_valid[:, None]).view(*y.shape[:2], 1, 1, 1)
    g = up.float() * own * (z > 0 if relu else 1)
    along = (y.float() - norm.mean[:, None, None, None]) * norm.rstd[:, None, None, None]
    d_gamma.copy_((g * along).sum((2, 3)).square().sum(1))
    d_beta.copy_(g.sum((2, 3)).square().sum(1))


def _add(d_values: dict[str, Tensor], name: str, gradient: Tensor | None) -> None:
    if gradient is not None:
        d_values[name] = d_values[name] + gradient if name in d_values else gradient


# -- reading a model ---------------------------------------------------------------------------------------------------


class _Tracer(torch.fx.Tracer):
    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return isinstance(m, PadShortcut) or super().is_leaf_module(m, module_qualified_name)


def _trace(model: nn.Module) -> torch.fx.GraphModule:
    try:
        graph = torch.fx.GraphModule(model, _Tracer().trace(model))
    except Exception as error:  # fx raises many kinds
        raise Unstackable(f"torch.fx cannot trace it: {str(error).splitlines()[0]}") from None
    inputs = [node for node in graph.graph.nodes if node.op == "placeholder"]
    if len(inputs) != 1:
        raise Unstackable("its forward takes more than one argument")
    return graph


class _Reader:
    """From a traced graph to steps; a batch norm, an addition and a ReLU that follow a convolution join its step."""

    def __init__(self, twin: Twin, graph: torch.fx.GraphModule) -> None:
        self.twin, self.graph = twin, graph
        self.steps: list[_Step] = []
        self.maker: dict[str, _Step] = {}
        self.alias: dict[str, str] = {}

    def read(self) -> list[_Step]:
        for node in self.graph.graph.nodes:
            if node.op == "output":
                self._check_output(node)
            elif node.op != "placeholder":
                self._read(node)
        return self.steps

    def _check_output(self, node: torch.fx.Node) -> None:
        """The logits are what the last step makes."""
        made = node.args[0]
        name = self.alias.get(made.name, made.name) if isinstance(made, torch.fx.Node) else ""
        if not self.steps or name != self.steps[-1].makes:
            raise Unstackable("its output is not the one tensor that its last part makes")

    def _read(self, node: torch.fx.Node) -> None:
        by_name = set(node.kwargs.items()) - {("inplace", False)}
        if by_name or not node.args or not isinstance(node.args[0], torch.fx.Node):
            raise Unstackable(f"{node.name} reads no tensor first, or is given arguments by name")
        reads = [self.alias.get(arg.name, arg.name) for arg in node.args if isinstance(arg, torch.fx.Node)]
        if node.op == "call_module":
            name = str(node.target)
            self._module(node, name, self.graph.get_submodule(name), reads[0])
        elif node.op == "call_function" and node.target in (operator.add, torch.add) and len(reads) == 2:
            self._addition(node, reads)
        elif node.op == "call_function" and node.target in (F.relu, torch.relu):
            self._relu(node, reads[0])
        elif node.op == "call_function" and node.target is torch.flatten and node.args[1:] == (1,):
            self._other(node, reads, _flatten)
        else:
            raise Unstackable(f"{node.op} {node.target} is not known to it")

    def _module(self, node: torch.fx.Node, name: str, module: nn.Module, reads: str) -> None:
        match module:
            case nn.Conv2d():
                self._append(self._convolution(node, name, module, reads))
            case nn.BatchNorm2d():
                self._batch_norm(node, name, module, reads)
            case nn.GroupNorm() if module.affine:
                slots = self._slots(name, module, "weight", "bias")
                self._append(_Affine(reads, node.name, _group_norm(module), slots))
            case nn.ReLU():
                if module.inplace and self._n_users(reads) > 1:
                    raise Unstackable(f"{name} changes a tensor in place that is read elsewhere")
                self._relu(node, reads)
            case nn.Linear():
                slots = self._slots(name, module, "weight")
                bias = self._slots(name, module, "bias")[0] if module.bias is not None else None
                self._append(_Linear(reads, node.name, slots[0], bias))
            case nn.Flatten() if module.start_dim == 1 and module.end_dim == -1:
                self._other(node, [reads], _flatten)
            case nn.AdaptiveAvgPool2d() if module.output_size in (1, (1, 1)):
                self._other(node, [reads], _average)
            case nn.MaxPool2d() if module.dilation == 1 and not module.return_indices:
                self._other(node, [reads], _max_pool(module))
            case nn.Identity():
                self.alias[node.name] = reads
            case nn.Dropout() if module.p == 0:
                self.alias[node.name] = reads
            case PadShortcut():
                self._other(node, [reads], _pad_shortcut(module))
            case _:
                raise Unstackable(f"{name} is a {type(module).__name__}, which is not known to it")

    def _convolution(self, node: torch.fx.Node, name: str, module: nn.Conv2d, reads: str) -> _ConvNorm:
        rows, columns = module.kernel_size
        stride, pad = module.stride[0], module.padding[0]
        plain = module.groups == 1 and set(module.dilation) == {1} and module.padding_mode == "zeros"
        if not plain or isinstance(pad, str) or {*module.stride} != {stride} or {*module.padding} != {pad}:
            raise Unstackable(f"{name} is a convolution with groups, dilation or uneven strides")
        weight = self.twin.add_slot(f"{name}.weight", module.weight, (2, 3, 1, 0))
        bias = self.twin.add_slot(f"{name}.bias", module.bias) if module.bias is not None else None
        window = Window(rows, columns, stride, pad)
        return _ConvNorm(reads, node.name, window, weight, bias)

    def _batch_norm(self, node: torch.fx.Node, name: str, module: nn.BatchNorm2d, reads: str) -> None:
        before = self.maker.get(reads)
        bare = isinstance(before, _ConvNorm) and before.norm is None and before.residual is None and not before.relu
        if not bare or before.bias is not None or self._n_users(reads) > 1:  # type: ignore[union-attr]
            raise Unstackable(f"{name} does not follow a convolution without bias")
        if not module.affine or not module.track_running_stats or module.momentum is None:
            raise Unstackable(f"{name} has no scale, no running statistics or no momentum")
        assert isinstance(before, _ConvNorm)
        gamma, beta = self._slots(name, module, "weight", "bias")
        self.twin.add_statistics(name)
        before.norm = name, gamma, beta, module.momentum, module.eps
        self._rename(before, node.name)

    def _addition(self, node: torch.fx.Node, reads: list[str]) -> None:
        """Joins the latest convolution it reads, if nothing else reads that one; later steps then come before it."""
        order = {step.makes: place for place, step in enumerate(self.steps)}
        for mine, other in (reads, reads[::-1]):
            step = self.maker.get(mine)
            joins = isinstance(step, _ConvNorm) and step.residual is None and not step.relu
            if joins and mine != other and self._n_users(mine) == 1:
                assert isinstance(step, _ConvNorm)
                if order.get(other, -1) > order[mine]:  # the other summand is made later: wait for it
                    self.steps.remove(step)
                    self.steps.append(step)
                step.residual = other
                self._rename(step, node.name)
                return
        self._other(node, reads, operator.add)

    def _relu(self, node: torch.fx.Node, reads: str) -> None:
        step = self.maker.get(reads)
        if isinstance(step, _ConvNorm) and not step.relu and self._n_users(reads) == 1:
            step.relu = True
            self._rename(step, node.name)
        else:
            self._other(node, [reads], torch.relu)

    def _other(self, node: torch.fx.Node, reads: Sequence[str], function: Callable[..., Tensor]) -> None:
        self._append(_Other(tuple(reads), node.name, function))

    def _slots(self, name: str, module: nn.Module, *which: str) -> tuple[Slot, ...]:
        return tuple(self.twin.add_slot(f"{name}.{part}", getattr(module, part)) for part in which)

    def _append(self, step: _Step) -> None:
        self.steps.append(step)
        self.maker[step.makes] = step

    def _rename(self, step: _Step, name: str) -> None:
        del self.maker[step.makes]
        step.makes = name
        self.maker[name] = step

    def _n_users(self, name: str) -> int:
        """How many parts read a value, directly or through something that passes it on as it is."""

        def count(node: torch.fx.Node) -> int:
            return sum(count(user) if self._passes_on(user) else 1 for user in node.users)

        return next(count(node) for node in self.graph.graph.nodes if node.name == name)

    def _passes_on(self, node: torch.fx.Node) -> bool:
        if node.op != "call_module":
            return False
        module = self.graph.get_submodule(str(node.target))
        return isinstance(module, nn.Identity) or (isinstance(module, nn.Dropout) and module.p == 0)


def _flatten(x: Tensor) -> Tensor:
    """(K, B, H, W, C) -> (K, B, C · H · W), in the order of a model alone."""
    return x.permute(0, 1, 4, 2, 3).flatten(2) if x.dim() == 5 else x.flatten(2)


def _average(x: Tensor) -> Tensor:
    return x.float().mean((2, 3), keepdim=True)


def _pad_shortcut(module: PadShortcut) -> Callable[[Tensor], Tensor]:
    def shortcut(x: Tensor) -> Tensor:
        thinned = x[:, :, :: module.stride, :: module.stride]
        side = (module.channels_out - module.channels_in) // 2
        return F.pad(thinned, (side, side))

    return shortcut


def _max_pool(module: nn.MaxPool2d) -> Callable[[Tensor], Tensor]:
    def pool(x: Tensor) -> Tensor:
        k, n = x.shape[:2]
        pooled: Tensor = module(x.flatten(0, 1).permute(0, 3, 1, 2))
        return pooled.permute(0, 2, 3, 1).reshape(k, n, *pooled.shape[2:], pooled.shape[1])

    return pool


def _group_norm(module: nn.GroupNorm) -> Callable[..., Tensor]:
    def norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        k, n, h, w, c = x.shape
        grouped = x.float().view(k, n, h * w, module.num_groups, c // module.num_groups)
        var, mean = torch.var_mean(grouped, (2, 4), correction=0, keepdim=True)
        flat = ((grouped - mean) * (var + module.eps).rsqrt()).view(k, n, h, w, c)
        return (flat * weight[:, None, None, None] + bias[:, None, None, None]).to(x.dtype)

    return norm


def _ops_for(device: torch.device) -> ModuleType:
    """The kernels where there is a GPU and Triton, else plain torch."""
    if device.type == "cuda":
        try:
            from forgetgauge.learn import kernels
        except ImportError:
            return plain_ops
        return kernels
    return plain_ops


def why_no_twin(model: nn.Module) -> str | None:
    """The reason why models like this have no twin; None where they do."""
    try:
        Twin([copy.deepcopy(model)])
    except Unstackable as reason:
        return str(reason)
    return None
