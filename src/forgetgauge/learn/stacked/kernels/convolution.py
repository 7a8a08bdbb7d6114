"""Triton kernels of the stacked engine: convolutions and batch norms of K models at once, member by member in memory.

For descents that the folded kernels (folded/) are not for: in float32, with windows other than three by three, with
odd numbers of channels. What is only looked at is not worth the compiling (products.py). Activations are (K, batch,
height, width, channels), each member's own block contiguous; convolution weights are (K, rows, columns, channels in,
channels out). cuDNN's grouped convolutions spend their time on sixteen-channel groups laid out for one big model; here
a program of the grid belongs to one member and reads nothing of another.

Nothing is added up by atomics: every program writes its partial sum to a place of its own, and the partial sums are
added in a fixed order, so the same stack gives the same bits. Loaded only where there is a GPU to run them.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,no-any-return"
# What Triton compiles is not Python, though it looks like it.
from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from forgetgauge.learn.stacked.ops import Norm, Window


@triton.jit
def _gather_columns(
    source, b, h, w, kh, columns, live, HS, WS,
    CS: tl.constexpr, KW: tl.constexpr, STRIDE: tl.constexpr, PAD: tl.constexpr, BACKWARD: tl.constexpr,
):  # fmt: skip
    """(pixels, columns) of one row kh of the window; a column is (kw, channel), contiguous in memory."""
    kw = columns // CS
    c = columns % CS
    if BACKWARD:  # output pixel (h, w) was read by the pixels (h + PAD − kh) / STRIDE, where that is whole
        th = h + PAD - kh
        tw = w[:, None] + PAD - kw[None, :]
        hs = th // STRIDE
        ws = tw // STRIDE
        ok = (live & (th >= 0) & (th % STRIDE == 0))[:, None] & (tw >= 0) & (tw % STRIDE == 0)
    else:
        hs = h * STRIDE + kh - PAD
        ws = w[:, None] * STRIDE + kw[None, :] - PAD
        ok = (live & (hs >= 0))[:, None] & (ws >= 0)
    ok = ok & (hs < HS)[:, None] & (ws < WS) & (kw < KW)[None, :]
    at = ((b * HS + hs) * WS)[:, None] * CS + ws * CS + c[None, :]
    return tl.load(source + at, mask=ok, other=0.0)


@triton.jit
def _convolve(
    source, weight, out, plus, mean_part, square_part, n_valid,
    B, HS, WS, HD, WD, n_parts, weight_stride,
    CS: tl.constexpr, CD: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr, STRIDE: tl.constexpr, PAD: tl.constexpr,
    BACKWARD: tl.constexpr, MOMENTS: tl.constexpr, PLUS: tl.constexpr, PRECISION: tl.constexpr,
    PIXELS: tl.constexpr, COLUMNS: tl.constexpr, OUTS: tl.constexpr,
):  # fmt: skip
    """out[pixel, d] = Σ window · weight, for one member; BACKWARD is the gradient with respect to the input."""
    part = tl.program_id(0)
    first_out = tl.program_id(1) * OUTS
    member = tl.program_id(2)
    source += member.to(tl.int64) * B * HS * WS * CS
    out += member.to(tl.int64) * B * HD * WD * CD
    weight += member.to(tl.int64) * weight_stride
    row = part * PIXELS + tl.arange(0, PIXELS)
    live = row < B * HD * WD
    w = row % WD
    h = (row // WD) % HD
    b = row // (WD * HD)
    d = first_out + tl.arange(0, OUTS)
    total = tl.zeros((PIXELS, OUTS), dtype=tl.float32)
    for kh in tl.static_range(KH):
        for first in range(0, KW * CS, COLUMNS):
            columns = first + tl.arange(0, COLUMNS)
            window = _gather_columns(source, b, h, w, kh, columns, live, HS, WS, CS, KW, STRIDE, PAD, BACKWARD)
            kw = columns // CS
            c = columns % CS
            if BACKWARD:  # the weights are stored (kh, kw, in, out): here `in` is the result's channel
                at = ((kh * KW + kw) * CD)[:, None] * CS + d[None, :] * CS + c[:, None]
            else:
                at = ((kh * KW + kw) * CS + c)[:, None] * CD + d[None, :]
            inside = (kw < KW)[:, None] & (d < CD)[None, :]
            total = tl.dot(window, tl.load(weight + at, mask=inside, other=0.0), total, input_precision=PRECISION)
    at = row[:, None] * CD + d[None, :]
    inside = live[:, None] & (d < CD)[None, :]
    if PLUS:
        plus += member.to(tl.int64) * B * HD * WD * CD
        total += tl.load(plus + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + at, total.to(out.dtype.element_ty), mask=inside)
    if MOMENTS:  # of the batch's own rows; the rest is padding
        own = row < tl.load(n_valid + member) * HD * WD
        count = tl.maximum(tl.sum(own.to(tl.float32), 0), 1.0)
        mean = tl.sum(tl.where(own[:, None], total, 0.0), 0) / count
        off = tl.where(own[:, None], total - mean[None, :], 0.0)
        place = (member * n_parts + part) * CD + d
        tl.store(mean_part + place, mean, mask=d < CD)
        tl.store(square_part + place, tl.sum(off * off, 0), mask=d < CD)


@triton.jit
def _weight_gradient(
    source, up, out, B, HS, WS, HD, WD, n_members, per_part,
    CS: tl.constexpr, CD: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr, STRIDE: tl.constexpr, PAD: tl.constexpr,
    PRECISION: tl.constexpr, PIXELS: tl.constexpr, COLUMNS: tl.constexpr, OUTS: tl.constexpr,
):  # fmt: skip
    """Σ over a few examples of window ⊗ up, for one row of the window."""
    part = tl.program_id(0)
    block = tl.program_id(1)
    member = tl.program_id(2)
    n_outs: tl.constexpr = (CD + OUTS - 1) // OUTS
    n_columns: tl.constexpr = (KW * CS + COLUMNS - 1) // COLUMNS
    d = (block % n_outs) * OUTS + tl.arange(0, OUTS)
    columns = ((block // n_outs) % n_columns) * COLUMNS + tl.arange(0, COLUMNS)
    kh = block // (n_outs * n_columns)
    source += member.to(tl.int64) * B * HS * WS * CS
    up += member.to(tl.int64) * B * HD * WD * CD
    total = tl.zeros((COLUMNS, OUTS), dtype=tl.float32)
    for example in range(per_part):
        b = part * per_part + example
        for first in range(0, HD * WD, PIXELS):
            pixel = first + tl.arange(0, PIXELS)
            live = (pixel < HD * WD) & (b < B)
            w = pixel % WD
            h = pixel // WD
            at = (b * HD * WD + pixel)[:, None] * CD + d[None, :]
            here = tl.load(up + at, mask=live[:, None] & (d < CD)[None, :], other=0.0)
            window = _gather_columns(source, b, h, w, kh, columns, live, HS, WS, CS, KW, STRIDE, PAD, False)
            total = tl.dot(tl.trans(window), here, total, input_precision=PRECISION)
    out += (part * n_members + member).to(tl.int64) * KH * KW * CS * CD
    at = kh * KW * CS * CD + columns[:, None] * CD + d[None, :]
    inside = (columns < KW * CS)[:, None] & (d < CD)[None, :]
    tl.store(out + at, total, mask=inside)


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


def _power(n: int) -> int:
    return max(16, triton.next_power_of_2(n))


def _precision(x: Tensor, tf32: bool) -> str:
    """Of products of float32: three products of rounded parts come to within 1e-6 of it, and tensor cores do them."""
    return "tf32" if tf32 or x.dtype != torch.float32 else "tf32x3"


def _widest(x: Tensor) -> int:
    """The most columns of a program; float32 products are three each, and large tiles take minutes to compile."""
    return 32 if x.dtype == torch.float32 else 64


def convolve(
    x: Tensor, weight: Tensor, window: Window, n_valid: Tensor | None = None, tf32: bool = False
) -> tuple[Tensor, Any]:
    """(K, B, H, W, Ci) -> (K, B, H', W', Co), and the parts of its moments where `n_valid` (K,) is given."""
    k, n, hs, ws, cs = x.shape
    cd = weight.shape[-1]
    hd, wd = window.out(hs, window.rows), window.out(ws, window.columns)
    out = torch.empty((k, n, hd, wd, cd), device=x.device, dtype=x.dtype)
    pixels, columns = 2 * _widest(x), min(_widest(x), _power(cs))
    n_parts = triton.cdiv(n * hd * wd, pixels)
    outs = min(64, _power(cd))
    moments = None
    if n_valid is not None:
        moments = (*torch.empty((2, k, n_parts, cd), device=x.device, dtype=torch.float32), pixels)
    _convolve[(n_parts, triton.cdiv(cd, outs), k)](
        x, weight, out, x, moments[0] if moments else x, moments[1] if moments else x,
        n_valid if n_valid is not None else x, n, hs, ws, hd, wd, n_parts, weight.stride(0),
        cs, cd, window.rows, window.columns, window.stride, window.pad,
        False, moments is not None, False, _precision(x, tf32), pixels, columns, outs, num_stages=2,
    )  # fmt: skip
    return out, moments


def convolve_back(
    up: Tensor, weight: Tensor, window: Window, shape: torch.Size, plus: Tensor | None = None, tf32: bool = False
) -> Tensor:
    """The gradient with respect to an input of that shape, added to `plus`."""
    k, n, hd, wd, cd = shape
    _, _, hs, ws, cs = up.shape
    out = torch.empty(shape, device=up.device, dtype=up.dtype)
    pixels, columns = 2 * _widest(up), min(_widest(up), _power(cs))
    n_parts = triton.cdiv(n * hd * wd, pixels)
    outs = min(64, _power(cd))
    _convolve[(n_parts, triton.cdiv(cd, outs), k)](
        up, weight, out, up if plus is None else plus, up, up, up, n, hs, ws, hd, wd, n_parts, weight.stride(0),
        cs, cd, window.rows, window.columns, window.stride, window.pad,
        True, False, plus is not None, _precision(up, tf32), pixels, columns, outs, num_stages=2,
    )  # fmt: skip
    return out


def weight_gradient(x: Tensor, up: Tensor, window: Window, out: Tensor, tf32: bool = False) -> None:
    """Into `out` (K, rows · columns · Ci · Co)."""
    k, n, hs, ws, cs = x.shape
    _, _, hd, wd, cd = up.shape
    outs = min(64, _power(cd))
    pixels, columns = (min(_widest(x), _power(size)) for size in (hd * wd, window.columns * cs))
    n_blocks = triton.cdiv(cd, outs) * triton.cdiv(window.columns * cs, columns) * window.rows
    n_parts = max(1, min(n, 1056 // (k * n_blocks)))  # eight programs for each of 132 multiprocessors
    per_part = triton.cdiv(n, n_parts)
    n_parts = triton.cdiv(n, per_part)
    parts = torch.empty((n_parts, k, window.rows * window.columns * cs * cd), device=x.device, dtype=torch.float32)
    _weight_gradient[(n_parts, n_blocks, k)](
        x, up, parts, n, hs, ws, hd, wd, k, per_part,
        cs, cd, window.rows, window.columns, window.stride, window.pad,
        _precision(x, tf32), pixels, columns, outs, num_stages=2,
    )  # fmt: skip
    torch.sum(parts, 0, out=out)


def finish_moments(
    moments: Any, n_valid: Tensor, n_pixels: int, gamma: Tensor, beta: Tensor, running: tuple[Tensor, Tensor],
    momentum: float, epsilon: float,
) -> Norm:  # fmt: skip
    """Batch statistics from their parts; the running statistics (K, C) are moved in place."""
    means, squares, pixels = moments
    k, n_parts, c = means.shape
    norm = Norm(*torch.empty((4, k, c), device=means.device, dtype=torch.float32))
    channels = min(16, _power(c))
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
    rows, steps, channels = 2048 // _power(c), 16, min(128, _power(c))
    n_parts = triton.cdiv(n * h * w, rows * steps)
    parts = torch.empty((k, n_parts, 2, c), device=y.device, dtype=torch.float32)
    means = torch.empty((2, k, c), device=y.device, dtype=torch.float32)
    _norm_sums[(n_parts, k, triton.cdiv(c, channels))](
        up, y, z, norm.mean, norm.rstd, norm.scale, norm.shift, n_valid, parts, n_parts, n * h * w, h * w,
        c, residual, relu, rows, steps, channels, num_warps=8,
    )  # fmt: skip
    small = min(16, _power(c))
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
