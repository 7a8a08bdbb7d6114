"""Sums of clipped per-example gradients of many models at once, no example's gradient ever stored.

A layer's gradient at one example is Σ_t g_t ⊗ a_t over its T positions: a_t the patch it read, g_t the gradient of what
it made. Its squared norm is Σ_{s,t} (a_s·a_t)(g_s·g_t), the ghost norm (Li et al. 2022), and with the clipping factors
c_i known the sum that DP-SGD wants is one product, Σ_i c_i Σ_t g_it ⊗ a_it, of tensors that are still there (book-
keeping, Bu et al. 2023): one backward pass where ghost clipping needs two. A ResNet-18's gradients take 45 MB an
example; what is kept here, at 32 × 32 pixels behind the ImageNet stem, about 2.

Convolutions are products with patches, so that K models are one batched product. The examples of a batch never mix:
hence no batch norm.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.fx
import torch.nn.functional as F
from torch import Tensor, nn

from forgetgauge.learn.group_norm import Groups, Moments, group_norm, group_norm_gradient
from forgetgauge.learn.patches import Window, patches
from forgetgauge.models.resnet import PadShortcut

Gradients = dict[str, Tensor]
"""Parameter name -> (K, *shape)."""

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


class NoGhost(Exception):
    """Why models of some architecture cannot be trained here."""


class GhostStack:
    """K models of one architecture; `parameters` are theirs, stacked, to be moved by any elementwise optimiser."""

    def __init__(self, models: Sequence[nn.Module]) -> None:
        self._models = list(models)
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
        """Add Σ_i min(1, clip_norm / ‖g_i‖) g_i over a member's own examples, g_i of its cross-entropy; None: no clip.

        x (K, B, …), y (K, B), own (K, B) false where a member's batch is shorter. Gives the norms ‖g_i‖, (K, B).
        """
        uses, made = self._forward(x)
        loss = F.cross_entropy(made, y.flatten(), reduction="sum")
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

    def _forward(self, x: Tensor) -> tuple[list[_Use], Tensor]:
        """What each layer read and made, and the logits (K · B, n_classes)."""
        k, values, uses = len(x), dict[str, Any](), list[_Use]()
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


@dataclass(frozen=True)
class _Use:
    """A layer at work on a batch."""

    layer: _Layer
    read: Any
    """What its gradient is made of besides `out`'s: patches, or what a norm keeps."""
    out: Tensor
    """What it made; autograd tells its gradient."""
    shaped: Callable[[Tensor], Tensor]
    """From `out` to what the next part reads."""


class _Layer:
    """A part with parameters."""

    names: tuple[str, ...]

    def read(self, x: Tensor, k: int, parameters: Gradients) -> _Use:
        """Forwards; x is (K · B, …)."""
        raise NotImplementedError

    def squared_norms(self, read: Any, up: Tensor) -> Tensor:
        """(K, B) squared norm of each example's gradient."""
        raise NotImplementedError

    def add_weighted(self, into: Gradients, read: Any, up: Tensor, factor: Tensor) -> None:
        """Σ_i factor_i · gradient_i."""
        raise NotImplementedError


class _Product(_Layer):
    """A linear layer, or a convolution as a product with patches; `read` is (K, B, T, d), `out` (K, B, T, o)."""

    def __init__(self, name: str, module: nn.Linear | nn.Conv2d) -> None:
        self.weight, self.bias = f"{name}.weight", f"{name}.bias" if module.bias is not None else None
        self.names = (self.weight, self.bias) if self.bias else (self.weight,)
        self.window = None
        if isinstance(module, nn.Conv2d):
            padding = module.padding
            if module.groups != 1 or set(module.dilation) != {1} or module.padding_mode != "zeros":
                raise NoGhost(f"{name} is a convolution with groups, dilation or a padding that is not zeros")
            if isinstance(padding, str):
                raise NoGhost(f"{name} names its padding in words")
            self.window = Window(module.kernel_size, module.stride, padding)  # type: ignore[arg-type]

    def read(self, x: Tensor, k: int, parameters: Gradients) -> _Use:
        weight = parameters[self.weight]
        if self.window is None:
            if x.dim() != 2:
                raise NoGhost("a linear layer reads more than one vector of an example")
            rows, shape, touched = x[:, None], None, None
        else:
            shape = self.window.positions(*x.shape[2:])
            less, touched = self.window.touching(*x.shape[2:])
            rows, weight = patches(x, less), _channels_last(weight, touched)
        n, t, d = rows.shape
        out = torch.bmm(rows.view(k, -1, d), weight.flatten(2).transpose(1, 2))
        if self.bias is not None:
            out = out + parameters[self.bias][:, None]
        out = _tracked(out.view(k, n // k, t, -1))

        def shaped(out: Tensor) -> Tensor:
            return out.view(n, -1) if shape is None else out.view(n, *shape, -1).permute(0, 3, 1, 2)

        return _Use(self, _Rows(rows.detach().view(k, n // k, t, d), touched), out, shaped)

    def squared_norms(self, read: _Rows, up: Tensor) -> Tensor:
        rows = read.rows
        *_, t, d = rows.shape
        if t == 1:
            squared = rows.square().sum((2, 3)) * up.square().sum((2, 3))
        elif 2 * t * t <= d * up.shape[-1]:  # the smaller of two T × T tables and the gradient itself
            ups, reads = up.flatten(0, 1), rows.flatten(0, 1)
            both = torch.bmm(reads, reads.transpose(1, 2)).mul_(torch.bmm(ups, ups.transpose(1, 2)))
            squared = both.sum((1, 2)).view(rows.shape[:2])
        else:
            own = torch.bmm(up.flatten(0, 1).transpose(1, 2), rows.flatten(0, 1))
            squared = own.square().sum((1, 2)).view(rows.shape[:2])
        return squared if self.bias is None else squared + up.sum(2).square().sum(2)

    def add_weighted(self, into: Gradients, read: _Rows, up: Tensor, factor: Tensor) -> None:
        weighted = (up * factor[..., None, None]).flatten(1, 2)
        product = torch.bmm(weighted.transpose(1, 2), read.rows.flatten(1, 2))  # (K, o, d)
        total = into[self.weight]
        if read.touched is not None:
            total = _channels_last(total, read.touched)
        total.add_(product.view(total.shape))
        if self.bias is not None:
            into[self.bias].add_(weighted.sum(1))


@dataclass(frozen=True)
class _Rows:
    """What a product read, (K, B, T, d), and for a convolution the rows and columns of its window that did."""

    rows: Tensor
    touched: tuple[slice, slice] | None


class _GroupNorm(_Layer):
    """γ x̂ + β; `out` is (K, B, …, C)."""

    def __init__(self, name: str, module: nn.GroupNorm) -> None:
        self.names = (f"{name}.weight", f"{name}.bias")
        self.groups = Groups(module.num_groups, module.eps)

    def read(self, x: Tensor, k: int, parameters: Gradients) -> _Use:
        gamma, beta = (parameters[name] for name in self.names)
        given = x.movedim(1, -1).reshape(k, -1, *x.shape[2:], x.shape[1])
        kept = _Normed(given.detach(), gamma, self.groups)
        out = _tracked(_Normalise.apply(given, beta, kept))  # type: ignore[no-untyped-call]
        return _Use(self, kept, out, lambda out: out.flatten(0, 1).movedim(-1, 1))

    def squared_norms(self, read: _Normed, up: Tensor) -> Tensor:
        gamma, beta = read.each(up)
        return gamma.square().sum(2) + beta.square().sum(2)

    def add_weighted(self, into: Gradients, read: _Normed, up: Tensor, factor: Tensor) -> None:
        for name, own in zip(self.names, read.each(up), strict=True):
            into[name].add_((own * factor[..., None]).sum(1))


@dataclass
class _Normed:
    """What a group norm read, and what every example adds to the gradients of γ and β."""

    x: Tensor
    gamma: Tensor
    groups: Groups
    moments: Moments | None = None
    sums: tuple[Tensor, Tensor] | None = None

    def gradient(self, up: Tensor) -> Tensor:
        """∂/∂x."""
        assert self.moments is not None
        down, *sums = group_norm_gradient(up, self.x, self.moments, self.gamma, self.groups)
        self.sums = sums[0], sums[1]
        return down

    def each(self, up: Tensor) -> tuple[Tensor, Tensor]:
        """(K, B, C) of γ and β; known already, unless there is no layer before this one to pass a gradient to."""
        if self.sums is None:
            self.gradient(up)
        assert self.sums is not None
        return self.sums


class _Normalise(torch.autograd.Function):
    """γ x̂ + β."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, beta: Tensor, kept: _Normed) -> Tensor:
        ctx.kept = kept
        out, kept.moments = group_norm(x, kept.gamma, beta, kept.groups)
        return out

    @staticmethod
    def backward(ctx: Any, *ups: Tensor) -> tuple[Tensor, None, None]:
        return ctx.kept.gradient(ups[0]), None, None


def _channels_last(weight: Tensor, touched: tuple[slice, slice]) -> Tensor:
    """(K, o, C, rows, columns) -> (K, o, some rows, some columns, C), as patches are; a view."""
    return weight[..., touched[0], touched[1]].permute(0, 1, 3, 4, 2)


def _tracked(out: Tensor) -> Tensor:
    """The weights ask for no gradient, so the first layer's output must begin the record."""
    return out if out.requires_grad else out.requires_grad_()


# -- reading a model ---------------------------------------------------------------------------------------------------


class _Tracer(torch.fx.Tracer):
    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return isinstance(m, PadShortcut) or super().is_leaf_module(m, module_qualified_name)


def _trace(model: nn.Module) -> torch.fx.GraphModule:
    try:
        return torch.fx.GraphModule(model, _Tracer().trace(model))
    except Exception as error:  # fx raises many kinds
        raise NoGhost(f"torch.fx cannot trace it: {str(error).splitlines()[0]}") from None


def _read(graph: torch.fx.GraphModule) -> dict[str, _Layer]:
    """Node -> layer, of all parts with parameters; each may be used once, else its gradient is of two uses."""
    layers: dict[str, _Layer] = {}
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
            layers[node.name] = _layer(name, module)
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


def _layer(name: str, module: nn.Module) -> _Layer:
    if isinstance(module, nn.Linear | nn.Conv2d):
        return _Product(name, module)
    if isinstance(module, nn.GroupNorm) and module.affine:
        return _GroupNorm(name, module)
    raise NoGhost(f"{name} is a {type(module).__name__}, which is not known to it")


def why_no_ghost(model: nn.Module, x: Tensor) -> str | None:
    """The reason why models like this are trained one after another on points like x; None where together."""
    try:
        GhostStack([model])._forward(x[None])
    except NoGhost as reason:
        return str(reason)
    return None
