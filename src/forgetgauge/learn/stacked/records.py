"""Stacks of language models: adapters on one frozen base, or models whose weights are all their own.

`LoraStack`: the base's products run once over the tokens of all members, which lie one after another (`packed.py`). In
every layer with adapters, to what the base gives two batched products over members are added, (K, tokens, in) ·
(K, in, r) · (K, r, out) (`adapted.py`). All else is the base's own and knows no members, so a stack costs little more
than its tokens.

`WholeStack`: the weights of whole models, one after another by vmap, where memory allows it.

All trained weights of a member are one row of `weights`, and autograd gives the gradient of all rows at once: members
never mix, since the rows of the batch do not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from forgetgauge.data.dataset import Points
from forgetgauge.learn.device import kernels_on, multiplies_bfloat16
from forgetgauge.learn.stacked.adapted import AdaptedLlama
from forgetgauge.learn.stacked.members import NotStackable, check_alike, unstack
from forgetgauge.learn.stacked.packed import Layout, RecordSizes, Room
from forgetgauge.learn.stacked.traced import Precision
from forgetgauge.models import condensed
from forgetgauge.models.causal_lm import CausalLM, Correction, RecordModel, corrected
from forgetgauge.models.llama import Llama
from forgetgauge.models.lora import LoraModel, key_of

LOGITS_KEPT = 2**28
"""Numbers: so many logits are there at once."""


class RecordStack(ABC):
    """K language models; `weights` (K, P) is what is trained of them, `gradient` (K, P) what `backward` writes."""

    def __init__(self, models: Sequence[RecordModel], most: int) -> None:
        check_alike(models)
        self.models: list[nn.Module] = list(models)
        self.most = most
        """Counted tokens of a record, at most: the last layer is computed for no more."""
        self.device = next(models[0].parameters()).device
        self.shapes = {name: parameter.shape for name, parameter in models[0].named_parameters()}
        rows = [torch.cat([p.detach().flatten() for p in model.parameters()]) for model in models]
        self.weights = torch.stack(rows).requires_grad_(True)
        self.gradient = torch.zeros_like(self.weights, requires_grad=False)
        self.statistics: dict[str, tuple[Tensor, Tensor]] = {}
        """Running means and variances of batch norms, of which a language model has none."""
        self.sizes: RecordSizes | None = None
        """Of the data set's records, where it is computed without their padding."""
        self.room: Room | None = None
        """What the next batch has at most; without it records are padded."""

    @abstractmethod
    def losses(self, codes: Tensor, weights: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """(K, B, length) -> (K, B) summed losses of the counted tokens and their numbers; differentiable.

        By the stack's own weights, or by others in their place.
        """

    @abstractmethod
    def hidden(self, codes: Tensor, n_layers: int, weights: Tensor | None = None) -> Tensor:
        """(K, B, length) -> (K, B, length, hidden) after so many blocks; differentiable."""

    @property
    @abstractmethod
    def n_layers(self) -> int:
        """How many blocks the models have."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Of a hidden state."""

    def tables_of(self, rows: Tensor) -> dict[str, Tensor]:
        """(K, P) -> (K, *shape) by the name of the parameter, as views."""
        parts = torch.split(rows, [shape.numel() for shape in self.shapes.values()], dim=1)
        whole = zip(self.shapes.items(), parts, strict=True)
        return {name: part.view(len(rows), *shape) for (name, shape), part in whole}

    @torch.no_grad()
    def members(self, n_batches: Sequence[int] | None = None) -> list[nn.Module]:
        """The models with what was learnt."""
        return unstack(self.models, self.tables_of(self.weights))

    def forward(
        self, x: Tensor, n_valid: Tensor | None = None, *, train: bool = False, keep: bool = False
    ) -> tuple[Tensor, Tensor]:
        """(K, B, versions, length) -> (K, B, columns): loss and tokens alone; and what `backward` needs."""
        codes = x[:, :, condensed.GIVEN]
        if n_valid is not None:
            codes = only_there(codes, torch.arange(x.shape[1], device=x.device) < n_valid[:, None])
        with torch.enable_grad() if keep else torch.no_grad():
            outputs = condensed.loss_columns(*self.losses(codes))
        return outputs.detach(), outputs

    def backward(self, tape: Tensor, d_outputs: Tensor) -> None:
        """Write the gradient of Σ outputs · d_outputs into `gradient`."""
        (found,) = torch.autograd.grad(tape, self.weights, d_outputs)
        self.gradient.copy_(found)


class LoraStack(RecordStack):
    """Adapters on one frozen base; the base and the activations in the given precision, where the device has it.

    A base that is a plain Llama is computed without the records' padding, in the `room` that a descent gives.
    """

    def __init__(self, models: Sequence[LoraModel], points: Points, precision: Precision = "float32") -> None:
        super().__init__(models, most_counted(points))
        self.first = models[0]
        is_low = precision == "bfloat16" and multiplies_bfloat16(self.device)
        self.body = self.first.base.on(self.device, torch.bfloat16 if is_low else torch.float32)
        self.adapted: AdaptedLlama | None = None
        if isinstance(self.body, Llama) and all(".layers." in name for name in self.first.layers):
            self.adapted, self.sizes = AdaptedLlama(self.body, self.first), RecordSizes.of(points)

    @property
    def n_layers(self) -> int:
        """The base's."""
        return int(self.body.n_layers)

    @property
    def width(self) -> int:
        """The base's."""
        return int(self.body.sizes.hidden)

    def losses(self, codes: Tensor, weights: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """In one pass over the tokens of all members."""
        rows = self.weights if weights is None else weights
        if self.adapted is not None:
            layout = Layout(codes, self.room)
            states, targets = layout.before_counted(self.adapted.hidden(rows, layout))
            each = losses_under_frozen_head(states, self.body.head_weight, targets)
            return layout.per_record(each), condensed.n_counted(codes).clamp(min=1).float()
        with corrected(self.body, self._corrections(rows)):
            loss, tokens = condensed.token_losses(self.body, codes.flatten(0, 1), self.most)
        return loss.view(codes.shape[:2]), tokens.view(codes.shape[:2])

    def hidden(self, codes: Tensor, n_layers: int, weights: Tensor | None = None) -> Tensor:
        """In one pass too."""
        rows = self.weights if weights is None else weights
        if self.adapted is not None:
            layout = Layout(codes, self.room)
            return layout.padded(self.adapted.hidden(rows, layout, n_layers)).view(*codes.shape, -1)
        with corrected(self.body, self._corrections(rows)):
            states: Tensor = self.body(condensed.ids_of(codes.flatten(0, 1)), None, n_layers)
        return states.view(*codes.shape[:2], *states.shape[1:])

    def _corrections(self, rows: Tensor) -> dict[str, Correction]:
        tables = self.tables_of(rows)
        return {
            name: self._correction(tables[f"down.{key_of(name)}"], tables[f"up.{key_of(name)}"])
            for name in self.first.layers
        }

    def _correction(self, down: Tensor, up: Tensor) -> Correction:
        k, scale = len(self.models), self.first.scale

        def correction(given: Tensor, made: Tensor) -> Tensor:
            tokens = given.reshape(k, -1, given.shape[-1])
            low = tokens @ down.to(given.dtype).transpose(1, 2)
            plain = made.reshape(k, -1, made.shape[-1])
            return torch.baddbmm(plain, low, (scale * up).to(given.dtype).transpose(1, 2)).view(made.shape)

        return correction


class WholeStack(RecordStack):
    """Models whose weights are all their own."""

    def __init__(self, models: Sequence[CausalLM], most: int) -> None:
        super().__init__(models, most)
        self.mould = models[0]

    @property
    def n_layers(self) -> int:
        """The first's."""
        body: Any = self.mould.body
        return int(body.n_layers)

    @property
    def width(self) -> int:
        """The first's."""
        body: Any = self.mould.body
        return int(body.sizes.hidden)

    def losses(self, codes: Tensor, weights: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Member by member in one call."""

        def one(table: dict[str, Tensor], own: Tensor) -> tuple[Tensor, Tensor]:
            return condensed.token_losses(lambda ids, at: self._ask(table, ids, at), own, self.most)

        return cast(tuple[Tensor, Tensor], self._each(one, codes, weights))

    def hidden(self, codes: Tensor, n_layers: int, weights: Tensor | None = None) -> Tensor:
        """Likewise."""

        def one(table: dict[str, Tensor], own: Tensor) -> Tensor:
            return self._ask(table, condensed.ids_of(own), None, n_layers)

        return cast(Tensor, self._each(one, codes, weights))

    def _ask(self, table: dict[str, Tensor], *asked: Any) -> Tensor:
        answer: Tensor = functional_call(self.mould.body, table, asked)
        return answer

    def _each(self, one: Any, codes: Tensor, weights: Tensor | None) -> Any:
        tables = self.tables_of(self.weights if weights is None else weights)
        tables = {name.removeprefix("body."): table for name, table in tables.items()}
        if len(codes) > 1:
            return vmap(one)(tables, codes)
        found = one({name: table[0] for name, table in tables.items()}, codes[0])
        return tuple(part[None] for part in found) if isinstance(found, tuple) else found[None]


def record_stack(models: Sequence[nn.Module], points: Points, precision: Precision = "float32") -> RecordStack:
    """Of language models of one kind; others are `NotStackable`."""
    adapted = [model for model in models if isinstance(model, LoraModel)]
    whole = [model for model in models if isinstance(model, CausalLM)]
    if len(adapted) == len(models) > 0:
        if any(model.base is not adapted[0].base for model in adapted):
            raise NotStackable("the models have different bases")
        return LoraStack(adapted, points, precision)
    if len(whole) == len(models) > 0:
        return WholeStack(whole, most_counted(points))
    raise NotStackable("they are not all language models of one kind")


def only_there(codes: Tensor, there: Tensor) -> Tensor:
    """(K, B, …), (K, B): records that are not there, whose place in a batch is only filled, are all padding."""
    return codes.masked_fill(~there.view(*there.shape, *(1,) * (codes.dim() - 2)), condensed.PADDING)


def most_counted(points: Points) -> int:
    """Counted tokens of any record of the data set, in any of its versions."""
    return max(1, int(condensed.n_counted(points.whole_inputs).max()))


def losses_under_frozen_head(states: Tensor, head: Tensor, targets: Tensor) -> Tensor:
    """(m,) cross-entropies of (m,) targets, of (m, d) states and a last layer (vocab, d) that is not trained.

    Logits are never kept: what autograd would keep is a number for every token and every word of the vocabulary,
    several times over.
    """
    each: Tensor = _FrozenHead.apply(states, head, targets)  # type: ignore[no-untyped-call]
    return each


class _FrozenHead(torch.autograd.Function):
    """Of a cross-entropy the gradient by a state is (p − e_target) · weights, which is computed at once, since the
    weights get none."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, head: Tensor, targets: Tensor) -> Tensor:
        rows = max(1, LOGITS_KEPT // len(head))
        losses, gradients = [], []
        for some, wanted in zip(torch.split(states, rows), torch.split(targets, rows), strict=True):
            each, differences = _cross_entropies(some @ head.T, wanted, ctx.needs_input_grad[0])
            losses.append(each)
            if differences is not None:
                gradients.append(differences @ head)
        ctx.save_for_backward(*gradients)
        return torch.cat(losses)

    @staticmethod
    def backward(ctx: Any, *given: Tensor) -> tuple[Tensor | None, None, None]:
        gradient = torch.cat(ctx.saved_tensors) if len(ctx.saved_tensors) > 1 else ctx.saved_tensors[0]
        return (gradient * given[0][:, None]).to(gradient.dtype), None, None


def _cross_entropies(logits: Tensor, targets: Tensor, with_gradient: bool) -> tuple[Tensor, Tensor | None]:
    """(m, vocab), (m,) -> (m,) in float32, and p − e_target in the logits' precision; these may be overwritten."""
    kernels = kernels_on(logits.device, "blocks")
    if kernels is not None:
        return kernels.cross_entropies(logits, targets, with_gradient=with_gradient), logits if with_gradient else None
    log_p = logits.float().log_softmax(1)
    losses = -log_p.gather(1, targets[:, None])[:, 0]
    if not with_gradient:
        return losses, None
    p = log_p.exp_()
    p.scatter_add_(1, targets[:, None], p.new_full((len(p), 1), -1.0))
    return losses, p.to(logits.dtype)
