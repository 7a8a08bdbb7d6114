"""Where things stand in the page's pictures; nothing here writes markup.

Of a column: its two rankings, drawn by rank, not by value, so that lines that cross are methods that changed places;
and its values with intervals. Of a method: Q and accuracy along its strength, whose values stand at equal steps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from forgetgauge.suites.frontier import Frontier, Frontiers, Measured, joined
from forgetgauge.suites.frontier_words import printed_quality
from forgetgauge.suites.paper import PRINTED, in_column
from forgetgauge.suites.records import CompareCell, Ours, TableComparison
from forgetgauge.suites.strengths import METHOD_OF
from forgetgauge.wording import counted

ROW_PX, HEAD_PX = 22, 34
"""Of the rankings: height of a row, and of what stands above the first."""
LEFT_PX, RIGHT_PX = 34, 316
TOP_PX, BOTTOM_PX = 14, 164
HEIGHT_PX = 190
"""Height of the curves' picture; its top is Q = 1, its bottom Q = 0."""


@dataclass(frozen=True)
class Slope:
    """One method in the two rankings."""

    name: str
    paper: float
    ours: float
    y_paper: int
    y_ours: int

    @property
    def moved(self) -> int:
        """Places gained, from the paper's ranking to ours."""
        return (self.y_paper - self.y_ours) // ROW_PX


@dataclass(frozen=True)
class Strip:
    """One method's values: percentages along an axis from 0 to 1."""

    name: str
    words: str
    """What the strip shows, in words, for readers who cannot see it."""
    paper: float | None
    paper_low: float | None
    paper_high: float | None
    ours: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class ColumnPicture:
    """Both pictures of one column."""

    label: str
    tau: float | None
    slopes: list[Slope]
    strips: list[Strip]
    height: int
    """Height of the rankings, in pixels."""


def column_pictures(found: TableComparison) -> list[ColumnPicture]:
    """One for each column that was run."""
    return [_column_picture(found, label) for label in found.columns if any(c[label].ours for c in found.rows.values())]


def _column_picture(found: TableComparison, label: str) -> ColumnPicture:
    cells = {PRINTED.get(row, row): cells[label] for row, cells in found.rows.items()}
    slopes = _slopes({name: cell for name, cell in cells.items() if name not in _PUBLISHED})
    strips = [_strip(name, cell) for name, cell in cells.items() if cell.paper is not None or cell.ours]
    height = HEAD_PX + len(slopes) * ROW_PX
    return ColumnPicture(
        in_column(found.variable, label), found.tau.get(label), slopes if len(slopes) > 1 else [], strips, height
    )


_PUBLISHED = {PRINTED[row] for row in METHOD_OF}
"""Rows that stand beside a number of the paper's which is ranked already."""


def _slopes(cells: dict[str, CompareCell]) -> list[Slope]:
    """Highest first on both sides; of equal values, in the order of the table."""
    both = {
        name: (cell.paper, cell.as_paper.value)
        for name, cell in cells.items()
        if cell.paper is not None and cell.as_paper is not None
    }
    ranks = [sorted(both, key=lambda name: -both[name][side]) for side in (0, 1)]
    return [
        Slope(name, *values, *(HEAD_PX + order.index(name) * ROW_PX for order in ranks))
        for name, values in both.items()
    ]


def _strip(name: str, cell: CompareCell) -> Strip:
    spread = None if cell.paper is None else (cell.spread or 0.0)
    ends = (None, None) if spread is None or cell.paper is None else (cell.paper - spread, cell.paper + spread)
    low, high = _ends(cell.ours)
    value = None if cell.ours is None else cell.ours.value
    shown = [_percent(v) for v in (cell.paper, *ends, value, low, high)]
    return Strip(name, _cell_words(name, cell), *shown)


def _ends(ours: Ours | None) -> tuple[float | None, float | None]:
    if ours is None:
        return None, None
    return ours.interval or (ours.value, ours.value)


def _percent(value: float | None) -> float | None:
    return None if value is None else round(100 * min(max(value, 0.0), 1.0), 2)


def _cell_words(name: str, cell: CompareCell) -> str:
    paper = "not in the paper" if cell.paper is None else f"paper {cell.paper:.3f}"
    if cell.ours is None:
        return f"{name}: {paper}; not run"
    interval = f" [{cell.ours.interval[0]:.3f}, {cell.ours.interval[1]:.3f}]" if cell.ours.interval else ""
    return f"{name}: {paper}; ours {cell.ours.value:.3f}{interval}"


@dataclass(frozen=True)
class Dot:
    """One value of the strength, in pixels."""

    label: str
    x: float
    quality: float | None
    low: float | None
    high: float | None
    accuracy: float | None
    chosen: bool


@dataclass(frozen=True)
class CurvePicture:
    """Q and accuracy of one method along its strength."""

    name: str
    strength: str
    words: str
    """What the curve shows, in words, for readers who cannot see it."""
    dots: list[Dot]
    none: float | None
    retrain: float | None
    """Heights of the two yardsticks' Q."""
    paper: float | None = None
    """Height of the paper's Q."""

    @property
    def quality_line(self) -> str:
        """Points of the line through Q."""
        return " ".join(f"{dot.x:g},{dot.quality:g}" for dot in self.dots if dot.quality is not None)

    @property
    def accuracy_line(self) -> str:
        """Points of the line through accuracy."""
        return " ".join(f"{dot.x:g},{dot.accuracy:g}" for dot in self.dots if dot.accuracy is not None)


ROOM = 5
"""So many values can be written side by side."""


def curve_pictures(found: Frontiers) -> list[CurvePicture]:
    """One picture for each method."""
    return [
        replace(_curve_picture(PRINTED[method], joined(found, method), found), paper=_height(printed_quality(method)))
        for method in found.curves
    ]


def _curve_picture(name: str, curve: Frontier, found: Frontiers) -> CurvePicture:
    step = (RIGHT_PX - LEFT_PX) / len(curve.values)
    named = _named(len(curve.values), curve.values.index(curve.chosen))
    dots = [
        _dot(f"{value:g}" if i in named else "", point, LEFT_PX + (i + 0.5) * step, value == curve.chosen)
        for i, (value, point) in enumerate(zip(curve.values, curve.points, strict=True))
    ]
    said = [f"{curve.strength} {v:g}: {_point_words(p)}" for v, p in zip(curve.values, curve.points, strict=True)]
    mark = "chosen" if found.tuned else "default"
    words = f"{name}: {'; '.join(said)}; {mark} {curve.chosen:g}; None {_point_words(found.none)}"
    return CurvePicture(
        name,
        curve.strength,
        f"{words}; Retrain {_point_words(found.retrain)}",
        dots,
        _quality_height(found.none),
        _quality_height(found.retrain),
    )


def _named(n: int, chosen: int) -> set[int]:
    """Places whose value is written below: all where there is room, else the chosen one and the ends apart from it."""
    return set(range(n)) if n <= ROOM else {chosen, *(end for end in (0, n - 1) if abs(end - chosen) > 1)}


def _dot(label: str, point: Measured, x: float, chosen: bool) -> Dot:
    low, high = (None, None) if point.quality is None else point.quality.interval or (None, None)
    return Dot(label, round(x, 1), _quality_height(point), _height(low), _height(high), _height(point.accuracy), chosen)


def _quality_height(point: Measured) -> float | None:
    return None if point.quality is None else _height(point.quality.value)


def _height(share: float | None) -> float | None:
    if share is None:
        return None
    return round(BOTTOM_PX - min(max(share, 0.0), 1.0) * (BOTTOM_PX - TOP_PX), 1)


def _point_words(point: Measured) -> str:
    if point.quality is None:
        return f"only {counted(point.pairs, 'pair')} completed" if point.pairs else "no pair completed"
    return f"Q {point.quality.value:.3f}" + ("" if point.accuracy is None else f", accuracy {point.accuracy:.3f}")
