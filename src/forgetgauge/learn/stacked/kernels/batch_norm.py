"""Triton kernels for the batch norms of K models at once, with their residuals, ReLUs and gradients.

The moments of a batch come in parts from the convolution that made it (convolution.py). As there, a program belongs to
one member, and partial sums are added in a fixed order.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,no-any-return"
# What Triton compiles is not Python, though it looks like it.
from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from forgetgauge.learn.stacked.kernels.convolution import tile
from forgetgauge.learn.stacked.ops import Norm


@triton.jit
def _finish_moments(
    mean_part, square_part, n_valid, gamma, beta, running_mean, running_var, mean_out, rstd_out, scale_out, shift_out,
    n_parts, n_pixels, flat_stride, momentum, epsilon,
    C: tl.constexpr, PIXELS: tl.constexpr, PARTS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """Batch mean and deviation of a member from the parts' (Chan et al.), and its running statistics."""
    member = tl.program_id(0)
    c = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    own = tl.load(n_valid + member) * n_pixels
    n = tl.maximum(own.to(tl.float32), 1.0)
    total = tl.zeros((CHANNELS,), dtype=tl.float32)
    for first in range(0, n_parts, PARTS):
        part = first + tl.arange(0, PARTS)
        count = tl.minimum(tl.maximum(own - part * PIXELS, 0), PIXELS).to(tl.float32)
        at = (member * n_parts + part)[:, None] * C + c[None, :]
        inside = (part < n_parts)[:, None] & (c < C)[None, :]
        total += tl.sum(tl.load(mean_part + at, mask=inside, other=0.0) * count[:, None], 0)
    mean = total / n
    square = tl.zeros((CHANNELS,), dtype=tl.float32)
    for first in range(0, n_parts, PARTS):
        part = first + tl.arange(0, PARTS)
        count = tl.minimum(tl.maximum(own - part * PIXELS, 0), PIXELS).to(tl.float32)
        at = (member * n_parts + part)[:, None] * C + c[None, :]
        inside = (part < n_parts)[:, None] & (c < C)[None, :]
        off = tl.load(mean_part + at, mask=inside, other=0.0) - mean[None, :]
        within = tl.load(square_part + at, mask=inside, other=0.0)
        square += tl.sum(tl.where(inside & (count > 0)[:, None], within + off * off * count[:, None], 0.0), 0)
    var = square / n
    rstd = tl.where(own > 0, 1.0 / tl.sqrt(var + epsilon), 0.0)  # an empty batch passes nothing on, so nothing grows
    g = tl.load(gamma + member * flat_stride + c, mask=c < C, other=0.0)
    s = tl.load(beta + member * flat_stride + c, mask=c < C, other=0.0)
    place = member * C + c
    tl.store(mean_out + place, mean, mask=c < C)
    tl.store(rstd_out + place, rstd, mask=c < C)
    tl.store(scale_out + place, g * rstd, mask=c < C)
    tl.store(shift_out + place, s - mean * g * rstd, mask=c < C)
    if own > 0:
        old_mean = tl.load(running_mean + place, mask=c < C, other=0.0)
        old_var = tl.load(running_var + place, mask=c < C, other=0.0)
        unbiased = square / tl.maximum(n - 1.0, 1.0)
        tl.store(running_mean + place, old_mean + momentum * (mean - old_mean), mask=c < C)
        tl.store(running_var + place, old_var + momentum * (unbiased - old_var), mask=c < C)


@triton.jit
def _scale_shift(
    y, scale, shift, residual, out, n_per_member,
    C: tl.constexpr, RESIDUAL: tl.constexpr, RELU: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """relu(y · scale + shift + residual), channel by channel."""
    member = tl.program_id(1)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n_per_member
    c = at % C
    start = member.to(tl.int64) * n_per_member
    value = tl.load(y + start + at, mask=inside, other=0.0).to(tl.float32)
    value = value * tl.load(scale + member * C + c) + tl.load(shift + member * C + c)
    if RESIDUAL:
        value += tl.load(residual + start + at, mask=inside, other=0.0).to(tl.float32)
    if RELU:
        value = tl.maximum(value, 0.0)
    tl.store(out + start + at, value.to(out.dtype.element_ty), mask=inside)


@triton.jit
def _gate(up, y, z, scale, shift, RELU: tl.constexpr, RESIDUAL: tl.constexpr):
    """The gradient that passes the ReLU; where there was no residual its sign is that of y · scale + shift."""
    if RELU:
        if RESIDUAL:
            return tl.where(z > 0, up, 0.0)
        return tl.where(y * scale + shift > 0, up, 0.0)
    return up


@triton.jit
def _norm_sums(
    up, y, z, mean, rstd, scale, shift, n_valid, part_out, n_parts, n_rows, n_pixels,
    C: tl.constexpr, RESIDUAL: tl.constexpr, RELU: tl.constexpr,
    ROWS: tl.constexpr, STEPS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """Parts of Σ g and Σ g · x̂ over the batch's own rows."""
    part = tl.program_id(0)
    member = tl.program_id(1)
    c = tl.program_id(2) * CHANNELS + tl.arange(0, CHANNELS)
    in_c = c < C
    own = tl.load(n_valid + member) * n_pixels
    m = tl.load(mean + member * C + c, mask=in_c, other=0.0)[None, :]
    r = tl.load(rstd + member * C + c, mask=in_c, other=0.0)[None, :]
    s = tl.load(scale + member * C + c, mask=in_c, other=0.0)[None, :]
    t = tl.load(shift + member * C + c, mask=in_c, other=0.0)[None, :]
    start = member.to(tl.int64) * n_rows * C
    plain = tl.zeros((ROWS, CHANNELS), dtype=tl.float32)
    along = tl.zeros((ROWS, CHANNELS), dtype=tl.float32)
    for step in range(STEPS):
        row = (part * STEPS + step) * ROWS + tl.arange(0, ROWS)
        inside = (row < tl.minimum(own, n_rows))[:, None] & in_c[None, :]
        at = start + row[:, None] * C + c[None, :]
        value = tl.load(y + at, mask=inside, other=0.0).to(tl.float32)
        after = value
        if RESIDUAL:
            after = tl.load(z + at, mask=inside, other=0.0).to(tl.float32)
        g = _gate(tl.load(up + at, mask=inside, other=0.0).to(tl.float32), value, after, s, t, RELU, RESIDUAL)
        plain += g
        along += g * (value - m) * r
    place = ((member * n_parts + part) * 2) * C + c
    tl.store(part_out + place, tl.sum(plain, 0), mask=in_c)
    tl.store(part_out + place + C, tl.sum(along, 0), mask=in_c)


@triton.jit
def _finish_sums(
    part_in, n_valid, d_gamma, d_beta, mean_plain, mean_along, n_parts, n_pixels, flat_stride,
    C: tl.constexpr, TRAIN: tl.constexpr, PARTS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """Adds the parts: the gradients of γ and β, and (in train mode) their means over the batch."""
    member = tl.program_id(0)
    c = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    plain = tl.zeros((CHANNELS,), dtype=tl.float32)
    along = tl.zeros((CHANNELS,), dtype=tl.float32)
    for first in range(0, n_parts, PARTS):
        part = first + tl.arange(0, PARTS)
        at = ((member * n_parts + part) * 2)[:, None] * C + c[None, :]
        inside = (part < n_parts)[:, None] & (c < C)[None, :]
        plain += tl.sum(tl.load(part_in + at, mask=inside, other=0.0), 0)
        along += tl.sum(tl.load(part_in + at + C, mask=inside, other=0.0), 0)
    tl.store(d_gamma + member * flat_stride + c, along, mask=c < C)
    tl.store(d_beta + member * flat_stride + c, plain, mask=c < C)
    n = tl.maximum(tl.load(n_valid + member) * n_pixels, 1).to(tl.float32)
    if not TRAIN:
        plain = plain * 0.0
        along = along * 0.0
    tl.store(mean_plain + member * C + c, plain / n, mask=c < C)
    tl.store(mean_along + member * C + c, along / n, mask=c < C)


@triton.jit
def _norm_gradient(
    up, y, z, mean, rstd, scale, shift, mean_plain, mean_along, n_valid, down, side, n_per_member, n_pixels,
    C: tl.constexpr, RESIDUAL: tl.constexpr, RELU: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """∂/∂y = scale · (g − mean g − x̂ · mean(g · x̂)), nothing for padding; the residual's gradient is g itself."""
    member = tl.program_id(1)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n_per_member
    c = at % C
    place = member * C + c
    start = member.to(tl.int64) * n_per_member
    own = at < tl.load(n_valid + member) * n_pixels * C
    value = tl.load(y + start + at, mask=inside, other=0.0).to(tl.float32)
    after = value
    if RESIDUAL:
        after = tl.load(z + start + at, mask=inside, other=0.0).to(tl.float32)
    s = tl.load(scale + place)
    g = tl.load(up + start + at, mask=inside, other=0.0).to(tl.float32)
    g = tl.where(own, _gate(g, value, after, s, tl.load(shift + place), RELU, RESIDUAL), 0.0)
    if RESIDUAL:
        tl.store(side + start + at, g.to(side.dtype.element_ty), mask=inside)
    along = (value - tl.load(mean + place)) * tl.load(rstd + place)
    g = s * (g - tl.load(mean_plain + place) - along * tl.load(mean_along + place))
    tl.store(down + start + at, tl.where(own, g, 0.0).to(down.dtype.element_ty), mask=inside)


# -- The same, called with tensors -----------------------------------------------------------------------------------


def finish_moments(
    moments: Any, n_valid: Tensor, n_pixels: int, gamma: Tensor, beta: Tensor, running: tuple[Tensor, Tensor],
    momentum: float, epsilon: float,
) -> Norm:  # fmt: skip
    """Batch statistics from their parts; the running statistics (K, C) are moved in place."""
    means, squares, pixels = moments
    k, n_parts, c = means.shape
    norm = Norm(*torch.empty((4, k, c), device=means.device, dtype=torch.float32))
    channels = min(16, tile(c))
    _finish_moments[(k, triton.cdiv(c, channels))](
        means, squares, n_valid, gamma, beta, *running, norm.mean, norm.rstd, norm.scale, norm.shift,
        n_parts, n_pixels, gamma.stride(0), momentum, epsilon, c, pixels, 128, channels,
    )  # fmt: skip
    return norm


BLOCK = 2048


def scale_shift(y: Tensor, norm: Norm, residual: Tensor | None, relu: bool) -> Tensor:
    """relu(norm(y) + residual)."""
    out = torch.empty_like(y)
    k, n = y.shape[0], y[0].numel()
    _scale_shift[(triton.cdiv(n, BLOCK), k)](
        y, norm.scale, norm.shift, y if residual is None else residual, out, n,
        y.shape[-1], residual is not None, relu, BLOCK, num_warps=8,
    )  # fmt: skip
    return out


def norm_gradient(
    up: Tensor, y: Tensor, z: Tensor, norm: Norm, n_valid: Tensor, d_gamma: Tensor, d_beta: Tensor,
    *, residual: bool, relu: bool, train: bool,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """(∂/∂y, ∂/∂residual); the gradients of γ and β are written into d_gamma and d_beta (K, C)."""
    k, n, h, w, c = y.shape
    rows, steps, channels = 2048 // tile(c), 16, min(128, tile(c))
    n_parts = triton.cdiv(n * h * w, rows * steps)
    parts = torch.empty((k, n_parts, 2, c), device=y.device, dtype=torch.float32)
    means = torch.empty((2, k, c), device=y.device, dtype=torch.float32)
    _norm_sums[(n_parts, k, triton.cdiv(c, channels))](
        up, y, z, norm.mean, norm.rstd, norm.scale, norm.shift, n_valid, parts, n_parts, n * h * w, h * w,
        c, residual, relu, rows, steps, channels, num_warps=8,
    )  # fmt: skip
    small = min(16, tile(c))
    _finish_sums[(k, triton.cdiv(c, small))](
        parts, n_valid, d_gamma, d_beta, *means, n_parts, h * w, d_gamma.stride(0), c, train, 128, small,
    )  # fmt: skip
    down = torch.empty_like(y)
    side = torch.empty_like(y) if residual else None
    total = n * h * w * c
    _norm_gradient[(triton.cdiv(total, BLOCK), k)](
        up, y, z, norm.mean, norm.rstd, norm.scale, norm.shift, *means, n_valid, down, y if side is None else side,
        total, h * w, c, residual, relu, BLOCK, num_warps=8,
    )  # fmt: skip
    return down, side
