"""Triton kernels of `group_norm.py`: forwards x is read once, backwards x and the gradient of what was made of it.

A program has all pixels of some whole groups of one example, so that nothing is added up between programs. Loaded only
where there is a GPU to run them.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,no-any-return"
# What Triton compiles is not Python, though it looks like it.
from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

MOST_NUMBERS = 16384
"""Of a program: 32 for each of its 512 threads."""
NUMBERS = 4096
"""Where there is a choice."""


@triton.jit
def _of_groups(per_channel, IN_GROUP: tl.constexpr, CHANNELS: tl.constexpr):
    """(channels,) -> (channels,): for each channel the sum over its group."""
    total = tl.sum(tl.reshape(per_channel, (CHANNELS // IN_GROUP, IN_GROUP)), 1)
    return tl.reshape(tl.broadcast_to(total[:, None], (CHANNELS // IN_GROUP, IN_GROUP)), (CHANNELS,))


@triton.jit
def _group_norm(
    x, gamma, beta, out, mean_out, rstd_out, batch, n_pixels, gamma_stride, beta_stride, epsilon,
    C: tl.constexpr, IN_GROUP: tl.constexpr, PIXELS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """γ x̂ + β of some groups of one example, and their moments."""
    example = tl.program_id(0)
    member = (example // batch).to(tl.int64)
    c = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    t = tl.arange(0, PIXELS)
    inside = (t < n_pixels)[:, None] & (c < C)[None, :]
    at = example.to(tl.int64) * n_pixels * C + t[:, None] * C + c[None, :]
    value = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    n = n_pixels * IN_GROUP
    mean = _of_groups(tl.sum(value, 0), IN_GROUP, CHANNELS) / n
    off = tl.where(inside, value - mean[None, :], 0.0)
    rstd = 1.0 / tl.sqrt(_of_groups(tl.sum(off * off, 0), IN_GROUP, CHANNELS) / n + epsilon)
    g = tl.load(gamma + member * gamma_stride + c, mask=c < C, other=0.0)
    b = tl.load(beta + member * beta_stride + c, mask=c < C, other=0.0)
    made = off * (rstd * g)[None, :] + b[None, :]
    tl.store(out + at, made.to(out.dtype.element_ty), mask=inside)
    place = example * (C // IN_GROUP) + c // IN_GROUP
    first = (c < C) & (c % IN_GROUP == 0)
    tl.store(mean_out + place, mean, mask=first)
    tl.store(rstd_out + place, rstd, mask=first)


@triton.jit
def _group_norm_gradient(
    up, x, mean, rstd, gamma, down, d_gamma, d_beta, batch, n_pixels, gamma_stride,
    C: tl.constexpr, IN_GROUP: tl.constexpr, PIXELS: tl.constexpr, CHANNELS: tl.constexpr,
):  # fmt: skip
    """With g = up · γ: ∂/∂x = (g − mean g − x̂ · mean(g · x̂)) / σ, ∂/∂γ = Σ up · x̂, ∂/∂β = Σ up, of one example."""
    example = tl.program_id(0)
    member = (example // batch).to(tl.int64)
    c = tl.program_id(1) * CHANNELS + tl.arange(0, CHANNELS)
    t = tl.arange(0, PIXELS)
    inside = (t < n_pixels)[:, None] & (c < C)[None, :]
    at = example.to(tl.int64) * n_pixels * C + t[:, None] * C + c[None, :]
    place = example * (C // IN_GROUP) + c // IN_GROUP
    m = tl.load(mean + place, mask=c < C, other=0.0)
    r = tl.load(rstd + place, mask=c < C, other=0.0)
    s = tl.load(gamma + member * gamma_stride + c, mask=c < C, other=0.0)
    u = tl.load(up + at, mask=inside, other=0.0).to(tl.float32)
    flat = (tl.load(x + at, mask=inside, other=0.0).to(tl.float32) - m[None, :]) * r[None, :]
    plain = tl.sum(u, 0)
    along = tl.sum(u * flat, 0)  # u is 0 outside
    tl.store(d_gamma + example * C + c, along, mask=c < C)
    tl.store(d_beta + example * C + c, plain, mask=c < C)
    n = n_pixels * IN_GROUP
    mean_plain = _of_groups(s * plain, IN_GROUP, CHANNELS) / n
    mean_along = _of_groups(s * along, IN_GROUP, CHANNELS) / n
    back = r[None, :] * (u * s[None, :] - mean_plain[None, :] - flat * mean_along[None, :])
    tl.store(down + at, back.to(down.dtype.element_ty), mask=inside)


# -- The same, called with tensors -----------------------------------------------------------------------------------


def _pixels(x: Tensor) -> int:
    return math.prod(x.shape[2:-1])


def suits(x: Tensor, groups: int) -> bool:
    """Whether a group fits into a program, and groups of 2ⁱ channels are whole in blocks of 2ʲ."""
    in_group = x.shape[-1] // groups
    small = triton.next_power_of_2(_pixels(x)) * in_group <= MOST_NUMBERS
    return small and in_group & (in_group - 1) == 0 and x.dtype in (torch.float32, torch.bfloat16)


def _blocks(x: Tensor, groups: int) -> tuple[int, int, int, int]:
    """(channels in a group, pixels and channels of a program, warps)."""
    c, in_group, pixels = x.shape[-1], x.shape[-1] // groups, triton.next_power_of_2(_pixels(x))
    channels = max(in_group, min(triton.next_power_of_2(c), NUMBERS // pixels), 1)
    return in_group, pixels, channels, min(16, max(1, pixels * channels // 1024))


def group_norm(x: Tensor, gamma: Tensor, beta: Tensor, groups: int, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """(γ x̂ + β, mean, 1 / σ); x (K, B, …, C), γ and β (K, C), the moments (K · B, groups)."""
    x = x.contiguous()
    (k, batch), c = x.shape[:2], x.shape[-1]
    in_group, pixels, channels, warps = _blocks(x, groups)
    out = torch.empty_like(x)
    mean, rstd = torch.empty((2, k * batch, groups), device=x.device, dtype=torch.float32)
    _group_norm[(k * batch, triton.cdiv(c, channels))](
        x, gamma, beta, out, mean, rstd, batch, _pixels(x), gamma.stride(0), beta.stride(0), eps,
        c, in_group, pixels, channels, num_warps=warps,
    )  # fmt: skip
    return out, mean, rstd


def group_norm_gradient(
    up: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, gamma: Tensor, groups: int
) -> tuple[Tensor, Tensor, Tensor]:
    """(∂/∂x like x, ∂/∂γ and ∂/∂β of every example, (K, B, C) float32)."""
    up, x = up.contiguous(), x.contiguous()
    (k, batch), c = x.shape[:2], x.shape[-1]
    in_group, pixels, channels, warps = _blocks(x, groups)
    down = torch.empty_like(x)
    d_gamma, d_beta = torch.empty((2, k, batch, c), device=x.device, dtype=torch.float32)
    _group_norm_gradient[(k * batch, triton.cdiv(c, channels))](
        up, x, mean, rstd, gamma, down, d_gamma, d_beta, batch, _pixels(x), gamma.stride(0),
        c, in_group, pixels, channels, num_warps=warps,
    )  # fmt: skip
    return down, d_gamma, d_beta
