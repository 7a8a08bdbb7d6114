"""One statement of the paper and what became of it here; the words that claims share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from forgetgauge.suites.paper import PRINTED, table_name
from forgetgauge.suites.record import TableComparison
from forgetgauge.wording import listed

Verdict = Literal["confirmed", "not confirmed", "undecided", "not run"]

APPROXIMATE = ("neg-grad", "retrain-final", "ft-final", "fisher", "salun", "ssd")
"""The methods that claims are about; Retrain and None are yardsticks."""

LEVEL = 0.95


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


def source_of(table: TableComparison) -> str:
    """`Table 1, paper scale`."""
    return f"{table_name(table.name)}, {table.scale} scale"


def named(methods: Sequence[str]) -> str:
    """Methods as the paper prints them."""
    return listed([PRINTED.get(method, method) for method in methods]) or "none"


def incomplete(parts: Sequence[str]) -> str:
    """`; missing: SSD at 150`: what a rule names and nobody knows, so that nothing is decided; empty without."""
    return f"; missing: {', '.join(parts)}" if parts else ""


def counted(count: int, noun: str) -> str:
    """`1 pair`, `3 pairs`."""
    return f"{count} {noun}{'s' * (count != 1)}"
