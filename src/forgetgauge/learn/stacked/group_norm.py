"""Group norms of K models at once, each with its own γ and β, and what every single example adds to their gradients.

Activations are (K, batch, …, channels), as both engines for stacks have them. Here in torch's own operations; on a GPU
with Triton the kernels of `kernels/group_norm.py` do the same, which torch does slowly for channels that lie last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from forgetgauge.learn.device import kernels_on


@dataclass(frozen=True)
class Groups:
    """A group norm's settings."""

    count: int
    eps: float


class Moments(NamedTuple):
    """Of each example's groups, (K · B, groups)."""

    mean: Tensor
    rstd: Tensor


def group_norm(x: Tensor, gamma: Tensor, beta: Tensor, groups: Groups) -> tuple[Tensor, Moments]:
    """γ x̂ + β with γ and β (K, C), in the precision of x, and what its gradient needs."""
    kernels = _kernels_for(x, groups)
    if kernels is not None:
        out, mean, rstd = kernels.group_norm(x, gamma, beta, groups.count, groups.eps)
        return out, Moments(mean, rstd)
    wide = _wide(x)
    flat, mean, rstd = torch.native_group_norm(_channels_first(wide), None, None, *_extent(x), groups.count, groups.eps)
    flat = _channels_last(flat, x)
    return torch.addcmul(_shaped(beta, x), flat, _shaped(gamma, x)).to(x.dtype), Moments(mean, rstd)


def group_norm_gradient(
    up: Tensor, x: Tensor, moments: Moments, gamma: Tensor, groups: Groups
) -> tuple[Tensor, Tensor, Tensor]:
    """(∂/∂x, and of every example ∂/∂γ and ∂/∂β, (K, B, C) each)."""
    kernels = _kernels_for(x, groups)
    if kernels is not None:
        down, d_gamma, d_beta = kernels.group_norm_gradient(up, x, *moments, gamma, groups.count)
        return down, d_gamma, d_beta
    mean, rstd = moments
    wide, up = _wide(x), _wide(up)
    down, _, _ = torch.ops.aten.native_group_norm_backward(
        _channels_first(up * _shaped(gamma, x)), _channels_first(wide), mean, rstd, None, *_extent(x), groups.count,
        [True, False, False],
    )  # fmt: skip
    per_channel = (x.shape[0], x.shape[1], *(1,) * (x.dim() - 3), x.shape[-1])
    mean, rstd = (m.repeat_interleave(x.shape[-1] // groups.count, 1).view(per_channel) for m in (mean, rstd))
    pixels = tuple(range(2, x.dim() - 1))
    each = (up * (wide - mean) * rstd), up
    d_gamma, d_beta = (g.sum(pixels) if pixels else g for g in each)
    return _channels_last(down, x).to(x.dtype), d_gamma, d_beta


def _kernels_for(x: Tensor, groups: Groups) -> Any:
    """The module with the kernels, where they can do it."""
    kernels = kernels_on(x.device, "group_norm")
    return kernels if kernels is not None and kernels.suits(x, groups.count) else None


def _wide(x: Tensor) -> Tensor:
    """At least float32: moments of bfloat16 would be useless."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _extent(x: Tensor) -> tuple[int, int, int]:
    """Examples, channels, pixels."""
    n, c = x.shape[0] * x.shape[1], x.shape[-1]
    return n, c, x.numel() // max(1, n * c)


def _channels_first(x: Tensor) -> Tensor:
    """(K, B, …, C) -> (K · B, C, …): of images on a CPU a view that torch knows as channels-last, else it wants a copy.

    Two tensors of one layout, always: torch's gradient reads both as the first one lies, and says nothing.
    """
    first = x.contiguous().flatten(0, 1).movedim(-1, 1)
    return first if first.dim() == 4 and not x.is_cuda else first.contiguous()


def _channels_last(x: Tensor, like: Tensor) -> Tensor:
    return x.movedim(1, -1).reshape(like.shape)


def _shaped(parameter: Tensor, x: Tensor) -> Tensor:
    """(K, C) beside (K, B, …, C)."""
    return parameter.view(len(parameter), *(1,) * (x.dim() - 2), -1)
