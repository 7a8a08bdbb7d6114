"""Rival metrics of a game, from the artefacts that Q comes from and from those of the IC test.

Every metric is averaged over seeds (and, unless it is of one split by definition, over both sides) inside a pair, and
its interval is over pairs. A method is measured on the pairs it has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from forgetgauge.game.arrays import Floats
from forgetgauge.game.diagnostics import auc
from forgetgauge.game.quality import first_largest
from forgetgauge.metrics.language import ks_p_value, privleak
from forgetgauge.metrics.scores import (
    best_attack,
    ic_score,
    mean_kl,
    mia_score,
    offset_mia_accuracy,
    over_pairs,
    swap_mia_score,
)
from forgetgauge.plan.graph import SIDES, Cell
from forgetgauge.results.assessed import mean, mean_of_each
from forgetgauge.results.record import MetricResult
from forgetgauge.results.views import GameView
from forgetgauge.tasks.causal_lm import CAUSAL_LM
from forgetgauge.tasks.classification import predicted

RANGES: dict[str, tuple[float, float]] = {
    "offset_mia": (-1, 1),
    "kl": (0, np.inf),
    "gap": (-1, 1),
    "privleak": (-1, np.inf),
}
"""Where a score must lie, by the beginning of its name; the others are shares."""


IC_ACCURACIES = {"ic_accuracy": "unseen", "ic_test_accuracy": "test"}
"""Metric -> the points on which it is the accuracy of the models of the IC test."""


QUOTED = ("loss", "min-k 40", "extraction-strength", "verbatim-match")
"""The signals of a language model that its metrics are computed from; MUSE takes the 40 % lowest for PrivLeak."""


class Rivals:
    """The rival metrics of one game's methods."""

    def __init__(self, view: GameView) -> None:
        self.view, self.run, self.graph, self.game = view, view.run, view.graph, view.game
        self.adversaries = view.adversaries

    def of(self, method: str, pairs: Sequence[int], pairs_of_retrain: Sequence[int]) -> dict[str, MetricResult]:
        """By name; `pairs` are those whose decisions there are, of this method and of Retrain."""
        found: dict[str, MetricResult] = {}
        if "ic" in self.game.metrics:
            found |= self._plain(self._ic(method))
        if "mia" in self.game.metrics and pairs:
            found |= self._mia(method, pairs)
            both = [pair for pair in pairs if pair in pairs_of_retrain]
            found |= self._offset(method, both) if both else {}
        if "distances" in self.game.metrics:
            found |= self._plain(self._by_pair(method, self._distance))
        if "language" in self.game.metrics:
            found |= self._plain(self._by_pair(method, self._quoted))
        return found

    @cached_property
    def retrain(self) -> str | None:
        """The id of Retrain."""
        return next((name for name, how in self.game.methods.items() if how.unlearner.name == "retrain"), None)

    # -- interclass confusion ------------------------------------------------------------------------------------

    def _ic(self, method: str) -> dict[str, list[float]]:
        """By pair: the score; the share of what was taught wrongly that is now called what it is; and, since a ruined
        model may score well, the accuracy on points of D that the model never saw, and on the official test set where
        there is one."""
        first, second = self.game.metrics["ic"]
        found: dict[str, list[float]] = {"ic": [], "ic_right": []}
        for pair in range(self.game.pairs):
            keys = [self.graph.confused[method, pair, seed] for seed in range(self.game.seeds)]
            if all(self.run.has(key) for key in keys):
                said = [self.run.look_up(key).arrays for key in keys]
                answers = [(predicted(one["outputs"]), one["labels"]) for one in said]
                found["ic"].append(mean([ic_score(*answer, (first, second)) for answer in answers]))
                found["ic_right"].append(mean([float(np.mean(said == true)) for said, true in answers]))
                utility = [self.run.facts(key)["utility"] for key in keys]
                for name, part in IC_ACCURACIES.items():
                    if all(part in one for one in utility):
                        found.setdefault(name, []).append(mean([one[part] for one in utility]))
        return found

    # -- membership inference ------------------------------------------------------------------------------------

    def _mia(self, method: str, pairs: Sequence[int]) -> dict[str, MetricResult]:
        """Of the paper's one split, which is the first side of each pair, and of both sides."""
        single = self._table(pairs, partial(self._mia_of_one_split, method))
        swapped = self._table(pairs, partial(self._mia_over_the_swap, method))
        best = best_attack(single)
        moved = 2 * np.abs(single - swapped)[:, best]  # the swap's score is the mean of s and s'
        return {
            "mia": self._attacked("mia", single, best),
            "mia_split": self._result("mia_split", moved.tolist(), self.adversaries[best]),
            "mia_swap": self._attacked("mia_swap", swapped, best_attack(swapped)),
        }

    def _mia_of_one_split(self, method: str, pair: int, name: str, seed: int) -> float:
        margin = self._decided(method, pair, 0, seed, name)["margin"]
        return mia_score(margin, *self.view.points_of(pair))

    def _mia_over_the_swap(self, method: str, pair: int, name: str, seed: int) -> float:
        first, second = (self._decided(method, pair, side, seed, name)["margin"] for side in SIDES)
        return swap_mia_score(first, second, *self.view.points_of(pair))

    def _offset(self, method: str, pairs: Sequence[int]) -> dict[str, MetricResult]:
        """Of the attack with the largest offset, on the first side of each pair."""
        if self.retrain is None:
            return {}
        retrain = self.retrain

        def offset(pair: int, name: str, seed: int) -> float:
            said, usual = (self._decided(who, pair, 0, seed, name)["says_forget"] for who in (method, retrain))
            return offset_mia_accuracy(said, usual, *self.view.points_of(pair))

        table = self._table(pairs, offset)
        return {"offset_mia": self._attacked("offset_mia", table, first_largest(table.mean(axis=0)))}

    def _table(self, pairs: Sequence[int], score: Callable[[int, str, int], float]) -> Floats:
        """(n_pairs, n_adversaries), averaged over seeds."""
        seeds = range(self.game.seeds)
        return np.array(
            [[mean([score(pair, name, seed) for seed in seeds]) for name in self.adversaries] for pair in pairs]
        )

    def _attacked(self, metric: str, table: Floats, best: int) -> MetricResult:
        means = dict(zip(self.adversaries, map(float, table.mean(axis=0)), strict=True))
        return self._result(metric, table[:, best].tolist(), self.adversaries[best], means)

    def _decided(self, method: str, pair: int, side: int, seed: int, name: str) -> Mapping[str, npt.NDArray[Any]]:
        return self.run.read(self.graph.cells[Cell(method, pair, side, seed)].decide[name]).arrays

    # -- against Retrain -----------------------------------------------------------------------------------------

    def _by_pair(
        self, method: str, compare: Callable[[int, int, str, str], dict[str, float]]
    ) -> dict[str, list[float]]:
        """Metric -> by pair, of models of the method beside Retrain's."""
        if self.retrain is None:
            return {}
        found: dict[str, list[float]] = {}
        for pair in range(self.game.pairs):
            couples = [self._couple(method, pair, side, seed) for side, seed in product(SIDES, range(self.game.seeds))]
            if all(self.run.has(key) for _, *keys in couples for key in keys):
                each = [compare(pair, *couple) for couple in couples]
                for name, value in mean_of_each(each).items():
                    found.setdefault(name, []).append(value)
        return found

    def _couple(self, method: str, pair: int, side: int, seed: int) -> tuple[int, str, str]:
        """(side, key of the method's signals, of Retrain's). Retrain itself is set against the model retrained for the
        other side, which knows the same points: how far apart two of them are is the floor of all distances."""
        assert self.retrain is not None
        other = 1 - side if method == self.retrain else side
        cells = Cell(method, pair, side, seed), Cell(self.retrain, pair, other, seed)
        own, retrained = (self.graph.cells[cell].signals for cell in cells)
        return side, own, retrained

    def _distance(self, pair: int, side: int, own: str, retrained: str) -> dict[str, float]:
        in_forget, weight = self.view.points_of(pair)
        forget = in_forget if side == 0 else ~in_forget
        said, usual = (self.run.look_up(key).arrays["outputs"] for key in (own, retrained))
        parts = {"kl_forget": forget, "kl_unseen": ~forget}
        distances = {name: mean_kl(usual[part], said[part], weight[part]) for name, part in parts.items()}
        utility, expected = (self.run.facts(key)["utility"] for key in (own, retrained))
        return distances | {f"gap_{name}": utility[name] - expected[name] for name in utility if name in expected}

    def _quoted(self, pair: int, side: int, own: str, retrained: str) -> dict[str, float]:
        """What is quoted of language models. PrivLeak is left out where Min-K % is never wrong about Retrain."""
        in_forget, weight = self.view.points_of(pair)
        forget = in_forget if side == 0 else ~in_forget
        said, usual = (self._signals(key) for key in (own, retrained))
        aucs = (auc(one["min-k 40"], forget, weight) for one in (said, usual))
        leak = privleak(*aucs)
        return {
            "loss_ks": ks_p_value(said["loss"][forget], usual["loss"][forget]),
            **({} if np.isnan(leak) else {"privleak": leak}),
            "extraction": float(np.average(said["extraction-strength"][forget], weights=weight[forget])),
            "verbatim": float(np.average(said["verbatim-match"][forget], weights=weight[forget])),
        }

    def _signals(self, key: str) -> dict[str, Floats]:
        arrays = self.run.look_up(key).arrays
        return {name: CAUSAL_LM.signals[name](arrays["outputs"], arrays["labels"]) for name in QUOTED}

    # -- results -------------------------------------------------------------------------------------------------

    def _plain(self, by_pair: Mapping[str, list[float]]) -> dict[str, MetricResult]:
        return {name: self._result(name, values) for name, values in by_pair.items() if values}

    def _result(
        self, metric: str, by_pair: list[float], adversary: str | None = None, means: dict[str, float] | None = None
    ) -> MetricResult:
        least, most = next((ends for start, ends in RANGES.items() if metric.startswith(start)), (0, 1))
        found = over_pairs(by_pair, self.game.level, least=least, most=most)
        return MetricResult(found.value, found.interval, by_pair, adversary, means or {})
