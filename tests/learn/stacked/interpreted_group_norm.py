"""Run by `test_kernels.py` with TRITON_INTERPRET=1: the kernels of group norms against autograd."""

import pytest
import torch

from forgetgauge.learn.stacked import group_norm

from .group_norms import SHAPES, check
from .interpreter import kernels_of

kernels = kernels_of("group_norm")


@pytest.mark.parametrize("permuted", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_group_norms_and_each_examples_gradients_are_autograds(shape, permuted, monkeypatch):
    def ours(x, groups):
        assert kernels.suits(x, groups.count)
        return kernels

    monkeypatch.setattr(group_norm, "_kernels_for", ours)
    check(shape, permuted=permuted)


def test_what_a_program_cannot_hold_is_left_to_torch():
    assert not kernels.suits(torch.zeros(1, 1, 2, 2, 9), 3)  # three in a group: not a power of two
    assert not kernels.suits(torch.zeros(1, 1, 64, 64, 64), 2)
    assert not kernels.suits(torch.zeros(1, 1, 2, 2, 8, dtype=torch.float64), 2)
