"""Q along the strength in rows and sentences: where curves have the paper's numbers, what chosen strengths cost."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from forgetgauge.plan.game import PRICE_RULE
from forgetgauge.records import Record
from forgetgauge.report.table import align
from forgetgauge.suites.compare import ROUNDING
from forgetgauge.suites.frontier import Frontier, Frontiers, Measured, joined
from forgetgauge.suites.paper import PRINTED, Value, paper_table
from forgetgauge.suites.records import made_by
from forgetgauge.wording import bracket, plain, seconds


def frontier_rows(found: Frontiers) -> list[list[str]]:
    """Head and one row for each value, weakest first; the two yardsticks on top."""
    mark = "chosen" if found.tuned else "default"
    rows = [["method", "strength", "Q", f"accuracy ({found.accuracy_on})", ""]]
    for name, point in (("retrain", found.retrain), ("none", found.none)):
        rows.append([PRINTED[name], "–", *_cells(point), ""])
    rows += [[PRINTED[name], "–", *_cells(point), "has no strength"] for name, point in found.fixed.items()]
    for method in found.curves:
        curve = joined(found, method)
        for value, point in zip(curve.values, curve.points, strict=True):
            said = [mark] if value == curve.chosen else []
            said += ["published"] if method in found.published and value == found.published[method].value else []
            if point.pairs < found.none.pairs:
                said.append(f"only {point.pairs} of {found.none.pairs} pairs")
            rows.append([PRINTED[method], f"{curve.strength} = {value:g}", *_cells(point), ", ".join(said)])
    return rows


def _cells(point: Measured) -> list[str]:
    quality = "–"
    if point.quality is not None:
        interval = point.quality.interval
        quality = plain(point.quality.value) + ("" if interval is None else f" {bracket(interval)}")
    return [quality, "–" if point.accuracy is None else plain(point.accuracy)]


@dataclass(frozen=True)
class Meeting:
    """Where a curve has the paper's Q, between two values that were played."""

    value: float
    """The strength there, found on a logarithmic scale."""
    accuracy: float | None


def printed(method: str) -> Value:
    """The paper's cell of a method where the curves are played: Table 1 at η = 1."""
    return paper_table("table1").rows[method]["1.0"]


def printed_quality(method: str) -> float:
    """The number in it."""
    return printed(method).mean


def meeting(curve: Frontier, quality: float) -> Meeting | None:
    """The weakest strength at which a curve has this Q, on straight lines between its points; None where none has."""
    known = [(v, p) for v, p in zip(curve.values, curve.points, strict=True) if p.quality is not None]
    for (weaker, one), (stronger, other) in pairwise(known):
        low, high = (p.quality.value for p in (one, other) if p.quality is not None)
        if min(low, high) <= quality <= max(low, high):
            share = (quality - low) / (high - low) if high != low else 0.0
            pair = (one.accuracy, other.accuracy)
            accuracy = None if pair[0] is None or pair[1] is None else pair[0] + share * (pair[1] - pair[0])
            return Meeting(weaker * (stronger / weaker) ** share, accuracy)
    return None


@dataclass(frozen=True)
class PaperCell(Record):
    """One cell of the paper's, and where on our map it lies."""

    method: str
    quality: float
    spread: float | None
    how: Literal["met", "inside", "not met"]
    """`met`: a curve has this Q between two values that were played. `inside`: one of our points is within the paper's
    ±. `not met`: neither, within what was played."""
    value: float | None = None
    """Of the strength, where it has one."""
    ours: float | None = None
    """Q there; where it is not met, the nearest that was played."""
    accuracy: float | None = None


def paper_cells(found: Frontiers) -> list[PaperCell]:
    """The paper's seven cells, in its order; those of which nothing was played are left out."""
    every = [_paper_cell(found, method) for method in paper_table("table1").rows]
    return [cell for cell in every if cell is not None]


def _paper_cell(found: Frontiers, method: str) -> PaperCell | None:
    value = printed(method)
    if method in found.curves:
        curve = joined(found, method)
        at = meeting(curve, value.mean)
        if at is not None:
            return PaperCell(method, value.mean, value.spread, "met", at.value, value.mean, at.accuracy)
        known: list[tuple[float | None, Measured]] = list(zip(curve.values, curve.points, strict=True))
    else:
        alone = found.retrain if method == "retrain" else found.fixed.get(method)
        known = [] if alone is None else [(None, alone)]
    known = [(strength, point) for strength, point in known if point.quality is not None]
    if not known:
        return None
    strength, point = min(known, key=lambda one: abs(quality_of(one[1]) - value.mean))
    is_inside = abs(quality_of(point) - value.mean) <= (value.spread or 0.0) + ROUNDING
    how: Literal["inside", "not met"] = "inside" if is_inside else "not met"
    return PaperCell(method, value.mean, value.spread, how, strength, quality_of(point), point.accuracy)


def quality_of(point: Measured) -> float:
    """Q of a point that has one."""
    return 0.0 if point.quality is None else point.quality.value


def _on_the_paper(found: Frontiers) -> str:
    """Where the curves meet the paper's numbers, and which do not within what was played."""
    said: dict[str, list[str]] = {"met": [], "inside": [], "not met": []}
    for cell in paper_cells(found):
        curve = found.curves.get(cell.method)
        at = "" if cell.accuracy is None else f", at an accuracy of {plain(cell.accuracy)}"
        own = "" if cell.ours is None else plain(cell.ours)
        if cell.how == "met" and curve is not None and cell.value is not None:
            words = f"{plain(cell.quality)}) about {curve.strength} = {cell.value:.2g}{at}"
        elif cell.how == "inside":
            where = "" if curve is None else f" at {curve.strength} = {cell.value:g}"
            words = f"{plain(cell.quality)} ± {plain(cell.spread or 0)}; ours {own}{where}{at})"
        elif curve is None:
            words = f"{plain(cell.quality)}; ours {own}, and it has no strength)"
        else:
            is_above = cell.ours is not None and cell.quality > cell.ours
            words = f"{plain(cell.quality)} is {'above' if is_above else 'below'} all of them, the nearest is {own})"
        said[cell.how].append(f"{PRINTED[cell.method]} ({words}")
    lines = [
        f"The paper’s Q at η = 1.0 is met by {'; '.join(said['met'])}." if said["met"] else "",
        f"Inside the paper’s ± in this form of ours: {'; '.join(said['inside'])}." if said["inside"] else "",
        f"Not met within the values that were played: {'; '.join(said['not met'])}." if said["not met"] else "",
    ]
    return " ".join(filter(None, lines))


def frontier_remarks(found: Frontiers) -> list[str]:
    """What must be known of the table: one line each."""
    lines = [
        *filter(None, [_on_the_paper(found)]),
        *found.notes,
        *(f"Failed: {failure}." for failure in found.failures),
    ]
    if found.basis:
        lines.append(f"Intervals: {found.basis}.")
    time = seconds(sum(one.wall_s for one in found.invocations))
    made = [f"Time: {time}, the models of Table 1 not counted where they were there", *made_by(found.invocations)]
    return [*lines, "; ".join(made) + "."]


def frontier_text(found: Frontiers) -> str:
    """Q along the strengths, for a terminal."""
    heading = f"Q along the strength, {found.scale} scale. Weakest values first."
    return "\n".join([heading, "", align(frontier_rows(found)), "", *frontier_remarks(found)])


_EARLIER = (
    "by an earlier rule: the strongest of all that were tried and kept the price there (today the search stops at the "
    "first value that does not, decision 0043)"
)
_TODAY = "by the rule of today: the strongest before the first that did not keep the price (decision 0043)"


def marked_words(found: Frontiers) -> str:
    """Two sentences on the marked strengths; empty where they are defaults."""
    if not found.tuned:
        return ""
    how = _EARLIER if found.rule < PRICE_RULE else _TODAY
    return (
        f"The marked strengths were chosen on shadow models, {how}. In the game they cost, in points of accuracy below "
        f"the less accurate of Retrain and None: {', '.join(_cost(found, method) for method in found.curves)}."
    )


def _cost(found: Frontiers, method: str) -> str:
    """`SSD 1.8`; of what lacks pairs nothing is known."""
    curve = found.curves[method]
    point = next(p for value, p in zip(curve.values, curve.points, strict=True) if value == curve.chosen)
    if point.accuracy is None or found.usual is None:
        pairs = f" ({point.pairs} of {found.none.pairs} pairs)" if point.pairs < found.none.pairs else ""
        return f"{PRINTED[method]} unknown{pairs}"
    lost = f"{100 * (found.usual - point.accuracy):.1f}".replace("-0.0", "0.0").replace("-", "−")
    return f"{PRINTED[method]} {lost}"
