"""Convolutions as products against torch's own; `test_twin.py` has whole networks."""

import pytest
import torch

from forgetgauge.learn.stacked import ops, products
from forgetgauge.learn.stacked.ops import Window

WINDOWS = [Window(3, 3, 1, 1), Window(3, 3, 2, 1), Window(1, 1, 2, 0), Window(5, 3, 1, 0)]


@pytest.mark.parametrize("room", [2**30, 700], ids=["at once", "in parts"])
@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_they_are_what_torch_computes(window, room, monkeypatch):
    monkeypatch.setattr(products, "AT_ONCE", room)
    monkeypatch.setattr(products, "SQUARES_AT_ONCE", room)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 5, 6, 7, 3, generator=generator)
    weight = torch.randn(2, window.rows, window.columns, 3, 4, generator=generator)
    expected, _ = ops.convolve(x, weight, window)
    torch.testing.assert_close(products.convolve(x, weight, window), expected, rtol=1e-4, atol=1e-5)
    up, plus = torch.randn(expected.shape, generator=generator), torch.randn(x.shape, generator=generator)
    for more in (None, plus):
        found, wanted = (does.convolve_back(up, weight, window, x.shape, more) for does in (products, ops))
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)
    found, wanted = torch.full((2, 2, weight[0].numel()), 7.0)
    products.weight_gradient(x, up, window, found)
    ops.weight_gradient(x, up, window, wanted)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
    products.weight_gradient(x, up, window, found, squares=True)
    singles = torch.empty(x.shape[1], 2, weight[0].numel())
    for one, own in enumerate(singles):
        ops.weight_gradient(x[:, [one]], up[:, [one]], window, own)
    torch.testing.assert_close(found, singles.square().sum(0), rtol=1e-4, atol=1e-4)
    n_parts = len(products._in_parts(x, x, window))
    assert (n_parts == 1) is (room == 2**30 or window.rows == 1)
