"""Kernels of what stands between the products of a language model: each reads its input once and writes once.

Plain torch, which `adapted.py` and `records.py` have beside them, reads and writes several times, and on a GPU
that is what these parts cost. They compute in float32 whatever the precision of what is given. Loaded only where there
is a GPU to run them.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call,untyped-decorator,no-any-return"
# What Triton compiles is not Python, though it looks like it.
from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

WIDE = 4096
"""Columns that a program has at once."""


def turn_heads(x: Tensor, cosines: Tensor, sines: Tensor, n_turned: int) -> Tensor:
    """(n, heads, head), (n, head) twice -> the first so many heads turned, the others as they are."""
    x = x.contiguous()
    n, heads, head = x.shape
    made = torch.empty_like(x)
    shape = {"HEADS": triton.next_power_of_2(heads), "HEAD": triton.next_power_of_2(head)}
    _turn_heads[(n,)](x, cosines.contiguous(), sines.contiguous(), made, heads, head, n_turned, **shape)
    return made


@triton.jit
def _turn_heads(x, cosines, sines, made, heads, head, n_turned, HEADS: tl.constexpr, HEAD: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    h, d = tl.arange(0, HEADS)[:, None], tl.arange(0, HEAD)[None, :]
    inside = (h < heads) & (d < head)
    half = head // 2
    fellow = tl.where(d < half, d + half, d - half)
    start = row * heads * head + h * head
    own = tl.load(x + start + d, mask=inside, other=0.0)
    other = tl.load(x + start + fellow, mask=inside, other=0.0).to(tl.float32)
    cosine = tl.load(cosines + row * head + d, mask=d < head, other=0.0).to(tl.float32)
    sine = tl.load(sines + row * head + d, mask=d < head, other=0.0).to(tl.float32)
    found = tl.where(h < n_turned, own.to(tl.float32) * cosine + other * sine, own.to(tl.float32))
    tl.store(made + start + d, found.to(own.dtype), mask=inside)


def gate(x: Tensor) -> Tensor:
    """(n, gate and up side by side) -> (n, half): silu(gate) · up."""
    n, half = len(x), x.shape[1] // 2
    made = x.new_empty((n, half))
    _gate[(n, triton.cdiv(half, 1024))](x, made, half, BLOCK=1024)
    return made


@triton.jit
def _gate(x, made, half, BLOCK: tl.constexpr):
    row, at = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < half
    g = tl.load(x + row * 2 * half + at, mask=inside, other=0.0)
    u = tl.load(x + row * 2 * half + half + at, mask=inside, other=0.0).to(tl.float32)
    wide = g.to(tl.float32)
    tl.store(made + row * half + at, (wide / (1 + tl.exp(-wide)) * u).to(g.dtype), mask=inside)


def gate_back(x: Tensor, d_made: Tensor) -> Tensor:
    """(n, gate and up), (n, half) the gradient of what `gate` made -> (n, gate and up) that of its input."""
    n, half = d_made.shape
    d_x = torch.empty_like(x)
    _gate_back[(n, triton.cdiv(half, 1024))](x, d_made, d_x, half, BLOCK=1024)
    return d_x


@triton.jit
def _gate_back(x, d_made, d_x, half, BLOCK: tl.constexpr):
    row, at = tl.program_id(0).to(tl.int64), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < half
    g = tl.load(x + row * 2 * half + at, mask=inside, other=0.0)
    u = tl.load(x + row * 2 * half + half + at, mask=inside, other=0.0).to(tl.float32)
    d = tl.load(d_made + row * half + at, mask=inside, other=0.0).to(tl.float32)
    wide = g.to(tl.float32)
    share = 1 / (1 + tl.exp(-wide))
    d_gate = d * u * share * (1 + wide * (1 - share))
    tl.store(d_x + row * 2 * half + at, d_gate.to(g.dtype), mask=inside)
    tl.store(d_x + row * 2 * half + half + at, (d * wide * share).to(g.dtype), mask=inside)


def cross_entropies(logits: Tensor, targets: Tensor, *, with_gradient: bool) -> Tensor:
    """(m, vocab), (m,) -> (m,) float32; `with_gradient`, the logits are overwritten by p − e_target."""
    m, vocab = logits.shape
    losses = torch.empty(m, device=logits.device, dtype=torch.float32)
    block = min(WIDE, triton.next_power_of_2(vocab))
    _cross_entropies[(m,)](logits, targets, losses, vocab, GRADIENT=with_gradient, BLOCK=block, num_warps=8)
    return losses


@triton.jit
def _cross_entropies(logits, targets, losses, vocab, GRADIENT: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    mine = logits + row * vocab
    target = tl.load(targets + row)
    wanted = tl.load(mine + target).to(tl.float32)  # before any thread can have written over it
    at = tl.arange(0, BLOCK)
    largest = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, vocab, BLOCK):
        part = tl.load(mine + start + at, mask=start + at < vocab, other=float("-inf")).to(tl.float32)
        new = tl.maximum(largest, part)
        known = (new != float("-inf")) | (part != part)  # what is NaN stays so, though `maximum` passes it over
        total = tl.where(known, total * tl.exp(largest - new) + tl.exp(part - new), 0.0)
        largest = new
    top = tl.max(largest, 0)
    known = (largest != float("-inf")) | (total != total)
    log_total = top + tl.log(tl.sum(tl.where(known, total * tl.exp(largest - top), 0.0), 0))
    tl.store(losses + row, log_total - wanted)
    if GRADIENT:
        for start in range(0, vocab, BLOCK):
            part = tl.load(mine + start + at, mask=start + at < vocab, other=float("-inf"))
            p = tl.exp(part.to(tl.float32) - log_total) - tl.where(start + at == target, 1.0, 0.0)
            tl.store(mine + start + at, p.to(part.dtype), mask=start + at < vocab)
