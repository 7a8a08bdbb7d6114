"""How long jobs take, learnt from those that are done."""

from __future__ import annotations

from forgetgauge.plan.jobs import HEAVY, Job


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
