"""Signals that need the weights: how steep the loss is at a point, and how it rises when the weights are shaken."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from forgetgauge.data.dataset import Points
from forgetgauge.learn.predict import BATCH
from forgetgauge.streams import Streams

CHUNK = 256
N_SHAKES, SHAKE = 8, 0.1
"""Each shake adds to every weight tensor normal noise of SHAKE times its own standard deviation."""


def gradient_norm(model: nn.Module, points: Points) -> npt.NDArray[np.float32]:
    """(n,) ‖∂ loss(x, y) / ∂θ‖₂ in eval mode."""
    model.eval()
    parameters = {name: p.detach() for name, p in model.named_parameters()}
    buffers = dict(model.named_buffers())

    def norm(x: Tensor, y: Tensor) -> Tensor:
        def loss(parameters: dict[str, Tensor]) -> Tensor:
            return points.task.loss(functional_call(model, (parameters, buffers), (x[None],)), y[None])

        return torch.stack([g.square().sum() for g in grad(loss)(parameters).values()]).sum().sqrt()

    chunks = zip(torch.split(points.x, CHUNK), torch.split(points.y, CHUNK), strict=True)
    parts = [vmap(norm)(x, y) for x, y in chunks]
    return np.asarray(torch.cat(parts).detach().cpu().numpy(), dtype=np.float32)


@torch.no_grad()
def landscape(model: nn.Module, points: Points) -> npt.NDArray[np.float32]:
    """(n,) mean rise of the loss over N_SHAKES random shakes of the weights; a memorised point lies in a sharp pit."""
    model.eval()
    weights, buffers = {name: p.detach() for name, p in model.named_parameters()}, dict(model.named_buffers())
    generator = torch.Generator().manual_seed(Streams("landscape").seed("shake"))  # the same shakes for every model

    def losses(parameters: dict[str, Tensor]) -> Tensor:
        parts = [
            points.task.loss(functional_call(model, (parameters, buffers), (x,)), y, reduction="none")
            for x, y in zip(torch.split(points.x, BATCH), torch.split(points.y, BATCH), strict=True)
        ]
        return torch.cat(parts)

    rise = torch.zeros(len(points), device=points.device)
    for _ in range(N_SHAKES):
        shaken = {
            name: w + SHAKE * (w.std() if w.numel() > 1 else w.abs()) * noise_like(w, generator)
            for name, w in weights.items()
        }
        rise += losses(shaken) / N_SHAKES
    return np.asarray((rise - losses(weights)).cpu().numpy(), dtype=np.float32)


def noise_like(tensor: Tensor, generator: torch.Generator) -> Tensor:
    """Normal noise of the tensor's shape, drawn on the CPU: the same on every device."""
    return torch.randn(tensor.shape, generator=generator).to(tensor.device)


COLUMNS: dict[str, Callable[[nn.Module, Points], npt.NDArray[np.float32]]] = {
    "gradient-norm": gradient_norm,
    "landscape": landscape,
}
