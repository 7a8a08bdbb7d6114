"""The look-up adversary of Proposition 3.9: why two random splits are no estimator.

It ignores the model and remembers where two splits agree. On two overlapping random splits it is always right, even
against Retrain; on a swap pair the splits agree nowhere on F and T, and it knows nothing.
"""

import math

import numpy as np

from forgetgauge.game.adversary import Access
from forgetgauge.game.arrays import Floats
from forgetgauge.game.oracle import Oracle, QueryCapReached, oracle_law
from forgetgauge.game.splits import Split


class LookupAdversary:
    """Draws until it meets a point of F₁∩F₂ (accepts) or T₁∩T₂ (rejects); at its cap it answers probability 1/2.

    The paper's table prints the bit b, so 0 on F₁∩F₂; here acceptance means "forgotten", hence 1 there.
    """

    access = Access.BLACK_BOX

    def __init__(self, first: Split, second: Split, n_queries: int = 1000) -> None:
        if n_queries < 1:
            raise ValueError(f"a look-up needs at least one query, not {n_queries}")
        self.n_queries = n_queries
        self.always_forgotten = frozenset(np.intersect1d(first.forget, second.forget).tolist())
        self.never_seen = frozenset(np.intersect1d(first.unseen, second.unseen).tolist())

    def accepts(self, model: object, oracle: Oracle) -> float:
        """1 or 0 as soon as a drawn point is in the table, 1/2 when the queries run out; the model is not looked at."""
        for _ in range(self.n_queries):
            try:
                point = oracle.draw()
            except QueryCapReached:
                break
            if point in self.always_forgotten:
                return 1.0
            if point in self.never_seen:
                return 0.0
        return 0.5

    def acceptance(self, split: Split, bit: int, weights: Floats, n_queries: float = math.inf) -> float:
        """The exact probability that it accepts under O_s(b) after at most ``n_queries`` draws; no sampling.

        With p the chance that one draw is decisive and h the share of F₁∩F₂ in it: h(1 − (1−p)^q) + ½(1−p)^q.
        """
        points, law = oracle_law(split, bit, weights)
        says_forget = float(law[np.isin(points, sorted(self.always_forgotten))].sum())
        says_unseen = float(law[np.isin(points, sorted(self.never_seen))].sum())
        decisive = says_forget + says_unseen
        if decisive == 0:
            return 0.5
        undecided = math.pow(max(0.0, 1.0 - decisive), n_queries)
        return says_forget / decisive * (1.0 - undecided) + 0.5 * undecided
