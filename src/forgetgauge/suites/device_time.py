"""How long everything took that is stored: device time, added up.

Of a table it is the time its commands took, or the work of its jobs where that is more, since models that an earlier
command had made are then in it. Tables that the same commands played are one run, and count once. Commands that
shared one and the same device side by side count once too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from forgetgauge.results.record import read_result
from forgetgauge.suites.invocation import read_invocations
from forgetgauge.suites.records import Invocation, TableComparison
from forgetgauge.wording import listed


class Span(NamedTuple):
    """From when to when a command had a device, and which."""

    begin: float
    end: float
    where: str | None = None
    """None where nobody knows: then it shared the device with no other command."""


@dataclass(frozen=True)
class Spent:
    """What one experiment took."""

    what: str
    scale: str
    device: str
    """`cuda: NVIDIA H200`, `cpu`."""
    seconds: float
    """Seconds that the device was in use; of a processor, the sum over its processes."""
    spans: tuple[Span, ...] = ()
    """When it had the device, perhaps not alone, as far as that is known."""


def spent_on_tables(tables: Iterable[TableComparison]) -> list[Spent]:
    """One for each run, whichever tables it is shown in."""
    found = []
    for shared in runs_of(tables):
        scale = shared[0].scale
        invocations = [one for table in shared for one in table.invocations]
        if all(one.began is not None for one in invocations):  # those of several tables stand in the record of each
            invocations = list(dict.fromkeys(invocations))
        wall = sum(one.wall_s for one in invocations)
        spans = _spans(invocations)
        is_dated = invocations and len(spans) == len(invocations)
        seconds = wall if is_dated else max(wall, *(table.work_s for table in shared))
        device = shared[0].environment.get("device", "unknown")
        found.append(Spent(listed([table.label for table in shared]), scale, device, seconds, spans))
    return found


def runs_of(tables: Iterable[TableComparison]) -> list[list[TableComparison]]:
    """Tables that the same commands played, or, where nobody knows when those began, that share all their decisions."""
    runs: dict[tuple[object, ...], list[TableComparison]] = {}
    for table in tables:
        is_dated = table.invocations and all(one.began is not None for one in table.invocations)
        made_by = tuple(table.invocations) if is_dated else table.digests.get("decisions", table.name)
        runs.setdefault((table.scale, made_by), []).append(table)
    return list(runs.values())


def _spans(invocations: Iterable[Invocation]) -> tuple[Span, ...]:
    return tuple(Span(one.began, one.began + one.wall_s, one.where) for one in invocations if one.began is not None)


def spent_beside(record: Path, what: str) -> list[Spent]:
    """On what a record was made from: by the invocations beside it, else by the result; none where neither is there."""
    invocations = read_invocations(record.with_name("invocations.jsonl"))
    if invocations:
        wall = sum(one.wall_s for one in invocations)
        return [Spent(what, "", invocations[0].device, wall, _spans(invocations))]
    result = record.with_name("result.json")
    if not result.exists():
        return []
    made = read_result(result)
    return [Spent(what, "", made.environment.get("device", "unknown"), made.total_seconds)]


def totals(every: Sequence[Spent]) -> dict[str, float]:
    """Device -> seconds, the largest first; what shared a device side by side counts once."""
    found: dict[str, float] = {}
    spans: dict[tuple[str, str | Span], list[Span]] = {}
    for one in every:
        apart = one.seconds - sum(span.end - span.begin for span in one.spans)
        found[one.device] = found.get(one.device, 0.0) + apart
        for span in one.spans:  # a command that stands in the records of several tables has equal spans there
            spans.setdefault((one.device, span.where or span), []).append(span)
    for (device, _), those in spans.items():
        found[device] += _covered(those)
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _covered(spans: Iterable[Span]) -> float:
    """How long at least one of them lasts."""
    total, until = 0.0, float("-inf")
    for span in sorted(spans):
        total += max(0.0, span.end - max(span.begin, until))
        until = max(until, span.end)
    return total


def duration(seconds: float) -> str:
    """`1 h 24 min`, `3 min`, `40 s`."""
    minutes = round(seconds / 60)
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"


def device_name(device: str) -> str:
    """`one NVIDIA H200`, `a processor core`."""
    return "a processor core" if device == "cpu" else f"one {device.removeprefix('cuda: ')}"
