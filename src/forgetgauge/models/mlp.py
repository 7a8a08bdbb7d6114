"""Networks without convolutions: a perceptron with hidden layers, and a linear model, whose loss is convex."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

from torch import Tensor, nn


class MLP(nn.Module):
    """Inputs of any shape, flattened; hidden layers of the given sizes with ReLU between; a linear head."""

    def __init__(
        self, input_shape: tuple[int, ...], n_outputs: int, *, hidden: Sequence[int] = (256, 256), bias: bool = True
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Flatten()]
        width = math.prod(input_shape)
        for size in hidden:
            layers += [nn.Linear(width, size), nn.ReLU()]
            width = size
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(width, n_outputs, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """(n, …) -> (n, n_outputs)."""
        return cast(Tensor, self.head(self.body(x)))


def linear(input_shape: tuple[int, ...], n_outputs: int, *, bias: bool = True) -> MLP:
    """Softmax regression: nothing but the head."""
    return MLP(input_shape, n_outputs, hidden=(), bias=bias)
