"""Q along the strength: four methods at several, on the models of Table 1 at η = 1, which are not trained again.

The strengths of the tables are chosen by accuracy on the shadow half; those of tables stored before a run could do that
by a search (`tuning.json`, one folder `tuning-*` a search). What another choice would have shown is the reader's
question, not a way to choose.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from forgetgauge.errors import UserError, unknown_name
from forgetgauge.records import Record
from forgetgauge.results.record import GameResult, MethodResult
from forgetgauge.suites.paper import PRINTED
from forgetgauge.suites.records import Invocation, Ours, read_strictly
from forgetgauge.suites.strengths import PUBLISHED

FILE = "strengths.json"
MAP = "quality-map.svg"
NAME = "strengths"


@dataclass(frozen=True)
class Measured(Record):
    """One method at one setting."""

    quality: Ours | None
    """As ours in the tables; None where a pair is missing: a Q over the models that did not
    diverge would be that of a selection."""
    accuracy: float | None
    pairs: int
    """Swap pairs that were completed."""


@dataclass(frozen=True)
class Frontier(Record):
    """Q and accuracy of one method along its strength."""

    strength: str
    """The name of the parameter."""
    chosen: float
    """What the tables have."""
    values: list[float]
    """Weakest first."""
    points: list[Measured]
    """One for each value."""


@dataclass(frozen=True)
class Published(Record):
    """One method at the setting of its authors."""

    value: float
    """Of the strength."""
    point: Measured


@dataclass(frozen=True)
class Frontiers(Record):
    """All of them, in one game."""

    scale: str
    tuned: bool
    """Whether the chosen values were chosen, on the shadow half; else they are defaults."""
    curves: dict[str, Frontier]
    none: Measured
    retrain: Measured
    accuracy_on: str
    """`test`, or `unseen` where the data have no official test set."""
    basis: str | None
    """What the intervals are over."""
    notes: list[str]
    invocations: list[Invocation]
    work_s: float
    environment: dict[str, str]
    digests: dict[str, str]
    failures: list[str] = field(default_factory=list)
    """Jobs that failed, in words."""
    published: dict[str, Published] = field(default_factory=dict)
    """Method -> its published setting on the same originals, which Table 1 has; of the strength alone differs."""
    fixed: dict[str, Measured] = field(default_factory=dict)
    """Method without a strength -> what Table 1 has of it on the same originals."""
    rule: int = 1
    """By which the chosen values were chosen (`plan.game.PRICE_RULE`); older records have no number."""
    schema: int = 1

    @property
    def usual(self) -> float | None:
        """The lower accuracy of None and Retrain, from which what a method costs is counted."""
        return min((end.accuracy for end in (self.none, self.retrain) if end.accuracy is not None), default=None)


def joined(found: Frontiers, method: str) -> Frontier:
    """A curve with the published setting in its place."""
    curve, also = found.curves[method], found.published.get(method)
    if also is None or also.value in curve.values:
        return curve
    falls = curve.values[0] > curve.values[-1]
    every = sorted(
        [*zip(curve.values, curve.points, strict=True), (also.value, also.point)], key=lambda at: at[0], reverse=falls
    )
    return replace(curve, values=[value for value, _ in every], points=[point for _, point in every])


def with_table(found: Frontiers, game: GameResult) -> Frontiers:
    """With what a table has beside the curves, where it was played on the same originals: None and Retrain are then
    the very same numbers."""
    if "none" not in game.methods:
        return found
    points = {name: measured_at(game, one, found.accuracy_on) for name, one in game.methods.items()}
    if (points["none"], points.get("retrain")) != (found.none, found.retrain):
        return found
    published = {}
    for method, curve in found.curves.items():
        own, theirs = (_params(game, name) for name in (method, PUBLISHED.get(method, "")))
        value = theirs.get(curve.strength)
        if value is not None and own | {curve.strength: value} == theirs:
            published[method] = Published(value, points[PUBLISHED[method]])
    fixed = {name: points[name] for name in WITHOUT_STRENGTH if name in points}
    return replace(found, published=published, fixed=fixed)


WITHOUT_STRENGTH = ("retrain-final", "ft-final")


def _params(game: GameResult, name: str) -> dict[str, Any]:
    params: dict[str, Any] = game.spec.get("methods", {}).get(name, {}).get("unlearner", {}).get("params", {})
    return params


def read_frontiers(path: Path) -> Frontiers:
    """A validated record, or one line on what is wrong with the file."""
    found = read_strictly(path, Frontiers)
    for method, curve in found.curves.items():
        if method not in PRINTED:
            raise UserError(f"{path}: curves: {unknown_name('method', method, PRINTED)}")
        if len(curve.points) != len(curve.values):
            raise UserError(f"{path}: curves.{method}: not one point for each value")
    return found


def measured_at(game: GameResult, found: MethodResult, looked_at: str) -> Measured:
    """A method at the setting of one row of a result; `looked_at` is the part of the data that accuracy is on."""
    if found.quality_plugin is None or found.n_pairs < game.methods["none"].n_pairs:
        return Measured(None, None, found.n_pairs)
    return Measured(Ours(found.quality_plugin, found.interval), found.utility.get(looked_at), found.n_pairs)
