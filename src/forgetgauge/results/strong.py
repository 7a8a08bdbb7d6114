"""The game against adversaries who see q points of a set at once: what they gain, from the margins of single points."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from forgetgauge.game.arrays import Floats
from forgetgauge.game.intervals import MIN_PAIRS, agree, pair_interval
from forgetgauge.game.strong import Queries, draw_queries, strong_advantage, strong_threshold
from forgetgauge.plan.draws import draw_streams
from forgetgauge.plan.graph import SIDES
from forgetgauge.results.assessed import mean
from forgetgauge.results.record import StrongResult
from forgetgauge.results.views import GameView


class StrongGames:
    """What the methods of one game show to adversaries with several queries."""

    def __init__(self, view: GameView) -> None:
        self.view, self.game = view, view.game
        self._thresholds: dict[tuple[str, int], float] = {}

    def of(self, method: str, adversary: str, pairs: Sequence[int]) -> list[StrongResult]:
        """One for each number of queries that is asked for; none where no threshold is known."""
        return [
            self._result(method, adversary, pairs, queries)
            for queries in self.game.queries
            if self._aggregates(method, adversary)
        ]

    def _result(self, method: str, adversary: str, pairs: Sequence[int], queries: int) -> StrongResult:
        by_pair = [self._by_pair[method, adversary, queries, pair] for pair in pairs]
        known = len(pairs) >= MIN_PAIRS and not agree(np.asarray(by_pair))  # no spread says nothing about new pairs
        interval = pair_interval(np.asarray(by_pair), self.game.level) if known else None
        return StrongResult(
            queries, mean(by_pair), (interval.low, interval.high) if interval is not None else None, by_pair
        )

    def _aggregates(self, method: str, adversary: str) -> bool:
        """Whether a threshold for q queries is known: calibrated on shadows, or 0 for likelihood ratios."""
        calibrated = "shadow margin" in self.view.run.read(self.view.graph.fits[method, adversary]).arrays
        return calibrated or not {"outsiders", "background"} & set(self.game.adversaries[adversary].needs)

    @cached_property
    def _by_pair(self) -> dict[tuple[str, str, float, int], float]:
        """(method, adversary, queries, pair) -> advantage. What the oracle shows of a pair is the same to all: it is
        drawn once (and not kept: 64 queries, 2000 times, are a megabyte for each set of each pair)."""
        attacks = [
            (method, name)
            for method, outcomes in self.view.outcomes.items()
            for name in self.view.adversaries
            if outcomes and self._aggregates(method, name)
        ]
        found = {}
        for pair in range(self.game.pairs):
            here = [(method, name) for method, name in attacks if pair in self.view.outcomes[method]]
            if here:
                for queries, advantages in self._advantages(here, pair).items():
                    for (method, name), advantage in zip(here, advantages, strict=True):
                        found[method, name, queries, pair] = float(advantage)
        return found

    def _advantages(self, attacks: Sequence[tuple[str, str]], pair: int) -> dict[float, Floats]:
        """Queries -> advantage of each attack on one pair, averaged over seeds."""
        seeds = [
            (method, name, margins) for method, name in attacks for margins in self.view.margins(method, name, pair)
        ]
        first, second = (np.column_stack([margins[side] for *_, margins in seeds]) for side in SIDES)
        thresholds: dict[float, Floats] = {
            queries: np.array([self._threshold(method, name, queries) for method, name, _ in seeds])
            for queries in self.game.queries
        }
        found = strong_advantage(first, second, self.view.pair(pair).in_forget, thresholds, *self._shown(pair))
        return {queries: each.reshape(len(attacks), -1).mean(axis=1) for queries, each in found.items()}

    def _shown(self, pair: int) -> tuple[Queries, Queries]:
        """What the oracle shows of F and of T."""
        in_forget, weight = self.view.points_of(pair)
        asked, n_draws = self.game.queries, self.game.oracle_draws
        return (
            draw_queries(weight[in_forget], asked, n_draws, self._oracle(pair, "forget")),
            draw_queries(weight[~in_forget], asked, n_draws, self._oracle(pair, "unseen")),
        )

    def _oracle(self, pair: int, name: str) -> np.random.Generator:
        """Named by the set it shows, so that O_s(0) and O_s'(1) draw the same points."""
        game = self.game
        which = {"data": game.data_digest, "seed": game.seed, "fraction": game.fraction, "alpha": game.alpha}
        return draw_streams(draw="oracle", **which, pair=pair, set=name).generator("queries")

    def _threshold(self, method: str, adversary: str, queries: int) -> float:
        """From the margins of the shadow models; attacks without them are likelihood ratios, whose threshold is 0."""
        key = self.view.graph.fits[method, adversary]
        arrays = self.view.run.read(key).arrays
        if queries == 1 or "shadow margin" not in arrays:
            return 0.0
        cached = self._thresholds.get((key, queries))
        if cached is None:
            margin, member, model = arrays["shadow margin"], arrays["shadow member"], arrays["shadow model"]
            sides = [[margin[(model == m) & (member == side)] for m in np.unique(model)] for side in (True, False)]
            members, others = ([values for values in side if len(values)] for side in sides)
            rng = draw_streams(draw="strong threshold", fit=key, queries=queries).generator("queries")
            cached = strong_threshold(members, others, queries, self.game.oracle_draws, rng)
            self._thresholds[key, queries] = cached
        return cached
