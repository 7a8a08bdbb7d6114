"""`comparison.json`: one table as the paper printed it and as it came out here. All that is shown is made from it."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from forgetgauge.errors import UserError
from forgetgauge.suites.reading import read_strictly

SCHEMA = 1
_STRICT = {"extra": "forbid", "allow_inf_nan": False}  # read by pydantic in `read_strictly`; nothing here imports it
FILE = "comparison.json"


@dataclass(frozen=True)
class Ours:
    """One number of ours."""

    __pydantic_config__: ClassVar[Any] = _STRICT
    value: float
    """By the paper's own estimator, so that like is compared with like."""
    interval: tuple[float, float] | None = None
    """At the level of the game."""


@dataclass(frozen=True)
class CompareCell:
    """One cell of a table, twice."""

    __pydantic_config__: ClassVar[Any] = _STRICT
    paper: float | None
    spread: float | None
    """Half the width of the paper's ±; None where it gives none."""
    ours: Ours | None
    """None: not run."""
    inside: bool | None
    """Whether our value lies within the paper's ±; None where there is nothing to compare."""
    overlaps: bool | None
    """Whether our interval meets the paper's ±."""


@dataclass(frozen=True)
class Sitting:
    """One call of the command that worked on the table."""

    __pydantic_config__: ClassVar[Any] = _STRICT
    command: str
    commit: str
    device: str
    wall_s: float
    n_jobs: int
    """Done in this sitting."""


@dataclass(frozen=True)
class TableComparison:
    """One table."""

    __pydantic_config__: ClassVar[Any] = _STRICT
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
    """The same of the paper's, over all of its columns."""
    grounding: dict[str, bool | None]
    """Column -> whether Retrain's interval holds its ideal; None without Retrain."""
    not_run: dict[str, str]
    """Column -> why."""
    notes: list[str]
    basis: list[str]
    """What the intervals are over, as far as there are any."""
    sittings: list[Sitting]
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
    tau_without_retrain: dict[str, float | None] = field(default_factory=dict)
    """Column -> `tau` over the other rows: Retrain, first in any ranking, raises it for nothing."""
    schema: int = SCHEMA

    @property
    def wall_s(self) -> float:
        """Of all sittings for this table; models it shares with a table run before are not in it."""
        return sum(sitting.wall_s for sitting in self.sittings)

    def to_json(self) -> str:
        """The text of the file."""
        return json.dumps(dataclasses.asdict(self), indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def read_comparison(path: Path) -> TableComparison:
    """A validated comparison, or one line on what is wrong with the file."""
    found = read_strictly(path, TableComparison)
    for row, cells in found.rows.items():
        if set(cells) != set(found.columns):
            raise UserError(f"{path}: rows.{row}: not one cell for each column")
    return found
