"""The summary at more length: which statements are undecided and why, and the numbers behind what stands first."""

from __future__ import annotations

from collections.abc import Sequence

from forgetgauge.results.utility import unseen_accuracy
from forgetgauge.suites.agreement import inside_words, judged_tables
from forgetgauge.suites.compare import difference_text, judged_cells
from forgetgauge.suites.evidence import named_evidence
from forgetgauge.suites.findings import Findings, Stored, other_experiments
from forgetgauge.suites.paper import PRINTED, in_column, paper_table, text_values
from forgetgauge.suites.records import CompareCell, TableComparison
from forgetgauge.suites.splits_page import splitting_setting, spread_words
from forgetgauge.suites.strengths import PUBLISHED
from forgetgauge.suites.summary import by_reason, point_words, ranges, spent_words
from forgetgauge.suites.tables import OUTLINES
from forgetgauge.suites.verdicts import APPROXIMATE, Claim, source_of
from forgetgauge.wording import listed, plain


def at_length(found: Findings, judged: Sequence[Claim]) -> list[str]:
    """What stands first in full: which statements are undecided, and the numbers behind the rest."""
    every = [
        *_undecided_at_length(judged),
        *_at_a_price(found),
        *_numbers(found),
        *_strengths(found),
        *_memorised(found),
        *_splits(found),
        *_unverifiable(found),
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


def _undecided_at_length(judged: Sequence[Claim]) -> list[str]:
    open_ones = by_reason([claim for claim in judged if claim.verdict == "undecided"])
    return [f"**Undecided** ({why}): {_names(claims)}." for why, claims in open_ones.items()]


def _names(every: Sequence[Claim]) -> str:
    return "; ".join(claim.name for claim in every) or "none"


def _numbers(found: Findings) -> list[str]:
    """How many cells agree, and which way the others are off; each table counts once."""
    shown = judged_tables(found)
    words = inside_words(found)
    if not words:
        return []
    quality = [cell for s in shown for cell in _of_quality(s)]
    below = [cell for cell in quality if cell.as_paper and cell.paper and cell.as_paper.value < cell.paper]
    which = listed([_which(stored) for stored in shown if any(judged_cells(stored.comparison))])
    as_published = inside_words(found, published=True)
    apart = f" With published settings, which are counted apart: {as_published}." if as_published else ""
    return [
        f"**The numbers themselves**: computed as we read the paper, inside its ± lie, of {words}: "
        "those of its own rows, each table once, as statements are judged, without columns that count for none "
        f"({which}).{apart} Of the {len(quality)} outside it that are the Q of an approximate method, {len(below)} are "
        "lower than the paper’s."
    ]


def _which(stored: Stored) -> str:
    """`Table 1 by price, paper scale`."""
    price = " by price" if stored.by_price else ""
    return f"{stored.comparison.label}{price}, {stored.comparison.scale} scale"


def _of_quality(stored: Stored) -> list[CompareCell]:
    """The cells of approximate methods that lie outside the paper's ±, in a table of Q."""
    if OUTLINES[stored.comparison.name].layout != "quality":
        return []
    return [cell for row, cell in judged_cells(stored.comparison) if row in APPROXIMATE and not cell.inside]


def _strengths(found: Findings) -> list[str]:
    """Q is a function of what the paper does not state."""
    curves = found.frontiers
    every = [] if curves is None else ranges(curves)
    if curves is None or not every:
        return []
    return [
        "**Strengths**: the paper does not say how strongly its methods were applied, and Q depends on that. On the "
        f"same models (Table 1, η = 1.0) the strengths that we tried and those published give {listed(every)}, "
        f"accuracy in brackets; None has {point_words(curves.none)}.{_published(found)} No strength of ours was "
        f"chosen by looking at Q.{_without_strength(found)}"
    ]


def _without_strength(found: Findings) -> str:
    """The methods of the last layer have no strength: whatever sets them off from the paper's is something else."""
    stored = next((s for s in (*found.shown("table1"), *found.besides("table1")) if s.by_price), None)
    printed = paper_table("table2").rows
    off: list[str] = []
    inside: list[bool] = []
    for row in ("retrain-final", "ft-final"):
        cell = None if stored is None else stored.comparison.rows[row].get("1.0")
        if cell is None or cell.as_paper is None or cell.paper is None:
            return ""
        other = printed[row]["0.1"]
        off.append(f"{plain(abs(cell.as_paper.value - cell.paper))}")
        inside.append(abs(cell.as_paper.value - other.mean) <= (other.spread or 0.0))
    met = " yet inside the ± of its Table 2 (α = 0.1), which we take for the same setting" if all(inside) else ""
    return (
        f" Strengths are not all of it: Retr-final and Ft-final have none and are {listed(off)} off the paper’s Table "
        f"1 at η = 1.0{met}."
    )


def _published(found: Findings) -> str:
    """What the settings of methods' authors give in every column."""
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


def _memorised(found: Findings) -> list[str]:
    """Columns in which our models are not the paper's."""
    return [
        f"**Table 3 at {in_column('ε', label)}** is another experiment, and so are Tables 4 and 5 there: we failed to "
        "make the paper’s models: Q of None, the lower the more they remember, is "
        f"{plain((cell.as_paper or cell.ours).value)} with ours, computed as the paper’s, and {plain(cell.paper or 0)} "
        "with the paper’s. These columns count for none of the statements above."
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
    scales = {one.scale for one in found.spent if one.scale}
    part = ", part of it at small scale" if "small" in scales else ""
    return (
        f"**Time**: everything on this page took {spent_words(found)}{part}. The paper states {days} days on four "
        "A40s, for experiments that are these in part."
    )


def _unverifiable(found: Findings) -> list[str]:
    """Which of the results behind the page carry no decisions."""
    without = [one for one in found.evidence if not one.carries]
    return [f"**Cannot be verified**, since they carry no decisions: {named_evidence(without)}."] if without else []
