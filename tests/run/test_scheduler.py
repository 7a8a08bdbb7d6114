"""The scheduler against a stand-in executor whose assignments do what each test tells them to."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from forgetgauge.errors import DiskFull, UserError
from forgetgauge.plan.jobs import Job
from forgetgauge.run.assignments import N_LIVES, Assignment, Failure, Outcome
from forgetgauge.run.durations import Limits
from forgetgauge.run.scheduler import execute
from forgetgauge.store.objects import CorruptArtefact, Receipt
from forgetgauge.store.runfolder import RunFolder
from tests.made_up import MadeUp


def little_graph(n: int = 3) -> dict[str, Job]:
    """n chains train -> unlearn -> signals -> decide; the trainings form one stack."""
    jobs = []
    for i in range(n):
        train = MadeUp("train", {"i": i}, label=f"train {i}", group="train", coupled=True)
        unlearn = MadeUp("unlearn", {"i": i}, inputs={"model": train.key}, label=f"unlearn {i}", group="unlearn")
        signals = MadeUp("signals", {"i": i}, inputs={"model": unlearn.key}, label=f"signals {i}", group="signals")
        decide = MadeUp("decide", {"i": i}, inputs={"signals": signals.key}, label=f"decide {i}", group="decide")
        jobs += [train, unlearn, signals, decide]
    return {job.key: job for job in jobs}


class StandIn:
    """Does an assignment by writing its label; `before(job)` may raise."""

    def __init__(self, folder: RunFolder, before: Callable[[Job], None] = lambda _: None) -> None:
        self.folder, self.before = folder, before
        self.waiting: list[tuple[Assignment, Mapping[str, str]]] = []
        self.performed: list[str] = []

    def has_room(self, assignment: Assignment) -> bool:
        return not self.waiting

    def n_workers(self, assignment: Assignment) -> int:
        return 1

    def start(self, assignment: Assignment, digests: Mapping[str, str]) -> None:
        self.waiting.append((assignment, digests))

    def next(self, timeout: float | None = None) -> tuple[Assignment, Outcome]:
        assignment, digests = self.waiting.pop()
        try:
            for key in assignment.inputs:
                self.folder.objects.read(key, digests[key])
        except CorruptArtefact as error:
            return assignment, Outcome(lost=error.key)
        receipts: dict[str, Receipt] = {}
        failures: dict[str, Failure] = {}
        for job in assignment.jobs:
            if job.key not in assignment.wanted:
                continue
            self.performed.append(job.label)
            try:
                self.before(job)
                receipts[job.key] = self.folder.objects.write(job.key, {"x": np.arange(3)}, {"label": job.label})
            except DiskFull as error:
                return assignment, Outcome(full_disk=str(error))
            except Exception as error:
                tries = N_LIVES if isinstance(error, ProcessLookupError) else 1
                failures[job.key] = Failure(f"{type(error).__name__}: {error}", "Traceback …", tries=tries)
        return assignment, Outcome(receipts, failures, seconds=1.0)

    def seconds_at_work(self, assignment: Assignment) -> float:
        return 0.0

    def stop(self, assignment: Assignment) -> None: ...

    def close(self) -> None: ...


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    made = RunFolder(tmp_path / "run")
    made.create()
    return made


def labels(jobs: dict[str, Job], *kinds: str) -> set[str]:
    return {job.label for job in jobs.values() if job.kind in kinds}


def test_every_job_is_done_once_and_a_second_call_does_nothing(folder):
    jobs = little_graph()
    first, second = StandIn(folder), StandIn(folder)
    ending = execute(jobs, folder, first)
    assert (ending.n_run, ending.n_missing, ending.failed, ending.out_of_time) == (12, 0, {}, False)
    assert sorted(first.performed) == sorted(job.label for job in jobs.values())
    assert execute(jobs, folder, second).n_run == 0
    assert second.performed == []


def test_weights_are_dropped_when_nothing_needs_them_unless_they_are_to_be_kept(folder, tmp_path):
    jobs = little_graph()
    execute(jobs, folder, StandIn(folder))
    on_disk = {path.stem for path in folder.objects.folder.glob("*/*")}
    assert {jobs[key].kind for key in on_disk} == {"signals", "decide"}
    keeping = RunFolder(tmp_path / "keeping")
    keeping.create()
    execute(jobs, keeping, StandIn(keeping), keep_weights=True)
    assert {path.stem for path in keeping.objects.folder.glob("*/*")} == set(jobs)
    execute(jobs, keeping, StandIn(keeping))
    assert {jobs[path.stem].kind for path in keeping.objects.folder.glob("*/*")} == {"signals", "decide"}


def test_weights_whose_deletion_a_kill_prevented_are_deleted_by_the_next_start(folder):
    jobs = little_graph()
    execute(jobs, folder, StandIn(folder))
    dropped = next(job for job in jobs.values() if job.kind == "train")
    folder.objects.write(dropped.key, {"x": np.arange(3)}, {"label": dropped.label})
    execute(jobs, folder, StandIn(folder))
    assert not folder.objects.path(dropped.key).exists()


@pytest.mark.parametrize("kind", ["train", "unlearn", "signals", "decide"])
def test_a_flipped_byte_is_noticed_and_that_job_alone_is_done_again(folder, kind):
    jobs = little_graph()
    execute(jobs, folder, StandIn(folder), keep_weights=True)
    victim = next(job for job in jobs.values() if job.kind == kind)
    path = folder.objects.path(victim.key)
    sound = path.read_bytes()
    path.write_bytes(sound[:-1] + bytes([sound[-1] ^ 1]))
    again = StandIn(folder)
    execute(jobs, folder, again, keep_weights=True)
    assert again.performed == [victim.label]
    assert path.read_bytes() == sound


def test_an_artefact_damaged_during_the_run_is_made_again(folder):
    jobs = little_graph(1)
    damaged = []

    def damage(job: Job) -> None:
        if job.kind == "decide" and not damaged:
            damaged.append(job.inputs["signals"])
            folder.objects.path(job.inputs["signals"]).write_bytes(b"damaged")
            raise ProcessLookupError("try again")

    standin = StandIn(folder, damage)
    ending = execute(jobs, folder, standin, keep_weights=True)
    assert ending.n_missing == 0
    assert standin.performed.count("signals 0") == 2


def test_an_artefact_damaged_again_and_again_is_given_up(folder):
    jobs = little_graph(1)
    signals = next(job for job in jobs.values() if job.kind == "signals")

    class Rotten(StandIn):
        def next(self, timeout: float | None = None) -> tuple[Assignment, Outcome]:
            assignment, outcome = super().next()
            if assignment.jobs[0].kind == "signals":
                folder.objects.path(signals.key).write_bytes(b"rot")
            return assignment, outcome

    ending = execute(jobs, folder, Rotten(folder), keep_weights=True)
    assert "damaged again and again" in ending.failed[signals.key].line


def test_a_job_that_raises_is_set_aside_and_the_others_finish(folder):
    jobs = little_graph()

    def fail(job: Job) -> None:
        if job.label == "unlearn 1":
            raise ValueError("no\nsuch luck")

    standin = StandIn(folder, fail)
    ending = execute(jobs, folder, standin)
    assert standin.performed.count("unlearn 1") == 1
    assert [jobs[key].label for key in ending.failed] == ["unlearn 1"]
    assert ending.n_missing == 3
    assert {"decide 0", "decide 2"} <= set(standin.performed)
    assert "decide 1" not in standin.performed
    assert [path.read_text() for path in folder.failures.iterdir()] == ["Traceback …"]
    mended = StandIn(folder)
    assert execute(jobs, folder, mended).n_missing == 0
    assert {"unlearn 1", "signals 1", "decide 1"} == set(mended.performed)
    assert folder.open_ledger().state.failed == {}


def test_a_stack_that_hangs_on_a_failed_job_is_left_and_the_run_ends(folder):
    """It is done whole or not at all: one member alone would have other bits."""
    jobs = {}
    for i in range(2):
        train = MadeUp("train", {"i": i}, label=f"train {i}", group="train")
        unlearn = MadeUp(
            "unlearn", {"i": i}, inputs={"model": train.key}, label=f"unlearn {i}", group="unlearn", coupled=True
        )
        signals = MadeUp("signals", {"i": i}, inputs={"model": unlearn.key}, label=f"signals {i}", group="signals")
        jobs |= {job.key: job for job in (train, unlearn, signals)}
    execute(jobs, folder, StandIn(folder))
    ledger = folder.open_ledger()
    for key in jobs:
        ledger.record_lost(key)

    def fail(job: Job) -> None:
        if job.label == "train 1":
            raise ValueError("no such luck")

    ending = execute(jobs, folder, StandIn(folder, fail))
    assert [failure.job for failure in ending.failed.values()] == ["train 1"]
    assert ending.n_missing == 5
    assert execute(jobs, folder, StandIn(folder)).n_missing == 0


def test_a_loss_that_two_readers_notice_is_one_loss(folder):
    jobs = little_graph(1)
    signals = next(job for job in jobs.values() if job.kind == "signals")
    said = []

    class Twice(StandIn):
        """Two assignments find the artefact missing, the second when it was made again."""

        def next(self, timeout: float | None = None) -> tuple[Assignment, Outcome]:
            if self.waiting[-1][0].jobs[0].kind == "decide" and len(said) < 3:
                said.append(signals.key)
                if len(said) == 1:
                    folder.objects.drop(signals.key)
                return self.waiting.pop()[0], Outcome(lost=signals.key)
            return super().next()

    assert execute(jobs, folder, Twice(folder), keep_weights=True).failed == {}


def test_a_job_whose_process_dies_is_tried_three_times(folder):
    jobs, seen = little_graph(), []

    def die(job: Job) -> None:
        if job.label == "signals 1":
            seen.append(job)
            if len(seen) < survives_at:
                raise ProcessLookupError

    survives_at = N_LIVES
    assert execute(jobs, folder, StandIn(folder, die)).failed == {}
    seen, survives_at = [], N_LIVES + 1
    ledger = folder.open_ledger()
    ledger.record_lost(next(key for key, job in jobs.items() if job.label == "signals 1"))
    assert [found.job for found in execute(jobs, folder, StandIn(folder, die)).failed.values()] == ["signals 1"]
    assert len(seen) == N_LIVES


class InThisProcess(StandIn):
    in_this_process = True


def test_a_job_that_the_process_did_not_survive_three_times_is_left_out_once_and_named(folder, monkeypatch):
    jobs = little_graph()

    for _ in range(N_LIVES):
        standin = InThisProcess(folder)
        standin.next = lambda timeout=None, own=standin: died(own)
        monkeypatch.setattr(
            "forgetgauge.store.ledger.Ledger.record_left", lambda *_: None
        )  # who is dead writes nothing
        with pytest.raises(Gone):
            execute(jobs, folder, standin)
    standin = InThisProcess(folder)
    ending = execute(jobs, folder, standin)
    assert {found.line for found in ending.failed.values()} == {"the process died 3 times while it did this job"}
    assert "unlearn 1" in [found.job for found in ending.failed.values()]
    assert "unlearn 1" not in standin.performed
    assert execute(jobs, folder, InThisProcess(folder)).n_missing == 0  # asked again, it is tried again


class Gone(Exception):
    pass


def died(standin: InThisProcess) -> tuple[Assignment, Outcome]:
    """Ends the run where `unlearn 1` is asked for."""
    assignment, _ = standin.waiting[-1]
    if any(job.label == "unlearn 1" for job in assignment.jobs):
        raise Gone
    return StandIn.next(standin)


class LosesItsDevice(InThisProcess):
    """Whose GPU answers no more from `unlearn 1` on."""

    def next(self, timeout: float | None = None) -> tuple[Assignment, Outcome]:
        assignment, outcome = super().next(timeout)
        if any(job.label == "unlearn 1" for job in assignment.jobs):
            failure = Failure("RuntimeError: CUDA error", "", tries=N_LIVES)
            outcome = Outcome(failures=dict.fromkeys(assignment.wanted, failure), device_lost=True)
        return assignment, outcome


def test_without_its_gpu_a_run_in_one_process_ends_and_blames_no_other_job(folder):
    jobs = little_graph()
    for _ in range(N_LIVES):
        standin = LosesItsDevice(folder)
        with pytest.raises(UserError, match="the GPU stopped answering while “unlearn") as told:
            execute(jobs, folder, standin)
        assert "RuntimeError: CUDA error" in str(told.value)
        assert folder.open_ledger().state.failed == {}
    ending = execute(jobs, folder, standin := LosesItsDevice(folder))
    assert "unlearn 1" in [found.job for found in ending.failed.values()]
    assert "unlearn 1" not in standin.performed
    assert execute(jobs, folder, InThisProcess(folder)).n_missing == 0


class LosesOneOfMany(InThisProcess):
    """Whose jobs are one assignment; at `signals 1` the GPU is lost, and what comes after it was never begun."""

    in_this_process = False

    def next(self, timeout: float | None = None) -> tuple[Assignment, Outcome]:
        assignment, _ = self.waiting[-1]
        names = [job.label for job in assignment.jobs]
        if "signals 1" not in names:
            return super().next(timeout)
        self.waiting.pop()
        lost = assignment.jobs[names.index("signals 1")]
        failure = Failure("RuntimeError: CUDA error", "", tries=N_LIVES)
        before = assignment.jobs[: names.index("signals 1")]
        receipts = {job.key: self.folder.objects.write(job.key, {"x": np.arange(3)}, {}) for job in before}
        return assignment, Outcome(receipts, {lost.key: failure}, device_lost=True)


def test_a_lost_gpu_fails_the_job_that_ran_and_no_other(folder):
    jobs = {
        key: dataclasses.replace(job, coupled=False, group="all of them") if job.kind == "signals" else job
        for key, job in little_graph().items()
    }
    standin = LosesOneOfMany(folder)
    ending = execute(jobs, folder, standin)
    assert [found.job for found in ending.failed.values()] == ["signals 1"]
    assert ending.n_missing == 2  # it, and what hangs on it


class DiesOfOneOfMany(StandIn):
    """Whose jobs are one assignment, and whose process dies of `signals 1` without a word about the others."""

    def next(self, timeout: float | None = None) -> tuple[Assignment, Outcome]:
        assignment, _ = self.waiting[-1]
        if "signals 1" not in [job.label for job in assignment.jobs]:
            return super().next(timeout)
        self.waiting.pop()
        failure = Failure("the worker process died (exit code 7)", "", tries=N_LIVES)
        return assignment, Outcome(failures=dict.fromkeys(assignment.wanted, failure))


def test_a_process_that_dies_fails_the_job_that_it_died_of_and_no_other(folder):
    jobs = {
        key: dataclasses.replace(job, coupled=False, group="all of them") if job.kind == "signals" else job
        for key, job in little_graph().items()
    }
    ending = execute(jobs, folder, DiesOfOneOfMany(folder))
    assert [found.job for found in ending.failed.values()] == ["signals 1"]
    assert ending.n_missing == 2  # it, and what hangs on it


def test_in_one_process_what_was_not_begun_is_not_counted_as_begun(folder):
    jobs = little_graph()
    standin = LosesOneOfMany(folder)
    standin.in_this_process = True
    with pytest.raises(UserError, match="the GPU stopped answering"):
        execute(jobs, folder, standin)
    begun = folder.open_ledger().state.begun
    assert {jobs[key].label for key in begun} == {"signals 1"}


def test_what_was_interrupted_did_not_die(folder):
    jobs = little_graph()

    def interrupt(job: Job) -> None:
        raise KeyboardInterrupt

    for _ in range(N_LIVES + 1):
        with pytest.raises(KeyboardInterrupt):
            execute(jobs, folder, InThisProcess(folder, interrupt))
    assert folder.open_ledger().state.begun == {}
    assert execute(jobs, folder, InThisProcess(folder)).n_missing == 0


def test_a_job_that_is_done_is_not_failed_whatever_failed_beside_it(folder):
    """As where the disk refuses the second artefact of a stack."""
    ledger = folder.open_ledger()
    ledger.record_done({"a": folder.objects.write("a" * 64, {"x": np.arange(3)}, {})}, 1.0)
    ledger.record_failed("a", "OSError: beside it")
    assert folder.open_ledger().state.failed == {}


def test_a_full_disk_stops_the_run_and_loses_nothing(folder):
    jobs = little_graph()

    def full(job: Job) -> None:
        if job.kind == "signals":
            raise DiskFull("the disk is full")

    with pytest.raises(DiskFull):
        execute(jobs, folder, StandIn(folder, full))
    after = StandIn(folder)
    assert execute(jobs, folder, after).n_missing == 0
    assert not labels(jobs, "train", "unlearn") & set(after.performed)


def test_an_interrupted_run_goes_on_where_it_was(folder):
    jobs = little_graph()

    def interrupt(job: Job) -> None:
        if job.label == "signals 1":
            raise KeyboardInterrupt

    first = StandIn(folder, interrupt)
    with pytest.raises(KeyboardInterrupt):
        execute(jobs, folder, first)
    second = StandIn(folder)
    execute(jobs, folder, second)
    assert set(folder.open_ledger().state.n_runs.values()) == {1}
    assert not labels(jobs, "train", "unlearn") & set(second.performed)


@pytest.mark.parametrize("limits", [Limits(job_seconds=3e6), Limits(time.monotonic() + 1e300), Limits(job_seconds=1e9)])
def test_a_limit_of_months_is_waited_for_in_parts(limits):
    """No operating system waits for more than 2³¹ milliseconds at once."""
    executor = SimpleNamespace(seconds_at_work=lambda _: 0.0)
    assert limits.wait([Assignment((MadeUp("train"),), frozenset())], executor) <= 86_400


def test_nothing_is_begun_that_would_end_after_the_time_limit(folder):
    jobs = little_graph()
    over = execute(jobs, folder, StandIn(folder), deadline=time.monotonic() - 1)
    assert (over.out_of_time, over.n_run, over.n_missing) == (True, 0, 12)
    later = execute(jobs, folder, StandIn(folder), deadline=time.monotonic() + 1000)
    assert (later.out_of_time, later.n_missing) == (False, 0)


def test_a_limit_shorter_than_a_task_still_gets_on_from_call_to_call(folder):
    jobs = little_graph()
    for _ in range(20):
        ending = execute(jobs, folder, StandIn(folder), deadline=time.monotonic() + 0.5)  # every assignment takes 1 s
        if not ending.n_missing:
            break
        assert ending.n_run > 0
    assert ending.n_missing == 0


def test_progress_ends_with_everything_known(folder):
    jobs, told = little_graph(), []
    execute(jobs, folder, StandIn(folder), progress=told.append)
    assert told[0].n_done == 0
    assert told[0].seconds_left is None
    assert told[-1].seconds_left is not None
    assert told[-1].models_done == told[-1].n_models == 6
    assert [p.n_done for p in told] == sorted(p.n_done for p in told)


class Roomless(StandIn):
    """Dies of stacks with more than one member, whole, and says which it would try in their place."""

    def __init__(self, folder: RunFolder) -> None:
        super().__init__(folder)
        self.widths: list[int] = []

    def next(self, timeout: float | None = None) -> tuple[Assignment, Outcome]:
        assignment = self.waiting[-1][0]
        if not assignment.jobs[0].coupled:
            return super().next(timeout)
        self.widths.append(n := len(assignment.jobs))
        if n == 1:
            return super().next(timeout)
        self.waiting.pop()
        keys = [job.key for job in assignment.jobs]
        return assignment, Outcome(stacks=[keys[: -(-n // 2)], keys[-(-n // 2) :]])


def test_a_stack_that_killed_its_process_for_its_memory_is_tried_in_halves(folder):
    jobs = little_graph(5)
    executor = Roomless(folder)
    ending = execute(jobs, folder, executor)
    assert (ending.n_run, ending.failed) == (20, {})
    assert executor.widths == [5, 3, 2, 1, 1, 1, 1, 1]  # what waits is narrowed with it
    state = folder.open_ledger().state
    assert all(state.stack_of.get(key, (key,)) == (key,) for key, job in jobs.items() if job.kind == "train")
