"""How many of our numbers lie within the paper's ±, told apart by what they are.

Each table counts once, as statements are judged by it; columns that count for no statement are left out.
"""

from __future__ import annotations

from forgetgauge.suites.compare import judged_cells
from forgetgauge.suites.findings import PRIVATE, Findings, Stored, private_models
from forgetgauge.suites.paper import PRINTED
from forgetgauge.suites.strengths import METHOD_OF
from forgetgauge.suites.tables import OUTLINES
from forgetgauge.suites.verdicts import APPROXIMATE
from forgetgauge.wording import listed

METHODS = "approximate methods"
ENDS = "Retrain and None"
SMALL = "small scale"
OTHERS = "IC, MIA and accuracy"
KINDS = (METHODS, ENDS, SMALL, OTHERS)
"""What a number may be: Q at paper scale, Q at small scale, and what is no Q."""


def judged_tables(found: Findings) -> list[Stored]:
    """Each table once, without the columns that are other experiments."""
    every = [private_models(found, name) if name in PRIVATE else found.fullest(name) for name in OUTLINES]
    return [stored for stored in every if stored is not None]


def agreement(found: Findings, *, published: bool = False) -> dict[str, tuple[int, int]]:
    """Kind -> how many lie within the paper's ±, and of how many; kinds of which there is none are left out."""
    counts: dict[str, list[bool]] = {kind: [] for kind in KINDS}
    for stored in judged_tables(found):
        for row, cell in judged_cells(stored.comparison, published=published):
            counts[_kind(stored, METHOD_OF.get(row, row))].append(bool(cell.inside))
    return {kind: (sum(inside), len(inside)) for kind, inside in counts.items() if inside}


def inside_words(found: Findings, *, published: bool = False) -> str:
    """`approximate methods of Table 1 (paper scale) 0 of 24; Retrain there 1 of 4; …`."""
    tables: dict[str, dict[str, None]] = {kind: {} for kind in KINDS}
    rows: dict[str, dict[str, None]] = {kind: {} for kind in KINDS}
    for stored in judged_tables(found):
        for row, _ in judged_cells(stored.comparison, published=published):
            kind = _kind(stored, METHOD_OF.get(row, row))
            tables[kind][stored.comparison.label] = None
            rows[kind][PRINTED.get(row, row)] = None
    names = {
        METHODS: f"{METHODS} of {listed(list(tables[METHODS]))} (paper scale)",
        ENDS: f"{listed(list(rows[ENDS]))} "
        + ("there" if tables[ENDS] == tables[METHODS] else f"of {listed(list(tables[ENDS]))} (paper scale)"),
    }
    counts = agreement(found, published=published)
    return "; ".join(f"{names.get(kind, kind)} {inside} of {n}" for kind, (inside, n) in counts.items())


def _kind(stored: Stored, row: str) -> str:
    if OUTLINES[stored.comparison.name].layout != "quality":
        return OTHERS
    if stored.comparison.scale != "paper":
        return SMALL
    return METHODS if row in APPROXIMATE else ENDS
