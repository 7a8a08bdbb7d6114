"""What stands in one column of a table, read from the result of its game.

The paper's estimator everywhere: for Q the plug-in 1 − max |advantage|, chosen and scored on the same pairs and so
biased low, which is what its numbers are. Our own unbiased Q stands in result.json.
"""

from __future__ import annotations

from collections.abc import Callable

from forgetgauge.metrics.estimates import over_pairs
from forgetgauge.results.record import GameResult
from forgetgauge.results.utility import unseen_accuracy
from forgetgauge.suites import confused
from forgetgauge.suites.record import Ours
from forgetgauge.suites.suites import Column, Layout

QUANTITIES: dict[Layout, str] = {
    "quality": "Q, the paper’s estimator",
    "advantage": "advantage, 1 − Q",
    "accuracy": "test accuracy of the original models",
    "confused accuracy": "test accuracy of the models of the IC test",
    "ic": "IC score",
    "mia": "MIA score, 1 − AUC",
}

IDEALS: dict[Layout, float] = {"quality": 1.0, "advantage": 0.0, "mia": 0.5}
"""What Retrain's interval should hold."""


def column_values(layout: Layout, column: Column, game: GameResult) -> dict[str, Ours]:
    """Row -> value."""
    return _READERS[layout](column, game)


def _quality(column: Column, game: GameResult) -> dict[str, Ours]:
    return {
        name: Ours(method.quality_plugin, method.interval)
        for name, method in game.methods.items()
        if method.quality_plugin is not None
    }


def _advantage(column: Column, game: GameResult) -> dict[str, Ours]:
    found = _quality(column, game).get(column.method)
    if found is None:
        return {}
    ends = None if found.interval is None else (1 - found.interval[1], 1 - found.interval[0])
    return {"advantage": Ours(1 - found.value, ends)}


def _accuracy(column: Column, game: GameResult) -> dict[str, Ours]:
    """Of None, whose models are the originals; T where the data have no official test set."""
    none = game.methods["none"]
    found = unseen_accuracy(none)
    if found is None:
        return {}
    by_pair = none.accuracy_by_pair.get(found[0])
    interval = over_pairs(by_pair, game.spec["level"], least=0, most=1).interval if by_pair else None
    return {"accuracy": Ours(found[1], interval)}


def _metric(name: str) -> Callable[[Column, GameResult], dict[str, Ours]]:
    def read(column: Column, game: GameResult) -> dict[str, Ours]:
        found = {method: result.metrics.get(name) for method, result in game.methods.items()}
        return {method: Ours(one.value, one.interval) for method, one in found.items() if one is not None}

    return read


def _confused_accuracy(column: Column, game: GameResult) -> dict[str, Ours]:
    found = game.methods["none"].metrics.get(confused.NAME)
    return {} if found is None else {"accuracy": Ours(found.value, found.interval)}


_READERS: dict[Layout, Callable[[Column, GameResult], dict[str, Ours]]] = {
    "quality": _quality,
    "advantage": _advantage,
    "accuracy": _accuracy,
    "confused accuracy": _confused_accuracy,
    "ic": _metric("ic"),
    "mia": _metric("mia"),
}
