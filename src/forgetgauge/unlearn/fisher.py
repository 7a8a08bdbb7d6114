"""Fisher forgetting: noise on every weight, the more the less the retain set needs it. α trades noise for accuracy.

The Fisher information is the true one: per sample, under the model's own distribution of labels, on the retain set.
Weights that R hardly constrains are where F may be remembered; they are blurred most, up to a cap.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from forgetgauge.data.dataset import Points
from forgetgauge.learn.predict import outputs_of
from forgetgauge.learn.stacked.traced import TracedStack
from forgetgauge.learn.stacked.trainer import stacked_outputs, stacked_squares
from forgetgauge.models.head import head_of
from forgetgauge.plan.strength import Published, Strength
from forgetgauge.streams import Streams
from forgetgauge.unlearn.memory import Found, recalled, streams_of
from forgetgauge.unlearn.squared_gradients import (
    Tensors,
    loss_directions,
    mean_squares,
    squared_loss_gradient,
    squared_score_under_the_model,
    trainable,
)
from forgetgauge.unlearn.stacked import originals_of, unlearn_stacked
from forgetgauge.unlearn.unlearner import Context, Request

# The published code's numbers.
_DAMPING = 1e-8
_CAP, _CAP_IN_HEAD = 1e3, 1e2
_MORE_IN_HEAD_AND_VECTORS = 10.0

_LABELS = "labels of Fisher forgetting"


@dataclass(frozen=True)
class Fisher:
    """θ' = θ + sqrt(variance) · N(0, 1), variance = α · min((F + 1e-8)^−power, 1e3), averaged over inputs per output.

    The published code's branch for a wholly forgotten class is left out: forget sets of the game are random.
    """

    strength: ClassVar[Strength] = Strength("alpha", weakest=1e-10, strongest=1e-4)
    published: ClassVar[Published] = Published({"alpha": 1e-6}, "Golatkar et al. 2020, the notebook of their code")
    needs_classes: ClassVar[bool] = True
    alpha: float = 1e-6
    """Noise variance per unit of inverse information; tune it by decades on accuracy alone."""
    power: float = 1.0
    """1 as in the published code; 0.5 as in the paper's text (deviation ∝ F^−1/4)."""
    labels: Literal["all", "sampled"] = "all"
    """`sampled`: one y ~ p(· | x) for each x in place of all K labels; unbiased, and K times cheaper. The labels of a
    model are the same at every alpha."""

    def __post_init__(self) -> None:
        if not 0 <= self.alpha < float("inf") or not 0 <= self.power < float("inf"):
            raise ValueError("alpha and power must be finite and must not be negative")
        if self.labels not in ("all", "sampled"):
            raise ValueError(f"labels = {self.labels!r} is neither 'all' nor 'sampled'")

    def unlearn(self, model: nn.Module, retain: Points, forget: Points, context: Context) -> nn.Module:
        """Blur a copy; buffers (batch norm's statistics) stay as they are."""
        request = Request(model, retain, forget, context)
        model = copy.deepcopy(model).eval()
        information = self._found([request], lambda: self._information(model, _blurred(model), retain))
        context.n_gradients += self._cost(retain)
        self._blur(model, information, context.streams, self.alpha)
        return model

    def unlearn_many(self, requests: Sequence[Request]) -> list[nn.Module]:
        """All of them in one stack, where their models can be one."""
        return unlearn_stacked(requests, self, self._stacked, of_originals=True)

    def _information(self, model: nn.Module, parameters: Tensors, retain: Points) -> Tensors:
        if self.labels == "all":
            return mean_squares(model, parameters, retain.x, retain.y, squared_score_under_the_model)
        drawn = _draw_labels(outputs_of(model, retain), streams_of(_LABELS, model, retain))
        return mean_squares(model, parameters, retain.x, drawn.to(retain.device), squared_loss_gradient(retain.task))

    def _cost(self, retain: Points) -> int:
        return (retain.n_classes if self.labels == "all" else 1) * len(retain)

    def _blur(self, model: nn.Module, information: Tensors, streams: Streams, alpha: float) -> None:
        in_head = {id(parameter) for parameter in head_of(model).parameters()}
        generator = torch.Generator().manual_seed(streams.seed("noise"))
        with torch.no_grad():
            for name, parameter in _blurred(model).items():
                variance = noise_variance(information[name], alpha, self.power, id(parameter) in in_head)
                noise = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype).to(parameter.device)
                parameter += variance.sqrt().to(parameter.dtype) * noise

    def _stacked(self, stack: TracedStack, requests: Sequence[Request]) -> list[nn.Module]:
        originals, place = originals_of(requests)
        squares = self._found(originals, lambda: self._squares(stack, originals), stack.precision)
        information, models = stack.tables_of(squares), [copy.deepcopy(stack.models[at]) for at in place]
        for model, at, r in zip(models, place, requests, strict=True):
            self._blur(model, information[at], r.context.streams, r.strength_or(self.alpha))
            r.context.n_gradients += self._cost(r.retain)
        return models

    def _found(self, requests: Sequence[Request], compute: Callable[[], Found], precision: str = "alone") -> Found:
        """Alpha does not change it, nor the labels that are drawn."""
        return recalled(f"Fisher information, {self.labels} labels, {precision}", requests, compute)

    def _squares(self, stack: TracedStack, requests: Sequence[Request]) -> Tensor:
        retained = [r.retain for r in requests]
        if self.labels == "all":
            return stacked_squares(stack, retained, _scores_under_the_models)
        logits = stacked_outputs(stack.models, retained)
        streams = [streams_of(_LABELS, r.model, r.retain) for r in requests]
        drawn = [_draw_labels(own, its).numpy() for own, its in zip(logits, streams, strict=True)]
        return stacked_squares(stack, retained, loss_directions(retained[0].task), labels=drawn)


def _scores_under_the_models(logits: Tensor, labels: Tensor) -> Iterator[Tensor]:
    """`squared_score_under_the_model` for (K, B, C) logits: sqrt(p_y) · (p − e_y), one (K, B, C) for each class y."""
    p = logits.softmax(-1)
    return (p[..., y : y + 1].sqrt() * (p - e) for y, e in enumerate(torch.eye(p.shape[-1], device=p.device)))


def _draw_labels(logits: npt.NDArray[np.float32], streams: Streams) -> Tensor:
    """(n,) one y ~ p(· | x) for each x, drawn on the CPU."""
    generator = torch.Generator().manual_seed(streams.seed("labels"))
    return torch.multinomial(torch.from_numpy(logits).double().softmax(1), 1, generator=generator)[:, 0]


def noise_variance(information: Tensor, alpha: float, power: float, in_head: bool) -> Tensor:
    """The variance of one tensor's noise, shaped like its Fisher information."""
    variance = (information + _DAMPING).pow(-power).clamp(max=_CAP_IN_HEAD if in_head else _CAP)
    variance = alpha * variance
    if variance.dim() > 1:
        variance = variance.mean(1, keepdim=True).expand_as(variance)
    return variance * _MORE_IN_HEAD_AND_VECTORS if in_head or variance.dim() <= 1 else variance


def _blurred(model: nn.Module) -> Tensors:
    """The trained parameters without embeddings: the row of a token that R lacks has no information at all, so its
    noise would sit at the cap for a reason that has nothing to do with forgetting. One that is also the head stays."""
    embeddings = {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding | nn.EmbeddingBag)}
    embeddings -= {id(parameter) for parameter in head_of(model).parameters()}
    return {name: parameter for name, parameter in trainable(model).items() if id(parameter) not in embeddings}
