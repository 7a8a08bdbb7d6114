"""What was measured, as a statement about certified removal: an ε that no certificate of this method can undercut."""

from forgetgauge.game.arrays import Floats
from forgetgauge.game.bounded import advantage_floor
from forgetgauge.game.bounds import tight_epsilon_floor
from forgetgauge.game.intervals import MIN_PAIRS


def empirical_epsilon(by_pair: Floats, delta: float = 1e-5, level: float = 0.95) -> float | None:
    """With confidence ``level``, the ε of any (ε, δ)-certified removal the method could claim is at least this.

    ln((1 − 2δ)/(1 − Adv)) at a lower confidence bound of Adv from (P, J) signed advantages: one-sided, adjusted for the
    choice of adversary and of sign, and valid for independent pairs of any distribution (``bounded``). It is finite,
    also where all pairs agree on an advantage of 1. None below five pairs.
    """
    if len(by_pair) < MIN_PAIRS:
        return None
    return tight_epsilon_floor(float(advantage_floor(by_pair, level)), delta)
