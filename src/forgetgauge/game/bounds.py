"""What (ε, δ)-certified removal says about the advantage, and what an advantage says about ε.

Two bounds: the paper's (Theorem 3.5), which says nothing once e^ε ≥ 3 − 4δ, and a tighter one that is attained. Both
models of a swap pair are (ε, δ)-close to the *same* retrained model; with r the chance of any event under it,
P_s ≤ 1 − e^{−ε}(1 − r − δ) and P_s' ≥ e^{−ε}(r − δ), hence Adv ≤ 1 − (1 − 2δ)e^{−ε}.

To claim a lower bound on ε, feed the inversions a *lower confidence bound* of the advantage, not its estimate.
"""

import math

from forgetgauge.game.one_model import group_epsilon


def paper_bound(epsilon: float, delta: float) -> float:
    """2(1 − (2 − 2δ)/(e^ε + 1)) as printed in Theorem 3.5; above 1 it is vacuous."""
    _check_removal(epsilon, delta)
    return 2 - 4 * (1 - delta) * math.exp(-epsilon) / (1 + math.exp(-epsilon))


def tight_bound(epsilon: float, delta: float) -> float:
    """Adv ≤ 1 − (1 − 2δ)e^{−ε}, at most 1; below 1 for every ε as long as δ < ½."""
    _check_removal(epsilon, delta)
    return min(1.0, -math.expm1(-epsilon) + 2 * delta * math.exp(-epsilon))


def tight_epsilon_floor(advantage: float, delta: float) -> float:
    """The least ε ≥ 0 that the tight bound leaves possible: ln((1 − 2δ)/(1 − Adv)); infinite at Adv = 1 and δ < ½."""
    _check_advantage(advantage, delta)
    if delta >= 0.5:
        return 0.0
    return math.inf if advantage == 1 else _log_or_zero((1 - 2 * delta) / (1 - advantage))


def _log_or_zero(ratio: float) -> float:
    return math.log(ratio) if ratio > 1 else 0.0


def _check_removal(epsilon: float, delta: float) -> None:
    if not epsilon >= 0:
        raise ValueError(f"epsilon must not be negative, but it is {epsilon}")
    _check_delta(delta)


def _check_advantage(advantage: float, delta: float) -> None:
    if not 0 <= advantage <= 1:
        raise ValueError(f"an advantage lies in [0, 1], but this one is {advantage}")
    _check_delta(delta)


def _check_delta(delta: float) -> None:
    if not 0 <= delta <= 1:
        raise ValueError(f"delta must lie in [0, 1], but it is {delta}")


def least_epsilon(floor: float, log_p: float, *, n_models: int = 1, delta: float = 1e-5, level: float = 0.95) -> float:
    """With confidence ``level``, the ε of any (ε, δ)-certified removal the method could claim is at least this.

    The larger of two lower bounds, each allowed half of the error: what the mean advantage over pairs leaves possible,
    whose lower confidence bound at (1 + level)/2 is ``floor``, and what the model that shows F most does, whose ln p is
    ``log_p``. The first is the stronger one with many pairs of few points each, the second with few pairs of many.
    """
    by_model = group_epsilon(log_p, level=(1 + level) / 2, delta=delta, n_models=n_models)
    return max(tight_epsilon_floor(floor, delta), by_model)
