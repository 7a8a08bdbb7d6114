"""From jobs to artefacts: what is missing is done, once; what fails is tried again, then set aside; nothing is lost."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain

from forgetgauge.errors import DiskFull, UserError
from forgetgauge.plan.jobs import HEAVY, Job
from forgetgauge.progress import Progress
from forgetgauge.run.assignments import N_LIVES, Assignment, Failure, Outcome, Waiting
from forgetgauge.run.durations import Estimate, Limits, Pace
from forgetgauge.run.executors import Executor
from forgetgauge.run.packing import WIDTH, by_strength, cut, form_stacks, jobs_to_do, pack, stack_kind, stack_members
from forgetgauge.store.ledger import Ledger
from forgetgauge.store.runfolder import RunFolder
from forgetgauge.version import versions

N_LOSSES = 4
"""An artefact that is damaged so often is given up: it is not the job's fault. A method that damages what others made
does so twice, or in two workers at once, before it is set aside."""


@dataclass(frozen=True)
class Ending:
    """How a run ended: what was done, what is missing, what failed."""

    n_run: int
    """Jobs done now."""
    n_missing: int
    """Jobs still to do: after a time limit, or hanging on a failed one."""
    failed: Mapping[str, Failure]
    out_of_time: bool
    notes: Sequence[str] = ()
    """What became of things that the folder held before."""


def execute(
    jobs: dict[str, Job],
    folder: RunFolder,
    executor: Executor,
    *,
    keep_weights: bool = False,
    stack_width: int = WIDTH["train"],
    n_gpus: int = 1,
    deadline: float | None = None,
    job_seconds: float | None = None,
    given_up: Mapping[str, Failure] | None = None,
    holds: Callable[[Job], bool] = lambda _: False,
    progress: Callable[[Progress], None] = lambda _: None,
) -> Ending:
    """Do every job that is not done; the caller holds the folder's lock. `deadline` is a `time.monotonic()`: what is
    being done then is ended. So is, as failed, what takes longer than `job_seconds` for each of its jobs. What was
    `given_up` before is not tried again. What a job makes that it `holds` stays for plans to come."""
    limits = Limits(deadline, job_seconds)
    scheduler = _Scheduler(jobs, folder, executor, keep_weights, stack_width, limits, progress)
    scheduler.n_gpus = n_gpus
    scheduler.hopeless.update(given_up or {})
    scheduler.holds = holds
    return scheduler.run()


def died_of(jobs: Mapping[str, Job], folder: RunFolder) -> str:
    """Which jobs were being done when a run in one process died, in one sentence; empty where none were."""
    begun = {key: times for key, times in folder.open_ledger().state.begun.items() if key in jobs}
    if not begun:
        return ""
    first, more = jobs[next(iter(begun))].label, len(begun) - 1
    times = max(begun.values())
    what = f"“{first}”" + (f" and {more} more" if more else "")
    often = "once" if times == 1 else f"{times} times"
    then = "it is left out" if times >= N_LIVES else f"it is tried again, and left out after {N_LIVES} times"
    return f"the run ended {often} while it did {what}; {then} (--executor processes survives it)"


class _Scheduler:
    def __init__(
        self,
        jobs: dict[str, Job],
        folder: RunFolder,
        executor: Executor,
        keep_weights: bool,
        stack_width: int,
        limits: Limits,
        progress: Callable[[Progress], None],
    ) -> None:
        self.jobs, self.folder, self.executor = jobs, folder, executor
        self.keep_weights, self.stack_width = keep_weights, stack_width
        self.limits, self.deadline, self.progress = limits, limits.deadline, progress
        self.in_this_process = bool(getattr(executor, "in_this_process", False))
        self.ledger: Ledger = folder.open_ledger()
        self.readers: dict[str, list[str]] = {}
        for key, job in jobs.items():
            for read in job.inputs.values():
                self.readers.setdefault(read, []).append(key)
        self.holds: Callable[[Job], bool] = lambda _: False
        self.n_gpus = 1
        self.tries: dict[str, int] = {}
        self.hopeless: dict[str, Failure] = {}
        self.n_losses: dict[str, int] = {}
        self.busy: list[Assignment] = []
        self.n_run = self.n_started = 0
        self.begun = time.monotonic()
        self.out_of_time = False
        self.pace = Pace()
        self.n_models = sum(job.kind in HEAVY for job in jobs.values())
        self.waiting = Waiting([], self.ledger.state.is_available)
        self.finished: set[str] = set()
        self.models_done = 0
        self.estimate = Estimate()
        self._finish(key for key in jobs if key in self.ledger.state.done)
        for key in self.finished:
            self.pace.add(jobs[key], self.ledger.state.done[key].seconds)

    def run(self) -> Ending:
        """Rounds of work: a further one only where an artefact turned out damaged on the way."""
        self.folder.sweep_up()
        self._check_artefacts()
        self._part_suspects()
        self._leave_out_deadly()
        while (to_do := self._to_do(self.hopeless)) and not self.out_of_time:
            self.ledger.record_stacks(form_stacks(self.jobs, to_do, self.ledger.state, self.stack_width, self.n_gpus))
            n_before = self.n_started
            self._work_through(pack(self.jobs, to_do, self.ledger.state, self.stack_width))
            if self.n_started == n_before:
                break  # nothing of it can be begun, and never will
        self._drop_weights(self.jobs.keys())  # also what an earlier run kept
        self._drop_leftovers()
        missing = len(self._to_do())
        return Ending(self.n_run, missing, self.hopeless, self.out_of_time and missing > 0)

    def _finish(self, keys: Iterable[str]) -> None:
        new = set(keys) - self.finished
        self.finished |= new
        self.models_done += sum(self.jobs[key].kind in HEAVY for key in new)

    def _unfinish(self, key: str) -> None:
        if key in self.finished:
            self.finished.discard(key)
            self.models_done -= self.jobs[key].kind in HEAVY

    def _to_do(self, hopeless: Collection[str] = ()) -> list[str]:
        return jobs_to_do(self.jobs, self.ledger.state, hopeless=hopeless, keep_weights=self.keep_weights)

    def _check_artefacts(self) -> None:
        for key in self.jobs:
            done = self.ledger.state.done.get(key)
            if done and not done.dropped and not self.folder.objects.is_sound(key, done.receipt.sha256):
                self.ledger.record_lost(key)
                self._unfinish(key)

    def _part_suspects(self) -> None:
        """Stacks of several strengths in which this process has died, all but once too often, go on by strength."""
        state = self.ledger.state
        suspects = [key for key, times in state.begun.items() if key in self.jobs and times == N_LIVES - 1]
        for members in dict.fromkeys(stack_members(self.jobs, state, key) for key in suspects):
            self._apart(tuple(self.jobs[member] for member in members), frozenset(members))

    def _apart(self, stack: tuple[Job, ...], wanted: frozenset[str]) -> list[Assignment]:
        """A stack of several strengths, of which nothing was made yet, as one stack for each; else nothing."""
        parts, done = by_strength(stack), self.ledger.state.done
        if len(parts) == 1 or any(job.key in done for job in stack):
            return []
        self.ledger.record_stacks([[job.key for job in part] for part in parts])
        each = [Assignment(part, wanted & {job.key for job in part}) for part in parts]
        return [assignment for assignment in each if assignment.wanted]

    def _leave_out_deadly(self) -> None:
        """Give up, this time, jobs that the process which did them did not survive again and again."""
        for key, times in list(self.ledger.state.begun.items()):
            if key in self.jobs and times >= N_LIVES:
                self._give_up(key, Failure(f"the process died {times} times while it did this job", ""))

    def _work_through(self, assignments: list[Assignment]) -> None:
        try:
            self._work_through_all(list(assignments))
        except BaseException:
            if self.in_this_process and (left := [key for one in self.busy for key in one.wanted]):
                with suppress(Exception):  # of a full disk, say: what ended the work matters more
                    self.ledger.record_left(left)
            raise

    def _work_through_all(self, assignments: list[Assignment]) -> None:
        self.waiting = Waiting(assignments, self.ledger.state.is_available)
        while self.waiting or self.busy:
            while (assignment := self._next_ready()) is not None:
                self._report(
                    f"{assignment.jobs[0].label}" + (f" and {n} more" if (n := len(assignment.jobs) - 1) else "")
                )
                digests = {key: self.ledger.state.done[key].receipt.sha256 for key in assignment.inputs}
                if self.in_this_process:
                    self.ledger.record_begun(sorted(assignment.wanted))
                self.executor.start(assignment, digests)
                self.n_started += 1
                self.busy.append(assignment)
            if not self.busy:
                return  # the rest hangs on failed jobs, or the time is up
            ended = self.executor.next(self.limits.wait(self.busy, self.executor))
            if ended is None:
                self._end_overdue()
                continue
            assignment, outcome = ended
            self.busy = [one for one in self.busy if one is not assignment]
            if outcome.device_lost and self.in_this_process:
                self._end_without_device(assignment, outcome)
            again = self._settle(assignment, outcome)
            if outcome.stacks:
                self._narrow(stack_kind(assignment.jobs[0]), max(map(len, outcome.stacks)))
            self.waiting.put_first(again)

    def _end_without_device(self, assignment: Assignment, outcome: Outcome) -> None:
        """End the run: nothing more can be done in this process, and what it was doing counts as begun, not as failed.
        Where that happens N_LIVES times, it is left out."""
        settled = {key: failure for key, failure in outcome.failures.items() if failure.tries == 1}
        self._settle(assignment, replace(outcome, failures=settled))
        if spared := sorted(assignment.wanted - set(outcome.receipts) - set(outcome.failures)):
            self.ledger.record_left(spared)
        why = next((one.line for one in outcome.failures.values() if one.tries > 1), "after its last job")
        raise UserError(
            f"the GPU stopped answering while “{assignment.jobs[0].label}” was done: {why}; what was done is kept, and "
            "the same command goes on (--executor processes survives it)"
        )

    def _end_overdue(self) -> None:
        """End what takes too long: one assignment as failed, or at the end of the time everything."""
        for assignment in self.limits.overdue(self.busy, self.executor):
            self.executor.stop(assignment)
            self.busy.remove(assignment)
            if parts := self._apart(assignment.jobs, assignment.wanted):
                self.waiting.put_first(parts)
                continue
            self._settle(
                assignment, Outcome(failures=dict.fromkeys(assignment.wanted, self.limits.failure(assignment)))
            )
        if self.limits.are_over:
            self.out_of_time = True
            for assignment in self.busy:
                self.executor.stop(assignment)
            self.busy.clear()

    def _next_ready(self) -> Assignment | None:
        """The first that somebody is free for, whose inputs are all there and that would end in time."""
        return self.waiting.take(self.executor.has_room, self._is_in_time)

    def _is_in_time(self, assignment: Assignment) -> bool:
        # the first one of a call needs only some time left: else a limit below its length would stop for good
        needed = self._expected_seconds(assignment) if self.n_started and self.deadline is not None else 0.0
        if self.deadline is None or time.monotonic() + needed < self.deadline:
            return True
        self.out_of_time = True
        return False

    def _settle(self, assignment: Assignment, outcome: Outcome) -> list[Assignment]:
        """Write down what became of an assignment; returns what must be tried again."""
        if outcome.lost:
            self._settle_loss(outcome.lost)
            return []
        done = self.ledger.state.done
        self.ledger.record_stacks([*outcome.stacks, *(part for part in outcome.apart if done.keys().isdisjoint(part))])
        if outcome.receipts:
            seconds = outcome.seconds * len(outcome.receipts) / len(assignment.jobs)
            self.ledger.record_done(dict(outcome.receipts), seconds, versions())
            self.n_run += len(outcome.receipts)
            self._finish(outcome.receipts)
            self.waiting.arrived(outcome.receipts)
            for key in outcome.receipts:
                self.pace.add(self.jobs[key], self.ledger.state.done[key].seconds)
            self._drop_weights(assignment.inputs)
        if outcome.full_disk:
            raise DiskFull(outcome.full_disk)
        if outcome.stacks and not outcome.receipts and not outcome.failures:  # its process did not live to try them
            parts = [tuple(self.jobs[key] for key in stack) for stack in outcome.stacks]
            wanted = [assignment.wanted & {job.key for job in part} for part in parts]
            return [Assignment(part, of_it) for part, of_it in zip(parts, wanted, strict=True) if of_it]
        again = []
        for key, failure in outcome.failures.items():
            self.tries[key] = self.tries.get(key, 0) + 1
            if failure.harmful:
                self.n_losses.clear()  # it is known why
            if self.tries[key] < failure.tries:
                again.append(key)
            else:
                self._give_up(key, failure)
                for other in self._alike(key) if failure.harmful else ():
                    self._give_up(other, failure)
        if not again:
            return []
        if assignment.jobs[0].coupled:  # as it was, since a narrower stack has other last bits, but for the last time
            is_last = max(self.tries[key] for key in again) == N_LIVES - 1
            by_itself = self._apart(assignment.jobs, frozenset(again)) if is_last else []
            return by_itself or [Assignment(assignment.jobs, frozenset(again))]
        jobs = tuple(job for job in assignment.jobs if job.key in again)
        if any(failure.tries > 1 for failure in outcome.failures.values()):
            # its process died, or its GPU: one of them was the cause, and the others are not to die of it again
            return [Assignment((job,), frozenset({job.key})) for job in jobs]
        return [Assignment(jobs, frozenset(again))]

    def _settle_loss(self, key: str) -> None:
        """Have an artefact made again; of two that miss it at once, the second says nothing new."""
        if key not in self.ledger.state.done:
            return
        self.ledger.record_lost(key)
        self._unfinish(key)
        self.n_losses[key] = self.n_losses.get(key, 0) + 1
        if self.n_losses[key] >= N_LOSSES:
            self._give_up(key, Failure("its artefact is damaged again and again: check the disk", ""))

    def _narrow(self, alike: str, width: int) -> None:
        """Stacks like one that was too wide are cut before they begin; one that ran before keeps its members."""
        narrowed: list[Assignment] = []
        for assignment in self.waiting:
            fresh = not any(job.key in self.ledger.state.done for job in assignment.jobs)
            if assignment.jobs[0].coupled and stack_kind(assignment.jobs[0]) == alike and fresh:
                parts = cut(list(assignment.jobs), width)
                narrowed += [Assignment(part, assignment.wanted & {job.key for job in part}) for part in parts]
                self.ledger.record_stacks([[job.key for job in part] for part in parts] if len(parts) > 1 else [])
            else:
                narrowed.append(assignment)
        self.waiting.replace(narrowed)

    def _alike(self, key: str) -> list[str]:
        """Other jobs that are open and run the same code."""
        kind, code = self.jobs[key].kind, self.jobs[key].code
        return [
            other
            for other in self._to_do(self.hopeless)
            if self.jobs[other].kind == kind and self.jobs[other].code == code
        ]

    def _give_up(self, key: str, failure: Failure) -> None:
        """Set a job aside: the others go on."""
        error = None if self.hopeless else failure.error  # which keeps all that its frames hold alive
        self.hopeless[key] = replace(failure, job=self.jobs[key].label, error=error)
        self.ledger.record_failed(key, failure.line)
        self.folder.write_text(self.folder.failures / f"{key[:16]}.txt", failure.traceback)

    def _drop_weights(self, candidates: Collection[str]) -> None:
        """Delete the weights that no open job reads any more."""
        if self.keep_weights:
            return
        state = self.ledger.state
        spent = [
            key
            for key in sorted(candidates)
            if self.jobs[key].kind in HEAVY
            and not self.holds(self.jobs[key])
            and state.is_available(key)
            and all(reader in state.done for reader in self.readers[key])
        ]
        if spent:
            self.ledger.record_dropped(spent)
            for key in spent:
                self.folder.objects.drop(key)

    def _drop_leftovers(self) -> None:
        """Delete what was to be deleted when a process was killed, or what a worker wrote that outlived its run."""
        for key, done in self.ledger.state.done.items():
            if done.dropped:
                self.folder.objects.drop(key)

    def _seconds_left(self, assignment: Assignment) -> float | None:
        """An assignment's share of the time to come: as long as it takes, over those who do such ones side by side."""
        each = [self.pace.expected(job) for job in assignment.jobs]
        known = [seconds for seconds in each if seconds is not None]
        return sum(known) / self.executor.n_workers(assignment) if len(known) == len(each) else None

    def _expected_seconds(self, assignment: Assignment) -> float:
        return sum(self.pace.expected(job) or 0.0 for job in assignment.jobs)

    def _crew(self) -> str:
        crew = getattr(self.executor, "crew", "")
        return f"{crew}, {self.n_run / (time.monotonic() - self.begun):.1f} jobs/s" if crew else ""

    def _report(self, doing: str) -> None:
        self.progress(
            Progress(
                n_done=len(self.finished),
                n_jobs=len(self.jobs),
                models_done=self.models_done,
                n_models=self.n_models,
                seconds_left=self.estimate.of(chain(self.waiting, self.busy), self._seconds_left),
                doing=doing,
                crew=self._crew(),
            )
        )
