"""Retrain: Lr(R), a fresh model on the retain set alone. Exact, and as dear as training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from forgetgauge.data.dataset import Points
from forgetgauge.learn.learner import fitted_many
from forgetgauge.unlearn.unlearner import Context, Request


@dataclass(frozen=True)
class Retrain:
    """The same recipe, the same number of epochs (not of steps), a random stream of its own."""

    uses_original: ClassVar[bool] = False
    needs_gradients: ClassVar[bool] = False

    def unlearn(self, model: nn.Module, retain: Points, forget: Points, context: Context) -> nn.Module:
        """Neither the model nor the forget set is looked at."""
        return self.unlearn_many([Request(model, retain, forget, context)])[0]

    def unlearn_many(self, requests: Sequence[Request]) -> list[nn.Module]:
        """All of them as one stack."""
        for request in requests:
            request.context.n_gradients += request.context.learner.n_gradients(len(request.retain))
        learner = requests[0].context.learner
        engine = getattr(learner, "engine", None)
        for request in requests:
            request.context.engine = engine([r.retain for r in requests]).name if engine else ""
        return fitted_many(learner, [r.retain for r in requests], [r.context.streams for r in requests])
