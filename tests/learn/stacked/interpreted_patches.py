"""Run by `test_kernels.py` with TRITON_INTERPRET=1: the kernels of patches against plain torch's, and its autograd."""

import math

import pytest
import torch
from torch import Tensor

from forgetgauge.learn.stacked.patches import Window, cut
from forgetgauge.learn.stacked.patches import patches as by_torch

from .interpreter import kernels_of

patch_kernels = kernels_of("patches")
patches, patches_back = patch_kernels.patches, patch_kernels.patches_back

# Images, height, width, channels, then (rows, columns) of window, stride and padding.
SHAPES = {
    "same size": (2, 5, 4, 8, (3, 3), (1, 1), (1, 1)),
    "downwards, even": (2, 6, 6, 4, (3, 3), (2, 2), (1, 1)),
    "downwards, odd": (2, 7, 5, 4, (3, 3), (2, 2), (1, 1)),
    "stem": (2, 10, 9, 3, (7, 7), (2, 2), (3, 3)),
    "shortcut, even": (2, 6, 6, 6, (1, 1), (2, 2), (0, 0)),
    "shortcut, odd": (3, 5, 5, 16, (1, 1), (2, 2), (0, 0)),
    "one pixel": (5, 1, 1, 32, (3, 3), (1, 1), (1, 1)),
    "one pixel of two": (3, 2, 2, 16, (3, 3), (2, 2), (1, 1)),
    "uneven": (3, 6, 5, 5, (3, 2), (2, 1), (1, 0)),
    "pixels that no window reads": (2, 8, 7, 2, (2, 1), (3, 2), (0, 0)),
    "padding wider than the window": (2, 3, 3, 3, (2, 2), (1, 1), (3, 2)),
    "more channels than a run": (1, 3, 2, 256, (3, 3), (1, 1), (1, 1)),
    "runs of one, many images in a program": (150, 1, 2, 7, (2, 2), (1, 1), (1, 1)),
    "runs of four, many images in a program": (150, 2, 1, 12, (1, 2), (1, 1), (0, 1)),
    "no copy": (2, 3, 4, 5, (1, 1), (1, 1), (0, 0)),
}
EACH = pytest.mark.parametrize("shape", SHAPES)


def example(shape: str) -> tuple[Tensor, Window, Tensor]:
    """An image (n, h, w, C), its window, and a gradient of its patches."""
    n, h, w, c, kernel, stride, padding = SHAPES[shape]
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n, h, w, c, generator=generator)
    window = Window(kernel, stride, padding)
    positions = math.prod(window.positions(h, w))
    up = torch.randn(n, positions, math.prod(kernel) * c, generator=generator)
    return x, window, up


@EACH
def test_patches_are_plain_torchs_bit_by_bit(shape: str) -> None:
    x, window, up = example(shape)
    found = patches(x, window)
    assert found.is_contiguous()
    assert found.shape == up.shape
    assert torch.equal(found, cut(x, window))


@EACH
def test_gradients_are_autograds(shape: str) -> None:
    x, window, up = example(shape)
    leaf = x.clone().requires_grad_()
    by_torch(leaf.permute(0, 3, 1, 2), window).backward(up)
    found = patches_back(up, window, x.shape)
    assert found.is_contiguous()
    torch.testing.assert_close(found, leaf.grad, rtol=1e-6, atol=1e-6)


@EACH
def test_one_is_the_others_transpose(shape: str) -> None:
    """⟨patches(x), u⟩ = ⟨x, patches_back(u)⟩, exactly where all are small whole numbers."""
    x, window, up = example(shape)
    x, up = (4 * x).round(), (4 * up).round()
    assert (patches(x, window) * up).double().sum() == (x * patches_back(up, window, x.shape)).double().sum()


def test_a_window_that_copies_nothing_gives_a_view() -> None:
    x, window, up = example("no copy")
    assert patches(x, window).data_ptr() == x.data_ptr()
    assert patches_back(up, window, x.shape).data_ptr() == up.data_ptr()


def test_doubles_are_added_up_as_doubles() -> None:
    x, window, up = example("same size")
    leaf, up = x.double().requires_grad_(), up.double() + 1e-12
    by_torch(leaf.permute(0, 3, 1, 2), window).backward(up)
    assert torch.equal(patches(leaf.detach(), window), cut(leaf.detach(), window))
    torch.testing.assert_close(patches_back(up, window, x.shape), leaf.grad, rtol=1e-14, atol=1e-14)


def test_strides_of_what_is_given_do_not_matter() -> None:
    x, window, up = example("uneven")
    across = x.transpose(1, 2).contiguous().transpose(1, 2)
    upwards = up.transpose(1, 2).contiguous().transpose(1, 2)
    assert torch.equal(patches(across, window), patches(x, window))
    assert torch.equal(patches_back(upwards, window, x.shape), patches_back(up, window, x.shape))


def test_the_shapes_end_within_a_block_and_within_an_image() -> None:
    """Else what is masked at the end, or counted from a program's first image, would not have been tried."""
    ends = {shape: example(shape)[2].numel() % patch_kernels.BLOCK for shape in SHAPES}
    assert all(ends.values())
    x, _, up = example("runs of one, many images in a program")
    assert x[0].numel() < patch_kernels.BLOCK_BACK < x.numel()
    assert up[0].numel() < patch_kernels.BLOCK < up.numel()
