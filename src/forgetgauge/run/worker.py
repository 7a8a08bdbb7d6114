"""Who does assignments. Torch is imported by the kinds of job that need it: scoring saved signals never loads it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy.typing as npt

from forgetgauge.errors import DiskFull, UserError, WrongOutput, line_of
from forgetgauge.plan.jobs import DRAW, HEAVY, TRIALS, InitialiseJob, Job, ModelJob, SignalsJob
from forgetgauge.run.adversary import decide, fit
from forgetgauge.run.algorithms import CodeCheck, is_own
from forgetgauge.run.assignments import N_LIVES, Assignment, Failure, Outcome, Sources, failure_of
from forgetgauge.run.packing import by_strength, forget_unused, in_parts, is_out_of_memory
from forgetgauge.run.point_sets import WorkerData, initialise
from forgetgauge.run.surroundings import alone, interruption
from forgetgauge.store.content import Expected, is_content, refuse_wrong_output
from forgetgauge.store.objects import Artefact, CorruptArtefact, ObjectStore, Receipt
from forgetgauge.streams import identity_key
from forgetgauge.version import versions

if TYPE_CHECKING:
    from forgetgauge.learn.checkpoint import Checkpoints

HARM = "while it ran, artefacts in the run folder that it was given or had made were deleted or changed"
HARMFUL = Failure(HARM, HARM, tries=2, harmful=True)
"""Tried twice: it may have been another method that ran beside it."""


class Artefacts(Protocol):
    """Where a worker finds what its jobs read and puts what they make: the store of a run folder, or its own memory."""

    def read(self, key: str, sha256: str) -> Artefact:
        """An artefact with that digest, or CorruptArtefact."""
        ...

    def write(self, key: str, arrays: Mapping[str, npt.NDArray[Any]], facts: Mapping[str, Any]) -> Receipt:
        """Keep an artefact."""
        ...

    def stamps(self, keys: Iterable[str]) -> dict[str, tuple[int, int, int]]:
        """What shows whether somebody else changed artefacts meanwhile."""
        ...


class Worker:
    """Does assignments: reads their inputs from the store, does the work on a device, writes the artefacts."""

    def __init__(
        self, objects: Path | Artefacts, sources: Sources, device: str = "cpu", check: CodeCheck | None = None
    ) -> None:
        # absolute, wherever the user's code goes
        self.store: Artefacts = ObjectStore(objects.absolute()) if isinstance(objects, Path) else objects
        self._checkpoints = self.store.checkpoints if isinstance(self.store, ObjectStore) else None
        self._check = check
        self.data = WorkerData(sources, device)
        self._recent = Recent()
        self._earlier_s = 0.0  # spent on the assignment before a run was stopped

    def perform(self, assignment: Assignment, digests: Mapping[str, str]) -> Outcome:
        """Do it; `digests` are the SHA-256 of its inputs. A job that raises is a Failure, not an exception."""
        with interruption.watched():
            if assignment.jobs[0].kind in TRIALS:
                return self._try(assignment.jobs[0])
            outcome = self._perform(assignment, digests)
            if self.data.is_on_gpu and not outcome.device_lost:
                from forgetgauge.learn.device import leave_room

                leave_room(self.data.device)
            return outcome

    def _perform(self, assignment: Assignment, digests: Mapping[str, str]) -> Outcome:
        self.warm_up(assignment)
        start, self._earlier_s = time.perf_counter(), 0.0
        try:
            inputs = {key: self._read(key, digests[key]) for key in sorted(assignment.inputs)}
            _refuse_content(assignment.jobs, inputs)
        except CorruptArtefact as error:
            return Outcome(lost=error.key)
        except UserError as error:  # the disk, say
            return Outcome(failures=dict.fromkeys(assignment.wanted, Failure(str(error), str(error), error=error)))
        receipts, failures = dict[str, Receipt](), dict[str, Failure]()
        narrower, apart = list[list[str]](), list[list[str]]()
        units = [assignment.jobs] if assignment.jobs[0].coupled else self._units(assignment.jobs)
        device_lost, tried = False, set[tuple[str, ...]]()
        while units:
            unit = units.pop(0)
            files = self.store.stamps([*inputs, *receipts]) if is_own(unit[0]) else {}
            try:
                parts = in_parts(unit, lambda part: self._do_resumably(part, inputs))
                ran = [[job.key for job in part] for part, _ in parts]
                if len(ran) > 1:
                    narrower += ran
                elif _is_part(unit, assignment):
                    apart += ran
                for part, made in parts:
                    for job, artefact in zip(part, made, strict=True):
                        if job.key not in assignment.wanted:
                            continue
                        if isinstance(artefact, Exception):
                            line = line_of(artefact)
                            failures[job.key] = Failure(line, line, error=artefact)
                        else:
                            receipts[job.key] = self._write(job, artefact)
                    if (kept := self._checkpoints_of(part)) is not None:
                        kept.drop()
            except DiskFull as error:
                seconds = self._earlier_s + time.perf_counter() - start
                return Outcome(receipts, stacks=narrower, apart=apart, full_disk=str(error), seconds=seconds)
            except BaseException as error:  # whatever the user's code raises is that job's failure alone
                if interruption.is_behind(error):
                    raise
                if self._has_lost_its_device():
                    failure = failure_of(error, tries=N_LIVES)
                    failures.update(dict.fromkeys(self._open(unit, assignment, receipts), failure))
                    device_lost = True
                    break  # what is left of the assignment is no fault of its own, and done in another process
                failure = failure_of(error)
                if not unit[0].coupled and len(unit) > 1:  # find out whose fault it is
                    units = [(job,) for job in unit] + units
                    continue
                if is_out_of_memory(error):  # what earlier jobs left behind may have been too much
                    self.data.let_go()
                    forget_unused()
                    unharmed = files == (self.store.stamps(files) if files else {})
                    if unharmed and (keys := tuple(job.key for job in unit)) not in tried:
                        tried.add(keys)
                        units.insert(0, unit)
                        continue
                    if "CUDA" in failure.line:
                        failure = replace(failure, line=failure.line + self._others_hold())
                if unit[0].coupled and len(strengths := by_strength(unit)) > 1:
                    units = strengths + units
                    continue
                failures.update(dict.fromkeys(self._open(unit, assignment, receipts), failure))
                apart += [[job.key for job in unit]] if _is_part(unit, assignment) else []
            if files != (self.store.stamps(files) if files else {}):
                failures.update({job.key: HARMFUL for job in unit})
                receipts = {key: receipt for key, receipt in receipts.items() if key not in failures}
                break  # what is left of the assignment is done when its inputs are there again
        seconds = self._earlier_s + time.perf_counter() - start
        return Outcome(receipts, failures, stacks=narrower, apart=apart, seconds=seconds, device_lost=device_lost)

    @staticmethod
    def _open(unit: Sequence[Job], assignment: Assignment, receipts: Mapping[str, Receipt]) -> list[str]:
        """Which of a unit's jobs were to be done and are not."""
        return [job.key for job in unit if job.key in assignment.wanted and job.key not in receipts]

    def _try(self, job: Job) -> Outcome:
        from forgetgauge.run.trial import try_out

        try:
            self._compare_code(job)
        except UserError as error:
            return Outcome(failures={job.label: Failure(str(error), str(error), error=error)})
        with alone(job):
            failures, warnings, device_lost = try_out(job, self.data, self._has_lost_its_device)
        return Outcome(failures=failures, warnings=warnings, device_lost=device_lost)

    def _compare_code(self, job: Job) -> None:
        if self._check is not None:
            self._check.check(job)

    def _read(self, key: str, sha256: str) -> Artefact:
        return self._recent.find(key, sha256) or self.store.read(key, sha256)

    def _write(self, job: Job, artefact: Artefact) -> Receipt:
        receipt = self.store.write(job.key, artefact.arrays, artefact.facts)
        # Weights alone, which are poured, never handed out; and on a CPU they may be a model's own, yet to be changed.
        if job.kind in HEAVY and self.data.is_on_gpu:
            self._recent.keep(job.key, receipt.sha256, artefact)
        return receipt

    def _has_lost_its_device(self) -> bool:
        if not self.data.is_on_gpu:
            return False
        from forgetgauge.learn.device import is_lost

        return is_lost(self.data.device)

    def _others_hold(self) -> str:
        if not self.data.is_on_gpu:
            return ""
        from forgetgauge.learn.device import others_hold

        return others_hold(self.data.device)

    def _units(self, jobs: Sequence[Job]) -> list[tuple[Job, ...]]:
        """Jobs that are done as one: on a GPU the signals of models that are alike, else each alone."""
        alike: dict[Any, list[Job]] = {}
        for job in jobs:
            if not isinstance(job, SignalsJob) or self.data.device.type != "cuda":
                alike[job.key] = [job]
                continue
            what = (job.halves.data, identity_key(job.learner.identity), job.subject.role, job.look_at, job.columns)
            alike.setdefault(what, []).append(job)
        return [tuple(unit) for unit in alike.values()]

    def warm_up(self, assignment: Assignment) -> None:
        """Import torch and read the data before the clock starts: they are no method's cost."""
        if isinstance(first := assignment.jobs[0], InitialiseJob | ModelJob):
            with suppress(Exception):  # the job itself says what is wrong with the data
                self.data.on_device(first.halves)

    def make(self, job: Job, inputs: Mapping[str, Artefact]) -> Artefact:
        """What one job makes of artefacts by their keys; nothing is written."""
        (made,) = self._do([job], inputs)
        if isinstance(made, Exception):
            raise made
        return made

    def _do_resumably(self, jobs: Sequence[Job], inputs: Mapping[str, Artefact]) -> Sequence[Artefact | Exception]:
        if (kept := self._checkpoints_of(jobs)) is None:
            return self._do(jobs, inputs)
        from forgetgauge.learn.checkpoint import keeping

        with keeping(kept):
            made = self._do(jobs, inputs)
        self._earlier_s += kept.earlier_s
        return made

    def _checkpoints_of(self, jobs: Sequence[Job]) -> Checkpoints | None:
        """Where these jobs, done as one on this device by these versions, keep the states of long trainings."""
        if self._checkpoints is None or jobs[0].kind not in HEAVY:
            return None
        from forgetgauge.learn.checkpoint import Checkpoints

        decides = {"jobs": [job.key for job in jobs], "device": self.data.device.type, "versions": versions()}
        return Checkpoints(self._checkpoints, identity_key(decides))

    def _do(self, jobs: Sequence[Job], inputs: Mapping[str, Artefact]) -> Sequence[Artefact | Exception]:
        self._compare_code(jobs[0])
        given = [{role: inputs[key] for role, key in job.inputs.items()} for job in jobs]
        with alone(jobs[0]):
            return [_checked(jobs[0].makes, one) for one in _made(jobs, given, self.data)]


def _is_part(unit: Sequence[Job], assignment: Assignment) -> bool:
    """Whether it is a part of a stack, which the ledger is to know as a stack of its own."""
    return unit[0].coupled and len(unit) < len(assignment.jobs)


def _checked(what: str, made: Artefact | ValueError) -> Artefact | Exception:
    """The artefact, unless code of the user's put into it what nobody could read again."""
    if isinstance(made, Artefact):
        try:
            refuse_wrong_output(what, made)
        except WrongOutput as error:
            return error
    return made


def _refuse_content(jobs: Sequence[Job], inputs: Mapping[str, Artefact]) -> None:
    """CorruptArtefact where an input is nothing that a job makes."""
    kinds = {"model": "unlearn", "fit": "fit", DRAW: "initialise"}
    for job in jobs:
        for role, key in job.inputs.items():
            if not is_content(Expected(kinds.get(role, "signals")), inputs[key]):
                raise CorruptArtefact(key)


def _made(
    jobs: Sequence[Any], given: Sequence[Mapping[str, Artefact]], data: WorkerData
) -> Sequence[Artefact | ValueError]:
    """What the jobs, all of one kind, make of their inputs: role -> artefact, for each job; an error where a model
    diverged."""
    match jobs[0].kind:
        case "initialise":
            return [initialise(job, its, data) for job, its in zip(jobs, given, strict=True)]
        case "train":
            from forgetgauge.run.model_jobs import train

            return train(jobs, given, data)
        case "unlearn":
            from forgetgauge.run.model_jobs import unlearn

            return unlearn(jobs, given, data)
        case "signals":
            from forgetgauge.run.model_jobs import take_signals

            return take_signals(jobs, given, data)
        case "fit":
            return [fit(job, its) for job, its in zip(jobs, given, strict=True)]
        case "decide":
            return [decide(job, its) for job, its in zip(jobs, given, strict=True)]
        case kind:
            raise ValueError(f"'{kind}' makes no artefact")


# -- weights in memory -------------------------------------------------------------------------------------------------

ROOM = 2**30
"""Bytes: a dozen ResNet-18s before and after."""


class Recent:
    """The weights a worker made last, by key and digest; whoever takes some must leave them as they are.

    To read a ResNet-18 back from the disk and to hash it takes a tenth of a second, and an original is read once for
    every method.
    """

    def __init__(self, room: int = ROOM) -> None:
        self.room = room
        self._kept: dict[tuple[str, str], Artefact] = {}
        self._n_bytes = 0

    def keep(self, key: str, sha256: str, artefact: Artefact) -> None:
        """Keep it, and forget those that were not used for longest."""
        self._forget((key, sha256))
        self._kept[key, sha256] = artefact
        self._n_bytes += _n_bytes(artefact)
        while self._n_bytes > self.room:
            self._forget(next(iter(self._kept)))

    def find(self, key: str, sha256: str) -> Artefact | None:
        """The artefact with that digest, if it is still here."""
        found = self._kept.pop((key, sha256), None)
        if found is not None:
            self._kept[key, sha256] = found  # the last in order is the latest used
        return found

    def _forget(self, place: tuple[str, str]) -> None:
        gone = self._kept.pop(place, None)
        if gone is not None:
            self._n_bytes -= _n_bytes(gone)


def _n_bytes(artefact: Artefact) -> int:
    return sum(array.nbytes for array in artefact.arrays.values())
