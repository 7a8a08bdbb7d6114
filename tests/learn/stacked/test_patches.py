"""Patches against F.unfold and a plain loop, and products with them against torch's own convolutions."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from forgetgauge.learn.stacked import ops
from forgetgauge.learn.stacked import patches as patches_module
from forgetgauge.learn.stacked.patches import Window, add_up, cut, patches

SIZES = st.tuples(st.integers(1, 7), st.integers(1, 7))
PAIRS = st.tuples(st.integers(1, 4), st.integers(1, 4))
PADS = st.tuples(st.integers(0, 3), st.integers(0, 3))
QUICK = settings(max_examples=200, deadline=None)


def fits(window: Window, size: tuple[int, int]) -> bool:
    return all(s + 2 * p >= k for s, p, k in zip(size, window.padding, window.kernel, strict=True))


@QUICK
@given(SIZES, PAIRS, PAIRS, PADS)
def test_patches_are_those_of_unfold(size, kernel, stride, padding):
    window = Window(kernel, stride, padding)
    assume(fits(window, size))
    x = torch.arange(2 * 3 * size[0] * size[1], dtype=torch.float64).view(2, 3, *size) + 1
    found = patches(x, window)
    by_channel = F.unfold(x, kernel, padding=padding, stride=stride)  # (n, C · rows · columns, positions)
    expected = by_channel.view(2, 3, kernel[0] * kernel[1], -1).permute(0, 3, 2, 1).flatten(2)
    assert torch.equal(found, expected)
    up = torch.randint(-5, 5, found.shape, generator=torch.Generator().manual_seed(0)).double()
    back = add_up(up, window, x.permute(0, 2, 3, 1).shape)
    assert (found * up).sum() == (x.permute(0, 2, 3, 1) * back).sum()  # transposes of each other


@QUICK
@given(SIZES, PAIRS, PAIRS, PADS)
def test_what_is_left_out_of_a_window_never_read_a_pixel(size, kernel, stride, padding):
    window = Window(kernel, stride, padding)
    assume(fits(window, size))
    x = torch.rand(1, *size, 2, generator=torch.Generator().manual_seed(0)) + 1
    less, (rows, columns) = window.touching(*size)
    whole = cut(x, window).view(1, -1, *kernel, 2)
    assert torch.equal(cut(x, less).view(1, -1, *less.kernel, 2), whole[:, :, rows, columns])
    assert whole.count_nonzero() == whole[:, :, rows, columns].count_nonzero()


@pytest.mark.parametrize(("side", "stride", "left"), [(1, 1, 1), (2, 2, 2), (2, 1, 3), (8, 1, 3)])
def test_of_a_resnets_windows_those_on_one_pixel_are_cut(side, stride, left):
    assert Window((3, 3), (stride, stride), (1, 1)).touching(side, side)[0].kernel == (left, left)


WINDOWS = [
    Window((3, 3), (1, 1), (1, 1)),
    Window((3, 3), (2, 2), (1, 1)),
    Window((1, 1), (2, 2), (0, 0)),
    Window((5, 3), (1, 1), (0, 0)),
    Window((3, 2), (2, 1), (0, 1)),
]


@pytest.mark.parametrize("room", [2**30, 700], ids=["at once", "in parts"])
@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_products_with_patches_are_the_convolutions_of_torch(window, room, monkeypatch):
    monkeypatch.setattr(patches_module, "AT_ONCE", room)
    monkeypatch.setattr(patches_module, "SQUARES_AT_ONCE", room)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 5, 6, 7, 3, generator=generator)
    weight = torch.randn(2, *window.kernel, 3, 4, generator=generator)
    expected, _ = ops.convolve(x, weight, window)
    torch.testing.assert_close(patches_module.convolve(x, weight, window), expected, rtol=1e-4, atol=1e-5)
    up, plus = torch.randn(expected.shape, generator=generator), torch.randn(x.shape, generator=generator)
    for more in (None, plus):
        found, wanted = (does.convolve_back(up, weight, window, x.shape, more) for does in (patches_module, ops))
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)
    found, wanted = torch.full((2, 2, weight[0].numel()), 7.0)
    patches_module.weight_gradient(x, up, window, found)
    ops.weight_gradient(x, up, window, wanted)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
    patches_module.weight_gradient(x, up, window, found, squares=True)
    singles = torch.empty(x.shape[1], 2, weight[0].numel())
    for one, own in enumerate(singles):
        ops.weight_gradient(x[:, [one]], up[:, [one]], window, own)
    torch.testing.assert_close(found, singles.square().sum(0), rtol=1e-4, atol=1e-4)
    n_parts = len(patches_module._in_parts(x, x, window))
    assert (n_parts == 1) is (room == 2**30 or window.kernel == (1, 1))
