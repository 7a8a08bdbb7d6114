"""A step of AdamW for all weights of all members in one kernel, which reads and writes each number once.

Plain torch, which `trainer.py` has beside it, goes over the weights a dozen times. Loaded only where there is a GPU to
run it.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,no-any-return"
# What Triton compiles is not Python, though it looks like it.
from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

BLOCK = 1024


def adamw(
    weights: Tensor, gradient: Tensor, moments: tuple[Tensor, Tensor], rate: Tensor, biases: tuple[Tensor, Tensor],
    *, decay: float, betas: tuple[float, float],
) -> None:  # fmt: skip
    """(K, P) weights and moments are changed; (K,) rates, and (1,) 1 − β^t of each moment."""
    k, width = weights.shape
    _adamw[(triton.cdiv(width, BLOCK), k)](
        weights.detach(), gradient, *moments, rate, *biases, width, decay, 1 - betas[0], betas[1], 1 - betas[1],
        BLOCK=BLOCK,
    )  # fmt: skip


@triton.jit
def _adamw(
    weights, gradient, first, second, rate, bias_first, bias_second, width, decay, new_first, old_second, new_second,
    BLOCK: tl.constexpr,
):  # fmt: skip
    member = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < width
    place = member * width + at
    lr = tl.load(rate + member)
    g = tl.load(gradient + place, mask=inside, other=0.0)
    m = tl.load(first + place, mask=inside, other=0.0)
    v = tl.load(second + place, mask=inside, other=0.0)
    w = tl.load(weights + place, mask=inside, other=0.0)
    m += new_first * (g - m)
    v = v * old_second + new_second * g * g
    w -= lr * decay * w
    size = tl.sqrt(v / tl.load(bias_second)) + 1e-8
    w -= lr * (m / tl.load(bias_first)) / size
    tl.store(first + place, m, mask=inside)
    tl.store(second + place, v, mask=inside)
    tl.store(weights + place, w, mask=inside)
