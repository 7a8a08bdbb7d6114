"""How long jobs take, learnt from those that are done, and how long a run and each of its jobs may take."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from forgetgauge.plan.jobs import HEAVY, Job
from forgetgauge.run.assignments import Assignment, Failure
from forgetgauge.run.executors import Executor

A_DAY = 86_400.0


# -- what was learnt ---------------------------------------------------------------------------------------------------


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


# -- limits ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Limits:
    """When what is being done is ended."""

    deadline: float | None = None
    """Everything, at this `time.monotonic()`."""
    job_seconds: float | None = None
    """An assignment, after so many seconds for each of its jobs."""

    def wait(self, busy: Sequence[Assignment], executor: Executor) -> float | None:
        """Seconds until the first of them, or everything, is to be ended, a day at most, since no operating system
        waits for a month; None without a limit."""
        until_deadline = math.inf if self.deadline is None else self.deadline - time.monotonic()
        left = min([until_deadline, *(self._left(one, executor) for one in busy)])
        return None if left == math.inf else min(max(0.0, left), A_DAY)

    @property
    def are_over(self) -> bool:
        """Whether the deadline has passed."""
        return self.deadline is not None and time.monotonic() >= self.deadline

    def overdue(self, busy: Sequence[Assignment], executor: Executor) -> list[Assignment]:
        """The assignments that have had their time."""
        return [one for one in busy if self._left(one, executor) <= 0]

    def _left(self, assignment: Assignment, executor: Executor) -> float:
        if self.job_seconds is None:
            return math.inf
        return self.job_seconds * len(assignment.jobs) - executor.seconds_at_work(assignment)

    def failure(self, assignment: Assignment) -> Failure:
        """What is said of one that was ended."""
        seconds = (self.job_seconds or 0) * len(assignment.jobs)
        line = f"ended after {seconds:g} s (limits.job_seconds = {self.job_seconds:g})"
        return Failure(line, line)
