"""Fisher forgetting: noise on every weight, the more the less the retain set needs it. α trades noise for accuracy.

The Fisher information is the true one: per sample, under the model's own distribution of labels, on the retain set.
Weights that R hardly constrains are where F may be remembered; they are blurred most, up to a cap.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from forgetgauge.data.dataset import Points
from forgetgauge.learn.descent import own_randomness
from forgetgauge.learn.predict import logits_of
from forgetgauge.models.head import head_of
from forgetgauge.unlearn.squared_gradients import (
    Tensors,
    mean_squares,
    squared_loss_gradient,
    squared_score_under_the_model,
    trainable,
)
from forgetgauge.unlearn.unlearner import Context

# The published code's numbers.
_DAMPING = 1e-8
_CAP, _CAP_IN_HEAD = 1e3, 1e2
_MORE_IN_HEAD_AND_VECTORS = 10.0


@dataclass(frozen=True)
class Fisher:
    """θ' = θ + sqrt(variance) · N(0, 1), variance = α · min((F + 1e-8)^−power, 1e3), averaged over inputs per output.

    The published code's branch for a wholly forgotten class is left out: forget sets of the game are random.
    """

    alpha: float = 1e-6
    """Noise variance per unit of inverse information; tune it by decades on accuracy alone."""
    power: float = 1.0
    """1 as in the published code; 0.5 as in the paper's text (deviation ∝ F^−1/4)."""
    labels: Literal["all", "sampled"] = "all"
    """`sampled`: one y ~ p(· | x) for each x in place of all K labels; unbiased, and K times cheaper."""

    def __post_init__(self) -> None:
        if not 0 <= self.alpha < float("inf") or not 0 <= self.power < float("inf"):
            raise ValueError("alpha and power must be finite and must not be negative")
        if self.labels not in ("all", "sampled"):
            raise ValueError(f"labels = {self.labels!r} is neither 'all' nor 'sampled'")

    def unlearn(self, model: nn.Module, retain: Points, forget: Points, context: Context) -> nn.Module:
        """Blur a copy; buffers (batch norm's statistics) stay as they are."""
        model = copy.deepcopy(model).eval()
        blurred, in_head = _blurred(model), {id(parameter) for parameter in head_of(model).parameters()}
        generator = torch.Generator().manual_seed(context.streams.seed("noise"))
        with own_randomness(context.streams):
            information = self._information(model, blurred, retain, context)
        with torch.no_grad():
            for name, parameter in blurred.items():
                variance = noise_variance(information[name], self.alpha, self.power, id(parameter) in in_head)
                noise = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
                parameter += variance.sqrt().to(parameter.dtype) * noise
        return model

    def _information(self, model: nn.Module, parameters: Tensors, retain: Points, context: Context) -> Tensors:
        if self.labels == "all":
            context.n_gradients += retain.n_classes * len(retain)
            return mean_squares(model, parameters, retain.x, retain.y, squared_score_under_the_model)
        generator = torch.Generator().manual_seed(context.streams.seed("labels"))
        posterior = torch.from_numpy(logits_of(model, retain)).double().softmax(1)
        drawn = torch.multinomial(posterior, 1, generator=generator)[:, 0]
        context.n_gradients += len(retain)
        return mean_squares(model, parameters, retain.x, drawn, squared_loss_gradient)


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
