"""Convolutions of K models as products with patches, the numbers of an image that one position of a window reads.

The numbers of a patch are (row, column, channel): with channels last, runs of C numbers are copied eight times as fast.
Not F.unfold, which on a GPU goes image by image. Patches are cut here in plain torch, and on a GPU with Triton by
`kernels/patches.py`, which makes no copy with a border and adds all that a pixel was read for in one pass.

Products are for convolutions without a batch norm, whose moments the kernels of `kernels/convolution.py` take on the
way: measured for ResNet-18 with group norms, 64 to 512 channels, a library's products outrun those kernels ten times.
And for passes that are not a step of a descent, squares of single examples' gradients and looks at few points: for a
ResNet-20 those kernels are 1.4 to 2.6 times as fast, but take longer to compile than such passes last. Patches take
nine times the memory of what they are made of: they are made anew for the weight's gradient, and for so many examples
at a time as there is room for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from forgetgauge.learn.device import kernels_on, products_in
from forgetgauge.learn.stacked.members import NotStackable

AT_ONCE = 2**30
"""Numbers of patches that are held at a time: 4 GiB of float32."""
SQUARES_AT_ONCE = 2**28
"""The same of single examples' gradients: 1 GiB."""

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


def window_of(name: str, module: nn.Conv2d) -> Window:
    """The window of a convolution that is a product with patches."""
    if module.groups != 1 or set(module.dilation) != {1} or module.padding_mode != "zeros":
        raise NotStackable(f"{name} is a convolution with groups, dilation or a padding that is not zeros")
    if isinstance(module.padding, str):
        raise NotStackable(f"{name} names its padding in words")
    kernel, stride, padding = ((pair[0], pair[1]) for pair in (module.kernel_size, module.stride, module.padding))
    return Window(kernel, stride, padding)


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


# -- convolutions of K models ------------------------------------------------------------------------------------------


def convolve(
    x: Tensor, weight: Tensor, window: Window, n_valid: Tensor | None = None, tf32: bool = False
) -> tuple[Tensor, Any]:
    """(K, B, H, W, Ci) -> (K, B, H', W', Co), and what `ops.finish_moments` needs where `n_valid` (K,) is given."""
    k, n, h, w, _ = x.shape
    shape = k, n, *window.positions(h, w), weight.shape[-1]
    with products_in(tf32=tf32):
        made = [torch.bmm(_rows(some, window), weight.flatten(1, 3)) for some in _in_parts(x, x, window)]
    out = (made[0] if len(made) == 1 else torch.cat(made, 1)).view(shape)
    return out, (out if n_valid is not None else None)


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
        made.append(add_up(rows.view(k * n, n_positions, rows.shape[-1]), window, size))
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
    each = k * math.prod(window.positions(h, w)) * math.prod(window.kernel) * c
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
    made = cut(x.flatten(0, 1), window)
    return made.view(len(x), -1, made.shape[-1])
