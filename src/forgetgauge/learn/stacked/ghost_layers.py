"""Layers of many models at once as DP-SGD wants them: the norm of each example's gradient, and sums weighted by it.

A layer's gradient at one example is Σ_t g_t ⊗ a_t over its T positions: a_t the patch it read, g_t the gradient of what
it made. Its squared norm is Σ_{s,t} (a_s·a_t)(g_s·g_t), the ghost norm (Li et al. 2022), and with a factor c_i for each
example the weighted sum is one product, Σ_i c_i Σ_t g_it ⊗ a_it, of tensors that are still there (book-keeping, Bu et
al. 2023). Convolutions are products with patches, so that K models are one batched product.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from forgetgauge.learn.stacked.group_norm import Groups, Moments, group_norm, group_norm_gradient
from forgetgauge.learn.stacked.members import NotStackable
from forgetgauge.learn.stacked.patches import patches, window_of

Stacked = dict[str, Tensor]
"""Tensors of all members by the names of their parameters, (K, *shape) each."""


@dataclass(frozen=True)
class Use:
    """A layer applied to a batch: what it read, and what it made."""

    layer: Layer
    read: Any
    """What its gradient is made of besides `out`'s: patches, or what a norm keeps."""
    out: Tensor
    """What it made; autograd tells its gradient."""
    shaped: Callable[[Tensor], Tensor]
    """From `out` to what the next part reads."""


class Layer:
    """A part with parameters."""

    names: tuple[str, ...]

    def read(self, x: Tensor, k: int, parameters: Stacked) -> Use:
        """Forwards; x is (K · B, …)."""
        raise NotImplementedError

    def squared_norms(self, read: Any, up: Tensor) -> Tensor:
        """(K, B) squared norm of each example's gradient."""
        raise NotImplementedError

    def add_weighted(self, into: Stacked, read: Any, up: Tensor, factor: Tensor) -> None:
        """Σ_i factor_i · gradient_i."""
        raise NotImplementedError


class ProductLayer(Layer):
    """A linear layer, or a convolution as a product with patches; `read` is (K, B, T, d), `out` (K, B, T, o)."""

    def __init__(self, name: str, module: nn.Linear | nn.Conv2d) -> None:
        self.weight, self.bias = f"{name}.weight", f"{name}.bias" if module.bias is not None else None
        self.names = (self.weight, self.bias) if self.bias else (self.weight,)
        self.window = window_of(name, module) if isinstance(module, nn.Conv2d) else None

    def read(self, x: Tensor, k: int, parameters: Stacked) -> Use:
        weight = parameters[self.weight]
        if self.window is None:
            if x.dim() != 2:
                raise NotStackable("a linear layer reads more than one vector of an example")
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

        return Use(self, _ProductInput(rows.detach().view(k, n // k, t, d), touched), out, shaped)

    def squared_norms(self, read: _ProductInput, up: Tensor) -> Tensor:
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

    def add_weighted(self, into: Stacked, read: _ProductInput, up: Tensor, factor: Tensor) -> None:
        weighted = (up * factor[..., None, None]).flatten(1, 2)
        product = torch.bmm(weighted.transpose(1, 2), read.rows.flatten(1, 2))  # (K, o, d)
        total = into[self.weight]
        if read.touched is not None:
            total = _channels_last(total, read.touched)
        total.add_(product.view(total.shape))
        if self.bias is not None:
            into[self.bias].add_(weighted.sum(1))


@dataclass(frozen=True)
class _ProductInput:
    """What a product read, (K, B, T, d), and for a convolution the rows and columns of its window that did."""

    rows: Tensor
    touched: tuple[slice, slice] | None


class GroupNormLayer(Layer):
    """γ x̂ + β; `out` is (K, B, …, C)."""

    def __init__(self, name: str, module: nn.GroupNorm) -> None:
        self.names = (f"{name}.weight", f"{name}.bias")
        self.groups = Groups(module.num_groups, module.eps)

    def read(self, x: Tensor, k: int, parameters: Stacked) -> Use:
        gamma, beta = (parameters[name] for name in self.names)
        given = x.movedim(1, -1).reshape(k, -1, *x.shape[2:], x.shape[1])
        kept = _NormInput(given.detach(), gamma, self.groups)
        out = _tracked(_Normalise.apply(given, beta, kept))  # type: ignore[no-untyped-call]
        return Use(self, kept, out, lambda out: out.flatten(0, 1).movedim(-1, 1))

    def squared_norms(self, read: _NormInput, up: Tensor) -> Tensor:
        gamma, beta = read.each(up)
        return gamma.square().sum(2) + beta.square().sum(2)

    def add_weighted(self, into: Stacked, read: _NormInput, up: Tensor, factor: Tensor) -> None:
        for name, own in zip(self.names, read.each(up), strict=True):
            into[name].add_((own * factor[..., None]).sum(1))


@dataclass
class _NormInput:
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
    def forward(ctx: Any, x: Tensor, beta: Tensor, kept: _NormInput) -> Tensor:
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


def layer_of(name: str, module: nn.Module) -> Layer:
    """The layer that a module is; `NotStackable` where it is none that is known."""
    if isinstance(module, nn.Linear | nn.Conv2d):
        return ProductLayer(name, module)
    if isinstance(module, nn.GroupNorm) and module.affine:
        return GroupNormLayer(name, module)
    raise NotStackable(f"{name} is a {type(module).__name__}, which is not known to the engine")
