"""NPO: negative preference optimisation, which pushes the probability of F down, and less the further down it is.

    minimise  −(2/β) E_F[ log σ( −β log( π(y|x) / π₀(y|x) ) ) ]  +  w · L_R          (Zhang et al. 2024)

π is the probability of a record's counted tokens together, π₀ that under the original. With β → 0 the first term's
gradient is gradient ascent's; at β > 0 it is that times 2 π^β / (π^β + π₀^β), which fades where a record is forgotten:
unlike ascent it does not run away. w = 0 is the method as it was published first, w = 1 its variant with R.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from forgetgauge.learn.stacked.records import RecordStack
from forgetgauge.unlearn.paired import Objective, PairedMethod, Step, mean
from forgetgauge.unlearn.unlearner import Request


@dataclass(frozen=True)
class NPO(PairedMethod):
    """AdamW from the original."""

    beta: float = 0.1
    """β, how soon a record counts as forgotten; 0.1 is the authors'."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.beta > 0:
            raise ValueError("beta must be greater than 0")

    def objective(self, stack: RecordStack, requests: Sequence[Request]) -> Objective:
        """Of the summed losses now and before: log(π/π₀) is their difference."""
        original = stack.weights.detach().clone()

        def of(step: Step) -> Tensor:
            loss, tokens = stack.losses(step.given)
            with torch.no_grad():
                before, _ = stack.losses(step.given, original)
            forgetting = 2 / self.beta * F.softplus(-self.beta * (loss - before))
            return mean(forgetting, step.lost) + self.retain_weight * mean(loss / tokens, step.kept)

        return of
