"""The points that models show most often. They are private data: no result carries them, and whoever wants to see them
asks the run folder for them.

Every point of F ∪ T is shown to both models of a pair: one was asked to forget it, the other never saw it. Where the
adversary calls it forgotten of the first alone, the point was seen; of the second alone, that was a wrong call. What
both answer alike says nothing about training on the point. Of a method whose forgotten points are called forgotten
less often than unseen ones, it is the other way round.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from forgetgauge.game.arrays import Floats, Ints
from forgetgauge.results.record import MethodResult
from forgetgauge.results.views import GameView

MOST_SHOWN = 12


@dataclass(frozen=True)
class VisiblePoint:
    """One point that an adversary sees in many models."""

    id: int
    """Its place in the data set, from 0."""
    n_seen: int
    """Pairs of models of which the adversary told the one that was to forget it."""
    n_wrong: int
    """Pairs of which it took the other one for that."""
    n_asked: int
    """Pairs of models that it was asked about."""
    margin_forgotten: float
    """Mean margin of the adversary in models that were to forget it; larger is surer of “forgotten”."""
    margin_unseen: float
    """In models that never saw it."""


@dataclass(frozen=True)
class VisiblePoints:
    """What one method shows of single points to its strongest adversary."""

    method: str
    adversary: str
    turned: bool
    """Whether forgotten points show by being called forgotten less often."""
    points: list[VisiblePoint]
    """The most visible first: by how many more pairs they were seen in than wrongly, then by margins."""
    n_points: int
    """Points that were asked about."""
    least: int
    """Seen minus wrong of the last one shown."""
    n_such: int
    """Points that have at least as much."""
    by_chance: float
    """How many would, if a coin decided each time which of the two models is told."""


def visible_points(view: GameView, name: str, method: MethodResult) -> VisiblePoints | None:
    """Of a method that has a Q; None where no point was seen more often than wrongly."""
    if method.adversary is None or method.adversary not in view.adversaries:
        return None
    turned = method.by_adversary[method.adversary].advantage < 0
    counts = _Counts(view, name, method.adversary, turned)
    net = counts.seen - counts.wrong
    apart = np.where(counts.asked > 0, counts.of_forgotten - counts.of_unseen, 0.0) * (-1 if turned else 1)
    order = [int(i) for i in np.lexsort((np.arange(len(net)), -apart, -net)) if net[i] > 0][:MOST_SHOWN]
    if not order:
        return None
    least = int(net[order[-1]])
    return VisiblePoints(
        name, method.adversary, turned, [counts.point(i) for i in order], int((counts.asked > 0).sum()), least,
        int((net >= least).sum()), float(chance_of(counts.seen + counts.wrong, least).sum()),
    )  # fmt: skip


def chance_of(n_told: Ints, least: int) -> Floats:
    """Of points that were told apart so many times: the chance that a coin is right `least` times more than wrong."""
    n_right = -(-(n_told + least) // 2)
    return np.where(n_right <= n_told, special.bdtrc(np.maximum(n_right - 1, 0), np.maximum(n_told, 1), 0.5), 0.0)


class _Counts:
    """What an adversary said of every point of D, counted over all pairs of models."""

    def __init__(self, view: GameView, method: str, adversary: str, turned: bool) -> None:
        n = len(view.weight)
        self.ids = view.run.read(view.graph.initialise).arrays["target"]
        self.seen, self.wrong, self.asked = np.zeros((3, n), dtype=np.int64)
        self.of_forgotten, self.of_unseen = np.zeros((2, n))
        which = view.adversaries.index(adversary)
        for pair in view.outcomes[method]:
            decisions = view.decisions(method, pair)
            assert decisions is not None
            at, (first, _) = view.pair(pair).points, view.points_of(pair)
            margins = np.stack(view.margins(method, adversary, pair), axis=1)  # (sides, seeds, points)
            said = decisions[..., which] != turned
            for told, margin in zip(np.swapaxes(said, 0, 1), np.swapaxes(margins, 0, 1), strict=True):
                of_forgotten, of_unseen = np.where(first, told, told[::-1])
                self.asked[at] += 1
                self.seen[at] += of_forgotten & ~of_unseen
                self.wrong[at] += of_unseen & ~of_forgotten
                forgotten, unseen = np.where(first, margin, margin[::-1])
                self.of_forgotten[at] += forgotten
                self.of_unseen[at] += unseen
        self.of_forgotten /= np.maximum(self.asked, 1)
        self.of_unseen /= np.maximum(self.asked, 1)

    def point(self, place: int) -> VisiblePoint:
        n_seen, n_wrong, n_asked = (int(one[place]) for one in (self.seen, self.wrong, self.asked))
        margins = float(self.of_forgotten[place]), float(self.of_unseen[place])
        return VisiblePoint(int(self.ids[place]), n_seen, n_wrong, n_asked, *margins)
