"""Min-K % and Min-K++: a text that was trained on has no token that surprises the model much.

The score is the mean over the k % least probable tokens of a record, of their log-probabilities (Shi et al. 2024) or of
these in units of what the model itself expects of a token there, (log p − μ)/σ (Zhang J. et al. 2024). Their authors
choose k on labelled data; here k and the threshold are those that best tell the members of shadow models, the smallest
where several do. Neither has seen which records are in F.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from forgetgauge.attack.adversary import Arrays, Attack, Need, Panel, TargetContext
from forgetgauge.attack.signals import Signals
from forgetgauge.attack.threshold import best_threshold
from forgetgauge.game.adversary import Access
from forgetgauge.game.arrays import Floats
from forgetgauge.tasks.causal_lm import LOWEST_PERCENT


@dataclass(frozen=True)
class LowestTokensAttack(Attack):
    """The mean of the k % lowest token scores against one threshold."""

    measure: str
    percent: npt.NDArray[np.int64]
    """() k."""
    threshold: Floats
    """() one for all records."""

    def score(self, signals: Signals) -> Floats:
        """(n,) the task's signal for this k."""
        return signals.read(f"{self.measure} {int(self.percent)}")

    def margin(self, signals: Signals) -> Floats:
        """(n,) score − threshold."""
        return self.score(signals) - self.threshold

    def arrays(self) -> Arrays:
        """k and the threshold."""
        return {"percent": self.percent, "threshold": self.threshold}


@dataclass(frozen=True)
class LowestTokens:
    """Before it has seen anything; `measure` is how the task's signals are called, without k."""

    measure: str
    access: Access = Access.BLACK_BOX
    needs: frozenset[Need] = frozenset()

    @property
    def reads(self) -> frozenset[str]:
        """The signals of all k."""
        return frozenset(f"{self.measure} {k}" for k in LOWEST_PERCENT)

    def fit(self, shadows: Panel, target: TargetContext) -> LowestTokensAttack:
        """k and the threshold with the largest P_in(a ≥ t) − P_out(a ≥ t) on the shadow half."""
        signals, member = shadows.rows
        attacks = []
        for k in LOWEST_PERCENT:
            scores = signals.read(f"{self.measure} {k}")
            threshold = np.array(best_threshold(scores[member], scores[~member]))
            attacks.append(LowestTokensAttack(self.measure, np.array(k), threshold))
        says = [attack.decide(signals) for attack in attacks]
        return attacks[int(np.argmax([one[member].mean() - one[~member].mean() for one in says]))]

    def load(self, arrays: Arrays) -> LowestTokensAttack:
        """The attack again."""
        return LowestTokensAttack(self.measure, arrays["percent"], arrays["threshold"])


MIN_K = LowestTokens("min-k")
MIN_K_PLUS_PLUS = LowestTokens("min-k++")
