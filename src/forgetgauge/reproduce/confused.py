"""Accuracy of the models of the IC test, which Table 5a prints; no score, so it is in no result but in the signals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from forgetgauge.metrics.estimates import over_pairs
from forgetgauge.plan.graph import Graph
from forgetgauge.results.record import GameResult, MetricResult, Result
from forgetgauge.results.utility import unseen_part
from forgetgauge.results.views import RunView
from forgetgauge.store.runfolder import RunFolder

NAME = "ic_accuracy"


def with_confused_accuracy(result: Result, graphs: Sequence[Graph], folder: RunFolder) -> Result:
    """With `ic_accuracy` among the metrics of None, whose models are the originals, where there was an IC test."""
    run = RunView(folder)
    games = [_with(game, graph, run) for game, graph in zip(result.games, graphs, strict=True)]
    return replace(result, games=games)


def _with(game: GameResult, graph: Graph, run: RunView) -> GameResult:
    by_pair: dict[int, list[float]] = {}
    for (method, pair, _), key in graph.confused.items():
        if method == "none" and run.has(key):
            accuracy = run.facts(key)["accuracy"]
            by_pair.setdefault(pair, []).append(accuracy[unseen_part(accuracy)])
    if not by_pair:
        return game
    means = [float(np.mean(values)) for values in by_pair.values()]
    found = over_pairs(means, graph.game.level, least=0, most=1)
    none = game.methods["none"]
    measured = replace(none, metrics={**none.metrics, NAME: MetricResult(found.value, found.interval, means)})
    return replace(game, methods={**game.methods, "none": measured})
