"""Triton kernels that cut images into patches, and add the gradients of patches up into images.

Images are (n, height, width, channels), patches (n, positions, rows · columns · channels). All is moved in runs of
channels, as long as the largest power of two that divides their number, at most 128: which image, pixel and tap is
asked run by run, not number by number, and neighbouring threads touch neighbouring channels.

Both gather: every number is written once, and a pixel's gradient is added up in one order, so the same input gives the
same bits. Loaded only where there is a GPU to run them.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,no-any-return"
# What Triton compiles is not Python, though it looks like it.
from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from forgetgauge.learn.stacked.patches import Window


@triton.jit
def _runs(n_runs, PER_IMAGE: tl.constexpr, RUNS: tl.constexpr):
    """A program's first run, the image that holds it, its runs counted from there, and which of them there are.

    Only the first two need 64 bits: an image, and its patches, are less than 2³¹ numbers. Runs are unsigned, for a
    division by a constant then has no sign to mend.
    """
    first = tl.program_id(0).to(tl.int64) * RUNS
    image = first // PER_IMAGE
    own = tl.arange(0, RUNS)
    run = (first - image * PER_IMAGE).to(tl.int32) + own
    live = own < tl.minimum(n_runs - first, RUNS).to(tl.int32)
    return first, image, run.to(tl.uint32), live


@triton.jit
def _patches(
    x, out, n_runs,
    HS: tl.constexpr, WS: tl.constexpr, HD: tl.constexpr, WD: tl.constexpr, C: tl.constexpr,
    KH: tl.constexpr, KW: tl.constexpr, DOWN: tl.constexpr, RIGHT: tl.constexpr,
    ABOVE: tl.constexpr, BESIDE: tl.constexpr, WIDTH: tl.constexpr, RUNS: tl.constexpr,
):  # fmt: skip
    """RUNS runs of the patches, WIDTH channels each; a row of a window is contiguous in the image too."""
    CR: tl.constexpr = C // WIDTH
    ROW: tl.constexpr = KW * CR
    first, image, run, live = _runs(n_runs, HD * WD * KH * ROW, RUNS)
    row = run // ROW
    column = (run % ROW).to(tl.int32)
    position = row // KH
    kh = (row % KH).to(tl.int32)
    b = (position // (HD * WD)).to(tl.int32)
    hd = (position // WD % HD).to(tl.int32)
    wd = (position % WD).to(tl.int32)
    hs = hd * DOWN + kh - ABOVE
    column = wd * (RIGHT * CR) + column - BESIDE * CR
    ok = live & (hs >= 0) & (hs < HS) & (column >= 0) & (column < WS * CR)
    c = tl.arange(0, WIDTH)[None, :]
    x += image * (HS * WS * C)
    out += first * WIDTH
    value = tl.load(x + ((b * HS + hs) * (WS * CR) + column)[:, None] * WIDTH + c, mask=ok[:, None], other=0.0)
    tl.store(out + tl.arange(0, RUNS)[:, None] * WIDTH + c, value, mask=live[:, None])


@triton.jit
def _patches_back(
    up, out, n_runs,
    HS: tl.constexpr, WS: tl.constexpr, HD: tl.constexpr, WD: tl.constexpr, C: tl.constexpr,
    KH: tl.constexpr, KW: tl.constexpr, DOWN: tl.constexpr, RIGHT: tl.constexpr,
    ABOVE: tl.constexpr, BESIDE: tl.constexpr, WIDTH: tl.constexpr, RUNS: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    """RUNS runs of the images; pixel h was read at kh by position (h + ABOVE − kh) / DOWN, where that is whole."""
    CR: tl.constexpr = C // WIDTH
    TAPS_H: tl.constexpr = (KH + DOWN - 1) // DOWN  # of KH only every DOWN-th meets a pixel
    TAPS_W: tl.constexpr = (KW + RIGHT - 1) // RIGHT
    first, image, run, live = _runs(n_runs, HS * WS * CR, RUNS)
    pixel = run // CR
    part = (run % CR).to(tl.int32)
    b = (pixel // (HS * WS)).to(tl.int32)
    h = pixel // WS % HS + ABOVE
    w = pixel % WS + BESIDE
    c = tl.arange(0, WIDTH)[None, :]
    up += image * (HD * WD * KH * KW * C)
    out += first * WIDTH
    total = tl.zeros((RUNS, WIDTH), dtype=SUM)
    for i in tl.static_range(TAPS_H):
        kh = (h % DOWN).to(tl.int32) + i * DOWN
        hd = (h // DOWN).to(tl.int32) - i
        in_h = live & (kh < KH) & (hd >= 0) & (hd < HD)
        for j in tl.static_range(TAPS_W):
            kw = (w % RIGHT).to(tl.int32) + j * RIGHT
            wd = (w // RIGHT).to(tl.int32) - j
            ok = in_h & (kw < KW) & (wd >= 0) & (wd < WD)
            at = ((((b * HD + hd) * WD + wd) * KH + kh) * KW + kw) * CR + part
            total += tl.load(up + at[:, None] * WIDTH + c, mask=ok[:, None], other=0.0).to(SUM)
    at = tl.arange(0, RUNS)[:, None] * WIDTH + c
    tl.store(out + at, total.to(out.dtype.element_ty), mask=live[:, None])


# -- The same, called with tensors -----------------------------------------------------------------------------------

BLOCK = 2048
"""Numbers that a program writes."""
BLOCK_BACK = 1024
"""The same of images: fewer, for up to nine loads of as many (3 × 3) are under way at once."""


def _is_view(window: Window) -> bool:
    """Patches of single pixels, all of them: the image itself."""
    return window == Window((1, 1), (1, 1), (0, 0))


def _shapes(size: torch.Size, window: Window) -> tuple[int, ...]:
    """What the kernels are compiled for."""
    _, h, w, c = size
    return h, w, *window.positions(h, w), c, *window.kernel, *window.stride, *window.padding


def patches(x: Tensor, window: Window) -> Tensor:
    """(n, h, w, C) -> (n, positions, rows · columns · C), zeros beyond the border."""
    n, h, w, c = x.shape
    x = x.contiguous()
    if _is_view(window):
        return x.view(n, h * w, c)
    length = math.prod(window.kernel) * c
    out = torch.empty((n, math.prod(window.positions(h, w)), length), device=x.device, dtype=x.dtype)
    width = math.gcd(c, 128)
    _patches[(triton.cdiv(out.numel(), BLOCK),)](
        x, out, out.numel() // width, *_shapes(x.shape, window), width, BLOCK // width, num_warps=4
    )
    return out


def patches_back(up: Tensor, window: Window, size: torch.Size) -> Tensor:
    """(n, positions, rows · columns · C) -> (n, h, w, C): for each pixel the sum over all that it was read for."""
    up = up.contiguous()
    if _is_view(window):
        return up.view(size)
    out = torch.empty(size, device=up.device, dtype=up.dtype)
    width = math.gcd(size[-1], 128)
    _patches_back[(triton.cdiv(out.numel(), BLOCK_BACK),)](
        up, out, out.numel() // width, *_shapes(size, window),
        width, BLOCK_BACK // width, tl.float64 if up.dtype == torch.float64 else tl.float32, num_warps=4,
    )  # fmt: skip
    return out
