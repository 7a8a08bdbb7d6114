"""Strong adversaries: a score attack whose margins are averaged over q queries to the oracle.

A^q(m) = 1 when the mean margin of q points drawn by O_s(b), independently and with probabilities P_D, is at least t_q.
Its advantage is a difference of acceptance *probabilities* of whole sets, not a mean over points: given the models, the
oracle's draws are averaged out (exactly for q = 1 and q = ∞, else by Monte Carlo) and the uncertainty that
remains is over models, that is over pairs.

The draws belong to the set, not to the model or the bit: F is shown as O_s(0) to m and as O_s'(1) to m', with the same
``Queries``. So one model shared by both sides gives exactly 0, and Monte Carlo noise mostly cancels elsewhere. Draws
for more queries begin with the draws for fewer, given equal generators, which keeps the curve of Q against q smooth.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from forgetgauge.game.arrays import Bools, Floats, Ints, frozen_bools, frozen_floats
from forgetgauge.game.sensitivity import checked, uniform

WHOLE_SET = math.inf  # q = ∞: the law of large numbers shows the adversary its set's mean

_CHUNK_ENTRIES = 2_000_000  # 16 MB of float64 in flight


@dataclass(frozen=True, eq=False)
class Queries:
    """What the oracle shows of one set: the answers do not depend on who asks."""

    probabilities: Floats
    """P_D on the set, (k,), summing to one."""
    drawn: Ints | None
    """Positions in the set, (n_draws, q): the plays that stand for all; None where none is needed (q = 1 or ∞)."""
    n_queries: float
    """q: a whole number, or ``WHOLE_SET``."""

    def means(self, margins: Floats) -> tuple[Floats, Floats]:
        """The mean margins that the adversary can see, and how likely each is, from the margins of the set, (k,)."""
        values = frozen_floats(margins, "margins")
        if values.shape != self.probabilities.shape:
            raise ValueError(f"there are margins {values.shape} for a set of {self.probabilities.shape} points")
        if self.n_queries == 1:
            return values, self.probabilities
        if self.drawn is None:
            return np.array([self.probabilities @ values]), np.ones(1)
        rows = max(1, _CHUNK_ENTRIES // self.drawn.shape[1])
        chunks = [values[self.drawn[start : start + rows]].mean(axis=1) for start in range(0, len(self.drawn), rows)]
        return np.concatenate(chunks), np.full(len(self.drawn), 1 / len(self.drawn))

    def acceptance(self, margins: Floats, threshold: float) -> float:
        """Pr(mean of q drawn margins ≥ threshold)."""
        means, likelihood = self.means(margins)
        return float(likelihood @ (means >= threshold))


def draw_queries(weight: ArrayLike, n_queries: float, n_draws: int, rng: np.random.Generator) -> Queries:
    """``n_draws`` plays of q queries each to the oracle of one set; ``weight`` is P_D on the set, (k,), any scale.

    Derive ``rng`` from the set itself and equal sets are shown equally, whichever side and bit they come from.
    """
    if n_draws < 1:
        raise ValueError(f"the acceptance of a strong adversary needs at least one play, not {n_draws}")
    if n_queries != WHOLE_SET and not (n_queries >= 1 and float(n_queries).is_integer()):
        raise ValueError(f"a strong adversary asks a whole number of queries, or infinitely many, not {n_queries}")
    probabilities = checked(weight, np.size(weight))
    if n_queries in (1, WHOLE_SET):
        return Queries(probabilities, None, n_queries)
    cumulative = np.cumsum(probabilities)
    uniforms = rng.random((int(n_queries), n_draws))  # query by query, so that fewer queries are a beginning of more
    drawn = np.searchsorted(cumulative / cumulative[-1], uniforms, side="right")
    return Queries(probabilities, np.ascontiguousarray(drawn.T, dtype=np.int64), n_queries)


def strong_threshold(
    members: Sequence[Floats], others: Sequence[Floats], n_queries: float, n_draws: int, rng: np.random.Generator
) -> float:
    """t_q with the largest Pr(mean ≥ t | members) − Pr(mean ≥ t | others), from the margins of shadow models.

    ``members`` and ``others`` hold one array per shadow model, because the q points of one play meet one model: pooling
    the shadows would hide how much models differ, which is what limits a strong adversary. The threshold lies midway
    between two observed means, so that rounding decides nothing; the smallest one where several are best.
    """
    if len(members) == 0 or len(others) == 0:
        raise ValueError("a threshold needs shadow models of both sorts: members and others")
    values, mass = _pooled(members, others, n_queries, n_draws, rng)
    order = np.argsort(values, kind="stable")
    values, mass = values[order], mass[order]
    starts = np.flatnonzero(np.diff(values, prepend=-math.inf) > 0)  # where each distinct value begins
    at_or_above = np.cumsum(mass[::-1])[::-1][starts]
    at_or_above[0] = 0.0  # everything is accepted: no advantage, whatever rounding left of 1 − 1
    best = int(np.argmax(at_or_above > at_or_above.max() - 1e-12))
    here = starts[best]
    return float(values[here] if here == 0 else values[here - 1] + (values[here] - values[here - 1]) / 2)


def strong_advantage(
    margins: Floats,
    margins_swapped: Floats,
    in_forget: ArrayLike,
    threshold: float,
    of_forget: Queries,
    of_unseen: Queries,
) -> float:
    """½(Adv_s + Adv_s'), signed, of one pair from its four acceptance probabilities.

    Margins of both models are over the same points, (2k,); ``in_forget`` tells who is in F of the first side, and the
    queries are those of the sets F and T in the order of the points.
    """
    side = frozen_bools(in_forget, "in_forget")
    first, second = frozen_floats(margins, "margins"), frozen_floats(margins_swapped, "margins")
    if not first.shape == second.shape == side.shape:
        raise ValueError(f"margins {first.shape}, {second.shape} and in_forget {side.shape} must be of the same points")
    return (
        _change(first, second, side, threshold, of_forget) - _change(first, second, ~side, threshold, of_unseen)
    ) / 2


def _change(first: Floats, second: Floats, members: Bools, threshold: float, queries: Queries) -> float:
    """How much more readily the first model's set is accepted than the second's: the same points, the same draws."""
    return queries.acceptance(first[members], threshold) - queries.acceptance(second[members], threshold)


def _pooled(
    members: Sequence[Floats], others: Sequence[Floats], n_queries: float, n_draws: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """All means seen on shadows, and their probabilities: positive for members, negative for others."""
    values, mass = [], []
    for sets, sign in ((members, 1.0), (others, -1.0)):
        for margins in sets:
            means, likelihood = draw_queries(uniform(len(margins)), n_queries, n_draws, rng).means(margins)
            values.append(means)
            mass.append(sign * likelihood / len(sets))
    return np.concatenate(values), np.concatenate(mass)
