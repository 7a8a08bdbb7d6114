"""Who does the assignments: this process, or a few worker processes that talk over pipes (no socket is opened).

With GPUs, each has a worker of its own, or two where it has room; these do all that needs torch, while the others fit
and decide: a GPU waits for no adversary. Without one, every worker does everything.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, cast, get_args

from forgetgauge.plan.jobs import USES_TORCH, Kind
from forgetgauge.run.algorithms import CodeCheck
from forgetgauge.run.assignments import N_LIVES, Assignment, Failure, Outcome, Sources
from forgetgauge.run.descendants import descendants, kill
from forgetgauge.run.output import Output, drop_if_empty
from forgetgauge.run.packing import halved
from forgetgauge.run.worker import Worker

KINDS: tuple[Kind, ...] = get_args(Kind)


class Executor(Protocol):
    """Takes assignments while it has room, and gives back outcomes in the order they come.

    It is made with (folder of artefacts, `Sources`, name of a device, or of several with commas between them). One
    whose jobs are done by the running program itself, on one device, says `in_this_process = True`; one that has
    several GPUs says how many, `n_gpus`; one that can get ready while a run is planned has `started_ahead(device)`, a
    context manager; one whose devices are not this machine's has `chosen_device(name)`, which gives (device,
    description). Settings of its own are arguments by name, and are given to all three. `crew` says who works, while it
    does, and `notes` what the user should know when all is done.
    """

    def has_room(self, assignment: Assignment) -> bool:
        """Whether it can take this assignment now, or another of the same kind of job."""
        ...

    def n_workers(self, assignment: Assignment) -> int:
        """How many assignments like this it does at once."""
        ...

    def start(self, assignment: Assignment, digests: Mapping[str, str]) -> None:
        """Take an assignment."""
        ...

    def next(self, timeout: float | None = None) -> tuple[Assignment, Outcome] | None:
        """Wait for an assignment to end; None where none did within so many seconds, if it can wait so."""
        ...

    def seconds_at_work(self, assignment: Assignment) -> float:
        """For how long it has been done by now, without the time that a process takes to start."""
        ...

    def stop(self, assignment: Assignment) -> None:
        """End the process that does an assignment which takes too long; asked for only after `next` gave None."""
        ...

    def close(self) -> None:
        """Stop at once; unfinished assignments are given up."""
        ...


class Inline:
    """Everything in this process, one assignment after another."""

    in_this_process = True
    """So that it knows the functions and arrays of the running program; no other executor does."""

    def __init__(self, objects: Path, sources: Sources, device: str = "cpu") -> None:
        self._worker = Worker(objects, sources, device)
        self._waiting: list[tuple[Assignment, Mapping[str, str]]] = []

    def has_room(self, assignment: Assignment) -> bool:
        """One assignment at a time."""
        return not self._waiting

    def n_workers(self, assignment: Assignment) -> int:
        """This process."""
        return 1

    def start(self, assignment: Assignment, digests: Mapping[str, str]) -> None:
        """Keep it until `next`."""
        self._waiting.append((assignment, digests))

    def next(self, timeout: float | None = None) -> tuple[Assignment, Outcome]:
        """Do the assignment, however long it takes: nobody is there to stop it."""
        assignment, digests = self._waiting.pop()
        return assignment, self._worker.perform(assignment, digests)

    def seconds_at_work(self, assignment: Assignment) -> float:
        """Nobody asks while it is done."""
        return 0.0

    def stop(self, assignment: Assignment) -> None:
        """Never asked for."""

    def close(self) -> None:
        """Nothing to stop."""


@dataclass(frozen=True)
class _Role:
    """What a worker is hired for."""

    device: str
    kinds: frozenset[Kind]

    def serves(self, assignment: Assignment) -> bool:
        """Whether such an assignment is this worker's."""
        return assignment.jobs[0].kind in self.kinds


@dataclass
class _Member:
    role: _Role
    process: SpawnProcess
    pipe: Connection[object, object]
    assignment: Assignment | None = None
    begun: float | None = None
    """When the assignment was begun; None while the process still starts, or reads the data."""
    started: float = 0.0
    """When the assignment was handed over."""
    killed_before: int = 0
    """How many processes the system had killed for memory by then."""


def worker_roles(device: str, n_workers: int, per_gpu: int = 1) -> list[_Role]:
    """One for each core, all alike; with GPUs so many on each, and the other cores for what needs no torch."""
    if device.startswith("cuda"):
        owners = [_Role(gpu, USES_TORCH) for _ in range(per_gpu) for gpu in device.split(",")]
        light = frozenset(KINDS) - USES_TORCH
        return [*owners, *[_Role("cpu", light)] * max(n_workers - len(owners), 1)]
    return [_Role(device, frozenset(KINDS))] * n_workers


def _processes_on(device: str) -> int:
    if not device.startswith("cuda"):
        return 1
    from forgetgauge.learn.device import processes_on

    return processes_on(device)


LOOK_EVERY = 2.0
"""Seconds after which it is asked whether a worker that says nothing is still there."""
START_UP = 120.0
"""Seconds that a worker may take to import what it needs and to read the data."""
BEGUN = "begun"
"""What a worker says when it has all that it needs to begin."""


def _death(code: int | None) -> str:
    """`killed by signal 9: out of memory?`, or how else a process ended."""
    if code is not None and code < 0:
        return f"killed by signal {-code}" + (": out of memory?" if code == -signal.SIGKILL else "")
    return f"exit code {code}"


def killed_for_memory() -> int:
    """How many processes this machine's system has killed since it started because memory was full; 0 where it does
    not say."""
    try:
        counters = dict(line.split() for line in Path("/proc/vmstat").read_text().splitlines())
        return int(counters.get("oom_kill", 0))
    except (OSError, ValueError):
        return 0


def _outcome_of_death(member: _Member, assignment: Assignment) -> Outcome:
    """Of an assignment whose process died. A stack of models that the system killed for memory is tried in halves, as
    one that raised out-of-memory is; of anything else the same may not come again, and it is tried as it was."""
    killed = member.process.exitcode == -signal.SIGKILL and killed_for_memory() > member.killed_before
    if killed and assignment.jobs[0].coupled and len(assignment.jobs) > 1:
        return Outcome(stacks=halved(assignment))
    line = f"the worker process died ({_death(member.process.exitcode)})"
    return Outcome(failures={key: Failure(line, line, tries=N_LIVES) for key in assignment.wanted})


Started = tuple[SpawnProcess, "Connection[object, object]"]

_AHEAD: list[Started] = []
"""Processes that were started before anybody knew what for."""


class Processes:
    """Worker processes, each with one thread: as many assignments at once as there are cores, and one or two on each
    GPU."""

    @staticmethod
    @contextmanager
    def started_ahead(device: str) -> Iterator[None]:
        """With a worker that loads torch and opens a device while the run is still planned, which takes as long.

        The first `Processes` within hires it for what needs torch; one that nobody hired is ended.
        """
        _AHEAD.append(_started(device))
        try:
            yield
        finally:
            while _AHEAD:
                process, pipe = _AHEAD.pop()
                pipe.close()
                process.terminate()
                process.join()

    def __init__(
        self,
        objects: Path,
        sources: Sources,
        device: str = "cpu",
        n_workers: int | None = None,
        *,
        output: Path | None = None,
    ) -> None:
        """`output` is where what the workers print is kept; without it they print where this process does."""
        self._arguments = (objects.absolute(), sources, None if output is None else output.absolute())
        per_gpu = _processes_on(device)
        roles = worker_roles(device, n_workers or usable_cores(), per_gpu)
        self.n_gpus = sum(role.kinds == USES_TORCH for role in roles) // per_gpu or 1
        self._members = [self._hire(role) for role in roles]

    def has_room(self, assignment: Assignment) -> bool:
        """Whether a worker for such assignments is idle."""
        return any(member.assignment is None and member.role.serves(assignment) for member in self._members)

    def n_workers(self, assignment: Assignment) -> int:
        """All workers for such assignments."""
        return sum(member.role.serves(assignment) for member in self._members)

    def start(self, assignment: Assignment, digests: Mapping[str, str]) -> None:
        """Hand the assignment to an idle worker."""
        member = next(
            member for member in self._members if member.assignment is None and member.role.serves(assignment)
        )
        try:
            member.pipe.send((assignment, dict(digests)))
        except OSError:  # it died while it had nothing to do
            member = self._replaced(member)
            member.pipe.send((assignment, dict(digests)))
        member.assignment, member.begun, member.started = assignment, None, time.monotonic()
        member.killed_before = killed_for_memory()

    def next(self, timeout: float | None = None) -> tuple[Assignment, Outcome] | None:
        """Wait for any worker; one that died is replaced, and its assignment counts as failed."""
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            left = None if until is None else max(0.0, until - time.monotonic())
            member = self._heard_from(left)
            if member is None:
                return None
            try:
                message = member.pipe.recv() if member.pipe.poll() else None  # None: it died without a word
            except (EOFError, OSError):
                message = None
            if message != BEGUN:
                break
            member.begun = time.monotonic()
        assignment = member.assignment
        assert assignment is not None
        if isinstance(message, Outcome):
            outcome = message
            if outcome.device_lost:
                self._replaced(member)
        else:
            member.process.join()
            outcome = _outcome_of_death(member, assignment)
            self._replaced(member)
        member.assignment = None
        return assignment, outcome

    def _heard_from(self, timeout: float | None) -> _Member | None:
        """A worker that has something to say, or that died: what it forked may hold both of its pipes open."""
        busy = [member for member in self._members if member.assignment is not None]
        by_handle: dict[Any, _Member] = {member.process.sentinel: member for member in busy}
        by_handle |= {member.pipe: member for member in busy}
        until = math.inf if timeout is None else time.monotonic() + timeout
        while True:
            left = until - time.monotonic()
            ready = [by_handle[handle] for handle in wait(list(by_handle), max(0.0, min(left, LOOK_EVERY)))]
            ready = ready or [member for member in busy if member.process.exitcode is not None]
            if ready or left <= LOOK_EVERY:
                return next((member for member in ready if member.pipe.poll()), ready[0] if ready else None)

    def seconds_at_work(self, assignment: Assignment) -> float:
        """Since its worker said that it begins, which takes no longer than START_UP."""
        member = next(member for member in self._members if member.assignment is assignment)
        since = member.started + START_UP if member.begun is None else member.begun
        return max(0.0, time.monotonic() - since)

    def stop(self, assignment: Assignment) -> None:
        """Kill the worker that does it, and hire another in its place."""
        self._replaced(next(member for member in self._members if member.assignment is assignment))

    def _replaced(self, member: _Member) -> _Member:
        member.pipe.close()
        theirs = descendants(member.process.pid or 0)
        member.process.kill()
        member.process.join()
        kill(theirs)
        new = self._hire(member.role)
        self._members[self._members.index(member)] = new
        return new

    def close(self) -> None:
        """End all workers; one that waits for more to do ends by itself, with the processes that it has."""
        theirs: list[int] = []
        for member in self._members:
            member.pipe.close()
            if member.assignment is not None or member.begun is None:
                theirs += descendants(member.process.pid or 0)
                member.process.terminate()
        for member in self._members:
            if not _has_ended(member.process, within=1):
                member.process.terminate()
        for member in self._members:
            if not _has_ended(member.process, within=5):
                member.process.kill()
            member.process.join()
        kill(theirs)
        if (printed := self._arguments[2]) is not None:
            drop_if_empty(printed)

    def _hire(self, role: _Role) -> _Member:
        ready = _AHEAD.pop() if _AHEAD and "train" in role.kinds else None
        process, pipe = ready or _started()
        try:
            pipe.send((*self._arguments, role.device))
        except OSError:  # it is dead already
            pipe.close()
            process.join()
            process, pipe = _started()
            pipe.send((*self._arguments, role.device))
        return _Member(role, process, pipe)


def _has_ended(process: SpawnProcess, within: float) -> bool:
    """Asked of the process itself: `join` with a limit waits for what it forked, too."""
    until = time.monotonic() + within
    while process.exitcode is None and time.monotonic() < until:
        time.sleep(0.01)
    return process.exitcode is not None


def _started(device: str = "") -> Started:
    """A process that waits for what it is to work for; where a device is named, with torch and the device loaded."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, device), daemon=True)
    with _interrupts_held_back(), _main_held_back():
        process.start()
    theirs.close()
    return process, ours


@contextmanager
def _main_held_back() -> Iterator[None]:
    """A process started here does not import the script that this program began with, whose calls would run again."""
    main, sys.modules["__main__"] = sys.modules["__main__"], ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """A process started here never sees Ctrl-C, not even while it still imports; ours waits until the end."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # starting it later would lift the mask
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(pipe: Connection[object, object], ahead: str) -> None:
    """A worker's life: what it works for, then assignments in, outcomes out, until the other end of the pipe is gone,
    even by `kill -9`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(OSError):  # where memory ends, this process goes first: the run survives it
        Path("/proc/self/oom_score_adj").write_text("500")
    multiprocessing.current_process().daemon = (
        False  # to the parent it is one; here that forbade to load data in parallel
    )
    if ahead:
        with suppress(Exception):  # whoever plans the run says what is wrong with the device
            _load(ahead)
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        objects, sources, kept, device = cast(tuple[Path, Sources, Path | None, str], pipe.recv())
        output = None if kept is None else Output(kept)
        if output is not None:
            output.take_over()
        worker = Worker(objects, sources, device, CodeCheck(sources.own_code))
        while True:
            assignment, digests = cast(tuple[Assignment, dict[str, str]], pipe.recv())
            if output is not None:
                output.about(assignment.jobs[0].label)
            worker.warm_up(assignment)
            pipe.send(BEGUN)
            pipe.send(without_errors(worker.perform(assignment, digests)))
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    _leave()


def _end_with_parent() -> None:
    """In the midst of a job, too: nobody waits for it any more, and the same command may be at it already."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        kill(descendants(os.getpid()))
        _leave()


def _leave() -> None:
    """End this process with the processes that it has; threads that the user's code left would keep it alive."""
    for child in multiprocessing.active_children():
        child.kill()
    os._exit(0)


def _load(device: str) -> None:
    """Import all that models are made with, and open the device."""
    import torch

    from forgetgauge.learn.device import choose_device

    torch.zeros(1, device=choose_device(device))


def without_errors(outcome: Outcome) -> Outcome:
    """An exception of the user's need not survive the pipe; its text does."""
    return replace(outcome, failures={key: replace(failure, error=None) for key, failure in outcome.failures.items()})


def usable_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
