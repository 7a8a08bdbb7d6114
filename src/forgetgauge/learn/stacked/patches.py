"""Images as the patches that a convolution reads, so that it is one product; (n, C, h, w) -> (n, positions, numbers).

The numbers of a patch are (row, column, channel): with channels last, runs of C numbers are copied eight times as fast.
Not F.unfold, which on a GPU goes image by image. Here in plain torch; on a GPU with Triton by `patch_kernels.py`, which
makes no copy with a border and adds all that a pixel was read for in one pass.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from forgetgauge.learn.device import kernels_on

Pair = tuple[int, int]
"""(rows, columns)."""


@dataclass(frozen=True)
class Window:
    """A convolution's kernel, stride and padding."""

    kernel: Pair
    stride: Pair
    padding: Pair

    def positions(self, *size: int) -> Pair:
        """(rows, columns) of them on an image of that height and width."""
        height, width = (
            (pixels + 2 * pad - taps) // step + 1
            for pixels, pad, taps, step in zip(size, self.padding, self.kernel, self.stride, strict=True)
        )
        return height, width

    def touching(self, *size: int) -> tuple[Window, tuple[slice, slice]]:
        """The window without rows and columns that lie beyond the border wherever it stands, and what is left of it.

        A 3 × 3 window with padding on one pixel is its middle: a ninth of the numbers.
        """
        taps = tuple(map(_touching, size, self.positions(*size), self.kernel, self.stride, self.padding))
        rows, columns = taps
        kernel = rows.stop - rows.start, columns.stop - columns.start
        padding = self.padding[0] - rows.start, self.padding[1] - columns.start
        less = Window(kernel, self.stride, padding)
        if min(padding) < 0 or less.positions(*size) != self.positions(*size):
            return self, (slice(0, self.kernel[0]), slice(0, self.kernel[1]))
        return less, (rows, columns)


def _touching(pixels: int, positions: int, taps: int, step: int, pad: int) -> slice:
    """From the first to the last tap that reads a pixel at some position."""
    first = min(max(0, pad - step * (positions - 1)), taps - 1)
    return slice(first, max(first + 1, min(taps, pixels + pad)))


def patches(x: Tensor, window: Window) -> Tensor:
    """(n, C, h, w), best with channels last in memory -> (n, positions, rows · columns · C); for autograd too."""
    made: Tensor = _Patches.apply(x, window)  # type: ignore[no-untyped-call]
    return made


def cut(x: Tensor, window: Window) -> Tensor:
    """(n, h, w, C) -> (n, positions, rows · columns · C), zeros beyond the border."""
    kernels = _kernels_for(x)
    if kernels is not None:
        made: Tensor = kernels.patches(x, window)
        return made
    (rows, columns), (down, right), (above, beside) = window.kernel, window.stride, window.padding
    padded = F.pad(x, (0, 0, beside, beside, above, above)).contiguous()
    views = padded.unfold(1, rows, down).unfold(2, columns, right)  # (n, H, W, C, rows, columns)
    numbers = rows * columns * x.shape[-1]
    return views.permute(0, 1, 2, 4, 5, 3).reshape(len(x), math.prod(window.positions(*x.shape[1:3])), numbers)


def add_up(up: Tensor, window: Window, size: torch.Size) -> Tensor:
    """(n, positions, rows · columns · C) -> (n, h, w, C): for each pixel the sum over all that it was read for."""
    kernels = _kernels_for(up)
    if kernels is not None:
        made: Tensor = kernels.patches_back(up, window, size)
        return made
    (n, height, width, c), (above, beside) = size, window.padding
    high, wide = window.positions(height, width)
    up = up.reshape(n, high, wide, *window.kernel, c)
    back = up.new_zeros(n, height + 2 * above, width + 2 * beside, c)
    for row in range(window.kernel[0]):
        rows = slice(row, row + window.stride[0] * (high - 1) + 1, window.stride[0])
        for column in range(window.kernel[1]):
            columns = slice(column, column + window.stride[1] * (wide - 1) + 1, window.stride[1])
            back[:, rows, columns] += up[:, :, :, row, column]
    return back[:, above : above + height, beside : beside + width].contiguous()


class _Patches(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, window: Window) -> Tensor:
        last = x.permute(0, 2, 3, 1)
        ctx.window, ctx.size = window, last.shape
        return cut(last, window)

    @staticmethod
    def backward(ctx: Any, *ups: Tensor) -> tuple[Tensor, None]:
        return add_up(ups[0], ctx.window, ctx.size).permute(0, 3, 1, 2), None


def _kernels_for(x: Tensor) -> Any:
    return kernels_on(x.device, "patches")
