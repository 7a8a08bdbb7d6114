"""RMU: representation misdirection, which steers what a middle block says of F to a random direction (Li et al. 2024).

    minimise  E_F[ mean_t ‖h_t − c·s·u‖²/d ]  +  w E_R[ mean_t ‖h_t − h⁰_t‖²/d ]

h_t is the hidden state at a token after block ℓ, h⁰ the original's, d its width, u a random unit vector drawn for each
model. The published c is a number for each architecture; here it is in units of s, the mean norm of the original's
states in the batch, so that one value means the same for models of all sizes. The blocks after ℓ do not move.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from forgetgauge.learn.stacked.records import RecordStack
from forgetgauge.models.condensed import PADDING
from forgetgauge.unlearn.paired import Objective, PairedMethod, Step, mean
from forgetgauge.unlearn.unlearner import Request


@dataclass(frozen=True)
class RMU(PairedMethod):
    """AdamW from the original."""

    retain_weight: float = 10.0
    """w; the authors' 1200 is for an unscaled c of 6.5."""
    depth: float = 0.25
    """ℓ as a share of the blocks, at least the first: the authors take block 7 of 32."""
    coefficient: float = 2.0
    """c, in mean norms of the original's states."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.depth <= 1 or not self.coefficient > 0:
            raise ValueError("depth must be greater than 0 and at most 1, coefficient greater than 0")

    def objective(self, stack: RecordStack, requests: Sequence[Request]) -> Objective:
        """A loss of the states after block ℓ, now and before."""
        original, block = stack.weights.detach().clone(), max(1, round(self.depth * stack.n_layers))
        directions = torch.stack([_direction(request, stack.width) for request in requests]).to(stack.device)

        def of(step: Step) -> Tensor:
            states = stack.hidden(step.given, block).float()
            with torch.no_grad():
                before = stack.hidden(step.given, block, original).float()
            there = (step.given != PADDING) & (step.lost | step.kept)[..., None]  # (K, B, length)
            size = (before.norm(dim=-1) * there).sum((1, 2)) / there.sum((1, 2)).clamp(min=1)
            aim = (self.coefficient * size[:, None] * directions)[:, None, None]
            lost, kept = (_mean_square(states - wanted, there) for wanted in (aim, before))
            return mean(lost, step.lost) + self.retain_weight * mean(kept, step.kept)

        return of


def _direction(request: Request, width: int) -> Tensor:
    """(width,) u: uniform on [0, 1) and normalised, as the authors draw it."""
    row: Tensor = torch.from_numpy(request.context.streams.generator("direction").random(width)).float()
    return row.div(row.norm())


def _mean_square(difference: Tensor, there: Tensor) -> Tensor:
    """(K, B, length, d), (K, B, length) -> (K, B): mean over d and over the tokens that are there."""
    return (difference.square().mean(-1) * there).sum(2) / there.sum(2).clamp(min=1)
