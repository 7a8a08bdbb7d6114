"""How long jobs take, learnt from those that are done."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from forgetgauge.plan.jobs import HEAVY, Job
from forgetgauge.run.assignments import Assignment


class Pace:
    """How long jobs take: the mean over finished jobs of the same group, else kind, else of any that make weights."""

    def __init__(self) -> None:
        self._totals: dict[str, tuple[float, int]] = {}

    def add(self, job: Job, seconds: float) -> None:
        """Learn from a finished job."""
        for name in self._names(job):
            total, count = self._totals.get(name, (0.0, 0))
            self._totals[name] = (total + seconds, count + 1)

    def expected(self, job: Job) -> float | None:
        """Seconds; None where nothing is known yet."""
        for name in self._names(job):
            if name in self._totals:
                total, count = self._totals[name]
                return total / count
        return None

    @staticmethod
    def _names(job: Job) -> tuple[str, str, str]:
        return f"group {job.group}", f"kind {job.kind}", "weights" if job.kind in HEAVY else "signals and decisions"


class Estimate:
    """Seconds until all is done; looked at anew only so often that it takes a twentieth of the time."""

    SHARE = 20

    def __init__(self) -> None:
        self._next = 0.0
        self._last: float | None = None

    def of(self, open_ones: Iterable[Assignment], seconds_left: Callable[[Assignment], float | None]) -> float | None:
        """The sum over what is open; None where nothing is known of some of it."""
        began = time.monotonic()
        if began >= self._next:
            each = [seconds_left(assignment) for assignment in open_ones]
            known = [seconds for seconds in each if seconds is not None]
            self._last = sum(known) if len(known) == len(each) else None
            ended = time.monotonic()
            self._next = ended + self.SHARE * (ended - began)
        return self._last
