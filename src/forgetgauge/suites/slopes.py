"""Where things stand in the page's pictures: the two rankings of a column, and its values with intervals.

Rankings are drawn by rank, not by value: lines that cross are methods that changed places. Nothing here writes markup.
"""

from __future__ import annotations

from dataclasses import dataclass

from forgetgauge.suites.paper import PRINTED
from forgetgauge.suites.record import CompareCell, Ours, TableComparison

ROW_PX = 22
TOP_PX = 34


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
    """The same for who cannot see it."""
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
    """Of the rankings, in pixels."""


def column_pictures(found: TableComparison) -> list[ColumnPicture]:
    """One for each column that was run."""
    return [_picture(found, label) for label in found.columns if any(c[label].ours for c in found.rows.values())]


def _picture(found: TableComparison, label: str) -> ColumnPicture:
    cells = {PRINTED.get(row, row): cells[label] for row, cells in found.rows.items()}
    slopes = _slopes(cells)
    strips = [_strip(name, cell) for name, cell in cells.items()]
    height = TOP_PX + len(slopes) * ROW_PX
    return ColumnPicture(label, found.tau.get(label), slopes if len(slopes) > 1 else [], strips, height)


def _slopes(cells: dict[str, CompareCell]) -> list[Slope]:
    """Highest first on both sides; of equal values, in the order of the table."""
    both = {name: (cell.paper, cell.ours.value) for name, cell in cells.items() if cell.paper is not None and cell.ours}
    ranks = [sorted(both, key=lambda name: -both[name][side]) for side in (0, 1)]
    return [
        Slope(name, *values, *(TOP_PX + order.index(name) * ROW_PX for order in ranks)) for name, values in both.items()
    ]


def _strip(name: str, cell: CompareCell) -> Strip:
    spread = None if cell.paper is None else (cell.spread or 0.0)
    ends = (None, None) if spread is None or cell.paper is None else (cell.paper - spread, cell.paper + spread)
    low, high = _ends(cell.ours)
    value = None if cell.ours is None else cell.ours.value
    shown = [_percent(v) for v in (cell.paper, *ends, value, low, high)]
    return Strip(name, _words(name, cell), *shown)


def _ends(ours: Ours | None) -> tuple[float | None, float | None]:
    if ours is None:
        return None, None
    return ours.interval or (ours.value, ours.value)


def _percent(value: float | None) -> float | None:
    return None if value is None else round(100 * min(max(value, 0.0), 1.0), 2)


def _words(name: str, cell: CompareCell) -> str:
    paper = "not in the paper" if cell.paper is None else f"paper {cell.paper:.3f}"
    if cell.ours is None:
        return f"{name}: {paper}; not run"
    interval = f" [{cell.ours.interval[0]:.3f}, {cell.ours.interval[1]:.3f}]" if cell.ours.interval else ""
    return f"{name}: {paper}; ours {cell.ours.value:.3f}{interval}"
