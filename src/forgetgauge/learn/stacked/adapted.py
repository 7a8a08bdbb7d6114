"""A Llama with the adapters of K members, forwards and backwards over the tokens of all of them at once.

What it computes is what `models/llama.py` and `models/lora.py` do, member by member. Here the projections that read one
input (queries, keys and values; gate and up) are one product of the base and one of the adapters' first matrices; the
second matrices add to columns of what the base gave, in place. Autograd is told the gradients: those of the base are
not taken, and what adapters read is kept once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from forgetgauge.learn.device import kernels_on
from forgetgauge.learn.stacked.packed import Layout
from forgetgauge.models.llama import Llama, fused_attention, turned, turns
from forgetgauge.models.lora import LoraModel

TOGETHER = ("self_attn", ("q_proj", "k_proj", "v_proj")), ("self_attn", ("o_proj",)), \
    ("mlp", ("gate_proj", "up_proj")), ("mlp", ("down_proj",))  # fmt: skip
"""The linear layers of a block that are given the same, in the order of the block."""


@dataclass(frozen=True)
class Columns:
    """Of what a group of layers gives, those of one layer."""

    start: int
    stop: int


@dataclass(frozen=True)
class Group:
    """Linear layers that are given the same."""

    weight: Tensor
    """(all columns, in) of the base, one layer's rows below another's."""
    adapted: tuple[Columns, ...]
    """Of the layers that have adapters."""
    first: int
    """The place of their first matrices, which are one, among those of all groups."""
    seconds: slice
    """The places of their second matrices among those of all layers."""


Tables = list[Tensor]
"""Of a group with adapters: (K, rank · adapted layers, in), then (K, out, rank) for each of them; of another, none."""


class AdaptedLlama:
    """The frozen body; adapters come with each call, as rows (K, P) in the order of a model's parameters."""

    def __init__(self, body: Llama, model: LoraModel) -> None:
        self.body = body
        self.groups: list[list[Group]] = []
        self._firsts: list[tuple[int, int]] = []
        self._seconds: list[tuple[int, int]] = []
        for number, block in enumerate(body.model.layers):
            self.groups.append([self._group(model, f"model.layers.{number}", block, *which) for which in TOGETHER])
        sizes = [sum(a * b for a, b in shapes) for shapes in (self._firsts, self._seconds)]
        factor = torch.cat([torch.ones(sizes[0]), torch.full((sizes[1],), model.scale)])
        self.factor = factor.to(body.head_weight.device)

    def _group(self, model: LoraModel, path: str, block: nn.Module, part: str, names: Sequence[str]) -> Group:
        layers = {name: block.get_submodule(f"{part}.{name}") for name in names}
        weights: list[Tensor] = [layer.get_parameter("weight").detach() for layer in layers.values()]
        start, adapted = 0, []
        for name, weight in zip(names, weights, strict=True):
            if f"{path}.{part}.{name}" in model.layers:
                adapted.append(Columns(start, start + len(weight)))
            start += len(weight)
        first, second = len(self._firsts), len(self._seconds)
        if adapted:
            self._firsts.append((len(adapted) * model.rank, weights[0].shape[1]))
            self._seconds += [(own.stop - own.start, model.rank) for own in adapted]
        whole = torch.cat(weights) if len(weights) > 1 else weights[0]
        return Group(whole, tuple(adapted), first, slice(second, len(self._seconds)))

    def hidden(self, rows: Tensor, layout: Layout, n_layers: int | None = None) -> Tensor:
        """(K, P) adapters -> (K · slots, hidden): after so many blocks; after all of them, normalised."""
        body = self.body
        x: Tensor = body.model.embed_tokens(layout.ids)
        tables = self._tables(rows, x.dtype)
        turn = [table[layout.places] for table in turns(body.sizes, layout.length, x)]
        blocks: list[Any] = list(body.model.layers)
        for block, groups, own in list(zip(blocks, self.groups, tables, strict=True))[:n_layers]:
            q_k_v, o, gate_up, down = zip(groups, own, strict=True)
            given = block.input_layernorm(x)
            x = x + _projected(self._mixed(_projected(given, *q_k_v, layout.k), turn, layout), *o, layout.k)
            inner = gated(_projected(block.post_attention_layernorm(x), *gate_up, layout.k))
            x = x + _projected(inner, *down, layout.k)
        return body.model.norm(x) if n_layers is None else x

    def _mixed(self, q_k_v: Tensor, turn: Sequence[Tensor], layout: Layout) -> Tensor:
        """(K · slots, heads of queries, keys and values side by side) -> (K · slots, heads of queries): attention."""
        sizes = self.body.sizes
        heads = [sizes.heads, sizes.key_heads, sizes.key_heads]
        placed = turned_heads(q_k_v.view(len(q_k_v), sum(heads), sizes.head), turn, sizes.heads + sizes.key_heads)
        q, k, v = (part.transpose(1, 2) for part in torch.split(layout.padded(placed), heads, dim=2))
        return layout.packed(fused_attention(q, k, v).transpose(1, 2).flatten(2))

    def _tables(self, rows: Tensor, dtype: torch.dtype) -> list[list[Tables]]:
        """Of each block, of each group; the second matrices times α/rank."""
        shapes = [*self._firsts, *self._seconds]
        scaled: Tensor = _Scaled.apply(rows, self.factor, dtype)  # type: ignore[no-untyped-call]
        parts = torch.split(scaled, [a * b for a, b in shapes], dim=1)
        tables = [part.view(len(rows), *shape) for part, shape in zip(parts, shapes, strict=True)]
        firsts, seconds = tables[: len(self._firsts)], tables[len(self._firsts) :]
        return [[[firsts[g.first], *seconds[g.seconds]] if g.adapted else [] for g in own] for own in self.groups]


class _Scaled(torch.autograd.Function):
    """(K, P) · (P,) in another precision, both ways in one kernel."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, factor: Tensor, dtype: torch.dtype) -> Tensor:
        ctx.save_for_backward(factor)
        return torch.mul(rows, factor, out=torch.empty_like(rows, dtype=dtype))

    @staticmethod
    def backward(ctx: Any, *given: Tensor) -> tuple[Tensor, None, None]:
        (factor,) = ctx.saved_tensors
        return given[0] * factor, None, None


# -- projections -------------------------------------------------------------------------------------------------------


def _projected(x: Tensor, group: Group, tables: Tables, k: int) -> Tensor:
    """(K · slots, in) -> (K · slots, all columns)."""
    if not tables:
        return F.linear(x, group.weight)
    made: Tensor = _Projected.apply(x, group, k, *tables)  # type: ignore[no-untyped-call]
    return made


class _Projected(torch.autograd.Function):
    """W x + B_k A_k x, the B_k of each layer adding to its own columns."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, group: Group, k: int, down: Tensor, *ups: Tensor) -> Tensor:
        made = x @ group.weight.T
        low = x.view(k, -1, x.shape[1]) @ down.transpose(1, 2)
        columns = made.view(k, -1, made.shape[1])
        for own, up, its in _layers(group, ups, low):
            columns[:, :, own.start : own.stop].baddbmm_(its, up.transpose(1, 2))
        ctx.group, ctx.k = group, k
        ctx.save_for_backward(x, low, down, *ups)
        return made

    @staticmethod
    def backward(ctx: Any, *given: Tensor) -> tuple[Tensor | None, ...]:
        x, low, down, *ups = ctx.saved_tensors
        d_made = given[0].contiguous()
        d_columns = d_made.view(ctx.k, -1, d_made.shape[1])
        d_lows, d_ups = [], []
        for own, up, its in _layers(ctx.group, ups, low):
            d_own = d_columns[:, :, own.start : own.stop]
            d_lows.append(d_own @ up)
            d_ups.append(d_own.transpose(1, 2) @ its)
        d_low = d_lows[0] if len(d_lows) == 1 else torch.cat(d_lows, dim=2)
        d_down = d_low.transpose(1, 2) @ x.view(ctx.k, -1, x.shape[1])
        d_x = None
        if ctx.needs_input_grad[0]:
            d_x = d_made @ ctx.group.weight
            d_x.view(ctx.k, -1, d_x.shape[1]).baddbmm_(d_low, down)
        return d_x, None, None, d_down, *d_ups


def _layers(group: Group, ups: Sequence[Tensor], low: Tensor) -> list[tuple[Columns, Tensor, Tensor]]:
    """Of each layer with adapters: its columns, its second matrix, what its first one gave."""
    return list(zip(group.adapted, ups, torch.split(low, low.shape[2] // len(ups), dim=2), strict=True))


# -- between projections -----------------------------------------------------------------------------------------------


class _TurnedHeads(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, cosines: Tensor, sines: Tensor, n_turned: int) -> Tensor:
        ctx.save_for_backward(cosines, sines)
        ctx.n_turned = n_turned
        return _turn_some(x, cosines, sines, n_turned)

    @staticmethod
    def backward(ctx: Any, *given: Tensor) -> tuple[Tensor | None, ...]:
        cosines, sines = ctx.saved_tensors
        return _turn_some(given[0].contiguous(), cosines, -sines, ctx.n_turned), None, None, None


def _turn_some(x: Tensor, cosines: Tensor, sines: Tensor, n_turned: int) -> Tensor:
    kernels = kernels_on(x.device, "blocks")
    if kernels is not None:
        made: Tensor = kernels.turn_heads(x, cosines, sines, n_turned)
        return made
    return torch.cat([turned(x[:, :n_turned], (cosines[:, None], sines[:, None])), x[:, n_turned:]], dim=1)


def turned_heads(x: Tensor, turn: Sequence[Tensor], n_turned: int) -> Tensor:
    """(n, heads, head): the first so many heads turned by (n, head) cosines and sines, the others as they are.

    To turn back is to turn by the other sign: the two halves of the sines are each other's negatives.
    """
    made: Tensor = _TurnedHeads.apply(x, *turn, n_turned)  # type: ignore[no-untyped-call]
    return made


class _Gated(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        kernels = kernels_on(x.device, "blocks")
        if kernels is not None:
            made: Tensor = kernels.gate(x)
            return made
        gate, up = x.chunk(2, dim=1)
        return F.silu(gate).mul_(up)

    @staticmethod
    def backward(ctx: Any, *given: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        kernels = kernels_on(x.device, "blocks")
        if kernels is not None:
            found: Tensor = kernels.gate_back(x, given[0].contiguous())
            return found
        gate, up = x.chunk(2, dim=1)
        found = torch.empty_like(x)
        found[:, : gate.shape[1]] = torch.ops.aten.silu_backward(given[0] * up, gate)
        found[:, gate.shape[1] :] = given[0] * F.silu(gate)
        return found


def gated(x: Tensor) -> Tensor:
    """(n, gate and up side by side) -> (n, half): silu(gate) · up; the two alone are kept for the gradient."""
    made: Tensor = _Gated.apply(x)  # type: ignore[no-untyped-call]
    return made
