"""Convolutions and batch norms of K models at once in plain torch, forwards and backwards.

The reference that the kernels of `kernels/ops.py` are tested against, and what runs where there are none. Activations
are (K, batch, height, width, channels), convolution weights (K, rows, columns, channels in, channels out). Of member k
only the first n_valid[k] examples of its batch count: batches of different sizes share one shape, and a member that has
finished is one whose batches are empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import grad

from forgetgauge.learn.stacked.patches import Window


@dataclass
class Norm:
    """What a batch norm leaves for its gradient: (K, C) each."""

    mean: Tensor
    rstd: Tensor
    scale: Tensor
    shift: Tensor

    @staticmethod
    def of(mean: Tensor, var: Tensor, gamma: Tensor, beta: Tensor, epsilon: float) -> Norm:
        """From mean and variance: of a batch, or the running ones."""
        rstd = (var + epsilon).rsqrt()
        scale = gamma * rstd
        return Norm(mean, rstd, scale, beta - mean * scale)


def convolve(
    x: Tensor, weight: Tensor, window: Window, n_valid: Tensor | None = None, tf32: bool = False
) -> tuple[Tensor, Any]:
    """(K, B, H, W, Ci) -> (K, B, H', W', Co), and what `finish_moments` needs where `n_valid` (K,) is given."""
    out = F.conv2d(_grouped(x), _grouped_weight(weight), None, window.stride, window.padding, 1, len(x))
    out = _ungrouped(out, len(x))
    return out, (out if n_valid is not None else None)


def convolve_back(
    up: Tensor, weight: Tensor, window: Window, shape: torch.Size, plus: Tensor | None = None, tf32: bool = False
) -> Tensor:
    """The gradient with respect to an input of that shape, added to `plus`."""
    k, n, h, w, c = shape
    down = grad.conv2d_input(  # type: ignore[no-untyped-call]
        (n, k * c, h, w), _grouped_weight(weight), _grouped(up), window.stride, window.padding, 1, k
    )
    down = _ungrouped(down, k)
    return down if plus is None else down + plus


def weight_gradient(x: Tensor, up: Tensor, window: Window, out: Tensor, tf32: bool = False) -> None:
    """Into `out` (K, rows · columns · Ci · Co)."""
    k, ci, co = len(x), x.shape[-1], up.shape[-1]
    gradient = grad.conv2d_weight(  # type: ignore[no-untyped-call]
        _grouped(x), (k * co, ci, *window.kernel), _grouped(up), window.stride, window.padding, 1, k
    )
    out.copy_(gradient.view(k, co, ci, *window.kernel).permute(0, 3, 4, 2, 1).reshape(out.shape))


def finish_moments(
    moments: Any, n_valid: Tensor, n_pixels: int, gamma: Tensor, beta: Tensor, running: tuple[Tensor, Tensor],
    momentum: float, epsilon: float,
) -> Norm:  # fmt: skip
    """Batch statistics over each member's own examples; the running statistics (K, C) are moved in place."""
    y = moments.float()
    own = own_examples(y, n_valid)
    n = (n_valid * n_pixels).clamp(min=1).float()[:, None]
    mean = (y * own).sum((1, 2, 3)) / n
    square = ((y - mean[:, None, None, None]).square() * own).sum((1, 2, 3))
    some = (n_valid > 0)[:, None]
    for old, new in zip(running, (mean, square / (n - 1).clamp(min=1)), strict=True):
        old.copy_(torch.where(some, old + momentum * (new - old), old))
    norm = Norm.of(mean, square / n, gamma, beta, epsilon)
    for part in (norm.rstd, norm.scale):  # an empty batch passes nothing on, so nothing grows
        part.mul_(some)
    return norm


def scale_shift(y: Tensor, norm: Norm, residual: Tensor | None, relu: bool) -> Tensor:
    """relu(norm(y) + residual)."""
    z = y.float() * norm.scale[:, None, None, None] + norm.shift[:, None, None, None]
    if residual is not None:
        z = z + residual.float()
    return (z.relu() if relu else z).to(y.dtype)


def norm_gradient(
    up: Tensor, y: Tensor, z: Tensor, norm: Norm, n_valid: Tensor, d_gamma: Tensor, d_beta: Tensor,
    *, residual: bool, relu: bool, train: bool,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """(∂/∂y, ∂/∂residual); the gradients of γ and β are written into d_gamma and d_beta (K, C)."""
    own = own_examples(y, n_valid)
    g = up.float() * own * (z > 0 if relu else 1)
    along = (y.float() - norm.mean[:, None, None, None]) * norm.rstd[:, None, None, None]
    plain_sum, along_sum = g.sum((1, 2, 3)), (g * along).sum((1, 2, 3))
    d_beta.copy_(plain_sum)
    d_gamma.copy_(along_sum)
    down = g
    if train:
        n = (n_valid * y.shape[2] * y.shape[3]).clamp(min=1).float()[:, None]
        down = g - (plain_sum / n)[:, None, None, None] - along * (along_sum / n)[:, None, None, None]
    down = down * norm.scale[:, None, None, None] * own
    return down.to(y.dtype), g.to(y.dtype) if residual else None


def own_examples(y: Tensor, n_valid: Tensor) -> Tensor:
    """(K, B, 1, 1, 1) whether an example of activations (K, B, …) counts; the others are padding."""
    return (torch.arange(y.shape[1], device=y.device) < n_valid[:, None]).view(*y.shape[:2], 1, 1, 1)


def _grouped(x: Tensor) -> Tensor:
    """(K, B, H, W, C) -> (B, K · C, H, W), the form of one model with K groups."""
    k, n, h, w, c = x.shape
    return x.permute(1, 0, 4, 2, 3).reshape(n, k * c, h, w)


def _ungrouped(x: Tensor, k: int) -> Tensor:
    n, kc, h, w = x.shape
    return x.view(n, k, kc // k, h, w).permute(1, 0, 3, 4, 2).contiguous()


def _grouped_weight(weight: Tensor) -> Tensor:
    k, rows, columns, ci, co = weight.shape
    return weight.permute(0, 4, 3, 1, 2).reshape(k * co, ci, rows, columns)
