"""What was measured, as a statement about certified removal: an ε that no certificate of this method can undercut."""

from collections.abc import Sequence

from forgetgauge.game.advantage import PairOutcome
from forgetgauge.game.bounds import tight_epsilon_floor
from forgetgauge.game.intervals import MIN_PAIRS
from forgetgauge.game.supremum import advantage_floor


def empirical_epsilon(outcomes: Sequence[PairOutcome], delta: float = 1e-5, level: float = 0.95) -> float | None:
    """An approximate lower bound on the ε of any (ε, δ)-certified removal the method could claim; None below 5 pairs.

    ln((1 − 2δ)/(1 − Adv)) at a lower confidence bound of Adv: one-sided at ``level``, over pairs, adjusted for the
    choice of adversary and of sign. Approximate because Student's t takes the pairs' advantages as normal; it is not
    a proof. It is infinite where all pairs agree on an advantage of 1.
    """
    if len(outcomes) < MIN_PAIRS:
        return None
    return tight_epsilon_floor(advantage_floor(outcomes, level), delta)
