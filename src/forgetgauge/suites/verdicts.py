"""What a judged statement of the paper is, and the words and numbers that its figure is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from forgetgauge.suites.findings import Stored
from forgetgauge.suites.paper import PRINTED, table_name
from forgetgauge.suites.records import TableComparison
from forgetgauge.wording import listed

Verdict = Literal["confirmed", "not confirmed", "undecided", "not run"]

APPROXIMATE = ("neg-grad", "retrain-final", "ft-final", "fisher", "salun", "ssd")
"""The methods that claims are about; Retrain and None are yardsticks."""

Statement = tuple[str, str, str]
"""A claim's name, the paper's words, and the rule by which it is judged."""


@dataclass(frozen=True)
class Claim:
    """One statement of the paper."""

    name: str
    words: str
    """The paper's."""
    rule: str
    """When it counts as confirmed."""
    verdict: Verdict
    figure: str = ""
    """The numbers behind the verdict; empty where nothing was run."""
    source: str = ""
    """Which of our results."""
    why: tuple[str, ...] = ()
    """All that leaves it undecided, chance apart: what was never played first. Empty where it is chance alone, or where
    it is decided."""
    aside: str = ""
    """What stands beside its name where there is room for a few words only."""


MISSING = "a column or number is missing"
BORROWED = "strengths were not chosen for each column"
TOO_FEW = "too few methods forget without damage"
SAME_MODELS = "Table 8’s columns share models"
ANOTHER = "trained by another recipe than the paper’s"
GUESSED = "model and batch size are guessed"
CHANCE = "too few runs"
"""What leaves a claim undecided. Of columns that have the same models no number of runs would tell more."""


def reasons(found: Mapping[str, object]) -> tuple[str, ...]:
    """Those that hold, in the order in which they are given: what was never played stands before what it shows."""
    return tuple(why for why, holds in found.items() if holds)


def source_of(stored: Stored) -> str:
    """Where a number is from: `Table 1, paper scale, strengths by price`."""
    table = stored.comparison
    return ", ".join(filter(None, [table_name(table.name), f"{table.scale} scale", stored.strengths]))


def why_open(verdict: Verdict, missing: Sequence[str]) -> tuple[str, ...]:
    """`Claim.why` of a claim that only wants what is missing."""
    return reasons({MISSING: missing and verdict == "undecided"})


def named(methods: Sequence[str]) -> str:
    """Methods as the paper prints them."""
    return listed([PRINTED.get(method, method) for method in methods]) or "none"


def incomplete(parts: Sequence[str]) -> str:
    """`; missing: SSD at 150`: what a rule names and nobody knows, so that nothing is decided; empty without."""
    return f"; missing: {', '.join(parts)}" if parts else ""


def judged(low: float, high: float, bar: float) -> Verdict:
    """Is something at least `bar`, by its interval?"""
    return "confirmed" if low >= bar else "not confirmed" if high < bar else "undecided"


def interval_of(table: TableComparison, row: str, label: str) -> tuple[float, float] | None:
    """Of one cell, over pairs; None where there is none, or one for the models at hand alone, or of a column that does
    not count."""
    cell = table.rows.get(row, {}).get(label)
    if cell is None or cell.ours is None or label in table.not_run or set(table.basis) - {"over pairs"}:
        return None
    return cell.ours.interval
