"""What an adversary may see of a model, what the oracle shows it, and the look-up adversary of Proposition 3.7.

The look-up adversary is why two random splits are no estimator. It ignores the model and remembers where two splits
agree. On two overlapping random splits it is always right, even against Retrain; on a swap pair the splits agree
nowhere on F and T, and it knows nothing. It draws points until it meets one of F₁∩F₂ (it accepts) or T₁∩T₂ (it
rejects); when its queries run out it answers with probability 1/2. The paper's table prints the bit b, so 0 on F₁∩F₂;
here acceptance means "forgotten", hence 1 there.
"""

import math
from enum import StrEnum

import numpy as np

from forgetgauge.game.arrays import Floats, Ints
from forgetgauge.game.sensitivity import restricted
from forgetgauge.game.splits import Split


class Access(StrEnum):
    """What an adversary may touch of the model: only its answers, or its weights too."""

    BLACK_BOX = "black-box"
    WHITE_BOX = "white-box"


def oracle_law(split: Split, bit: int, weights: Floats) -> tuple[Ints, Floats]:
    """The points O_s(b) can show and the probability of each; ``weights`` is P_D, indexed by point."""
    if bit not in (0, 1):
        raise ValueError(f"the oracle's bit is 0 (forget) or 1 (unseen), not {bit}")
    points, name = (split.forget, "forget set") if bit == 0 else (split.unseen, "unseen set")
    return points, restricted(weights, points, name)


def lookup_acceptance(
    table: tuple[Split, Split], split: Split, bit: int, weights: Floats, n_queries: float = math.inf
) -> float:
    """The exact probability that the look-up adversary of two splits accepts under O_s(b) after ``n_queries`` draws.

    With p the chance that one draw is decisive and h the share of F₁∩F₂ in it: h(1 − (1−p)^q) + ½(1−p)^q.
    """
    points, law = oracle_law(split, bit, weights)
    first, second = table
    says_forget = float(law[np.isin(points, np.intersect1d(first.forget, second.forget))].sum())
    says_unseen = float(law[np.isin(points, np.intersect1d(first.unseen, second.unseen))].sum())
    decisive = says_forget + says_unseen
    if decisive == 0:
        return 0.5
    undecided = math.pow(max(0.0, 1.0 - decisive), n_queries)
    return says_forget / decisive * (1.0 - undecided) + 0.5 * undecided
