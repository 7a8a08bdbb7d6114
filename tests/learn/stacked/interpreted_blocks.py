"""Run by `test_kernels.py` with TRITON_INTERPRET=1: the kernels between the products of a language model."""

import pytest
import torch
import torch.nn.functional as F

from forgetgauge.models.llama import turned

from .interpreter import kernels_of

kernels = kernels_of("blocks", loops=True)

PRECISIONS = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])


def close_to(dtype):
    return {"rtol": 1e-5, "atol": 1e-5} if dtype == torch.float32 else {"rtol": 1e-2, "atol": 1e-2}


@PRECISIONS
@pytest.mark.parametrize(("heads", "head", "n_turned"), [(15, 64, 12), (3, 6, 2), (2, 8, 2)])
def test_heads_are_turned_and_turned_back(dtype, heads, head, n_turned):
    torch.manual_seed(0)
    x, angles = torch.randn(5, heads, head, dtype=dtype), torch.randn(5, head // 2)
    cosines, sines = torch.cat([angles.cos()] * 2, 1).to(dtype), torch.cat([-angles.sin(), angles.sin()], 1).to(dtype)
    wanted = torch.cat([turned(x[:, :n_turned], (cosines[:, None], sines[:, None])), x[:, n_turned:]], dim=1)
    found = kernels.turn_heads(x, cosines, sines, n_turned)
    torch.testing.assert_close(found, wanted, **close_to(dtype))
    if dtype == torch.float32:
        torch.testing.assert_close(kernels.turn_heads(found, cosines, -sines, n_turned), x, rtol=1e-5, atol=1e-5)


@PRECISIONS
@pytest.mark.parametrize("half", [7, 1030])
def test_the_gate_and_its_gradient_are_autograds(dtype, half):
    torch.manual_seed(0)
    x, up = (2 * torch.randn(3, 2 * half)).to(dtype).requires_grad_(), torch.randn(3, half).to(dtype)
    wanted = F.silu(x[:, :half].float()) * x[:, half:].float()
    torch.testing.assert_close(kernels.gate(x.detach()).float(), wanted, **close_to(dtype))
    (gradient,) = torch.autograd.grad(wanted, x, up.float())
    torch.testing.assert_close(kernels.gate_back(x.detach(), up), gradient, **close_to(dtype))


@pytest.mark.parametrize("place", [0, 3, 8999])
def test_a_row_with_a_logit_that_is_nan_has_no_loss(place):
    """Wherever it stands: a model that diverged in part must not look sound."""
    logits = torch.randn(2, 9000)
    logits[1, place] = torch.nan
    found = kernels.cross_entropies(logits, torch.tensor([5, 5]), with_gradient=False)
    assert found.isnan().tolist() == [False, True]


@PRECISIONS
@pytest.mark.parametrize("vocab", [5, 192, 9000])
def test_cross_entropies_and_their_gradient_are_autograds(dtype, vocab):
    """More columns than a program has at once, fewer, and logits so far apart that exp alone would overflow."""
    torch.manual_seed(0)
    logits, targets = (30 * torch.randn(6, vocab)).to(dtype), torch.randint(0, vocab, (6,))
    wide = logits.float().requires_grad_()
    wanted = F.cross_entropy(wide, targets, reduction="none")
    (gradient,) = torch.autograd.grad(wanted.sum(), wide)
    plain = logits.clone()
    found = kernels.cross_entropies(plain, targets, with_gradient=False)
    assert torch.equal(plain, logits)
    torch.testing.assert_close(found, wanted.detach(), rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(kernels.cross_entropies(plain, targets, with_gradient=True), found)
    torch.testing.assert_close(plain.float(), gradient, **close_to(dtype))
