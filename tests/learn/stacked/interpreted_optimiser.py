"""Run by `test_kernels.py` with TRITON_INTERPRET=1: AdamW in one kernel against torch's own."""

import pytest
import torch

from .interpreter import kernels_of

kernels = kernels_of("optimiser")


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_steps_are_those_of_torch_with_a_rate_for_each_member(decay):
    torch.manual_seed(0)
    start, rates = torch.randn(3, 1500), torch.tensor([1e-2, 0.0, 3e-3])
    ours, moments, time = start.clone(), (torch.zeros(3, 1500), torch.zeros(3, 1500)), torch.zeros(1)
    theirs = [row.clone().requires_grad_() for row in start]
    optimisers = [
        torch.optim.AdamW([row], lr=rate, weight_decay=decay) for row, rate in zip(theirs, rates.tolist(), strict=True)
    ]
    for _ in range(4):
        gradient = torch.randn(3, 1500)
        time += 1
        biases = 1 - 0.9**time, 1 - 0.999**time
        kernels.adamw(ours, gradient, moments, rates[:, None], biases, decay=decay, betas=(0.9, 0.999))
        for row, own, optimiser in zip(theirs, gradient, optimisers, strict=True):
            row.grad = own.clone()
            optimiser.step()
    torch.testing.assert_close(ours, torch.stack([row.detach() for row in theirs]), rtol=1e-5, atol=1e-6)
    assert torch.equal(ours[1], start[1])
