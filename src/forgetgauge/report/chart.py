"""Pictures of a result as numbers: what is drawn, on which axes, with which words. `drawing` draws them.

Each has a label with its unit on both axes, Q ends at 1 (nothing left to see), and shaded is what chance alone gives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from forgetgauge.report.picture import Scale, advantage_scale, quality_scale, value_scale
from forgetgauge.report.strengths import (
    WINDOW,
    AtStrength,
    accuracy_at,
    accuracy_scale,
    along,
    placed,
    within,
    without_variants,
)
from forgetgauge.results.one_model import OneModelResult
from forgetgauge.results.record import GameResult, Result, by_quality, role_of
from forgetgauge.results.utility import NAMES, unseen_accuracy
from forgetgauge.results.verdict import level_of
from forgetgauge.wording import chance, setting, shortened

QUALITY = "Unlearning Quality Q"
IDEAL = "1: nothing left to see"
_SHIFT_PX = 4


@dataclass(frozen=True)
class Mark:
    """A point, and the interval of its Q, along whichever axis Q is on; None where it has none."""

    x: float
    y: float
    interval: tuple[float, float] | None = None
    after_gap: bool = False
    """Whether no line joins it to the mark before it."""


@dataclass(frozen=True)
class Curve:
    """Marks that belong together, joined in their order but for gaps."""

    name: str
    marks: tuple[Mark, ...]
    role: str = "tested"
    """`retrain`, `none` or `tested`, by which its marks differ in form."""

    @property
    def has_gaps(self) -> bool:
        """Whether it has any."""
        return any(mark.after_gap for mark in self.marks)

    @property
    def lines(self) -> list[list[Mark]]:
        """Marks that are joined, two or more each."""
        found = list[list[Mark]]()
        for mark in self.marks:
            if not found or mark.after_gap:
                found.append([])
            found[-1].append(mark)
        return [line for line in found if len(line) > 1]


@dataclass(frozen=True)
class Chart:
    """One picture."""

    title: str
    x_label: str
    y_label: str
    x: Scale
    y: Scale
    curves: tuple[Curve, ...]
    is_forest: bool = False
    """Whether it has a row for each curve, the first on top, with what is measured across; a mark's y is its row."""
    band: tuple[float, float] | None = None
    """From where to where Q, or an advantage, may be chance."""
    limit: float | None = None
    """Across: left of it a model costs more than the price."""
    shift_px: int = 0
    """By so much each curve stands to the right of the one before it, lest intervals hide each other."""

    def shift(self, place: int) -> float:
        """Pixels by which a curve stands to the right of its values."""
        return self.shift_px * (place - (len(self.curves) - 1) / 2)


@dataclass(frozen=True)
class Row:
    """A row of a forest of Q."""

    name: str
    quality: float
    interval: tuple[float, float] | None
    role: str


def quality_chart(result: Result) -> Chart:
    """Q of each method with its interval; of a sweep over numbers, Q against them."""
    result = without_variants(result)
    level = level_of(result.games[0])
    values = [game.value for game in result.games]
    if result.sweep is not None and len(set(map(str, values))) > 1 and all(map(_is_number, values)):
        return _sweep_chart(result, level)
    rows = _forest_rows(result)
    floors = [game.noise_floor.q95 for game in result.games if game.noise_floor is not None]
    label = "method" if result.sweep is None else f"method, {result.sweep}"
    return _forest(f"Q of each method ({IDEAL})", rows, f"{QUALITY}, {level}interval", label, max(floors, default=None))


def comparison_chart(results: Mapping[str, Result]) -> Chart:
    """Q of each method of each result with its interval."""
    rows = [row for name, result in results.items() for row in _forest_rows(result, f"{shortened(name, 20)}: ")]
    levels = {level_of(game) for result in results.values() for game in result.games}
    level = levels.pop() if len(levels) == 1 else ""
    return _forest(f"Q of each method, by result ({IDEAL})", rows, f"{QUALITY}, {level}interval", "result: method")


def _forest_rows(result: Result, before: str = "") -> list[Row]:
    """A row for each method that has a Q, highest first, game by game."""
    return [
        Row(
            f"{before}{name}" + ("" if result.sweep is None else f", {setting(game.value)}"),
            method.quality,
            method.interval,
            role_of(game, name),
        )
        for game in result.games
        for name, method in by_quality(game.methods)
        if method.quality is not None
    ]


def _forest(title: str, rows: Sequence[Row], x_label: str, y_label: str, floor: float | None = None) -> Chart:
    """Q of each row with its interval; what lies less than the floor below 1 may be chance."""
    least = [end for row in rows for end in (row.quality, *(row.interval or ()))]
    scale = quality_scale([*least, *([] if floor is None else [1 - floor])])
    return Chart(
        title,
        x_label,
        y_label,
        scale,
        Scale(0, max(len(rows) - 1, 0)),
        tuple(Curve(row.name, (Mark(row.quality, i, row.interval),), row.role) for i, row in enumerate(rows)),
        is_forest=True,
        band=None if floor is None else (1 - floor, 1.0),
    )


def _sweep_chart(result: Result, level: str) -> Chart:
    names = dict.fromkeys(name for game in result.games for name, _ in by_quality(game.methods))
    games = sorted(result.games, key=lambda game: float(game.value))
    curves = [
        Curve(
            name,
            _swept_marks(games, name),
            role_of(games[0], name),
        )
        for name in names
    ]
    up = quality_scale(_ends(curves))
    across = value_scale([float(game.value) for game in games])
    shown = f"{result.sweep}, logarithmic" if across.logarithmic else str(result.sweep)
    return Chart(
        f"Q against {result.sweep} ({IDEAL})",
        shown,
        f"{QUALITY}, {level}interval",
        across,
        up,
        tuple(curve for curve in curves if curve.marks),
        shift_px=_SHIFT_PX,
    )


def _swept_marks(games: Sequence[GameResult], name: str) -> tuple[Mark, ...]:
    """Of a method at each value where it has a Q; a gap where it has none between two."""
    marks, gap = list[Mark](), False
    for game in games:
        found = game.methods.get(name)
        if found is None or found.quality is None:
            gap = bool(marks)
            continue
        marks.append(Mark(float(game.value), found.quality, found.interval, gap))
        gap = False
    return tuple(marks)


def frontier_chart(result: Result) -> Chart:
    """Q against the accuracy on points that no model saw: each method along its strength, or as the one point it is."""
    game = result.games[0]
    curves = along(game)
    alone = {name: [AtStrength("", 0.0, method)] for name, method in without_variants(result).games[0].methods.items()}
    known = {
        name: placed(curve)
        for name, curve in ({name: one for name, one in alone.items() if name not in curves} | curves).items()
    }
    window = _within(game, known)
    drawn = tuple(
        Curve(name, tuple(_mark(at) for at in within(curve, window)), role_of(game, name))
        for name, curve in known.items()
    )
    part = next((found[0] for method in game.methods.values() if (found := unseen_accuracy(method))), "unseen")
    yardsticks = _yardsticks(game, known)
    price = next((method.tuning.price for method in game.methods.values() if method.tuning is not None), None)
    limit = None if price is None or not yardsticks else min(yardsticks) - price
    across = accuracy_scale([mark.x for curve in drawn for mark in curve.marks] or [0.0, 1.0])
    up = quality_scale(_ends(drawn))
    unit = "share of points" if game.utility_name == "accuracy" else "no unit"
    return Chart(
        f"Q against {game.utility_name} ({IDEAL})",
        f"{game.utility_name} on the {NAMES[part]} ({unit})",
        f"{QUALITY}, {level_of(game)}interval",
        across,
        up,
        tuple(curve for curve in drawn if curve.marks),
        limit=limit if limit is not None and across.low <= limit <= across.high else None,
    )


def _within(game: GameResult, known: dict[str, list[AtStrength]]) -> float:
    """The least accuracy that is drawn: as in the report, models far below Retrain and None stand in tables alone."""
    ends = _yardsticks(game, known)
    return min(ends) - WINDOW if ends else 0.0


def _yardsticks(game: GameResult, known: dict[str, list[AtStrength]]) -> list[float]:
    """The accuracies of Retrain and None."""
    return [accuracy_at(at) for name, curve in known.items() if role_of(game, name) != "tested" for at in curve]


def evidence_chart(found: OneModelResult) -> Chart:
    """The advantage of each test of each model, with its p in the row's name; evidence, not Q."""
    several = len(found.models) > 1
    rows = [
        (f"{f'{name}: ' if several else ''}{key} (p = {chance(test.log10_p)})", test.advantage)
        for name, model in found.models.items()
        for key, test in sorted(model.tests.items(), key=lambda one: one[1].log10_p)
    ]
    bare = advantage_scale(advantage for _, advantage in rows)
    step = next(step for step in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0) if bare.high - bare.low <= 8 * step)
    ticks = tuple(round(i * step, 2) for i in range(int(bare.low / step) - 1, int(bare.high / step) + 2))
    scale = Scale(ticks[0], ticks[-1], ticks)
    return Chart(
        "Advantage of each adversary",
        "advantage: share of F called forgotten minus that of T (0: chance)",
        "adversary (its own p)",
        scale,
        Scale(0, max(len(rows) - 1, 0)),
        tuple(Curve(name, (Mark(advantage, i),)) for i, (name, advantage) in enumerate(rows)),
        is_forest=True,
    )


def _mark(at: AtStrength) -> Mark:
    return Mark(accuracy_at(at), at.method.quality or 0.0, at.method.interval, at.after_gap)


def _ends(curves: Sequence[Curve]) -> list[float]:
    return [end for curve in curves for mark in curve.marks for end in (mark.y, *(mark.interval or ()))]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
