"""How long a run, and each of its jobs, may take."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from forgetgauge.run.assignments import Assignment, Failure
from forgetgauge.run.executors import Executor

A_DAY = 86_400.0


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
