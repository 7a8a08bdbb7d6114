"""What a judged statement of the paper is, and the words and numbers that its finding is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from forgetgauge.suites.findings import Stored
from forgetgauge.suites.paper import PRINTED, table_name
from forgetgauge.suites.records import TableComparison
from forgetgauge.suites.strengths import METHODS
from forgetgauge.wording import listed

Holds = Literal["yes", "no", "open", "not run"]
"""Whether our numbers show what the paper says: beyond intervals, the opposite beyond intervals, or neither."""

ENDS = ("retrain", "none")
"""Yardsticks."""
APPROXIMATE = tuple(method for method in METHODS if method not in ENDS)
"""The methods that claims are about."""


@dataclass(frozen=True)
class Claim:
    """A statement of the paper beside what we find."""

    statement: Statement
    holds: Holds
    finding: str = ""
    """What our numbers show, in a sentence without its full stop; empty where nothing was run."""
    short: str = ""
    """The same for the summary, where the claim is decided; empty: its finding."""
    source: str = ""
    """Which of our results."""
    alike: str = ""
    """`sizes of the data (τ 0.67)`: of a ranking that holds across these, in place of `short`; its mean Kendall τ."""
    harmed: tuple[str, ...] = ()
    """Methods that damage their models in a ranking, as the paper prints them."""
    only_harmed: bool = False
    """Whether nothing is ranked alike beyond chance but these against others."""


@dataclass(frozen=True)
class Statement:
    """What the paper says, and when that counts as shown."""

    name: str
    topic: str
    """What it is about, where there is room for a few words only."""
    words: str
    """The paper's."""
    rule: str
    """When it holds here, and when it does not."""

    def judged(self, holds: Holds, finding: str = "", source: str = "", short: str = "") -> Claim:
        """What came of it."""
        return Claim(self, holds, finding, short, source)

    @property
    def not_run(self) -> Claim:
        """Nothing is stored that it could be judged by."""
        return Claim(self, "not run")


def source_of(stored: Stored, settings: str = "") -> str:
    """Where a number is from: `Table 1, paper scale, strengths by price`, or of which rows of it."""
    table = stored.comparison
    return ", ".join(filter(None, [table_name(table.name), f"{table.scale} scale", settings or stored.strengths]))


def at_scale(stored: Stored) -> str:
    """`, small scale`; nothing at the paper's own."""
    scale = stored.comparison.scale
    return "" if scale == "paper" else f", {scale} scale"


def scale_aside(stored: Stored) -> str:
    """` (small scale)`; nothing at the paper's own."""
    return f" ({at_scale(stored)[2:]})" if at_scale(stored) else ""


def of_paper_scale(scales: Sequence[str]) -> str:
    """` (9 at the paper’s scale)`, of columns at these; nothing where all are."""
    n = list(scales).count("paper")
    return "" if n == len(scales) else f" ({n} at the paper’s scale)"


def named(methods: Sequence[str]) -> str:
    """Methods as the paper prints them."""
    return listed([PRINTED.get(method, method) for method in methods]) or "none"


def lacking(parts: Sequence[str]) -> str:
    """`; missing: SSD at 150`: what a rule names and nobody knows; empty without."""
    return f"; missing: {', '.join(parts)}" if parts else ""


def by_interval(low: float, high: float, bar: float) -> Holds:
    """Is something at least `bar`, by its interval?"""
    return "yes" if low >= bar else "no" if high < bar else "open"


def interval_of(table: TableComparison, row: str, label: str) -> tuple[float, float] | None:
    """Of one cell, over pairs; None where there is none, or one for the models at hand alone."""
    cell = table.rows.get(row, {}).get(label)
    if cell is None or cell.ours is None or label in table.not_run or set(table.basis) - {"over pairs"}:
        return None
    return cell.ours.interval
