"""Run by `test_kernels.py` with TRITON_INTERPRET=1: group norms of a stack, by kernels and torch, against autograd."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from forgetgauge.learn import group_norm as plain
from forgetgauge.learn.group_norm import Groups

from .interpreter import kernels_of

kernels = kernels_of("group_norm_kernels")

# Members, batch, pixels, channels, groups
SHAPES = {
    "two in a group": (2, 3, (4, 4), 64, 32),
    "one in a group": (2, 2, (3, 5), 4, 4),
    "all in one group": (1, 2, (2, 2), 8, 1),
    "one pixel": (3, 2, (1, 1), 64, 4),
    "more channels than a program has": (1, 2, (9, 9), 96, 48),
    "no pixels at all": (2, 3, (), 16, 4),
}


def by_autograd(x, gamma, beta, groups, up):
    """Example by example, in float64."""
    x = x.double().requires_grad_()
    each = [p.double()[:, None].repeat(1, x.shape[1], 1).requires_grad_() for p in (gamma, beta)]
    one_by_one = [
        F.group_norm(x[at].movedim(-1, 0)[None], groups.count, each[0][at], each[1][at], groups.eps)[0].movedim(0, -1)
        for at in np.ndindex(*x.shape[:2])
    ]
    made = torch.stack(one_by_one).view(x.shape)
    made.backward(up.double())
    return made.detach(), x.grad, each[0].grad, each[1].grad


@pytest.mark.parametrize("by_kernels", [True, False], ids=["kernels", "torch"])
@pytest.mark.parametrize("shape", SHAPES)
def test_group_norms_and_each_examples_gradients_are_autograds(shape, by_kernels, monkeypatch):
    k, n, pixels, c, count = SHAPES[shape]
    generator, groups = torch.Generator().manual_seed(0), Groups(count, 1e-5)
    x, up = (torch.randn(k, n, *pixels, c, generator=generator) * 3 + 1 for _ in range(2))
    wide = torch.randn(2, k, c + 5, generator=generator)
    gamma, beta = wide[0, :, :c], wide[1, :, :c]  # rows of a longer matrix, as a twin has them
    assert kernels.suits(x, count)
    monkeypatch.setattr(plain, "_kernels_for", lambda x, groups: kernels if by_kernels else None)
    made, moments = plain.group_norm(x, gamma, beta, groups)
    found = made, *plain.group_norm_gradient(up, x, moments, gamma, groups)
    for one, expected in zip(found, by_autograd(x, gamma, beta, groups, up), strict=True):
        torch.testing.assert_close(one.double(), expected, rtol=1e-4, atol=1e-4)


def test_what_a_program_cannot_hold_is_left_to_torch():
    assert not kernels.suits(torch.zeros(1, 1, 2, 2, 9), 3)  # three in a group: not a power of two
    assert not kernels.suits(torch.zeros(1, 1, 64, 64, 64), 2)
    assert not kernels.suits(torch.zeros(1, 1, 2, 2, 8, dtype=torch.float64), 2)
