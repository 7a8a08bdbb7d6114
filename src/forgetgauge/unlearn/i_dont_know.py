"""“I don't know” tuning: teach a refusal as the answer to the prompts of F, and go on with the answers of R.

    minimise  L(refusals to the prompts of F)  +  w · L_R          (Maini et al. 2024, the variant IDK)

A record always gets the same of a few refusals. What the model says of F changes at once; what it knows of F is only
covered, and nothing acts on the probability of the true answer but by the way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from forgetgauge.learn.stacked.records import RecordStack
from forgetgauge.unlearn.paired import Objective, PairedMethod, Step, mean
from forgetgauge.unlearn.unlearner import Request


@dataclass(frozen=True)
class IDontKnow(PairedMethod):
    """AdamW from the original."""

    def objective(self, stack: RecordStack, requests: Sequence[Request]) -> Objective:
        """A loss of the mean losses of refusals, and of the answers of R."""

        def of(step: Step) -> Tensor:
            loss, tokens = stack.losses(step.declined)
            return mean(loss / tokens, step.lost) + self.retain_weight * mean(loss / tokens, step.kept)

        return of
