"""The records that several suites share.

`comparison.json` is one table as the paper printed it and as it came out here; all that is shown is made from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from forgetgauge.errors import UserError, unknown_name
from forgetgauge.records import Record, RecordT, read_record
from forgetgauge.suites.paper import table_name
from forgetgauge.suites.tables import SCALES, folder_of

FILE = "comparison.json"


def read_strictly(path: Path, kind: type[RecordT]) -> RecordT:
    """A record whose `scale`, if it has one, is known."""
    found = read_record(path, kind)
    scale = getattr(found, "scale", None)
    if scale is not None and scale not in SCALES:
        raise UserError(f"{path}: {unknown_name('scale', scale, SCALES)}")
    return found


@dataclass(frozen=True)
class Ours(Record):
    """One number of ours, with its interval."""

    value: float
    """Of Q: advantages averaged over pairs with their signs; |·| and the largest of the adversaries are taken last."""
    interval: tuple[float, float] | None = None
    """At the level of the game."""


@dataclass(frozen=True)
class AsPaper(Record):
    """One number of ours, computed as we read the paper to compute its own."""

    value: float
    """Of Q: 1 − the largest |Adv_s + Adv_s'|/2 of each swap pair, averaged over pairs."""
    spread: float | None
    """Over pairs, the deviation or the standard error of the mean, whichever the paper's ± is; None where the paper
    has none, where there is one pair, and where the result does not have the values by pair."""


@dataclass(frozen=True)
class CompareCell(Record):
    """One cell of a table, twice."""

    paper: float | None
    spread: float | None
    """Half the width of the paper's ±; None where it gives none."""
    ours: Ours | None
    """None: not run."""
    inside: bool | None
    """Whether our number, as the paper computes it, lies within the paper's ±; None where there is nothing to
    compare."""
    overlaps: bool | None
    """Whether our interval meets the paper's ±."""
    as_paper: AsPaper | None = None
    """None: not run, or the result does not have what it takes."""


@dataclass(frozen=True)
class Invocation(Record):
    """One call of the command that worked on the table."""

    command: str
    commit: str
    device: str
    wall_s: float
    n_jobs: int
    """Done in this invocation."""
    began: float | None = None
    """In seconds since 1970: invocations that shared a device side by side are told by it. None in older records."""
    where: str | None = None
    """An opaque digest of the GPU or, without one, of the machine. None in older records, and of clusters."""


def made_by(invocations: Sequence[Invocation]) -> list[str]:
    """`on cuda: NVIDIA H200`, `commit fcf398c1`, the commands: who made a record; empty where nobody knows."""
    if not invocations:
        return []
    devices = dict.fromkeys(one.device for one in invocations)
    commits = dict.fromkeys(one.commit for one in invocations)
    commands = dict.fromkeys(f"`{one.command}`" for one in invocations if one.command)
    return [f"on {' and '.join(devices)}", f"commit {', '.join(commits)}", *commands]


@dataclass(frozen=True)
class TableComparison(Record):
    """One table of the paper beside ours."""

    name: str
    title: str
    scale: str
    variable: str
    """What the columns are."""
    quantity: str
    """What stands in a cell."""
    columns: list[str]
    rows: dict[str, dict[str, CompareCell]]
    """Row -> column -> cell; the paper's rows first."""
    tau: dict[str, float | None]
    """Column -> Kendall's τ_b of the two rankings of the rows both have; None where it is not defined."""
    tau_between_columns: float | None
    """Mean τ_b over every two columns of ours: does the ranking depend on the setting?"""
    tau_between_columns_paper: float | None
    """Mean τ_b over every two columns of the paper, whichever of them were run."""
    grounding: dict[str, bool | None]
    """Column -> whether Retrain's interval holds its ideal; None without Retrain."""
    not_run: dict[str, str]
    """Column -> why."""
    notes: list[str]
    basis: list[str]
    """What the intervals are over, as far as there are any."""
    invocations: list[Invocation]
    work_s: float
    """All jobs that enter the table, whichever table they were done for, summed over processes."""
    environment: dict[str, str]
    digests: dict[str, str]
    failures: list[str] = field(default_factory=list)
    """Jobs that failed, in words."""
    over_none: dict[str, dict[str, Ours]] = field(default_factory=dict)
    """Column -> method -> its Q less None's, pair by pair, with an interval; of tables of Q."""
    lost_accuracy: dict[str, dict[str, float]] = field(default_factory=dict)
    """Column -> method -> how far its accuracy is below Retrain's and None's, if over a point; of tables of Q."""
    lost_retained: dict[str, dict[str, float]] = field(default_factory=dict)
    """Column -> method -> how far its accuracy on R is below theirs, where only that shows the damage."""
    accuracy_below: dict[str, dict[str, float]] = field(default_factory=dict)
    """Column -> method -> how far its accuracy is below the lower of Retrain's and None's, however little; negative
    where it is above. Of tables of Q."""
    beyond_price: dict[str, list[str]] = field(default_factory=dict)
    """Column -> methods of which no strength was shown to cost no more than the price: the weakest was played."""
    tau_without_retrain: dict[str, float | None] = field(default_factory=dict)
    """Column -> `tau` over the other rows: Retrain, first in any ranking, raises it for nothing."""
    replicates: int = 1
    """Trainings and unlearnings of each split, averaged."""
    published: bool = False
    """Whether methods have their published settings alone, and no strength was looked for."""
    schema: int = 1

    @property
    def label(self) -> str:
        """`Table 1`, `Table 1, 3 trainings of each split`."""
        return table_name(folder_of(self.name, self.replicates, published=self.published))

    @property
    def wall_s(self) -> float:
        """Of all invocations for this table; models it shares with a table run before are not in it."""
        return sum(invocation.wall_s for invocation in self.invocations)


def read_comparison(path: Path) -> TableComparison:
    """A validated comparison, or one line on what is wrong with the file."""
    found = read_strictly(path, TableComparison)
    for row, cells in found.rows.items():
        if set(cells) != set(found.columns):
            raise UserError(f"{path}: rows.{row}: not one cell for each column")
    return found
