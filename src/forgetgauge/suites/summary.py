"""What a reader who has only the paper wants to know first: what holds, what does not, why, and what we find besides.

A minute's worth, in paragraphs. Every sentence is made from what is stored, so that it changes when a table is run
again; what nothing is known of is left out.
"""

from __future__ import annotations

from collections.abc import Sequence

from forgetgauge.suites.claim import ENDS, Claim, at_scale, scale_aside
from forgetgauge.suites.compare import ROUNDING, damage_to, judged_cells
from forgetgauge.suites.device_time import device_name, duration, totals
from forgetgauge.suites.findings import Findings
from forgetgauge.suites.frontier import Frontiers, joined
from forgetgauge.suites.frontier_words import PaperCell, paper_cells
from forgetgauge.suites.paper import KEYS, PRINTED, in_column, paper_table, table_name
from forgetgauge.wording import bracket, capital, counted, listed, plain


def in_a_minute(found: Findings, judged: Sequence[Claim]) -> list[str]:
    """Paragraphs in Markdown."""
    every = [
        _what_was_run(found),
        _decided("Confirmed", [claim for claim in judged if claim.holds == "yes"]),
        _decided("Not confirmed", [claim for claim in judged if claim.holds == "no"], _inside(found)),
        _why(found),
        _open([claim for claim in judged if claim.holds in ("open", "not run")]),
    ]
    return [paragraph for paragraph in every if paragraph]


def _what_was_run(found: Findings) -> str:
    """`Tables 1 and 8 were run at the paper’s scale, Table 2 in part; the others smaller.`"""
    whole, part, small = [], [], []
    for name in KEYS:
        every = found.every(name)
        at_paper = [one.comparison for one in every if one.comparison.scale == "paper"]
        if any(not table.not_run for table in at_paper):
            whole.append(name)
        elif at_paper:
            part.append(name)
        elif every:
            small.append(name)
    said = [f"{_tables(whole)} at the paper’s scale"] if whole else []
    said += [f"{_tables(part)} partly so"] if part else []
    said += [f"{'the others' if whole or part else _tables(small)} smaller"] if small else []
    never = [name for name in KEYS if name not in (*whole, *part, *small)]
    missing = f" {_tables(never)} {'was' if len(never) == 1 else 'were'} not run." if never else ""
    return f"We ran {listed(said)}.{missing}" if said else ""


def _tables(names: Sequence[str]) -> str:
    """`Tables 1 and 8`; the halves of a table are one."""
    numbers = list(dict.fromkeys(name.removeprefix("table").rstrip("ab") for name in names))
    return f"Table{'s' * (len(numbers) > 1)} {listed(numbers)}"


def _decided(heading: str, those: Sequence[Claim], more: str = "") -> str:
    rankings = [claim for claim in those if claim.alike]
    alike = listed([claim.alike for claim in rankings])
    harmed = listed(list(dict.fromkeys(method for claim in rankings for method in claim.harmed)))
    cost = f", though {harmed} lose accuracy then" if harmed else ""
    if all(claim.only_harmed for claim in rankings):
        cost = f", but beyond chance only as to {harmed}, which lose accuracy"
    said = [claim.short or claim.finding for claim in those if not claim.alike] + [more] * bool(more)
    if rankings:
        said.insert(1, f"published settings (NegGrad has none) rank methods alike across {alike}{cost}")
    return f"**{heading}.** {' '.join(f'{capital(text)}.' for text in said)}" if said else ""


def _open(those: Sequence[Claim]) -> str:
    topics = list(dict.fromkeys(claim.statement.topic for claim in those))
    across = [topic.removeprefix(ACROSS) for topic in topics if topic.startswith(ACROSS)]
    said = [topic for topic in topics if not topic.startswith(ACROSS)]
    said += [f"{ACROSS}{listed(across)}"] if across else []
    n, n_small = len(those), sum("small scale" in claim.source for claim in those)
    aside = f", {n_small} judged at small scale" if n_small else ""
    return f"**Open.** {counted(n, 'statement')}{aside}, on {'; '.join(said)}." if said else ""


ACROSS = "rankings across "


def _why(found: Findings) -> str:
    """What a choice of strength does, which of the paper's numbers no strength of ours reaches, and where there is
    none to choose."""
    curves = found.frontiers
    if curves is None:
        return ""
    cells = [cell for cell in paper_cells(curves) if cell.method in curves.curves]
    reached = [
        f"{PRINTED[cell.method]} ({100 * lost:.1f} points)"
        for cell in cells
        if cell.how != "not met" and (lost := _lost_there(curves, cell)) is not None
    ]
    missed = [cell for cell in cells if cell.how == "not met" and cell.ours is not None]
    missed = sorted(missed, key=lambda cell: abs(cell.quality - (cell.ours or 0.0)))
    names = listed([PRINTED[cell.method] for cell in missed])
    said = [f"is reached, at a loss of accuracy, by {listed(reached)}"] if reached else []
    be = "" if reached else "is "
    said += [f"{be}not by {names} in what we tried ({_not_met(curves, missed[-1])})"] if missed else []
    if not said:
        return ""
    return (
        "**Why numbers differ.** Q depends on how strongly methods are applied, which the paper does not say. On all "
        f"data (Table 1) its Q {', but '.join(said)}.{_without_strength(curves)}"
    )


def _not_met(curves: Frontiers, cell: PaperCell) -> str:
    """`SSD at most 0.666 [0.559, 0.786], not 0.928`: all that was played lies on one side of it."""
    end = "most" if cell.ours is not None and cell.ours < cell.quality else "least"
    known = [point.quality for point in joined(curves, cell.method).points if point.quality is not None]
    ends = next((one.interval for one in known if one.value == cell.ours), None)
    at = plain(cell.ours or 0.0) + ("" if ends is None else f" {bracket(ends)}")
    return f"{PRINTED[cell.method]} at {end} {at}, not {plain(cell.quality)}"


def _lost_there(curves: Frontiers, cell: PaperCell) -> float | None:
    """Accuracy that it costs, from the less accurate of Retrain and None."""
    return None if cell.accuracy is None or curves.usual is None else curves.usual - cell.accuracy


def _without_strength(curves: Frontiers) -> str:
    """The methods of which no choice of a strength explains how far they are from the paper's Table 1; its Table 2 has
    them in what we take for the same setting (`slips`), and what is inside its ± there is said to be."""
    cells = [one for one in paper_cells(curves) if one.method in curves.fixed and one.how == "not met"]
    if not cells:
        return ""
    names = listed([PRINTED[cell.method] for cell in cells])
    theirs = listed(list(dict.fromkeys(plain(cell.quality) for cell in cells)))
    also = [paper_table("table2").rows[cell.method]["0.1"] for cell in cells]
    agree = all(abs((c.ours or 0.0) - v.mean) <= (v.spread or 0.0) + ROUNDING for c, v in zip(cells, also, strict=True))
    second = " but agree with its Table 2" if agree else ""
    return f" {names} have nothing to set: ours miss its {theirs}{second}."


def _inside(found: Findings) -> str:
    """How many numbers of Table 1 lie inside the paper's ±, with published settings."""
    stored = found.fullest("table1")
    if stored is None or not stored.by_price:
        return ""
    inside = [bool(cell.inside) for row, cell in judged_cells(stored.comparison, published=True) if row not in ENDS]
    where = table_name("table1") + scale_aside(stored)
    lie = "lies" if sum(inside) == 1 else "lie"
    return f"of {len(inside)} numbers of {where} with published settings {sum(inside)} {lie} inside the paper’s ±"


def at_a_price(found: Findings) -> str:
    """What a reader may take home: what methods do that may cost a point of accuracy, on all data; and where most is to
    be forgotten, so that retraining itself costs accuracy and a price leaves room."""
    said = [words for at in (("table1", "1.0"), ("table2", "0.67")) if (words := _best_at_a_price(found, *at))]
    if not said:
        return ""
    return (
        "**What we find besides.** With strengths chosen for a price of one point a method gains over doing nothing, "
        f"beyond chance and without damage, at most {' and '.join(said)}."
    )


def _best_at_a_price(found: Findings, name: str, label: str) -> str:
    """`0.059 (Fisher) of Retrain’s 0.506 (Table 1, η = 1.0)`: of one column the largest gain over None beyond chance,
    of methods that kept the price and their models."""
    stored = next((one for one in found.every(name) if one.by_price and label in one.games), None)
    if stored is None:
        return ""
    table, game = stored.comparison, stored.games[label]
    none, retrain = (ends[label].ours if (ends := table.rows.get(row)) else None for row in ("none", "retrain"))
    tuned = {method: one.tuning for method, one in game.methods.items() if one.tuning is not None}
    kept = {method for method, tuning in tuned.items() if tuning.holds and method not in damage_to(game)}
    if none is None or retrain is None or not kept:
        return ""
    gains = {method: gain for method, gain in table.over_none[label].items() if method in kept}
    sure = {method: gain.value for method, gain in gains.items() if gain.interval and gain.interval[0] > 0}
    best = max(sure, key=lambda method: sure[method], default="")
    what = f"{plain(sure[best])} ({PRINTED[best]})" if best else "nothing"
    where = f"{table.label}, {in_column(table.variable, label)}{at_scale(stored)}"
    return f"{what} of Retrain’s {plain(retrain.value - none.value)} ({where})"


def checked(found: Findings) -> str:
    """How a reader can see for themselves."""
    if not found.evidence:
        return ""
    n, every = sum(one.carries for one in found.evidence), len(found.evidence)
    which = "Every result of a game carries its" if n == every else f"{n} of {every} results carry their"
    return f"{which} decisions, for `forgetgauge verify` to check."


def spent_words(found: Findings) -> str:
    """`2 h 8 min of one NVIDIA H200 and 1 h 13 min of a processor core`."""
    return listed([f"{duration(seconds)} of {device_name(device)}" for device, seconds in totals(found.spent).items()])
