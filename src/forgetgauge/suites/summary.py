"""What a reader who has only the paper wants to know first: what is confirmed, what is not, why, and what it took.

Every sentence is made from what is stored, so that it changes when a table is run again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from forgetgauge.results.utility import unseen_accuracy
from forgetgauge.suites.compare import difference_text
from forgetgauge.suites.findings import APART, Findings, Stored, other_experiments
from forgetgauge.suites.frontier import Measured
from forgetgauge.suites.paper import PRINTED, in_column, text_values
from forgetgauge.suites.records import CompareCell, TableComparison
from forgetgauge.suites.spent import device_name, duration, totals
from forgetgauge.suites.splits_page import splitting_setting, spread_words
from forgetgauge.suites.strengths import PUBLISHED
from forgetgauge.suites.tables import OUTLINES
from forgetgauge.suites.verdicts import APPROXIMATE, Claim, source_of
from forgetgauge.wording import listed, plain


def in_a_minute(found: Findings, judged: Sequence[Claim]) -> list[str]:
    """One paragraph for each thing to know; those that nothing is known of are left out."""
    every = [
        *_at_a_price(found),
        *_verdicts(judged),
        *_numbers(found),
        *_strengths(found),
        *_memorised(found),
        *_splits(found),
        time_line(found),
    ]
    return [line for line in every if line]


def _at_a_price(found: Findings) -> list[str]:
    """What a reader may take home: what methods do whose strength may cost a point of accuracy, in every column."""
    tables = [s for name in ("table2", "table1") for s in (*found.shown(name), *found.besides(name)) if s.by_price]
    for stored in tables:
        columns = [_column_at_a_price(stored, label) for label in stored.games if stored.comparison.scale != "smoke"]
        told = [column for column in columns if column is not None]
        if told:
            return [
                "**What we find** of methods at strengths that cost shadow models no more than a point of accuracy, "
                f"counted from the less accurate of Retrain and None, on CIFAR-10: {'; '.join(told)}. The others are "
                f"in {source_of(stored)}."
            ]
    return []


def _column_at_a_price(stored: Stored, label: str) -> str | None:
    """What the best method does; None where that is not known of any."""
    table, game = stored.comparison, stored.games[label]
    tuned = [name for name, one in game.methods.items() if one.tuning is not None and one.tuning.holds]
    gained = {name: one for name, one in table.over_none.get(label, {}).items() if name in tuned}
    ends = [cell.ours for row in ("none", "retrain") if (cell := table.rows.get(row, {}).get(label)) and cell.ours]
    if not gained or len(ends) < 2 or ends[0].value >= ends[1].value:
        return None
    best = max(gained, key=lambda name: gained[name].value)
    lost = table.lost_accuracy.get(label, {}).get(best)
    costs = "" if lost is None else f", which cost the models of the game {100 * lost:.1f} points"
    known = [one[1] for name in ("none", "retrain") if (one := unseen_accuracy(game.methods[name]))]
    less = 100 * (known[0] - known[1]) if len(known) == 2 else 0.0
    than = f", {abs(less):.1f} points {'less' if less > 0 else 'more'} accurate" if less else ""
    return (
        f"at {in_column(table.variable, label)} the best of them, {PRINTED[best]}{costs}, is above None’s Q of "
        f"{plain(ends[0].value)} by {difference_text(gained[best])}, and Retrain{than}, by "
        f"{plain(ends[1].value - ends[0].value)}"
    )


def _verdicts(judged: Sequence[Claim]) -> list[str]:
    """The paper's statements in words, by verdict."""
    by = {verdict: [claim for claim in judged if claim.verdict == verdict] for verdict in _ARE}
    open_ones, partial = _parted(by["undecided"])
    counts = listed([f"{len(claims)} {_ARE[verdict]}" for verdict, claims in by.items() if claims])
    lines = [f"Of {len(judged)} statements of the paper that can be checked, {counts}."]
    if by["confirmed"]:
        lines.append(f"**Confirmed**: {_with_findings(by['confirmed'])}.")
    if by["not confirmed"]:
        lines.append(f"**Not confirmed**, our intervals say the opposite: {_with_findings(by['not confirmed'])}.")
    if open_ones:
        lines.append(f"**Undecided**, because our runs are too few to tell: {_names(open_ones)}.")
    if partial:
        lines.append(f"**Undecided**, because a method, a column or an interval is missing: {_names(partial)}.")
    if by["not run"]:
        lines.append(f"**Not run** at the scale that it takes: {_names(by['not run'])}.")
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


def _with_findings(every: Sequence[Claim]) -> str:
    return "; ".join(f"{claim.name} ({_finding(claim)})" for claim in every)


def _names(every: Sequence[Claim]) -> str:
    return "; ".join(claim.name for claim in every) or "none"


def _finding(claim: Claim) -> str:
    """The figure and where it is from, for someone who has not read how it is made."""
    figure = claim.figure.split("; the paper’s own numbers")[0]
    figure = figure.replace("τ = ", "rankings correlate by ")
    return "; ".join(filter(None, [figure, re.sub(r", [^,=]+ = .*", "", claim.source)]))  # without its columns


def _numbers(found: Findings) -> list[str]:
    """How many cells agree, and which way the others are off; each table counts once."""
    shown = [stored for name in OUTLINES if (stored := found.fullest(name)) is not None]
    cells = [cell for s in shown for row in s.comparison.rows.values() for cell in row.values()]
    judged = [cell for cell in cells if cell.inside is not None]
    if not judged:
        return []
    quality = [cell for s in shown for cell in _of_quality(s)]
    below = [cell for cell in quality if cell.as_paper and cell.paper and cell.as_paper.value < cell.paper]
    inside = sum(bool(cell.inside) for cell in judged)
    return [
        f"**The numbers themselves**: computed as we read the paper, {inside} of our {len(judged)} numbers lie within "
        f"the paper’s ±. Of the {len(quality)} outside it that are the Q of an approximate method, {len(below)} are "
        "lower than the paper’s."
    ]


def _of_quality(stored: Stored) -> list[CompareCell]:
    """The cells of approximate methods that lie outside the paper's ±, in a table of Q."""
    table = stored.comparison
    if OUTLINES[table.name].layout != "quality":
        return []
    return [cell for m in APPROXIMATE for cell in table.rows.get(m, {}).values() if cell.inside is False]


def _strengths(found: Findings) -> list[str]:
    """Q is a function of what the paper does not state."""
    curves = found.frontiers
    if curves is None:
        return []
    ranges = []
    for method, curve in curves.curves.items():
        measured = [point for point in curve.points if point.quality is not None and point.accuracy is not None]
        if len(measured) > 1:
            least, most = (pick(measured, key=_quality) for pick in (min, max))
            if _quality(most) - _quality(least) > APART:
                ranges.append(f"{PRINTED[method]} {_point(least)} to {_point(most)}")
    if not ranges:
        return []
    return [
        "**Why numbers differ**: the paper does not say how strongly its methods were applied, and Q depends on that. "
        f"On the same models (Table 1, η = 1.0) the strengths that we tried give {listed(ranges)}, accuracy in "
        f"brackets; None has {_point(curves.none)}.{_published(found)} No strength of ours was chosen by looking at Q."
    ]


def _published(found: Findings) -> str:
    """What the settings of methods' authors give, which lie beyond the strengths of a curve."""
    tables = [stored.comparison for stored in (*found.shown("table1"), *found.besides("table1"))]
    each = [
        text for table in tables for method, row in PUBLISHED.items() if (text := _as_published(table, method, row))
    ]
    return f" In the settings that the methods’ authors published: {'; '.join(each)}." if each else ""


def _as_published(table: TableComparison, method: str, row: str) -> str:
    """`Fisher 0.676, 0.786 (the paper: 0.751, 0.791) at η = 0.1, 1.0 for 12.2 to 16.6 points of accuracy`."""
    ours = {at: plain(cell.ours.value) for at, cell in table.rows.get(row, {}).items() if cell.ours is not None}
    if not ours:
        return ""
    theirs = [cell.paper for at, cell in table.rows[method].items() if at in ours and cell.paper is not None]
    lost = sorted(found[row] for at, found in table.lost_accuracy.items() if at in ours and row in found)
    ends = dict.fromkeys([f"{100 * lost[0]:.1f}", f"{100 * lost[-1]:.1f}"] if lost else [])
    price = f" for {' to '.join(ends)} points of accuracy" if ends else ""
    beside = f" (the paper: {', '.join(map(plain, theirs))})" if theirs else ""
    return (
        f"{PRINTED[method]} {', '.join(ours.values())}{beside} at {in_column(table.variable, ', '.join(ours))}{price}"
    )


def _quality(point: Measured) -> float:
    return 0.0 if point.quality is None else point.quality.value


def _point(point: Measured) -> str:
    return f"{plain(_quality(point))} ({'–' if point.accuracy is None else plain(point.accuracy)})"


def _memorised(found: Findings) -> list[str]:
    """Columns in which our models are not the paper's."""
    return [
        f"**Table 3 at {in_column('ε', label)}** is another experiment, and so are Tables 4 and 5 there: we failed to "
        f"make the paper’s models, which remember what they learnt (Q of None {plain(cell.paper or 0)}); ours do not "
        f"({plain(cell.ours.value)}). These columns count for none of the statements above."
        for label, cell in other_experiments(found).items()
        if cell.ours is not None
    ]


def _splits(found: Findings) -> list[str]:
    """Whether swap pairs scatter less, on the paper's data first."""
    return [
        f"**SWAP against random splits**, {splitting_setting(one)}: {spread_words(one)}" for one in found.splittings[:1]
    ]


def time_line(found: Findings) -> str:
    """What all of it took, beside what the paper states."""
    if not found.spent:
        return ""
    days = listed([str(n) for n in text_values()["compute_claims_days_4xA40"].values()])
    each = [f"{duration(seconds)} of {device_name(device)}" for device, seconds in totals(found.spent).items()]
    scales = {one.scale for one in found.spent if one.scale}
    part = ", part of it at small scale" if "small" in scales else ""
    return (
        f"**Time**: everything on this page took {listed(each)}{part}. The paper states {days} days on four A40s, for "
        "experiments that are these in part."
    )
