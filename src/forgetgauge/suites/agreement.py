"""How many of our numbers lie within the paper's ±, told apart by what they are.

Each table counts once. Columns of Tables 3 to 5 whose models memorise far less or more than the paper's are left out:
as numbers they compare with nothing.
"""

from __future__ import annotations

from forgetgauge.suites.claim import APPROXIMATE
from forgetgauge.suites.compare import judged_cells
from forgetgauge.suites.findings import Findings, Stored
from forgetgauge.suites.records import CompareCell
from forgetgauge.suites.strengths import METHOD_OF
from forgetgauge.suites.tables import OUTLINES

KINDS = (
    "Q of approximate methods, paper scale",
    "Q of Retrain and None, paper scale",
    "Q, small scale",
    "IC, MIA and accuracy",
)
"""What a number may be."""
PRIVATE = ("table3", "table4a", "table4b", "table5a", "table5b")
"""Tables whose columns are the privacy budgets of training."""
APART = 0.1
"""Differences of Q that no choice of a seed makes."""


def other_experiments(found: Findings) -> dict[str, CompareCell]:
    """The columns of Table 3 in which None itself is far from the paper's: there our models memorise less or more than
    the paper's, as they do in Tables 4 and 5, which have the same models."""
    stored = found.fullest("table3")
    cells = {} if stored is None else stored.comparison.rows.get("none", {})
    return {
        label: cell
        for label, cell in cells.items()
        if cell.ours is not None and cell.paper is not None and abs(cell.ours.value - cell.paper) > APART
    }


def agreement(found: Findings, *, published: bool = False) -> dict[str, tuple[int, int]]:
    """Kind -> how many lie within the paper's ±, and of how many; kinds of which there is none are left out."""
    counts: dict[str, list[bool]] = {kind: [] for kind in KINDS}
    apart = other_experiments(found)
    for stored in (one for name in OUTLINES if (one := found.fullest(name)) is not None):
        without = apart if stored.comparison.name in PRIVATE else ()
        for row, cell in judged_cells(stored.comparison, published=published, without=without):
            counts[_kind(stored, METHOD_OF.get(row, row))].append(bool(cell.inside))
    return {kind: (sum(inside), len(inside)) for kind, inside in counts.items() if inside}


def inside_words(found: Findings, *, published: bool = False) -> str:
    """`Q of approximate methods, paper scale: 0 of 24; …`."""
    return "; ".join(f"{kind}: {inside} of {n}" for kind, (inside, n) in agreement(found, published=published).items())


def _kind(stored: Stored, row: str) -> str:
    methods, ends, small, others = KINDS
    if OUTLINES[stored.comparison.name].layout != "quality":
        return others
    if stored.comparison.scale != "paper":
        return small
    return methods if row in APPROXIMATE else ends
