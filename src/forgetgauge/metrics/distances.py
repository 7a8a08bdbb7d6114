"""How far an unlearned model is from a retrained one, which is what many papers report.

KL(p_Retrain ‖ p_method), averaged over a set, with p the softmax of the logits; and accuracy gaps. A distance is judged
against another *draw* of training: two retrained models are apart as well, and that distance, not 0, is the floor.
"""

import numpy as np
from numpy.typing import ArrayLike

from forgetgauge.game.arrays import Floats, frozen_floats


def log_softmax(logits: ArrayLike) -> Floats:
    """(n, K) in float64; the largest logit of each row is taken out first, so that nothing overflows."""
    values = frozen_floats(logits, "logits")
    shifted = values - values.max(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)), dtype=np.float64)


def mean_kl(logits_of_retrain: ArrayLike, logits: ArrayLike, weight: ArrayLike) -> float:
    """Σ_x w_x Σ_y p(y|x) log(p(y|x)/q(y|x)) / Σ_x w_x in nats, p of Retrain, q of the method; (n, K) logits each."""
    log_p, log_q = log_softmax(logits_of_retrain), log_softmax(logits)
    mass = frozen_floats(weight, "weight")
    if log_p.shape != log_q.shape or mass.shape != log_p.shape[:1]:
        raise ValueError(
            f"logits {log_p.shape} and {log_q.shape} and weight {mass.shape} must be of the same points and classes"
        )
    if not ((mass >= 0).all() and mass.sum() > 0):
        raise ValueError("the points have no mass, so their mean is undefined")
    each = (np.exp(log_p) * (log_p - log_q)).sum(axis=1)
    return max(0.0, float(mass @ each / mass.sum()))  # rounding can leave −1e-17
