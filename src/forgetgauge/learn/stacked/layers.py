"""What known layers compute on stacks of activations, (K, batch, height, width, channels); autograd does the rest."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn


def flatten(x: Tensor) -> Tensor:
    """(K, B, …, C) -> (K, B, C · …), in the order of a model alone."""
    return x.movedim(-1, 2).flatten(2)


def average(x: Tensor) -> Tensor:
    """(K, B, H, W, C) -> (K, B, 1, 1, C) float32."""
    return x.float().mean((2, 3), keepdim=True)


def max_pool(module: nn.MaxPool2d) -> Callable[[Tensor], Tensor]:
    """Members and examples are one batch to it."""

    def pool(x: Tensor) -> Tensor:
        k, n = x.shape[:2]
        pooled: Tensor = module(x.flatten(0, 1).permute(0, 3, 1, 2))
        return pooled.permute(0, 2, 3, 1).reshape(k, n, *pooled.shape[2:], pooled.shape[1])

    return pool
