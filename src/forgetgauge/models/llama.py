"""Llama as plain torch: Hugging Face's layout and names, so that a checkpoint's weights, and adapters made for it, fit.

Beside a GPU nothing else has to be installed, a step can be captured, and vmap can follow it. Records are padded at
the end, where causal attention never looks from before: no mask is needed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class LlamaSizes:
    """What a checkpoint's `config.json` says of it."""

    vocab: int
    hidden: int
    layers: int
    heads: int
    key_heads: int
    """Heads of keys and values, each shared by some heads of queries."""
    head: int
    """Width of a head."""
    inner: int
    """Width within a feed-forward block."""
    theta: float = 10_000.0
    """Of the rotary positions."""
    epsilon: float = 1e-5
    tied: bool = True
    """Whether the last layer is the embedding."""
    places: int | None = None
    """Most tokens of a text that the model was made for, where it says so."""


def sizes_in(config: Mapping[str, Any]) -> LlamaSizes | None:
    """Those of a plain Llama; None for another architecture, or a Llama with parts that are not built here."""
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    kind = rope.get("rope_type", rope.get("type", "default"))
    biased = config.get("attention_bias") or config.get("mlp_bias")
    if config.get("model_type") != "llama" or kind != "default" or biased or config.get("hidden_act") != "silu":
        return None
    heads, hidden = int(config["num_attention_heads"]), int(config["hidden_size"])
    return LlamaSizes(
        vocab=int(config["vocab_size"]),
        hidden=hidden,
        layers=int(config["num_hidden_layers"]),
        heads=heads,
        key_heads=int(config.get("num_key_value_heads") or heads),
        head=int(config.get("head_dim") or hidden // heads),
        inner=int(config["intermediate_size"]),
        theta=float(rope.get("rope_theta") or config.get("rope_theta") or 10_000.0),
        epsilon=float(config.get("rms_norm_eps", 1e-6)),
        tied=bool(config.get("tie_word_embeddings", False)),
        places=int(config["max_position_embeddings"]) if config.get("max_position_embeddings") else None,
    )


class _Norm(nn.Module):
    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.weight, self.epsilon = nn.Parameter(torch.ones(width)), epsilon

    def forward(self, x: Tensor) -> Tensor:
        if not self.weight.requires_grad:  # a frozen base's: one kernel, of which vmap has no rule
            return F.rms_norm(x, self.weight.shape, self.weight, self.epsilon)
        wide = x.float()
        return self.weight * (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.epsilon)).to(x.dtype)


class _Attention(nn.Module):
    def __init__(self, sizes: LlamaSizes) -> None:
        super().__init__()
        self.sizes = sizes
        self.q_proj = nn.Linear(sizes.hidden, sizes.heads * sizes.head, bias=False)
        self.k_proj = nn.Linear(sizes.hidden, sizes.key_heads * sizes.head, bias=False)
        self.v_proj = nn.Linear(sizes.hidden, sizes.key_heads * sizes.head, bias=False)
        self.o_proj = nn.Linear(sizes.heads * sizes.head, sizes.hidden, bias=False)

    def forward(self, x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
        n, length, _ = x.shape
        q, k, v = (
            part(x).view(n, length, -1, self.sizes.head).transpose(1, 2)
            for part in (self.q_proj, self.k_proj, self.v_proj)
        )
        mixed = attention(turned(q, turn), turned(k, turn), v)
        out: Tensor = self.o_proj(mixed.transpose(1, 2).reshape(n, length, -1))
        return out


class _FeedForward(nn.Module):
    def __init__(self, sizes: LlamaSizes) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(sizes.hidden, sizes.inner, bias=False)
        self.up_proj = nn.Linear(sizes.hidden, sizes.inner, bias=False)
        self.down_proj = nn.Linear(sizes.inner, sizes.hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))
        return out


class _Layer(nn.Module):
    def __init__(self, sizes: LlamaSizes) -> None:
        super().__init__()
        self.input_layernorm = _Norm(sizes.hidden, sizes.epsilon)
        self.self_attn = _Attention(sizes)
        self.post_attention_layernorm = _Norm(sizes.hidden, sizes.epsilon)
        self.mlp = _FeedForward(sizes)

    def forward(self, x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), turn)
        out: Tensor = x + self.mlp(self.post_attention_layernorm(x))
        return out


class _Body(nn.Module):
    def __init__(self, sizes: LlamaSizes) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(sizes.vocab, sizes.hidden)
        self.layers = nn.ModuleList(_Layer(sizes) for _ in range(sizes.layers))
        self.norm = _Norm(sizes.hidden, sizes.epsilon)


class Llama(nn.Module):
    """A causal language model: token ids in, hidden states and logits out."""

    def __init__(self, sizes: LlamaSizes) -> None:
        super().__init__()
        self.sizes = sizes
        self.model = _Body(sizes)
        self.lm_head = None if sizes.tied else nn.Linear(sizes.hidden, sizes.vocab, bias=False)
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=0.02)

    @property
    def n_layers(self) -> int:
        """How many blocks there are."""
        return self.sizes.layers

    def hidden(self, ids: Tensor, n_layers: int | None = None) -> Tensor:
        """(n, length) ids -> (n, length, hidden): after so many blocks; after all of them, normalised."""
        x: Tensor = self.model.embed_tokens(ids)
        turn = turns(self.sizes, ids.shape[1], x)
        for layer in list(self.model.layers)[:n_layers]:
            x = layer(x, turn)
        if n_layers is None:
            x = self.model.norm(x)
        return x

    def forward(self, ids: Tensor, at: Tensor | None, n_layers: int | None = None) -> Tensor:
        """(n, length) ids and (n, m) positions -> (n, m, vocab) what is expected after these positions.

        Without positions, the hidden states after so many blocks.
        """
        hidden = self.hidden(ids, n_layers)
        if at is None:
            return hidden
        chosen = hidden.gather(1, at[..., None].expand(-1, -1, hidden.shape[-1]))
        logits: Tensor = F.linear(chosen, self.head_weight) if self.lm_head is None else self.lm_head(chosen)
        return logits

    @property
    def head_weight(self) -> Tensor:
        """(vocab, hidden) of the last layer."""
        return (self.model.embed_tokens if self.lm_head is None else self.lm_head).weight


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """(n, heads, length, head): each position attends to itself and those before it."""
    return (fused_attention if q.is_cuda else _attended)(q, k, v)


def fused_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The same in one kernel, which keeps no scores.

    That for float32 wants a head of keys for every head of queries; others let several share one.
    """
    shared = q.shape[1] != k.shape[1]
    if shared and q.dtype == torch.float32:
        k, v = (part.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for part in (k, v))
        shared = False
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=shared)


def _attended(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The same by plain products: on a CPU vmap has no rule for the fused one."""
    if q.shape[1] != k.shape[1]:
        k, v = (part.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for part in (k, v))
    later = torch.ones((q.shape[-2], q.shape[-2]), dtype=torch.bool, device=q.device).triu(1)
    scores = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).masked_fill(later, -torch.inf)
    return scores.softmax(-1) @ v


def turns(sizes: LlamaSizes, length: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """(length, head) cosines, and sines that are negative in the first half, of the rotary positions; each frequency
    is in both halves of a head."""
    steps = torch.arange(0, sizes.head, 2, device=like.device, dtype=torch.float32) / sizes.head
    angles = torch.outer(torch.arange(length, device=like.device, dtype=torch.float32), sizes.theta**-steps)
    cosines, sines = angles.cos(), angles.sin()
    return torch.cat([cosines, cosines], dim=1).to(like.dtype), torch.cat([-sines, sines], dim=1).to(like.dtype)


def turned(x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    """Each pair of a coordinate of the first half and its fellow of the second, turned."""
    return torch.addcmul(x * turn[0], x.roll(x.shape[-1] // 2, dims=-1), turn[1])
