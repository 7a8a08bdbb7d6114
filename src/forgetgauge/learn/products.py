"""Convolutions of K models as products with patches: what `ops.py` does convolution by convolution, by torch.bmm.

For convolutions without a batch norm, whose moments the kernels of `kernels.py` take on the way: networks with group
norms have layers of 64 channels and more, where a library's products outrun those kernels. Patches are made anew for
the weight's gradient, since they would take nine times the memory of what they are made of.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from forgetgauge.learn import patches
from forgetgauge.learn.ops import Window

SQUARES_AT_ONCE = 2**28
"""Numbers of single examples' gradients that are held at a time: 1 GiB of float32."""


def convolve(x: Tensor, weight: Tensor, window: Window, tf32: bool = False) -> Tensor:
    """(K, B, H, W, Ci) -> (K, B, H', W', Co)."""
    k, n, h, w, _ = x.shape
    shape = k, n, window.out(h, window.rows), window.out(w, window.columns), weight.shape[-1]
    with _products(tf32):
        return torch.bmm(_rows(x, window), weight.flatten(1, 3)).view(shape)


def convolve_back(
    up: Tensor, weight: Tensor, window: Window, shape: torch.Size, plus: Tensor | None = None, tf32: bool = False
) -> Tensor:
    """The gradient with respect to an input of that shape, added to `plus`."""
    k, n, high, wide, _ = up.shape
    with _products(tf32):
        rows = torch.bmm(up.flatten(1, 3), weight.flatten(1, 3).transpose(1, 2))
    down = patches.add_up(rows.view(k * n, high * wide, -1), _window(window), torch.Size((k * n, *shape[2:])))
    return down.view(shape) if plus is None else plus + down.view(shape)


def weight_gradient(
    x: Tensor, up: Tensor, window: Window, out: Tensor, squares: bool = False, tf32: bool = False
) -> None:
    """Into `out` (K, rows · columns · Ci · Co): the gradient, or the sum of squared gradients of single examples."""
    rows, ups = _rows(x, window), up.flatten(1, 3)
    n_pixels = up.shape[2] * up.shape[3]
    with _products(tf32):
        if squares and n_pixels > 1:
            out.copy_(_squares(rows, ups, n_pixels).flatten(1))
            return
        if squares:  # of an outer product: the outer product of the squares
            rows, ups = rows.square(), ups.square()
        out.copy_(torch.bmm(rows.transpose(1, 2), ups).flatten(1))


def _squares(rows: Tensor, ups: Tensor, n_pixels: int) -> Tensor:
    """(K, d, Co) from (K, B · T, d) and (K, B · T, Co)."""
    k, _, d = rows.shape
    total = rows.new_zeros((k, d, ups.shape[-1]), dtype=torch.float32)
    at_once = max(1, SQUARES_AT_ONCE // total.numel()) * n_pixels
    for some, theirs in zip(torch.split(rows, at_once, 1), torch.split(ups, at_once, 1), strict=True):
        each = torch.bmm(_by_example(some, n_pixels).transpose(1, 2), _by_example(theirs, n_pixels))
        total += each.float().square_().view(k, -1, d, ups.shape[-1]).sum(1)
    return total


def _by_example(rows: Tensor, n_pixels: int) -> Tensor:
    """(K, b · T, d) -> (K · b, T, d)."""
    return rows.reshape(-1, n_pixels, rows.shape[-1])


def _rows(x: Tensor, window: Window) -> Tensor:
    """(K, B · T, rows · columns · Ci)."""
    cut = patches.cut(x.flatten(0, 1), _window(window))
    return cut.view(len(x), -1, cut.shape[-1])


def _window(window: Window) -> patches.Window:
    return patches.Window((window.rows, window.columns), (window.stride,) * 2, (window.pad,) * 2)


@contextmanager
def _products(tf32: bool) -> Iterator[None]:
    """Products of float32 as float32, unless tf32 was asked for."""
    before = torch.backends.cuda.matmul.allow_tf32
    torch.backends.cuda.matmul.allow_tf32 = tf32
    try:
        yield
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
