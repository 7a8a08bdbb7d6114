"""The random oracle O_s(b): it shows points of F when its secret bit is 0, of T when it is 1, and never tells which."""

import numpy as np

from forgetgauge.game.arrays import Floats, Ints
from forgetgauge.game.sensitivity import restricted
from forgetgauge.game.splits import Split


class QueryCapReached(Exception):
    """The adversary asked the oracle more often than it may."""


def oracle_law(split: Split, bit: int, weights: Floats) -> tuple[Ints, Floats]:
    """The points O_s(b) can show and the probability of each; ``weights`` is P_D, indexed by point."""
    if bit not in (0, 1):
        raise ValueError(f"the oracle's bit is 0 (forget) or 1 (unseen), not {bit}")
    points, name = (split.forget, "forget set") if bit == 0 else (split.unseen, "unseen set")
    return points, restricted(weights, points, name)


class Oracle:
    """O_s(b): independent draws from F (b = 0) or T (b = 1), proportional to P_D, at most ``max_queries`` of them."""

    def __init__(self, split: Split, bit: int, weights: Floats, rng: np.random.Generator, max_queries: int) -> None:
        if max_queries < 1:
            raise ValueError(f"an oracle must allow at least one query, not {max_queries}")
        self._points, probabilities = oracle_law(split, bit, weights)
        cumulative = np.cumsum(probabilities)
        self._cumulative = cumulative / cumulative[-1]
        self._rng = rng
        self.max_queries = max_queries
        self.n_queries = 0

    def draw(self) -> int:
        """The next point; QueryCapReached once ``max_queries`` points were drawn."""
        if self.n_queries >= self.max_queries:
            raise QueryCapReached(f"the oracle allows {self.max_queries} queries")
        self.n_queries += 1
        # The uniform number is < 1 and the last cumulative weight is exactly 1, so a point of weight 0 is never drawn.
        return int(self._points[np.searchsorted(self._cumulative, self._rng.random(), side="right")])
