"""Shapes of group norms in a stack, and what autograd says of each example alone."""

import numpy as np
import torch
import torch.nn.functional as F

from forgetgauge.learn.stacked import group_norm
from forgetgauge.learn.stacked.group_norm import Groups

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


def check(shape, *, permuted=False):
    """group_norm.py against autograd; `permuted`: the gradient comes in as a layer with channels first left it."""
    k, n, pixels, c, count = SHAPES[shape]
    generator, groups = torch.Generator().manual_seed(0), Groups(count, 1e-5)
    x, up = (torch.randn(k, n, *pixels, c, generator=generator) * 3 + 1 for _ in range(2))
    if permuted:
        up = up.movedim(-1, 2).contiguous().movedim(2, -1)
    wide = torch.randn(2, k, c + 5, generator=generator)
    gamma, beta = wide[0, :, :c], wide[1, :, :c]  # rows of a longer matrix, as a stack has them
    made, moments = group_norm.group_norm(x, gamma, beta, groups)
    found = made, *group_norm.group_norm_gradient(up, x, moments, gamma, groups)
    for one, expected in zip(found, by_autograd(x, gamma, beta, groups, up), strict=True):
        torch.testing.assert_close(one.double(), expected, rtol=1e-4, atol=1e-4)
