"""Q against accuracy lost, on one set of originals: every method and curve, and where the paper's seven cells lie.

The paper gives a Q and no accuracy, so that each of its cells is a height. It is marked where a curve reaches that
height, or where one of our points is inside the paper's ±; else it is said that it does not, within what was played.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, floor

from forgetgauge.report.drawing import COLOURS, REFERENCES
from forgetgauge.report.html import template_of
from forgetgauge.report.picture import spread
from forgetgauge.suites.frontier import Frontier, Frontiers, Measured, joined
from forgetgauge.suites.frontier_words import PaperCell, paper_cells, quality_of
from forgetgauge.suites.paper import PRINTED
from forgetgauge.wording import listed, plain

WIDTH_PX, HEIGHT_PX = 940, 570
LEFT_PX, RIGHT_PX, TOP_PX, BOTTOM_PX = 64, 640, 64, 490
LABEL_PX = 18
"""Between two lines of text."""
QUALITY_STEP = 0.1
POINTS_STEP = 2.0
NEAR_PX, ASIDE_PX = 60, 130
"""Methods that end so near to None that their names would hide it have them so far aside, one below another."""


@dataclass(frozen=True)
class Mark:
    """One model of the map, in pixels."""

    x: float
    y: float
    low: float
    high: float
    words: str
    chosen: bool = False
    published: bool = False


@dataclass(frozen=True)
class Way:
    """One method along its strength, or alone where it has none."""

    name: str
    role: str
    """`retrain`, `none` or `tested`."""
    colour: str
    marks: list[Mark]
    label: tuple[float, float] = (0.0, 0.0)
    """Where its name stands."""
    is_apart: bool = False
    """Whether a line must lead from there to its last mark."""

    @property
    def line(self) -> str:
        """Through its marks, the weakest first."""
        return " ".join(f"{mark.x:g},{mark.y:g}" for mark in self.marks)


@dataclass(frozen=True)
class Level:
    """One of the paper's cells: a height, and where it is reached."""

    cell: PaperCell
    name: str
    colour: str
    y: float
    label_y: float
    words: str
    x: float | None
    """Where it is met; None where it is not."""
    at_y: float
    """Of the mark: the height itself, or that of our point inside the ±."""


@dataclass(frozen=True)
class QualityMap:
    """All that is drawn."""

    ways: list[Way]
    levels: list[Level]
    ticks_x: list[tuple[float, str]]
    ticks_y: list[tuple[float, str]]
    words: str
    """The same for who cannot see it."""


def quality_map(found: Frontiers) -> QualityMap | None:
    """None where None or Retrain has no accuracy, from which what is lost is counted."""
    usual = found.usual
    if usual is None or found.none.accuracy is None or found.retrain.accuracy is None:
        return None
    alone = {"retrain": found.retrain, "none": found.none, **found.fixed}
    curves = {method: joined(found, method) for method in found.curves}
    shown = [*alone.values(), *(point for curve in curves.values() for point in curve.points)]
    known = [point for point in shown if point.quality is not None and point.accuracy is not None]
    lost = [100 * (usual - (point.accuracy or 0.0)) for point in known]
    least, most = POINTS_STEP * floor(min(lost) / POINTS_STEP), POINTS_STEP * ceil(max(lost) / POINTS_STEP)
    bottom = min(_ends(point)[0] for point in known)
    bottom = round(QUALITY_STEP * floor(bottom / QUALITY_STEP + 1e-9), 6)

    def across(points: float) -> float:
        return round(LEFT_PX + (points - least) / (most - least) * (RIGHT_PX - LEFT_PX), 1)

    def up(quality: float) -> float:
        return round(BOTTOM_PX - (min(quality, 1.0) - bottom) / (1 - bottom) * (BOTTOM_PX - TOP_PX), 1)

    def mark(point: Measured, words: str, *, chosen: bool = False, published: bool = False) -> Mark:
        low, high = _ends(point)
        x = across(100 * (usual - (point.accuracy or 0.0)))
        return Mark(x, up(quality_of(point)), up(low), up(high), f"{words}: {_words(point, usual)}", chosen, published)

    colours = dict(zip([*curves, *found.fixed], COLOURS, strict=False)) | REFERENCES
    ways = [
        Way(PRINTED[name], name if name in REFERENCES else "tested", colours[name], [mark(point, PRINTED[name])])
        for name, point in alone.items()
        if point in known
    ]
    for method, curve in curves.items():
        also = found.published.get(method)
        there = [
            mark(
                point,
                f"{PRINTED[method]}, {curve.strength} = {value:g}",
                chosen=value == curve.chosen,
                published=also is not None and value == also.value,
            )
            for value, point in zip(curve.values, curve.points, strict=True)
            if point in known
        ]
        ways.append(Way(PRINTED[method], "tested", colours[method], there))
    cells = sorted(paper_cells(found), key=lambda cell: -cell.quality)
    label_ys = spread([up(cell.quality) for cell in cells], gap=2 * LABEL_PX, low=TOP_PX, high=BOTTOM_PX)
    levels = [
        Level(
            cell,
            PRINTED[cell.method],
            colours[cell.method],
            up(cell.quality),
            label_y,
            _level_words(cell, curves.get(cell.method), usual),
            None if cell.how == "not met" or cell.accuracy is None else across(100 * (usual - cell.accuracy)),
            up(cell.quality if cell.ours is None else cell.ours),
        )
        for cell, label_y in zip(cells, label_ys, strict=True)
    ]
    ways = _labelled([way for way in ways if way.marks])
    n_x, n_y = round((most - least) / POINTS_STEP), round((1 - bottom) / QUALITY_STEP)
    return QualityMap(
        ways,
        levels,
        [(across(least + i * POINTS_STEP), _tick(least + i * POINTS_STEP)) for i in range(n_x + 1)],
        [(up(bottom + i * QUALITY_STEP), f"{bottom + i * QUALITY_STEP:.1f}") for i in range(n_y + 1)],
        map_words(cells),
    )


def _labelled(ways: list[Way]) -> list[Way]:
    """Names beside the last mark; of those that end near None, in a column of their own."""
    none = next((way.marks[0] for way in ways if way.role == "none"), None)
    near = [
        way
        for way in ways
        if none is not None and max(abs(way.marks[-1].x - none.x), abs(way.marks[-1].y - none.y)) < NEAR_PX
    ]
    near.sort(key=lambda way: way.marks[-1].y)
    column = {way.name: BOTTOM_PX - 8 - LABEL_PX * (len(near) - 1 - i) for i, way in enumerate(near)}
    placed = []
    for way in ways:
        end, y = way.marks[-1], column.get(way.name)
        at = (end.x + 14, end.y + 18) if y is None else (end.x + ASIDE_PX, y)
        placed.append(replace(way, label=at, is_apart=y is not None))
    return placed


def map_words(cells: Sequence[PaperCell]) -> str:
    """What the map shows of the paper's cells, in a sentence or two."""
    names = {how: [PRINTED[cell.method] for cell in cells if cell.how == how] for how in ("met", "inside", "not met")}
    said = [
        f"{listed(names['met'])}: met on the curve" if names["met"] else "",
        f"{listed(names['inside'])}: inside the paper’s ±" if names["inside"] else "",
        f"{listed(names['not met'])}: not met within what was played" if names["not met"] else "",
    ]
    return f"The paper’s {len(cells)} cells at η = 1.0. {'; '.join(filter(None, said))}."


def map_svg(found: Frontiers) -> str | None:
    """The map as a file of its own, which loads nothing."""
    drawn = quality_map(found)
    if drawn is None:
        return None
    frame = {"left": LEFT_PX, "right": RIGHT_PX, "top": TOP_PX, "bottom": BOTTOM_PX}
    made = template_of("suites", "quality_map.svg.j2", plain=plain)
    return made.render(map=drawn, frame=frame, width=WIDTH_PX, height=HEIGHT_PX).rstrip() + "\n"


def _ends(point: Measured) -> tuple[float, float]:
    value = quality_of(point)
    return (point.quality.interval if point.quality is not None else None) or (value, value)


def _words(point: Measured, usual: float) -> str:
    return f"Q {plain(quality_of(point))}, {_points(usual, point.accuracy)}"


def _points(usual: float, accuracy: float | None) -> str:
    """`12.2 points lost`."""
    lost = 100 * (usual - (accuracy or 0.0))
    return f"{abs(lost):.1f} points {'lost' if lost >= 0 else 'gained'}"


def _level_words(cell: PaperCell, curve: Frontier | None, usual: float) -> str:
    if cell.how == "not met":
        return "not met; it has no strength" if curve is None else "not met within the values played"
    where = "" if curve is None or cell.value is None else f"{curve.strength} = {cell.value:.2g}, "
    how = "met" if cell.how == "met" else "inside its ±"
    return how if cell.method == "retrain" else f"{how}: {where}{_points(usual, cell.accuracy)}"


def _tick(points: float) -> str:
    return f"{points:g}".replace("-", "−")
