"""Where it leaks, as the report shows it: a small picture of each method's ROC, its Q by class, and its Q against the
number of queries of an adversary.

All pictures of a kind share their axes, so that methods compare. Positions are thousandths of the way across and up:
the picture is stretched to the room there is, its letters are not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from forgetgauge.report.picture import Estimate, Overview, Scale, magnitude, overview, quality_scale
from forgetgauge.results.record import AdversaryResult, GameResult, MethodResult, by_quality, role_of
from forgetgauge.results.roc_and_parts import PartResult, RocResult
from forgetgauge.wording import bracket, counted, listed, percent, plain

MOST_MARKS = 24
"""Parts that one picture shows: of more, those of lowest Q; the table has them all."""
RATES = (1.0, 0.1, 0.01, 0.001, 0.0001, 0.00001)


@dataclass(frozen=True)
class RocPanel:
    """The curve of one method's strongest adversary."""

    method: str
    adversary: str
    line: str
    """An SVG path."""
    band: str
    """Another one, around it; empty where there is none."""
    behind: list[tuple[str, str]]
    """(role, path) of Retrain and None, to compare with."""
    found: list[tuple[str, str]]
    """(`at 1 % FPR`, `6.6 %`): true positives at few false ones."""


@dataclass(frozen=True)
class RocView:
    """The curves of all methods, on the same axes."""

    ticks: list[tuple[float, str]]
    """(thousandths of the way, rate in words), of both axes alike."""
    panels: list[RocPanel]
    n_unseen: int
    has_bands: bool


@dataclass(frozen=True)
class PartMark:
    """Q of one part: thousandths of the way across, and down from Q = 1."""

    part: str
    x: float
    y: float
    top: float
    bottom: float
    is_settled: bool
    """Whether its interval ends below 1."""
    label: str
    """Its numbers in words."""


@dataclass(frozen=True)
class PartPanel:
    """Q by part of one method."""

    method: str
    adversary: str
    overall: float
    """Where the method's own 1 − |advantage| of that adversary stands."""
    marks: list[PartMark]
    note: str


@dataclass(frozen=True)
class PartView:
    """Q by the values of one column, of all methods."""

    column: str
    ticks: list[tuple[float, str]]
    """(thousandths down from Q = 1, Q)."""
    low: float
    """Where the axis starts."""
    panels: list[PartPanel]
    parts: list[str]
    rows: list[tuple[str, dict[str, PartResult]]]
    """(method, part -> result): the rows of the table."""
    n_looked: int
    n_left: int
    """Parts of each method that the pictures leave to the table."""

    def quality(self, found: PartResult) -> float:
        """1 − |advantage|."""
        return 1 - abs(found.advantage)

    def interval(self, found: PartResult) -> tuple[float, float]:
        """The interval of Q in one part."""
        return magnitude(found.interval)


# -- ROC ---------------------------------------------------------------------------------------------------------------


def roc_view(game: GameResult) -> RocView | None:
    """None where no method has a curve."""
    curves = {name: found for name, method in by_quality(game.methods) if (found := _roc(method))}
    if not curves:
        return None
    floor = _floor(curves.values())
    scale = Scale(floor, 1.0, logarithmic=True)
    drawn = {name: _path(list(zip(one.fpr, one.tpr, strict=True)), scale) for name, one in curves.items()}
    roles = {role_of(game, name): path for name, path in drawn.items() if role_of(game, name) != "tested"}
    panels = [
        RocPanel(
            name,
            str(game.methods[name].adversary),
            drawn[name],
            _band(one, scale),
            [(role, path) for role, path in roles.items() if role != role_of(game, name)],
            _at_few(game.methods[name]),
        )
        for name, one in curves.items()
    ]
    ticks = [(10 * scale.percent(rate), _rate(rate)) for rate in RATES if rate >= floor * (1 - 1e-9)]
    has_bands = any(one.band is not None for one in curves.values())
    return RocView(ticks, panels, max(one.n_unseen for one in curves.values()), has_bands)


def _roc(method: MethodResult) -> RocResult | None:
    found = method.by_adversary.get(method.adversary or "")
    return None if found is None or found.roc is None or not any(found.roc.fpr) else found.roc


def _floor(curves: Iterable[RocResult]) -> float:
    """The power of ten below which no curve has a false positive rate."""
    least = min(rate for one in curves for rate in one.fpr if rate > 0)
    return float(10.0 ** max(-5, min(-1, math.floor(math.log10(least) + 1e-9))))


def _rate(rate: float) -> str:
    return f"{100 * rate:g} %"


def _place(fpr: float, tpr: float, scale: Scale) -> str:
    across, up = (10 * scale.percent(max(rate, scale.low)) for rate in (fpr, tpr))
    return f"{across:.0f} {1000 - up:.0f}"


def _path(points: Sequence[tuple[float, float]], scale: Scale) -> str:
    return "M" + "L".join(_place(*point, scale) for point in points if point[0] > 0)


def _band(one: RocResult, scale: Scale) -> str:
    if one.band is None:
        return ""
    known = [(fpr, *ends) for fpr, ends in zip(one.fpr, one.band, strict=True) if fpr > 0]
    lower, upper = [(fpr, low) for fpr, low, _ in known], [(fpr, high) for fpr, _, high in reversed(known)]
    return f"{_path([*lower, *upper], scale)}Z"


def _at_few(method: MethodResult) -> list[tuple[str, str]]:
    found = method.by_adversary[str(method.adversary)].diagnostics
    if found is None:
        return []
    each = (("1 %", found.tpr_at_fpr_1_percent), ("0.1 %", found.tpr_at_fpr_1_permille))
    return [(f"at {limit} FPR", percent(rate)) for limit, rate in each]


# -- parts -------------------------------------------------------------------------------------------------------------


def part_views(game: GameResult) -> list[PartView]:
    """Of each column that the points were told apart by; those with one part alone say nothing."""
    columns = dict.fromkeys(column for method in game.methods.values() for column in method.parts)
    return [view for column in columns if (view := _part_view(game, column)) is not None]


def _part_view(game: GameResult, column: str) -> PartView | None:
    rows = [
        (name, {part.part: part for part in method.parts[column]})
        for name, method in by_quality(game.methods)
        if method.parts.get(column)
    ]
    parts = list(dict.fromkeys(part for _, found in rows for part in found))
    if len(parts) < 2:
        return None
    scale = quality_scale(end for _, found in rows for one in found.values() for end in magnitude(one.interval))
    n_looked = max(sum(map(len, method.parts.values())) for method in game.methods.values())
    return PartView(
        column,
        [(1000 - 10 * scale.percent(tick), "1" if tick == 1 else f"{tick:.1f}") for tick in scale.ticks],
        scale.low,
        [_part_panel(game.methods[name], name, found, scale) for name, found in rows],
        parts,
        rows,
        n_looked,
        max(0, len(parts) - MOST_MARKS),
    )


def _part_panel(method: MethodResult, name: str, found: Mapping[str, PartResult], scale: Scale) -> PartPanel:
    lowest = sorted(found.values(), key=lambda one: -abs(one.advantage))[:MOST_MARKS]
    kept = [one for one in found.values() if one in lowest]
    marks = [
        _part_mark(one, (i + 0.5) / len(kept), scale)
        for i, one in enumerate(kept if len(found) == len(kept) else lowest)
    ]
    adversary = str(method.adversary)
    overall = 1 - abs(method.by_adversary[adversary].advantage)
    return PartPanel(name, adversary, _down(overall, scale), marks, _note(found))


def _part_mark(one: PartResult, across: float, scale: Scale) -> PartMark:
    low, high = magnitude(one.interval)
    quality = 1 - abs(one.advantage)
    label = f"{one.part}: {plain(quality)} {bracket((low, high))}, {counted(one.n_points, 'point')}"
    return PartMark(
        one.part, 1000 * across, _down(quality, scale), _down(high, scale), _down(low, scale), high < 1, label
    )


def _down(quality: float, scale: Scale) -> float:
    return round(1000 - 10 * scale.percent(quality), 1)


def _note(found: Mapping[str, PartResult]) -> str:
    """On which parts something is left to see, beyond doubt."""
    settled = [one.part for one in found.values() if magnitude(one.interval)[1] < 1]
    if not settled:
        return "none below 1 beyond doubt"
    if len(settled) == len(found):
        return "all below 1"
    return f"below 1: {listed(settled)}" if len(settled) <= 8 else f"{len(settled)} of {len(found)} below 1"


# -- by the number of queries ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Strongest:
    """The adversary of largest |advantage| at some number of queries."""

    adversary: str
    quality: float
    """1 − its |advantage|: a plug-in maximum."""
    interval: tuple[float, float] | None
    """Interval of 1 − that adversary's |advantage|, the choice among adversaries not counted."""


@dataclass(frozen=True)
class StrongView:
    """Q against the number of queries."""

    queries: list[int]
    rows: list[tuple[str, list[Strongest | None]]]
    picture: Overview | None
    """None where there is one number of queries only."""

    @property
    def has_intervals(self) -> bool:
        """Whether pairs were enough for any."""
        return any(cell is not None and cell.interval is not None for _, cells in self.rows for cell in cells)


def strong_view(game: GameResult) -> StrongView | None:
    """None where no adversary had several queries."""
    queries = sorted({strong.queries for found in played_by_all(game) for strong in found.strong})
    if not queries:
        return None
    rows = [(name, [_strongest(method, q) for q in queries]) for name, method in by_quality(game.methods)]
    curves = {name: [_estimate_of(found) for found in way] for name, way in rows}
    return StrongView(queries, rows, overview(queries, curves, logarithmic=True) if len(queries) > 1 else None)


def _strongest(method: MethodResult, queries: int) -> Strongest | None:
    played = [
        (name, strong)
        for name, found in method.by_adversary.items()
        for strong in found.strong
        if strong.queries == queries
    ]
    if not played:
        return None
    name, strong = max(played, key=lambda item: abs(item[1].advantage))
    return Strongest(name, 1 - abs(strong.advantage), magnitude(strong.interval) if strong.interval else None)


def _estimate_of(found: Strongest | None) -> Estimate | None:
    return None if found is None else (found.quality, *(found.interval or (found.quality, found.quality)))


def played_by_all(game: GameResult) -> list[AdversaryResult]:
    """What every adversary achieved against every method."""
    return [found for method in game.methods.values() for found in method.by_adversary.values()]
