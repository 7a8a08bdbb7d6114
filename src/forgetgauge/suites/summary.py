"""What a reader who has only the paper wants to know first: what is confirmed, what is not, why, and what it took.

A minute's worth stands first; `at_length` has the same at more length. Every sentence is made from what is stored, so
that it changes when a table is run again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from forgetgauge.suites.agreement import inside_words
from forgetgauge.suites.device_time import device_name, duration, totals
from forgetgauge.suites.findings import APART, PRIVATE, Findings, other_experiments, private_models
from forgetgauge.suites.frontier import Frontiers, Measured, PaperCell, joined, paper_cells, quality_of
from forgetgauge.suites.paper import KEYS, PRINTED
from forgetgauge.suites.ranking_claims import approximate_columns, paper_tau, tau_of_all
from forgetgauge.suites.removal_claims import removal_shown
from forgetgauge.suites.tables import OUTLINES
from forgetgauge.suites.verdicts import CHANCE, Claim, interval_of
from forgetgauge.wording import listed, plain, tau_text

WORDS = 260
"""As many as a reader takes in within a minute."""


def in_a_minute(found: Findings, judged: Sequence[Claim]) -> list[str]:
    """What there is to know first, a line each, no more than `WORDS` in all; what nothing is known of is left out."""
    every = [
        *_verdicts(found, judged),
        _not_whole(found),
        *_side_by_side(found),
        _removal(found),
        *_why_numbers_differ(found),
        _inside(found),
        _unverifiable(found),
        _time_in_short(found),
    ]
    return [line for line in every if line]


def _verdicts(found: Findings, judged: Sequence[Claim]) -> list[str]:
    """The paper's statements in words, by verdict."""
    by = {verdict: [claim for claim in judged if claim.verdict == verdict] for verdict in _CALLED}
    rankings = [claim for claim in judged if "rank" in claim.name]
    reasons = []
    for why, claims in by_reason(by["undecided"]).items():
        every = bool(rankings) and len(claims) == len(rankings) and all(one in claims for one in rankings)
        reasons.append(f"{why} ({f'all {len(claims)} rankings' if every else len(claims)})")
    several = "; reasons overlap" if any(len(claim.why) > 1 for claim in by["undecided"]) else ""
    said = {
        "confirmed": _with_findings(by["confirmed"]),
        "not confirmed": _with_findings(by["not confirmed"]),
        "undecided": "; ".join(reasons),
        "not run": "; ".join(f"{one.name}{f' ({one.aside})' if one.aside else ''}" for one in by["not run"]),
    }
    lines: list[str] = []
    for verdict, words in said.items():
        if words:
            of = "" if lines else f" of {len(judged)} statements"
            of += several if verdict == "undecided" else ""
            lines.append(f"{_CALLED[verdict]} ({len(by[verdict])}{of}): {words}.")
    return lines


_CALLED = {
    "confirmed": "**Confirmed**",
    "not confirmed": "**Not confirmed**",
    "undecided": "**Undecided**",
    "not run": "**Not run**",
}


def by_reason(undecided: Sequence[Claim]) -> dict[str, list[Claim]]:
    """Why -> claims, the commonest first; one that has several reasons stands under each."""
    found: dict[str, list[Claim]] = {}
    for claim in undecided:
        for why in claim.why or (CHANCE,):
            found.setdefault(why, []).append(claim)
    return dict(sorted(found.items(), key=lambda one: -len(one[1])))


def _not_whole(found: Findings) -> str:
    """`Tables 2, 6 and 7`: of the paper's tables that were run, those that paper scale has in part or not at all."""
    whole = {
        s.comparison.name
        for s in (*found.stored.values(), *found.also)
        if s.comparison.scale == "paper" and not s.comparison.not_run
    }
    every = list(KEYS)
    places = [every.index(name) for name in every if found.every(name) and name not in whole]
    names = [every[place].removeprefix("table") for place in places]
    if not names:
        return ""
    in_a_row = len(names) > 2 and places[-1] - places[0] == len(places) - 1
    told = f"{names[0]} to {names[-1]}" if in_a_row else listed(names)
    return f"**Not whole at paper scale**: Table{'s' * (len(names) > 1)} {told}."


def _with_findings(every: Sequence[Claim]) -> str:
    return "; ".join(f"{claim.name} ({_finding(claim)})" for claim in every)


def _finding(claim: Claim) -> str:
    """The first of its figures and where it is from, for someone who has not read how it is made."""
    figure = re.split(r"[;,](?![^\[]*\])", claim.figure)[0].replace("τ = ", "rankings correlate by ")
    return "; ".join(filter(None, [figure, _in_short(claim.source)]))


def _in_short(source: str) -> str:
    """`Tables 1 and 3` of two sources that name strengths and columns too: each is stripped by itself. Paper
    scale goes without saying, but not beside another: `Table 1, paper scale, and Table 3, small scale`."""
    each = re.split(r"(?:, | and )(?=Table )", source)
    bare = [re.sub(r", (strengths|one strength|published settings|[^,=]+ = ).*", "", one) for one in each]
    named = [re.sub(r", [a-z]+ scale\b.*", "", one) for one in bare]
    scales = {one.removeprefix(name) for one, name in zip(bare, named, strict=True)}
    if len(scales) > 1:
        return f"{'; '.join(bare[:-1])}, and {bare[-1]}"
    (scale,) = scales
    scale = "" if scale.startswith(", paper scale") else scale
    if len(named) > 1:
        return f"Tables {listed([name.removeprefix('Table ') for name in named])}{scale}"
    return f"{named[0]}{scale}"


def _side_by_side(found: Findings) -> list[str]:
    """What is given as ours/the paper's; the first of the lines says so for both."""
    rankings, falls = _rankings(found), _none_falls(found)
    if not rankings:
        return [f"{falls[0]} (ours/the paper’s){falls[1]}" if falls else ""]
    below = ", also below" if falls else ""
    return [f"{rankings[0]} (ours/the paper’s{below}){rankings[1]}", "".join(falls)]


def _rankings(found: Findings) -> tuple[str, str] | tuple[()]:
    """What runs show of rankings, though no claim is decided by it: all methods are in, idle and damaged ones too."""
    told: list[str] = []
    for name, outline in OUTLINES.items():
        stored = private_models(found, name) if name in PRIVATE else found.fullest(name)
        tau = None if stored is None or outline.layout != "quality" else tau_of_all(stored)
        if tau is not None and stored is not None:
            theirs = paper_tau(name, tau.methods, list(approximate_columns(stored)))
            told.append(f"{name.removeprefix('table')} {tau_text(tau.value)}/{tau_text(theirs)}")
    return ("**τ between columns**", f", methods in every column: Table {', '.join(told)}.") if told else ()


def _none_falls(found: Findings) -> tuple[str, str] | tuple[()]:
    """Q of None along ε, in the paper's form, beside the paper's. That it falls only where the intervals of both ends
    say so; other experiments are no ends, and are called what they are."""
    stored = found.fullest("table3")
    if stored is None:
        return ()
    table = stored.comparison
    cells = {at: cell for at, cell in table.rows.get("none", {}).items() if at not in table.not_run}
    both = {at: (cell.as_paper, cell.paper) for at, cell in cells.items()}
    known = {at: (ours.value, theirs) for at, (ours, theirs) in both.items() if ours and theirs is not None}
    if len(known) < 2:
        return ()
    others = other_experiments(found)
    ends = [interval_of(table, "none", at) for at in known if at not in others]
    first, last = (ends[0], ends[-1]) if ends else (None, None)
    falls = " falls" if first and last and first[0] > last[1] else ""
    apart = {at: " (ours: another experiment)" if at in others else "" for at in known}
    each = ", ".join(f"{plain(ours)}/{plain(theirs)}{apart[at]}" for at, (ours, theirs) in known.items())
    return f"**Q of None{falls}**", f" at ε = {', '.join(known).replace('inf', '∞')}: {each}."


def _removal(found: Findings) -> str:
    """What the table beside Table 8 shows."""
    stored = found.fullest("table8-visible")
    words = "" if stored is None else removal_shown(stored.comparison)
    return f"**Beside Table 8** {words}." if words else ""


def _why_numbers_differ(found: Findings) -> list[str]:
    """In short: what a choice of strength does, and which of the paper's numbers no strength of ours reaches."""
    curves = found.frontiers
    if curves is None or not ranges(curves):
        return []
    cells = [cell for cell in paper_cells(curves) if cell.method in curves.curves]
    reached = [
        f"{PRINTED[cell.method]} for {100 * lost:.1f}"
        for cell in cells
        if cell.how != "not met" and (lost := _lost_there(curves, cell)) is not None
    ]
    not_met = [
        f"{PRINTED[cell.method]} ({plain(cell.quality)}; at {_end(cell)} {plain(cell.ours)})"
        for cell in cells
        if cell.how == "not met" and cell.ours is not None
    ]
    said = [f"reached by {listed(reached)} points"] if reached else []
    said += [f"not by {listed(not_met)}"] if not_met else []
    at = f" At η = 1.0 of Table 1 the paper’s Q is {', '.join(said)}." if said else ""
    return [f"**Why numbers differ**: partly strengths, which the paper omits.{at}"]


def _end(cell: PaperCell) -> str:
    """All that was played lies on one side of a number that is not met."""
    return "most" if cell.ours is not None and cell.ours < cell.quality else "least"


def _lost_there(curves: Frontiers, cell: PaperCell) -> float | None:
    """Accuracy that it costs, from the less accurate of Retrain and None."""
    ends = [point.accuracy for point in (curves.none, curves.retrain) if point.accuracy is not None]
    return None if cell.accuracy is None or not ends else min(ends) - cell.accuracy


def _inside(found: Findings) -> str:
    """How many numbers agree, by what they are."""
    words = inside_words(found)
    return f"**Inside the paper’s ±**: {words}." if words else ""


def _unverifiable(found: Findings) -> str:
    """How many results carry no decisions."""
    n_without = sum(not one.carries for one in found.evidence)
    if not n_without:
        return ""
    return f"**Cannot be verified**: {n_without} of {len(found.evidence)} results (below)."


def _time_in_short(found: Findings) -> str:
    """What all of it took."""
    if not found.spent:
        return ""
    return f"**Time**: {spent_words(found)}."


def spent_words(found: Findings) -> str:
    """`2 h 8 min of one NVIDIA H200 and 1 h 13 min of a processor core`."""
    return listed([f"{duration(seconds)} of {device_name(device)}" for device, seconds in totals(found.spent).items()])


def ranges(curves: Frontiers) -> list[str]:
    """`Fisher 0.485 (0.762) to 0.786 (0.636)`: of methods whose Q moves along the strength, published settings
    included; accuracy in brackets."""
    every: list[str] = []
    for method in curves.curves:
        points = joined(curves, method).points
        measured = [point for point in points if point.quality is not None and point.accuracy is not None]
        if len(measured) > 1:
            least, most = (pick(measured, key=quality_of) for pick in (min, max))
            if quality_of(most) - quality_of(least) > APART:
                every.append(f"{PRINTED[method]} {point_words(least)} to {point_words(most)}")
    return every


def point_words(point: Measured) -> str:
    """`0.485 (0.762)`: Q, and accuracy in brackets."""
    return f"{plain(quality_of(point))} ({'–' if point.accuracy is None else plain(point.accuracy)})"
