"""Where the wall time of a run goes: worker processes that note when each assignment was handed out, begun and ended.

Every instant of a run has one cause: jobs, where somebody works on one (those that train, unlearn or take signals
before those that fit and decide), else workers that start, assignments on their way, or what comes before the first
assignment and after the last. So the seconds add up to the wall time.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from forgetgauge.plan.jobs import USES_TORCH
from forgetgauge.run.assignments import Assignment, Outcome, Sources
from forgetgauge.run.executors import Processes

PLANNING, BETWEEN, RESULT = "planning: imports, reading data, the job graph", "between assignments", "the result"
MODELS, FAILED, LIGHT = "models and signals", "assignments of which nothing came", "fits and decisions alone"
STARTING, ON_ITS_WAY = "workers starting: imports, the device, reading data", "assignments on their way"
RANK = {cause: place for place, cause in enumerate((MODELS, FAILED, LIGHT, STARTING, ON_ITS_WAY))}
"""Which cause counts at an instant that has several."""


@dataclass(frozen=True)
class Span:
    """A cause holds from one instant to another."""

    begin: float
    end: float
    cause: str


class Timed(Processes):
    """`Processes`, with a record of all assignments of the last run."""

    spans: list[Span]

    def __init__(self, objects: Path, sources: Sources, device: str = "cpu", n_workers: int | None = None) -> None:
        Timed.spans = []
        self._handed_out: dict[int, tuple[float, bool]] = {}
        self._seen: set[int | None] = set()
        super().__init__(objects, sources, device, n_workers)

    def start(self, assignment: Assignment, digests: Mapping[str, str]) -> None:
        """Note the time, and whether it is the worker's first assignment."""
        super().start(assignment, digests)
        worker = next(member.process.pid for member in self._members if member.assignment is assignment)
        self._handed_out[id(assignment)] = time.perf_counter(), worker not in self._seen
        self._seen.add(worker)

    def next(self, timeout: float | None = None) -> tuple[Assignment, Outcome] | None:
        """Note the time; how long the assignment took says when it was begun."""
        ended = super().next(timeout)
        if ended is None:
            return None
        assignment, outcome = ended
        end = time.perf_counter()
        handed_out, is_first = self._handed_out.pop(id(assignment))
        begun = max(handed_out, end - outcome.seconds)
        cause = FAILED if not outcome.receipts else MODELS if assignment.jobs[0].kind in USES_TORCH else LIGHT
        Timed.spans += [Span(handed_out, begun, STARTING if is_first else ON_ITS_WAY), Span(begun, end, cause)]
        return assignment, outcome


def causes_of(spans: Sequence[Span], begin: float, end: float) -> dict[str, float]:
    """Seconds of each cause between two instants, in the order of a run; they add up to all of it."""
    first, last = min((s.begin for s in spans), default=end), max((s.end for s in spans), default=end)
    edges = sorted({begin, end, *(at for span in spans for at in (span.begin, span.end))})
    seconds: Counter[str] = Counter()
    for since, until in pairwise(edges):
        out = [span.cause for span in spans if span.begin <= since and until <= span.end]
        idle = PLANNING if until <= first else RESULT if since >= last else BETWEEN
        seconds[min(out, key=RANK.__getitem__) if out else idle] += until - since  # type: ignore[assignment]
    order = (PLANNING, STARTING, MODELS, LIGHT, FAILED, ON_ITS_WAY, BETWEEN, RESULT)
    return {cause: seconds[cause] for cause in order}


def table(seconds: Mapping[str, float]) -> str:
    """For a page."""
    rows = [f"| {cause} | {of_it:.1f} |" for cause, of_it in seconds.items()]
    total = f"| from start to result | {sum(seconds.values()):.1f} |"
    return "\n".join(["| wall time by cause | seconds |", "|---|---|", *rows, total])
