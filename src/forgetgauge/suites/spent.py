"""How long everything took that is stored: device time, added up.

Of a table it is the time its commands took, or the work of its jobs where that is more, since models that an earlier
command had made are then in it. Tables that share all their decisions are one run, and count once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from forgetgauge.results.record import read_result
from forgetgauge.suites.invocation import read_invocations
from forgetgauge.suites.records import TableComparison
from forgetgauge.wording import listed


@dataclass(frozen=True)
class Spent:
    """What one experiment took."""

    what: str
    scale: str
    device: str
    """`cuda: NVIDIA H200`, `cpu`."""
    seconds: float
    """Of the device; of a processor, summed over its processes."""


def spent_on_tables(tables: Iterable[TableComparison]) -> list[Spent]:
    """One for each run, whichever tables it is shown in."""
    runs: dict[tuple[str, str], list[TableComparison]] = {}
    for table in tables:
        runs.setdefault((table.scale, table.digests.get("decisions", table.name)), []).append(table)
    return [
        Spent(
            listed([table.label for table in shared]),
            scale,
            shared[0].environment.get("device", "unknown"),
            max(sum(table.wall_s for table in shared), *(table.work_s for table in shared)),
        )
        for (scale, _), shared in runs.items()
    ]


def spent_beside(record: Path, what: str, scale: str = "") -> list[Spent]:
    """On what a record was made from: by the invocations beside it, else by the result; none where neither is there."""
    invocations = read_invocations(record.with_name("invocations.jsonl"))
    if invocations:
        return [Spent(what, scale, invocations[0].device, sum(one.wall_s for one in invocations))]
    result = record.with_name("result.json")
    if not result.exists():
        return []
    made = read_result(result)
    return [Spent(what, scale, made.environment.get("device", "unknown"), made.total_seconds)]


def totals(every: Sequence[Spent]) -> dict[str, float]:
    """Device -> seconds, the largest first."""
    found: dict[str, float] = {}
    for one in every:
        found[one.device] = found.get(one.device, 0.0) + one.seconds
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def duration(seconds: float) -> str:
    """`1 h 24 min`, `3 min`, `40 s`."""
    minutes = round(seconds / 60)
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"


def device_name(device: str) -> str:
    """`one NVIDIA H200`, `a processor core`."""
    return "a processor core" if device == "cpu" else f"one {device.removeprefix('cuda: ')}"
