"""Triton kernels for convolutions of K models at once, member by member in memory, with the moments of a batch norm.

For descents that the folded kernels (folded/) are not for: in float32, with windows other than three by three, with
odd numbers of channels. What is only looked at is not worth the compiling (patches.py). Activations are (K, batch,
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

from forgetgauge.learn.stacked.patches import Window


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


# -- The same, called with tensors -----------------------------------------------------------------------------------


def tile(n: int) -> int:
    """The length of a block for n numbers: a power of two, and no shorter than tensor cores want."""
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
    hd, wd = window.positions(hs, ws)
    out = torch.empty((k, n, hd, wd, cd), device=x.device, dtype=x.dtype)
    pixels, columns = 2 * _widest(x), min(_widest(x), tile(cs))
    n_parts = triton.cdiv(n * hd * wd, pixels)
    outs = min(64, tile(cd))
    moments = None
    if n_valid is not None:
        moments = (*torch.empty((2, k, n_parts, cd), device=x.device, dtype=torch.float32), pixels)
    _convolve[(n_parts, triton.cdiv(cd, outs), k)](
        x, weight, out, x, moments[0] if moments else x, moments[1] if moments else x,
        n_valid if n_valid is not None else x, n, hs, ws, hd, wd, n_parts, weight.stride(0),
        cs, cd, *window.kernel, window.stride[0], window.padding[0],
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
    pixels, columns = 2 * _widest(up), min(_widest(up), tile(cs))
    n_parts = triton.cdiv(n * hd * wd, pixels)
    outs = min(64, tile(cd))
    _convolve[(n_parts, triton.cdiv(cd, outs), k)](
        up, weight, out, up if plus is None else plus, up, up, up, n, hs, ws, hd, wd, n_parts, weight.stride(0),
        cs, cd, *window.kernel, window.stride[0], window.padding[0],
        True, False, plus is not None, _precision(up, tf32), pixels, columns, outs, num_stages=2,
    )  # fmt: skip
    return out


def weight_gradient(x: Tensor, up: Tensor, window: Window, out: Tensor, tf32: bool = False) -> None:
    """Into `out` (K, rows · columns · Ci · Co)."""
    k, n, hs, ws, cs = x.shape
    _, _, hd, wd, cd = up.shape
    kh, kw = window.kernel
    outs = min(64, tile(cd))
    pixels, columns = (min(_widest(x), tile(size)) for size in (hd * wd, kw * cs))
    n_blocks = triton.cdiv(cd, outs) * triton.cdiv(kw * cs, columns) * kh
    n_parts = max(1, min(n, 1056 // (k * n_blocks)))  # eight programs for each of 132 multiprocessors
    per_part = triton.cdiv(n, n_parts)
    n_parts = triton.cdiv(n, per_part)
    parts = torch.empty((n_parts, k, kh * kw * cs * cd), device=x.device, dtype=torch.float32)
    _weight_gradient[(n_parts, n_blocks, k)](
        x, up, parts, n, hs, ws, hd, wd, k, per_part,
        cs, cd, *window.kernel, window.stride[0], window.padding[0],
        _precision(x, tf32), pixels, columns, outs, num_stages=2,
    )  # fmt: skip
    torch.sum(parts, 0, out=out)
