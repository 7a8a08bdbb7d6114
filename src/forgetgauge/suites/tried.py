"""Where the paper’s statements do not hold here, or are open: what was tried, in one place.

The words are by whoever ran it, in `tried.md` below the folder of results: a bullet for claims that are open for the
same reason, their names in bold before a colon. The page shows what belongs to claims that are open.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from forgetgauge.errors import UserError
from forgetgauge.suites.claim import Claim
from forgetgauge.suites.findings import read_notes

FILE = "tried.md"
OPEN = ("no", "open")
"""Of claims of which a reader asks what was tried."""


def read_tried(results: Path) -> dict[tuple[str, ...], str]:
    """Names of claims -> what was tried for them."""
    found: dict[tuple[str, ...], str] = {}
    for path in sorted(results.rglob(FILE)) if results.is_dir() else []:
        for bullet in read_notes(path):
            parts = re.fullmatch(r"\*\*(.+?)\*\*: (.+)", bullet)
            if parts is None:
                raise UserError(f"{path}: a bullet does not begin with names of claims in bold and a colon: {bullet}")
            found[tuple(parts[1].split("; "))] = parts[2]
    return found


def tried_lines(results: Path, judged: Sequence[Claim]) -> list[str]:
    """A line for each entry of which some claim is open, in the order of the claims; those that are decided are left
    out of its names."""
    verdicts = {claim.statement.name: claim.holds for claim in judged}
    entries = read_tried(results)
    lines = []
    for names, words in sorted(entries.items(), key=lambda entry: _place(entry[0], list(verdicts))):
        still = [name for name in names if verdicts.get(name) in OPEN]
        if still:
            lines.append(f"**{'; '.join(still)}**: {words}")
    return lines


def _place(names: tuple[str, ...], every: list[str]) -> int:
    return min((every.index(name) for name in names if name in every), default=len(every))
