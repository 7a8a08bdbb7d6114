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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from forgetgauge.game.arrays import Floats, Ints, frozen_bools, frozen_floats
from forgetgauge.game.sensitivity import checked, uniform

WHOLE_SET = math.inf  # q = ∞: the law of large numbers shows the adversary its set's mean

_CHUNK_ENTRIES = 2_000_000  # 16 MB of float64 in flight


@dataclass(frozen=True, eq=False)
class Queries:
    """What the oracle shows of one set: the answers do not depend on who asks."""

    probabilities: Floats
    """P_D on the set, (k,), summing to one."""
    drawn: Ints
    """Positions in the set, (most queries, n_draws): the plays that stand for all; one query and infinitely many need
    none."""

    def means(self, margins: Floats, n_queries: Sequence[float]) -> Iterator[tuple[float, Floats, Floats]]:
        """For each number of queries, the fewest first: (q, the mean margins that can be seen, how likely each is).

        Margins are of the set, (k,) or side by side (k, n); means have a row for each play. A play of many queries
        begins with a play of fewer, so all of them together add up no more margins than the longest alone.
        """
        total, n_added = np.zeros((self.drawn.shape[1], *margins.shape[1:])), 0
        seen = np.empty_like(total)
        for queries in sorted(n_queries):
            if queries == 1:
                yield queries, margins, self.probabilities
            elif queries == WHOLE_SET:
                yield queries, (self.probabilities * margins.T).sum(axis=-1)[None], np.ones(1)
            else:
                for positions in self.drawn[n_added : int(queries)]:
                    total += np.take(margins, positions, axis=0, out=seen, mode="clip")  # else take copies once more
                n_added = int(queries)
                yield queries, total / queries, np.full(len(total), 1 / len(total))

    def acceptance(self, margins: Floats, thresholds: Mapping[float, Floats]) -> dict[float, Floats]:
        """q -> Pr(mean of q drawn margins ≥ threshold), (n,), from margins (k, n) and a threshold for each column."""
        values = frozen_floats(margins, "margins")
        if len(values) != len(self.probabilities):
            raise ValueError(f"there are margins {values.shape} for a set of {self.probabilities.shape} points")
        if any(self.drawn.shape[0] < queries < WHOLE_SET and queries != 1 for queries in thresholds):
            raise ValueError(f"only {self.drawn.shape[0]} queries were drawn, but {sorted(thresholds)} are asked for")
        at_once = max(1, _CHUNK_ENTRIES // self.drawn.shape[1])
        found: dict[float, list[float]] = {queries: [] for queries in thresholds}
        for columns in (slice(start, start + at_once) for start in range(0, values.shape[1], at_once)):
            for queries, means, likelihood in self.means(values[:, columns], list(thresholds)):
                accepted = np.ascontiguousarray((means >= thresholds[queries][columns]).T)
                # row by row: in one product, equal rows could be added in different orders
                found[queries] += [float(likelihood @ row) for row in accepted]
        return {queries: np.array(each) for queries, each in found.items()}


def draw_queries(weight: ArrayLike, n_queries: Sequence[float], n_draws: int, rng: np.random.Generator) -> Queries:
    """``n_draws`` plays to the oracle of one set, each of as many queries as the longest that is asked for.

    ``weight`` is P_D on the set, (k,), any scale. Derive ``rng`` from the set itself and equal sets are shown equally,
    whichever side and bit they come from.
    """
    if n_draws < 1:
        raise ValueError(f"the acceptance of a strong adversary needs at least one play, not {n_draws}")
    for queries in n_queries:
        if queries != WHOLE_SET and not (queries >= 1 and float(queries).is_integer()):
            raise ValueError(f"a strong adversary asks a whole number of queries, or infinitely many, not {queries}")
    probabilities = checked(weight, np.size(weight))
    most = max((int(queries) for queries in n_queries if queries not in (1, WHOLE_SET)), default=0)
    cumulative = np.cumsum(probabilities)
    uniforms = rng.random((most, n_draws))  # query by query, so that fewer queries are a beginning of more
    return Queries(probabilities, _steps_passed(cumulative / cumulative[-1], uniforms))


def _steps_passed(cumulative: Floats, uniforms: Floats) -> Ints:
    """How many entries of ``cumulative`` each uniform has reached: ``searchsorted(…, side="right")``, but faster.

    Most cells of an even partition of [0, 1) hold no entry: all uniforms of such a cell have passed those before it.
    Only in the others it is searched.
    """
    n_cells = 2 ** (len(cumulative).bit_length() + 4)  # a power of two: multiplying by it rounds nothing
    in_cell = np.bincount((cumulative * n_cells).astype(np.int64), minlength=n_cells)
    of_cell = np.where(in_cell > 0, -1, np.cumsum(in_cell))
    flat = uniforms.ravel()
    passed: Ints = of_cell[(flat * n_cells).astype(np.int64)]
    unsure = np.flatnonzero(passed < 0)
    passed[unsure] = np.searchsorted(cumulative, flat[unsure], side="right")
    return passed.reshape(uniforms.shape)


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
    thresholds: Mapping[float, Floats],
    of_forget: Queries,
    of_unseen: Queries,
) -> dict[float, Floats]:
    """q -> ½(Adv_s + Adv_s'), signed, of one pair from its four acceptance probabilities; (n,) for n attacks.

    Margins of both models are over the same points, (2k, n) with a column for each attack; ``thresholds`` holds t_q of
    each, (n,), by q. ``in_forget`` tells who is in F of the first side, and the queries are those of the sets F and T
    in the order of the points.
    """
    side = frozen_bools(in_forget, "in_forget")
    if margins.shape != margins_swapped.shape or margins.ndim != 2 or margins.shape[:1] != side.shape:
        shapes = f"{margins.shape}, {margins_swapped.shape} and in_forget {side.shape}"
        raise ValueError(f"margins {shapes} must be of the same points")
    forget, unseen = (
        _change(margins[members], margins_swapped[members], thresholds, shown)
        for members, shown in ((side, of_forget), (~side, of_unseen))
    )
    return {queries: (forget[queries] - unseen[queries]) / 2 for queries in thresholds}


def _change(first: Floats, second: Floats, thresholds: Mapping[float, Floats], shown: Queries) -> dict[float, Floats]:
    """How much more readily the first model's set is accepted than the second's: the same points, the same draws."""
    twice = {queries: np.tile(threshold, 2) for queries, threshold in thresholds.items()}
    accepted = shown.acceptance(np.concatenate([first, second], axis=1), twice)
    return {queries: np.subtract(*np.split(both, 2)) for queries, both in accepted.items()}


def _pooled(
    members: Sequence[Floats], others: Sequence[Floats], n_queries: float, n_draws: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """All means seen on shadows, and their probabilities: positive for members, negative for others."""
    values, mass = [], []
    for sets, sign in ((members, 1.0), (others, -1.0)):
        for margins in sets:
            shown = draw_queries(uniform(len(margins)), [n_queries], n_draws, rng)
            ((_, means, likelihood),) = shown.means(frozen_floats(margins, "margins"), [n_queries])
            values.append(means)
            mass.append(sign * likelihood / len(sets))
    return np.concatenate(values), np.concatenate(mass)
