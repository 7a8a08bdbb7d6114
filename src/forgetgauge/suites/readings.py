"""Our numbers of one column of a table, by row: as we estimate them, and as we read the paper to compute its own.

They differ for Q and the advantage. The paper takes |Adv_s + Adv_s'|/2 of a swap pair, the largest of its adversaries,
and then the mean of several; we average the signed advantages of all pairs first and take |·| and the largest last, as
the paper's Definition 3.1 does. The mean of absolute values counts chance as advantage, so that the paper's form of Q
lies below ours: most of all for Retrain, whose advantage is chance alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from forgetgauge.game.arrays import Floats
from forgetgauge.game.bounds import tight_bound
from forgetgauge.game.quality import quality_by_pair
from forgetgauge.metrics.scores import over_pairs
from forgetgauge.results.record import GameResult, MethodResult
from forgetgauge.results.utility import unseen_accuracy
from forgetgauge.suites.paper import Spread
from forgetgauge.suites.records import AsPaper, Ours
from forgetgauge.suites.tables import Layout, TableColumn

QUANTITIES: dict[Layout, str] = {
    "quality": "Q",
    "advantage": "advantage, 1 − Q",
    "certified": "advantage, 1 − Q, and what the certificate says",
    "accuracy": "test accuracy of the original models",
    "confused accuracy": "test accuracy of the models of the IC test",
    "ic": "IC score",
    "mia": "MIA score, 1 − AUC",
}

IDEALS: dict[Layout, float] = {"quality": 1.0, "advantage": 0.0, "certified": 0.0, "mia": 0.5}
"""What Retrain's interval should hold."""


@dataclass(frozen=True)
class Reading:
    """One number, twice."""

    ours: Ours
    as_paper: AsPaper | None
    """None where the result does not have advantages by pair."""


Readings = dict[str, Reading]


def column_readings(layout: Layout, column: TableColumn, game: GameResult, spread: Spread | None) -> Readings:
    """Of one column, by row; `spread` is what the paper's ± is in this table."""
    return _READERS[layout](column, game, spread)


def signed_by_pair(method: MethodResult) -> Floats:
    """(pairs, adversaries) ½(Adv_s + Adv_s') of each swap pair; of no pairs where the result does not have them."""
    return np.array([found.by_pair for found in method.by_adversary.values()]).T


def _quality(column: TableColumn, game: GameResult, spread: Spread | None) -> Readings:
    found = {}
    for name, method in game.methods.items():
        if method.quality_plugin is not None:
            by_pair = quality_by_pair(signed_by_pair(method)).tolist()
            found[name] = Reading(Ours(method.quality_plugin, method.interval), _mean(by_pair, spread))
    return found


def _advantage(column: TableColumn, game: GameResult, spread: Spread | None) -> Readings:
    found = _quality(column, game, spread).get(column.method)
    if found is None:
        return {}
    ours, theirs = found.ours, found.as_paper
    ends = None if ours.interval is None else (1 - ours.interval[1], 1 - ours.interval[0])
    as_paper = None if theirs is None else AsPaper(1 - theirs.value, theirs.spread)
    return {"advantage": Reading(Ours(1 - ours.value, ends), as_paper)}


def _certified(column: TableColumn, game: GameResult, spread: Spread | None) -> Readings:
    """Of one method: its advantage, the bound on it that its ε claims, the share of budgets exceeded, its accuracy.

    The table is ours, so that nothing is computed as the paper does.
    """
    method = game.methods[column.method]
    found = {row: reading.ours for row, reading in _advantage(column, game, spread).items()}
    if "claimed_epsilon" in method.facts:
        claimed = method.facts["claimed_epsilon"], method.facts["claimed_delta"]
        found |= {BOUND: Ours(tight_bound(*claimed)), EXCEEDED: Ours(method.facts["retrainings"])}
    accuracy = unseen_accuracy(method)
    found |= {} if accuracy is None else {"accuracy": Ours(accuracy[1])}
    return {row: Reading(ours, None) for row, ours in found.items()}


BOUND, EXCEEDED = "Bound on it by ε", "Share of budgets exceeded, so retrained"


def _accuracy(column: TableColumn, game: GameResult, spread: Spread | None) -> Readings:
    """Of None, whose models are the originals; T where the data have no official test set."""
    none = game.methods["none"]
    found = unseen_accuracy(none)
    if found is None:
        return {}
    part, value = found
    by_pair = none.utility_by_pair.get(part, [])
    interval = over_pairs(by_pair, game.spec["level"], least=0, most=1).interval if by_pair else None
    return {"accuracy": Reading(Ours(value, interval), _mean(by_pair, spread) or AsPaper(value, None))}


def _metric(name: str) -> Callable[[TableColumn, GameResult, Spread | None], Readings]:
    def read(column: TableColumn, game: GameResult, spread: Spread | None) -> Readings:
        found = {method: result.metrics.get(name) for method, result in game.methods.items()}
        return {
            method: Reading(Ours(one.value, one.interval), _mean(one.by_pair, spread))
            for method, one in found.items()
            if one is not None
        }

    return read


def _confused_accuracy(column: TableColumn, game: GameResult, spread: Spread | None) -> Readings:
    """Of None; on points of D that its models never saw, where the data have no official test set."""
    metric = next((name for name in ("ic_test_accuracy", "ic_accuracy") if name in game.methods["none"].metrics), "")
    found = _metric(metric)(column, game, spread).get("none")
    return {} if found is None else {"accuracy": found}


def _mean(by_pair: Sequence[float], spread: Spread | None) -> AsPaper | None:
    """The mean of single pairs, with the ± that the paper prints."""
    if not by_pair:
        return None
    value, n = float(np.mean(by_pair)), len(by_pair)
    if spread is None or n < 2:
        return AsPaper(value, None)
    deviation = float(np.std(by_pair, ddof=1))
    return AsPaper(value, deviation if spread == "standard deviation" else deviation / math.sqrt(n))


_READERS: dict[Layout, Callable[[TableColumn, GameResult, Spread | None], Readings]] = {
    "quality": _quality,
    "advantage": _advantage,
    "certified": _certified,
    "accuracy": _accuracy,
    "confused accuracy": _confused_accuracy,
    "ic": _metric("ic"),
    "mia": _metric("mia"),
}
