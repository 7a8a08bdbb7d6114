"""Convolutions of K models as products with patches: what `ops.py` does convolution by convolution, by torch.bmm.

For convolutions without a batch norm, whose moments the kernels of `kernels.py` take on the way: measured for ResNet-18
with group norms, 64 to 512 channels, a library's products outrun those kernels ten times. And for all passes that are
not a step of a descent (logits, squares of single examples' gradients): for a ResNet-20 those kernels are 1.4 to 2.6
times as fast, but take longer to compile than such passes last. Patches take nine times the memory of what they are
made of: they are made anew for the weight's gradient, and for so many examples at a time as there is room for.
"""

from __future__ import annotations

import torch
from torch import Tensor

from forgetgauge.learn.device import products_in
from forgetgauge.learn.stacked import patches
from forgetgauge.learn.stacked.ops import Window

AT_ONCE = 2**30
"""Numbers of patches that are held at a time: 4 GiB of float32."""
SQUARES_AT_ONCE = 2**28
"""The same of single examples' gradients: 1 GiB."""


def convolve(x: Tensor, weight: Tensor, window: Window, tf32: bool = False) -> Tensor:
    """(K, B, H, W, Ci) -> (K, B, H', W', Co)."""
    k, n, h, w, _ = x.shape
    shape = k, n, window.out(h, window.rows), window.out(w, window.columns), weight.shape[-1]
    with products_in(tf32=tf32):
        made = [torch.bmm(_rows(some, window), weight.flatten(1, 3)) for some in _in_parts(x, x, window)]
    return (made[0] if len(made) == 1 else torch.cat(made, 1)).view(shape)


def convolve_back(
    up: Tensor, weight: Tensor, window: Window, shape: torch.Size, plus: Tensor | None = None, tf32: bool = False
) -> Tensor:
    """The gradient with respect to an input of that shape, added to `plus`."""
    k, *pixels = shape[0], *shape[2:]
    made = []
    for some in _in_parts(up, torch.empty(shape, device="meta"), window):
        n, n_positions = some.shape[1], some.shape[2] * some.shape[3]
        with products_in(tf32=tf32):
            rows = torch.bmm(some.flatten(1, 3), weight.flatten(1, 3).transpose(1, 2))
        size = torch.Size((k * n, *pixels))
        made.append(patches.add_up(rows.view(k * n, n_positions, rows.shape[-1]), _window(window), size))
        made[-1] = made[-1].view(k, n, *pixels)
    down = made[0] if len(made) == 1 else torch.cat(made, 1)
    return down if plus is None else plus + down


def weight_gradient(
    x: Tensor, up: Tensor, window: Window, out: Tensor, tf32: bool = False, squares: bool = False
) -> None:
    """Into `out` (K, rows · columns · Ci · Co): the gradient, or the sum of squared gradients of single examples."""
    n_positions = up.shape[2] * up.shape[3]
    parts = zip(_in_parts(x, x, window), _in_parts(up, x, window), strict=True)
    for place, (some, theirs) in enumerate(parts):
        rows, ups = _rows(some, window), theirs.flatten(1, 3)
        with products_in(tf32=tf32):
            if squares and n_positions > 1:
                made = _squares(rows, ups, n_positions)
            else:
                if squares:  # of an outer product: the outer product of the squares
                    rows, ups = rows.square(), ups.square()
                made = torch.bmm(rows.transpose(1, 2), ups)
        if place == 0:
            out.copy_(made.flatten(1))
        else:
            out.add_(made.flatten(1))


def _in_parts(x: Tensor, read: Tensor, window: Window) -> tuple[Tensor, ...]:
    """x (K, B, …) cut along its batch, so that patches of as many examples of what is read have room."""
    k, n, h, w, c = read.shape
    each = k * window.out(h, window.rows) * window.out(w, window.columns) * window.rows * window.columns * c
    return torch.split(x, max(1, min(n, AT_ONCE // max(1, each))), 1)


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
