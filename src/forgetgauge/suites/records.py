"""What the suites store: every record is a JSON file of a known schema, written and strictly read in one way.

`comparison.json` is one table as the paper printed it and as it came out here; all that is shown is made from it.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from forgetgauge.errors import UserError, unknown_name
from forgetgauge.suites.tables import SCALES

FILE = "comparison.json"
RecordT = TypeVar("RecordT")


class Record:
    """A dataclass that is stored, or part of one; unknown fields, NaN and infinity are refused when it is read.

    What is a file of its own has a field `schema`, the version of its fields.
    """

    __pydantic_config__: ClassVar[Any] = {"extra": "forbid", "allow_inf_nan": False}

    def to_json(self) -> str:
        """The text of the file."""
        fields = dataclasses.asdict(self)  # type: ignore[call-overload]
        return json.dumps(fields, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def read_strictly(path: Path, kind: type[RecordT]) -> RecordT:
    """A record of this kind, of the `schema` that this version writes; its `scale`, if it has one, must be known."""
    record, known = read_json(path), kind.schema  # type: ignore[attr-defined]
    schema = record.get("schema") if isinstance(record, dict) else None
    if schema != known:
        raise UserError(f"{path}: schema {schema!r}, but this version reads {known}")
    found = validated(path, kind, record)
    scale = getattr(found, "scale", None)
    if scale is not None and scale not in SCALES:
        raise UserError(f"{path}: {unknown_name('scale', scale, SCALES)}")
    return found


def validated(path: Path, kind: type[RecordT], value: Any) -> RecordT:
    """The value as this kind of thing, every field checked, or one line on what is wrong with the file."""
    import pydantic

    try:
        return pydantic.TypeAdapter(kind).validate_python(value)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        raise UserError(f"{path}: {'.'.join(str(part) for part in first['loc'])}: {first['msg']}") from None


def read_json(path: Path) -> Any:
    """What the file holds."""
    try:
        return json.loads(path.read_text("utf-8"))
    except (ValueError, OSError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None


@dataclass(frozen=True)
class Ours(Record):
    """One number of ours."""

    value: float
    """By the paper's own estimator, so that like is compared with like."""
    interval: tuple[float, float] | None = None
    """At the level of the game."""


@dataclass(frozen=True)
class CompareCell(Record):
    """One cell of a table, twice."""

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
class Invocation(Record):
    """One call of the command that worked on the table."""

    command: str
    commit: str
    device: str
    wall_s: float
    n_jobs: int
    """Done in this invocation."""


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
    """One table."""

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
    tau_without_retrain: dict[str, float | None] = field(default_factory=dict)
    """Column -> `tau` over the other rows: Retrain, first in any ranking, raises it for nothing."""
    schema: int = 1

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
