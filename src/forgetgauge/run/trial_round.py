"""Trials by the workers of a run, before its first job: within the limits of time, and again where a process dies."""

from __future__ import annotations

from collections.abc import Sequence

from forgetgauge.plan.jobs import Job
from forgetgauge.run.assignments import Assignment, Failure
from forgetgauge.run.durations import Limits
from forgetgauge.run.executors import Executor
from forgetgauge.run.trial import refusal
from forgetgauge.wording import listed


def try_all(jobs: Sequence[Job], workers: Executor, limits: Limits) -> tuple[str, list[str]]:
    """Refuse code that failed, or that takes longer than a job may; one whose process dies is tried again, as jobs are.

    Where the time is up before all was tried that is no fault of the code: what was left, in words; else nothing. And a
    line on each part of the code that is warned of.
    """
    trials = {job.key: job for job in jobs}
    waiting = [Assignment((job,), frozenset({key})) for key, job in trials.items()]
    warnings: dict[str, None] = {}
    busy, failures, lives = list[Assignment](), dict[str, Failure](), dict[str, int]()
    while (waiting or busy) and not limits.are_over:
        while waiting and workers.has_room(waiting[0]):
            busy.append(waiting.pop(0))
            workers.start(busy[-1], {})
        ended = workers.next(limits.wait(busy, workers))
        if ended is None:
            for one in limits.overdue(busy, workers):
                workers.stop(one)
                busy.remove(one)
                failures[one.jobs[0].label] = _not_ended(one.jobs[0])
            continue
        busy.remove(ended[0])
        warnings |= dict.fromkeys(ended[1].warnings)
        for what, failure in ended[1].failures.items():
            lives[what] = lives.get(what, 0) + 1
            if lives[what] < failure.tries:
                waiting.append(ended[0])
            else:
                failures[trials[what].label if what in trials else what] = failure  # of a worker that died, by its key
    if failures:
        raise refusal(failures)
    for one in busy:
        workers.stop(one)
    left = listed([one.jobs[0].label + _with(one.jobs[0], " with ") for one in [*busy, *waiting]])
    return left, list(warnings)


def _not_ended(trial: Job) -> Failure:
    line = "the trial on a few points did not end within the time limit" + _with(trial, ", of it or of ")
    return Failure(line, line)


def _with(trial: Job, joined: str) -> str:
    """The methods that are tried with a learner."""
    methods = getattr(trial, "unlearners", {})
    return joined + listed(list(methods)) if methods else ""
