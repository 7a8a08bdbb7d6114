"""What a reader who has only the paper wants to know first: what is confirmed, what is not, why, and what it took.

Every sentence is made from what is stored, so that it changes when a table is run again.
"""

from __future__ import annotations

from collections.abc import Sequence

from forgetgauge.suites.findings import Findings, Stored
from forgetgauge.suites.frontier import Frontiers, Measured
from forgetgauge.suites.paper import PRINTED, text_values
from forgetgauge.suites.records import CompareCell
from forgetgauge.suites.spent import device_name, duration, totals
from forgetgauge.suites.tables import OUTLINES
from forgetgauge.suites.verdicts import APPROXIMATE, Claim
from forgetgauge.wording import listed, plain

NUMBERS = {
    4: "four", 6: "six", 9: "nine", 10: "ten", 11: "eleven", 12: "twelve",
}  # fmt: skip


APART = 0.1
"""Differences of Q that are worth a sentence up here."""


def in_a_minute(found: Findings, judged: Sequence[Claim]) -> list[str]:
    """One paragraph for each thing to know; those that nothing is known of are left out."""
    every = [*_verdicts(judged), *_numbers(found), *_strengths(found.frontiers), *_memorised(found), time_line(found)]
    return [line for line in every if line]


def _verdicts(judged: Sequence[Claim]) -> list[str]:
    """The paper's statements in words, by verdict."""
    by = {verdict: [claim for claim in judged if claim.verdict == verdict] for verdict in _ARE}
    open_ones, partial = _parted(by["undecided"])
    counts = listed([f"{len(claims)} {_ARE[verdict]}" for verdict, claims in by.items() if claims])
    lines = [f"Of {len(judged)} statements of the paper that can be checked, {counts}."]
    if by["confirmed"]:
        lines.append(f"**Confirmed**: {_names(by['confirmed'])}.")
    if by["not confirmed"]:
        each = "; ".join(f"{claim.name} ({_finding(claim)})" for claim in by["not confirmed"])
        lines.append(f"**Not confirmed**, our intervals say the opposite: {each}.")
    if open_ones:
        lines.append(f"**Undecided**, the intervals of our few runs hold both answers: {_names(open_ones)}.")
    if partial:
        lines.append(f"**Undecided**, a method, a column or an interval is missing: {_names(partial)}.")
    if by["not run"]:
        lines.append(f"**Not run**: {_names(by['not run'])}.")
    return lines


_ARE = {
    "confirmed": "we confirm",
    "not confirmed": "we find otherwise",
    "undecided": "we cannot decide",
    "not run": "we did not run",
}


def _parted(undecided: Sequence[Claim]) -> tuple[list[Claim], list[Claim]]:
    missing = [claim for claim in undecided if "missing: " in claim.figure]
    return [claim for claim in undecided if claim not in missing], missing


def _names(every: Sequence[Claim]) -> str:
    return "; ".join(claim.name for claim in every) or "none"


def _finding(claim: Claim) -> str:
    """The figure and where it is from, for someone who has not read how it is made."""
    figure = claim.figure.split("; the paper’s own numbers")[0]
    figure = figure.replace("τ = ", "rankings correlate by ").replace("inf", "∞")
    return f"{figure}; {', '.join(claim.source.split(', ')[:2])}" if claim.source else figure


def _numbers(found: Findings) -> list[str]:
    """How many cells agree, and which way the others are off."""
    shown = [s for name in OUTLINES for s in found.shown(name) if s.comparison.scale != "smoke"]
    cells = [cell for s in shown for row in s.comparison.rows.values() for cell in row.values()]
    judged = [cell for cell in cells if cell.inside is not None]
    if not judged:
        return []
    quality = [cell for s in shown for cell in _of_quality(s)]
    below = [cell for cell in quality if cell.as_paper and cell.paper and cell.as_paper.value < cell.paper]
    inside = sum(bool(cell.inside) for cell in judged)
    return [
        f"**The numbers themselves**: {inside} of {len(judged)} cells lie inside the paper’s ±, computed "
        "to the letter as "
        f"its are. Of the {len(quality)} cells outside it that are the Q of an approximate method, "
        f"{len(below)} are lower "
        "than the paper’s."
    ]


def _of_quality(stored: Stored) -> list[CompareCell]:
    """The cells of approximate methods that lie outside the paper's ±, in a table of Q."""
    table = stored.comparison
    if OUTLINES[table.name].layout != "quality":
        return []
    return [cell for m in APPROXIMATE for cell in table.rows.get(m, {}).values() if cell.inside is False]


def _strengths(found: Frontiers | None) -> list[str]:
    """Q is a function of what the paper does not state."""
    if found is None:
        return []
    ranges = []
    for method, curve in found.curves.items():
        measured = [point for point in curve.points if point.quality is not None and point.accuracy is not None]
        if len(measured) > 1:
            least, most = (pick(measured, key=_quality) for pick in (min, max))
            if _quality(most) - _quality(least) > APART:
                ranges.append(f"{PRINTED[method]} {_point(least)} to {_point(most)}")
    if not ranges:
        return []
    return [
        "**Why numbers differ**: the paper does not say how strongly its methods were applied, and Q "
        "depends on that. On the "
        f"same models (Table 1, η = 1.0) other settings give {listed(ranges)}, accuracy in brackets; None has "
        f"{_point(found.none)}. Ours were fixed by accuracy alone, before any Q was known."
    ]


def _quality(point: Measured) -> float:
    return 0.0 if point.quality is None else point.quality.value


def _point(point: Measured) -> str:
    return f"{plain(_quality(point))} ({'–' if point.accuracy is None else plain(point.accuracy)})"


def _memorised(found: Findings) -> list[str]:
    """Where None itself is far above the paper's, the models were not memorised, and nothing in the "
    "column compares."""
    stored = found.fullest("table3")
    cells = {} if stored is None else stored.comparison.rows.get("none", {})
    away = {
        label: cell
        for label, cell in cells.items()
        if cell.ours is not None and cell.paper is not None and cell.ours.value - cell.paper > APART
    }
    return [
        f"**Table 3 at ε = {'∞' if label == 'inf' else label}** is another experiment: the paper’s models "
        "remember what they "
        f"learnt (Q of None {plain(cell.paper or 0)}), ours do not ({plain(cell.ours.value)}), so Tables "
        "3 to 5 cannot agree "
        "there."
        for label, cell in away.items()
        if cell.ours is not None
    ]


def time_line(found: Findings) -> str:
    """What all of it took, beside what the paper states."""
    days = text_values()["compute_claims_days_4xA40"]
    total = sum(days.values())
    theirs = f"the paper states {NUMBERS.get(total, total)} days on four A40s"
    if not found.spent:
        return ""
    each = [f"{duration(seconds)} of {device_name(device)}" for device, seconds in totals(found.spent).items()]
    scales = {one.scale for one in found.spent if one.scale}
    part = ", part of it at small scale" if "small" in scales else ""
    return f"**Time**: everything on this page took {listed(each)}{part}; {theirs}."
