"""SimNPO: NPO without the original as its measure; the mean over a record's tokens takes its place.

    minimise  −(2/β) E_F[ log σ( −(β/|y|) log π(y|x) − γ ) ]  +  w · L_R          (Fan et al. 2024)

|y| is the number of counted tokens. A record that the model knows well is pushed hard, whatever the original said of
it, and long records no harder than short ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from forgetgauge.learn.stacked.records import RecordStack
from forgetgauge.unlearn.paired import Objective, PairedMethod, Step, mean
from forgetgauge.unlearn.unlearner import Request


@dataclass(frozen=True)
class SimNPO(PairedMethod):
    """AdamW from the original."""

    beta: float = 2.5
    """β, how soon a record counts as forgotten."""
    gamma: float = 0.0
    """γ, by how much its mean loss must exceed what counts as forgotten."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.beta > 0 or self.gamma < 0:
            raise ValueError("beta must be greater than 0, gamma must not be negative")

    def objective(self, stack: RecordStack, requests: Sequence[Request]) -> Objective:
        """A loss of the mean losses now."""

        def of(step: Step) -> Tensor:
            loss, tokens = stack.losses(step.given)
            forgetting = 2 / self.beta * F.softplus(self.gamma - self.beta * loss / tokens)
            return mean(forgetting, step.lost) + self.retain_weight * mean(loss / tokens, step.kept)

        return of
