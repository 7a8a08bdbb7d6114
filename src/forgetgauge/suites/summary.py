"""What a reader who has only the paper wants to know first: what is confirmed, what is not, why, and what it took.

A minute's worth stands first, and below it the same at more length. Every sentence is made from what is stored, so that
it changes when a table is run again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from forgetgauge.results.utility import unseen_accuracy
from forgetgauge.suites.compare import difference_text, judged_cells
from forgetgauge.suites.device_time import device_name, duration, totals
from forgetgauge.suites.findings import APART, Findings, Stored, other_experiments
from forgetgauge.suites.frontier import Frontiers, Measured, PaperCell, joined, paper_cells, quality_of
from forgetgauge.suites.paper import KEYS, PRINTED, in_column, text_values
from forgetgauge.suites.records import CompareCell, TableComparison
from forgetgauge.suites.splits_page import splitting_setting, spread_words
from forgetgauge.suites.strengths import PUBLISHED
from forgetgauge.suites.tables import OUTLINES
from forgetgauge.suites.verdicts import APPROXIMATE, CHANCE, MISSING, Claim, source_of
from forgetgauge.wording import listed, plain

WORDS = 260
"""As many as a reader takes in within a minute."""


def in_a_minute(found: Findings, judged: Sequence[Claim]) -> list[str]:
    """What there is to know first, a line each, no more than `WORDS` in all; what nothing is known of is left out."""
    every = [*_verdicts(found, judged), *_why_numbers_differ(found), *_unverifiable(found), _time_in_short(found)]
    return [line for line in every if line]


def at_length(found: Findings, judged: Sequence[Claim]) -> list[str]:
    """The same in full: which statements are undecided, and the numbers behind the rest."""
    every = [
        *_undecided_at_length(judged),
        *_at_a_price(found),
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


def _verdicts(found: Findings, judged: Sequence[Claim]) -> list[str]:
    """The paper's statements in words, by verdict."""
    by = {verdict: [claim for claim in judged if claim.verdict == verdict] for verdict in _CALLED}
    rankings = [claim for claim in judged if "rank" in claim.name]
    reasons = []
    for why, claims in _by_reason(by["undecided"]).items():
        every = ", every ranking among them" if rankings and all(one in claims for one in rankings) else ""
        reasons.append(f"{why} ({len(claims)}{every})")
    away = [
        f"mostly ε = {label.replace('inf', '∞')}, where our models are not the paper’s"
        for label in other_experiments(found)
    ]
    reasons = [f"{reason}, {', '.join(away)}" if reason.startswith(MISSING) and away else reason for reason in reasons]
    several = "often for several reasons: " if any(len(claim.why) > 1 for claim in by["undecided"]) else ""
    said = {
        "confirmed": _with_findings(by["confirmed"]),
        "not confirmed": _with_findings(by["not confirmed"]),
        "undecided": several + "; ".join(reasons),
        "not run": "; ".join([*(claim.name for claim in by["not run"]), *_smaller(found)]),
    }
    lines: list[str] = []
    for verdict, words in said.items():
        if words:
            of = "" if lines else f" of {len(judged)} statements of the paper"
            of += ", listed below" if verdict == "undecided" else ""
            lines.append(f"{_CALLED[verdict]} ({len(by[verdict])}{of}): {words}.")
    return lines


_CALLED = {
    "confirmed": "**Confirmed**",
    "not confirmed": "**Not confirmed**",
    "undecided": "**Undecided**",
    "not run": "**Not run**",
}


def _by_reason(undecided: Sequence[Claim]) -> dict[str, list[Claim]]:
    """Why -> claims, the commonest first; one that has several reasons stands under each."""
    found: dict[str, list[Claim]] = {}
    for claim in undecided:
        for why in claim.why or (CHANCE,):
            found.setdefault(why, []).append(claim)
    return dict(sorted(found.items(), key=lambda one: -len(one[1])))


def _undecided_at_length(judged: Sequence[Claim]) -> list[str]:
    open_ones = _by_reason([claim for claim in judged if claim.verdict == "undecided"])
    return [f"**Undecided**, because {why}: {_names(claims)}." for why, claims in open_ones.items()]


def _smaller(found: Findings) -> list[str]:
    """`Tables 2, 6 and 7 in full at paper scale`: of the paper's tables."""
    names = [
        name.removeprefix("table")
        for name in KEYS
        if found.every(name)
        and not any(one.comparison.scale == "paper" and not one.comparison.not_run for one in found.every(name))
    ]
    return [f"Table{'s' * (len(names) > 1)} {listed(names)} in full at paper scale"] if names else []


def _with_findings(every: Sequence[Claim]) -> str:
    return "; ".join(f"{claim.name} ({_finding(claim)})" for claim in every)


def _names(every: Sequence[Claim]) -> str:
    return "; ".join(claim.name for claim in every) or "none"


def _finding(claim: Claim) -> str:
    """The first of its figures and where it is from, for someone who has not read how it is made."""
    figure = re.split(r"[;,](?![^\[]*\])", claim.figure)[0].replace("τ = ", "rankings correlate by ")
    return "; ".join(filter(None, [figure, re.sub(r", (strengths|one strength|[^,=]+ = ).*", "", claim.source)]))


def _why_numbers_differ(found: Findings) -> list[str]:
    """In short: how many agree, and what a choice of strength does."""
    counts, curves = _counts(found), found.frontiers
    agree = (
        f"Of {counts[1]} numbers in {_tables_counted(found)}, {counts[0]} lie within the paper’s ±. "
        if counts[1]
        else ""
    )
    ranges = [] if curves is None else _ranges(curves, with_accuracy=False)
    if curves is None or not ranges:
        return [f"**The numbers**: {agree}".strip()] if agree else []
    met = [cell for cell in paper_cells(curves) if cell.how != "not met" and cell.method in curves.curves]
    cost = [
        f"{PRINTED[cell.method]} for {100 * lost:.1f}"
        for cell in met
        if (lost := _lost_there(curves, cell)) is not None
    ]
    reached = (
        f" The paper’s Q is reached, within what was played, by {listed(cost)} points of accuracy." if cost else ""
    )
    return [
        f"**Why numbers differ**: {agree}Q depends on how strongly a method is applied, which the paper does not say. "
        f"On the same models, by strength alone, Q of {listed(ranges)}; None has "
        f"{plain(quality_of(curves.none))}.{reached}"
    ]


def _lost_there(curves: Frontiers, cell: PaperCell) -> float | None:
    """Accuracy that it costs, from the less accurate of Retrain and None."""
    ends = [point.accuracy for point in (curves.none, curves.retrain) if point.accuracy is not None]
    return None if cell.accuracy is None or not ends else min(ends) - cell.accuracy


def _unverifiable(found: Findings) -> list[str]:
    """Which stored tables carry no decisions."""
    every = [one for one in (*found.stored.values(), *found.also) if one.verifiable is not None]
    without = [one.comparison.label for one in every if not one.verifiable]
    if not without:
        return []
    names = [f"{name} (twice)" if without.count(name) == 2 else name for name in dict.fromkeys(without)]
    numbers = listed([name.removeprefix("Table ") for name in names])
    return [
        f"**Cannot be verified**: {len(without)} of {len(every)} stored tables, which carry no decisions: "
        f"Table{'s' * (len(names) > 1)} {numbers}."
    ]


def _time_in_short(found: Findings) -> str:
    """What all of it took."""
    if not found.spent:
        return ""
    days = sum(text_values()["compute_claims_days_4xA40"].values())
    return f"**Time**: {_spent(found)} (the paper: {days} days on four A40s, for more)."


def _spent(found: Findings) -> str:
    return listed([f"{duration(seconds)} of {device_name(device)}" for device, seconds in totals(found.spent).items()])


def _tables_counted(found: Findings) -> str:
    """`Tables 1 to 7`: those of which it is known whether their cells agree."""
    shown = [stored for name in OUTLINES if (stored := found.fullest(name)) is not None]
    names = [stored.comparison.name.removeprefix("table") for stored in shown if judged_cells(stored.comparison)]
    return f"Table {names[0]}" if len(names) == 1 else f"Tables {names[0]} to {names[-1]}"


def _counts(found: Findings, *, published: bool = False) -> tuple[int, int]:
    """Cells inside the paper's ±, and of how many; each table once, as it is judged."""
    shown = [stored for name in OUTLINES if (stored := found.fullest(name)) is not None]
    cells = [cell for stored in shown for cell in judged_cells(stored.comparison, published=published)]
    return sum(bool(cell.inside) for cell in cells), len(cells)


def _numbers(found: Findings) -> list[str]:
    """How many cells agree, and which way the others are off; each table counts once."""
    shown = [stored for name in OUTLINES if (stored := found.fullest(name)) is not None]
    inside, n_cells = _counts(found)
    if not n_cells:
        return []
    quality = [cell for s in shown for cell in _of_quality(s)]
    below = [cell for cell in quality if cell.as_paper and cell.paper and cell.as_paper.value < cell.paper]
    which = listed([_which(stored) for stored in shown if judged_cells(stored.comparison)])
    as_published = _counts(found, published=True)
    settings = f" With published settings, which are counted apart, {as_published[0]} of {as_published[1]}."
    apart = settings if as_published[1] else ""
    return [
        f"**The numbers themselves**: computed as we read the paper, {inside} of our {n_cells} numbers lie within "
        f"the paper’s ±: those of its own rows, each table once, as statements are judged ({which}).{apart} Of the "
        f"{len(quality)} outside it that are the Q of an approximate method, {len(below)} are lower than the paper’s."
    ]


def _which(stored: Stored) -> str:
    """`Table 1 by price, paper scale`."""
    price = " by price" if stored.by_price else ""
    return f"{stored.comparison.label}{price}, {stored.comparison.scale} scale"


def _of_quality(stored: Stored) -> list[CompareCell]:
    """The cells of approximate methods that lie outside the paper's ±, in a table of Q."""
    table = stored.comparison
    if OUTLINES[table.name].layout != "quality":
        return []
    return [cell for m in APPROXIMATE for cell in table.rows.get(m, {}).values() if cell.inside is False]


def _ranges(curves: Frontiers, *, with_accuracy: bool) -> list[str]:
    """`Fisher 0.485 to 0.786`: of methods whose Q moves along the strength, published settings included."""
    ranges: list[str] = []
    for method in curves.curves:
        points = joined(curves, method).points
        measured = [point for point in points if point.quality is not None and point.accuracy is not None]
        if len(measured) > 1:
            least, most = (pick(measured, key=quality_of) for pick in (min, max))
            if quality_of(most) - quality_of(least) > APART:
                ends = [_point(one) if with_accuracy else plain(quality_of(one)) for one in (least, most)]
                verb = "" if with_accuracy else " goes from"
                ranges.append(f"{PRINTED[method]}{verb if not ranges else ''} {' to '.join(ends)}")
    return ranges


def _strengths(found: Findings) -> list[str]:
    """Q is a function of what the paper does not state."""
    curves = found.frontiers
    ranges = [] if curves is None else _ranges(curves, with_accuracy=True)
    if curves is None or not ranges:
        return []
    return [
        "**Strengths**: the paper does not say how strongly its methods were applied, and Q depends on that. On the "
        f"same models (Table 1, η = 1.0) the strengths that we tried and those published give {listed(ranges)}, "
        f"accuracy in brackets; None has {_point(curves.none)}.{_published(found)} No strength of ours was chosen by "
        "looking at Q."
    ]


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


def _point(point: Measured) -> str:
    return f"{plain(quality_of(point))} ({'–' if point.accuracy is None else plain(point.accuracy)})"


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
    scales = {one.scale for one in found.spent if one.scale}
    part = ", part of it at small scale" if "small" in scales else ""
    return (
        f"**Time**: everything on this page took {_spent(found)}{part}. The paper states {days} days on four A40s, for "
        "experiments that are these in part."
    )
