"""K adapters on one frozen base as one stack: the base's products run once over the tokens of all members.

The members' batches lie one after another as one batch of the base, (K · B, length). In every layer with adapters, what
the base gives is corrected by two batched products over members, (K, tokens, in) · (K, in, r) · (K, r, out). Everything
else of the network is the base's own and knows no members, so a stack costs little more than its tokens. All adapters
of a member are one row of `weights`, and autograd gives the gradient of all of them at once: members never mix, since
the rows of the batch do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from forgetgauge.data.dataset import Points
from forgetgauge.learn.stacked.members import NotStackable, check_alike, unstack
from forgetgauge.learn.stacked.traced import Precision
from forgetgauge.models import condensed
from forgetgauge.models.causal_lm import Correction, corrected
from forgetgauge.models.lora import LoraModel, key_of


class LoraStack:
    """The stack; `weights` (K, P) are the adapters, `gradient` (K, P) what `backward` writes."""

    def __init__(self, models: Sequence[LoraModel], precision: Precision, most: int) -> None:
        check_alike(models)
        self.models: list[nn.Module] = list(models)
        self.first = models[0]
        self.most = most
        """Counted tokens of a record, at most: the last layer is computed for no more."""
        self.device = next(self.first.parameters()).device
        on_gpu = self.device.type == "cuda"
        self.body = self.first.base.on(self.device, torch.bfloat16 if precision == "bfloat16" and on_gpu else torch.float32)
        self.shapes = {name: parameter.shape for name, parameter in self.first.named_parameters()}
        rows = [torch.cat([p.detach().flatten() for p in model.parameters()]) for model in models]
        self.weights = torch.stack(rows).requires_grad_(True)
        self.gradient = torch.zeros_like(self.weights, requires_grad=False)

    def __len__(self) -> int:
        return len(self.models)

    def tables_of(self, rows: Tensor) -> dict[str, Tensor]:
        """(K, P) -> (K, *shape) by the name of the parameter, as views."""
        sizes = [shape.numel() for shape in self.shapes.values()]
        parts = rows.split(sizes, dim=1)
        return {
            name: part.view(len(rows), *shape)
            for (name, shape), part in zip(self.shapes.items(), parts, strict=True)
        }

    @torch.no_grad()
    def members(self, n_batches: Sequence[int] | None = None) -> list[nn.Module]:
        """The models with what was learnt."""
        return unstack(self.models, self.tables_of(self.weights))

    def _corrections(self) -> dict[str, Correction]:
        tables = self.tables_of(self.weights)
        return {
            name: self._correction(tables[f"down.{key_of(name)}"], tables[f"up.{key_of(name)}"])
            for name in self.first.layers
        }

    def _correction(self, down: Tensor, up: Tensor) -> Correction:
        k, scale = len(self.models), self.first.scale

        def correction(given: Tensor) -> Tensor:
            tokens = given.reshape(k, -1, given.shape[-1])
            low = tokens @ down.to(given.dtype).transpose(1, 2)
            return (low @ (scale * up).to(given.dtype).transpose(1, 2)).view(*given.shape[:-1], -1)

        return correction

    def losses(self, codes: Tensor) -> tuple[Tensor, Tensor]:
        """(K, B, length) -> (K, B) summed losses of the counted tokens and their numbers; differentiable."""
        with corrected(self.body, self._corrections()):
            found = condensed.token_losses(self.body, codes.flatten(0, 1), self.most)
        loss, tokens = (part.view(codes.shape[:2]) for part in found)
        return loss, tokens

    def hidden(self, codes: Tensor, n_layers: int) -> Tensor:
        """(K, B, length) -> (K, B, length, hidden) after so many blocks; differentiable."""
        with corrected(self.body, self._corrections()):
            states: Tensor = self.body.hidden(condensed.ids_of(codes.flatten(0, 1)), n_layers)
        return states.unflatten(0, codes.shape[:2])

    def forward(
        self, x: Tensor, n_valid: Tensor | None = None, *, train: bool = False, keep: bool = False, **_: Any
    ) -> tuple[Tensor, Tensor]:
        """(K, B, versions, length) -> (K, B, columns): loss and tokens alone; and what `backward` needs."""
        with torch.enable_grad() if keep else torch.no_grad():
            outputs = condensed.loss_columns(*self.losses(x[:, :, condensed.GIVEN]))
        return outputs.detach(), outputs

    def backward(self, tape: Tensor, d_outputs: Tensor) -> None:
        """Write the gradient of Σ outputs · d_outputs into `gradient`."""
        (found,) = torch.autograd.grad(tape, self.weights, d_outputs)
        self.gradient.copy_(found)


def lora_stack(models: Sequence[nn.Module], points: Points, precision: Precision) -> LoraStack:
    """Of models that have adapters on one base; others are `NotStackable`."""
    own = [model for model in models if isinstance(model, LoraModel)]
    if len(own) < len(models) or not own:
        raise NotStackable("the models are not adapters on one base")
    if any(model.base is not own[0].base for model in own):
        raise NotStackable("the models have different bases")
    return LoraStack(own, precision, most_counted(points))


def most_counted(points: Points) -> int:
    """Counted tokens of any record of the data set, in any of its versions."""
    return max(1, int(condensed.n_counted(points.whole_inputs).max()))
