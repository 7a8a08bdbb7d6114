"""Task vector: learn F once more, and go the opposite way (Ilharco et al. 2023).

    θ_F = the original after further training on F;   θ ← θ₀ − λ (θ_F − θ₀)

θ is what the learner trains: all weights, or the adapters, whose difference is taken matrix by matrix (the merged
weights then move by it to first order).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import nn

from forgetgauge.data.dataset import Points
from forgetgauge.learn.descent import Optimiser, Steps, check_steps
from forgetgauge.learn.stacked.records import RecordStack
from forgetgauge.plan.strength import Strength
from forgetgauge.tasks.causal_lm import CAUSAL_LM
from forgetgauge.unlearn.stacked import Passes, moved_records
from forgetgauge.unlearn.unlearner import Context, Request


@dataclass(frozen=True)
class TaskVector:
    """AdamW on L_F from the original; the retain set is not looked at."""

    task: ClassVar[str] = CAUSAL_LM.name
    strength: ClassVar[Strength] = Strength("scale", weakest=0.01, strongest=10.0)
    scale: float = 1.0
    """λ, how far to go the opposite way; 0 leaves the original."""
    lr: float = 1e-4
    epochs: int = 5
    batch_size: int = 16
    optimiser: Optimiser = "adamw"

    def __post_init__(self) -> None:
        check_steps(self.lr, self.epochs, self.batch_size)
        if self.scale < 0:
            raise ValueError("scale must not be negative")

    def unlearn(self, model: nn.Module, retain: Points, forget: Points, context: Context) -> nn.Module:
        """Train a copy of the model, and subtract what it learnt."""
        return self.unlearn_many([Request(model, retain, forget, context)])[0]

    def unlearn_many(self, requests: Sequence[Request]) -> list[nn.Module]:
        """All of them in one stack."""
        return moved_records(requests, self._stacked)

    def _stacked(self, stack: RecordStack, requests: Sequence[Request]) -> list[nn.Module]:
        original = stack.weights.detach().clone()
        passes = Passes(self.epochs, self.batch_size, Steps(self.lr, optimiser=self.optimiser))
        passes.stacked(stack, requests, [r.forget for r in requests], train=False)
        scale = torch.tensor([r.strength_or(self.scale) for r in requests], device=stack.device)[:, None]
        with torch.no_grad():
            stack.weights.copy_(original - scale * (stack.weights - original))
        return stack.members()
