"""A plan on many GPUs that nobody has: the run's own scheduler, with measured job times, on simulated workers.

    python benchmarks/cluster.py                       # the three plans of docs/scale.md
    python benchmarks/cluster.py RESULT_JSON [N…]      # the plan of a stored result of yours, on N workers

What is real: the job graph of a stored result, which stacks are formed of it for so many GPUs, and the scheduler, which
hands out assignments in its own order. What is simulated: the clock. A worker is one GPU with eight cores; an
assignment waits for the driver, which serves one at a time, for its inputs, which share the driver's link with all
that comes back, and for a free GPU or core; it then takes as long as its jobs were measured to take. A worker may be
lost at a given rate, in the column "with losses" once for every hour that it works: what it was doing is done again
elsewhere, and another takes its place. Constants, and where they were measured, stand below.
"""

from __future__ import annotations

import heapq
import json
import random
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from chaos_runs import head, row
from cluster_plans import Plan, Stored, forty_methods, language, tables

from forgetgauge.plan.jobs import HEAVY, USES_TORCH
from forgetgauge.run.assignments import Assignment, Outcome
from forgetgauge.run.packing import STACK_ON_GPU
from forgetgauge.run.scheduler import execute
from forgetgauge.store.objects import Receipt
from forgetgauge.store.runfolder import RunFolder

START_S = 8.2
"""Until the first job begins: imports, reading data, planning (docs/performance.md)."""
RESULT_S = 1.7e-3
"""Of putting the result together, for each job (docs/performance.md)."""
CORES = 8
"""Beside each GPU, for fits and decisions."""


@dataclass(frozen=True)
class Cluster:
    """What the workers are joined by, and how long they live."""

    driver_s: float = 0.004
    """Of the driver's own for each assignment, measured: docs/cluster.md."""
    bytes_per_s: float = 1.25e9
    """Of the driver's link: ten gigabits."""
    latency_s: float = 0.002
    """Until an assignment that was sent is begun, beside what its inputs take."""
    losses_per_hour: float = 0.0
    """Of one worker."""
    noticed_s: float = 30.0
    """Until a worker that was lost is known to be."""
    replaced_s: float = 300.0
    """Until another is in its place."""


# -- the simulated cluster ---------------------------------------------------------------------------------------------


@dataclass
class Tally:
    """What was counted on the way."""

    gpu_s: float = 0.0
    lost_s: float = 0.0
    n_lost: int = 0
    n_bytes: int = 0
    n_assignments: int = 0
    widest: int = 0
    """Stack of models."""
    driver_s: float = 0.0


class Simulated:
    """An executor whose clock is its own: `next` is the next thing that would happen."""

    def __init__(self, plan: Plan, n_workers: int, cluster: Cluster, seed: int = 0) -> None:
        self.plan, self.cluster, self.rng = plan, cluster, random.Random(seed)
        self.n_gpus = n_workers
        self.now = self._driver_free = self._link_free = 0.0
        self._slots = {True: n_workers, False: n_workers * CORES}
        self._free, self._busy = dict(self._slots), {True: 0, False: 0}
        self._queue: dict[bool, deque[Assignment]] = {True: deque(), False: deque()}
        self._events: list[tuple[float, int, str, Assignment | None, bool]] = []
        self._number = count()
        self.tally = Tally()
        self.chain: dict[str, float] = {}
        """Seconds until each artefact would be there if nobody ever waited."""

    def _at(self, when: float, what: str, assignment: Assignment | None, on_gpu: bool) -> None:
        heapq.heappush(self._events, (when, next(self._number), what, assignment, on_gpu))

    def _by_link(self, keys: Iterable[str], since: float) -> float:
        """When these artefacts have gone over the driver's link, one after another with all others."""
        n_bytes = sum(self.plan.sizes[key] for key in keys)
        self.tally.n_bytes += n_bytes
        self._link_free = max(self._link_free, since) + n_bytes / self.cluster.bytes_per_s
        return self._link_free

    def has_room(self, assignment: Assignment) -> bool:
        """As the executor `ray` has it: a few more than there are places."""
        on_gpu = assignment.jobs[0].kind in USES_TORCH
        slots = self._slots[on_gpu]
        return self._busy[on_gpu] < slots + 1 + slots // 4

    def n_workers(self, assignment: Assignment) -> int:
        """Places for such assignments."""
        return self._slots[assignment.jobs[0].kind in USES_TORCH]

    def start(self, assignment: Assignment, digests: Mapping[str, str]) -> None:
        """The driver sends it, when it comes to that."""
        on_gpu = assignment.jobs[0].kind in USES_TORCH
        self._busy[on_gpu] += 1
        self.tally.n_assignments += 1
        self.tally.widest = max(self.tally.widest, len(assignment.jobs) * assignment.jobs[0].coupled)
        self._driver_free = max(self._driver_free, self.now) + self.cluster.driver_s
        self.tally.driver_s += self.cluster.driver_s
        self._at(
            self._by_link(assignment.inputs, self._driver_free) + self.cluster.latency_s, "sent", assignment, on_gpu
        )

    def next(self, timeout: float | None = None) -> tuple[Assignment, Outcome]:
        """Let time pass until an assignment is back."""
        while True:
            self.now, _, what, assignment, on_gpu = heapq.heappop(self._events)
            if what == "back":
                assert assignment is not None
                self._busy[on_gpu] -= 1
                receipts = {key: Receipt("0" * 64, self.plan.sizes[key]) for key in assignment.wanted}
                return assignment, Outcome(receipts, seconds=self.plan.seconds(assignment))
            if what == "sent" and assignment is not None:
                self._queue[on_gpu].append(assignment)
            elif what == "made" and assignment is not None:
                self._free[on_gpu] += 1
                self._at(self._by_link(assignment.wanted, self.now), "back", assignment, on_gpu)
            elif what == "replaced":
                self._free[on_gpu] += 1
            while self._free[on_gpu] and self._queue[on_gpu]:
                self._begin(self._queue[on_gpu].popleft(), on_gpu)

    def _begin(self, assignment: Assignment, on_gpu: bool) -> None:
        """On a worker that is free; it may be lost before it is done."""
        seconds, rate = self.plan.seconds(assignment), self.cluster.losses_per_hour / 3600
        self._free[on_gpu] -= 1
        lives = self.rng.expovariate(rate) if rate else float("inf")
        if lives < seconds:
            self.tally.n_lost += 1
            self.tally.lost_s += lives if on_gpu else 0.0
            self._at(self.now + lives + self.cluster.noticed_s, "sent", assignment, on_gpu)
            self._at(self.now + lives + self.cluster.replaced_s, "replaced", None, on_gpu)
            return
        self.tally.gpu_s += seconds if on_gpu else 0.0
        ready = max((self.chain.get(key, 0.0) for key in assignment.inputs), default=0.0)
        self.chain.update(dict.fromkeys(assignment.wanted, ready + seconds))
        self._at(self.now + seconds, "made", assignment, on_gpu)

    def seconds_at_work(self, assignment: Assignment) -> float:
        """Nobody is stopped."""
        return 0.0

    def stop(self, assignment: Assignment) -> None:
        """Never asked for."""

    def close(self) -> None:
        """Nothing is open."""


@dataclass(frozen=True)
class Replay:
    """What came of a plan on so many workers."""

    n_workers: int
    wall_s: float
    alone_s: float
    """Of the GPU's own work where one worker does it all, in the widest stacks."""
    bounds: Mapping[str, float]
    tally: Tally
    scheduler_s: float
    """That the real scheduler took on this machine."""

    @property
    def efficiency(self) -> float:
        """The work of one worker over what all of them were there for."""
        return self.alone_s / (self.n_workers * self.wall_s)

    @property
    def bound(self) -> str:
        """What would not be shorter if all else took no time."""
        return max(self.bounds, key=self.bounds.__getitem__)


def replayed(plan: Plan, n_workers: int, cluster: Cluster, alone_s: float | None = None) -> Replay:
    """Play a plan to its end on simulated workers."""
    executor = Simulated(plan, n_workers, cluster)
    with tempfile.TemporaryDirectory() as scratch:
        folder = RunFolder(Path(scratch) / "run")
        folder.create()
        began = time.process_time()
        ending = execute(dict(plan.jobs), folder, executor, stack_width=STACK_ON_GPU, n_gpus=n_workers)
        own = time.process_time() - began
    if ending.n_missing:
        raise SystemExit(f"{ending.n_missing} jobs were not done")
    tally, n_jobs = executor.tally, len(plan.jobs)
    bounds = {
        "work of the GPUs": (tally.gpu_s + tally.lost_s) / n_workers,
        "the longest chain of jobs": max(executor.chain.values()),
        "the driver": tally.driver_s,
        "the driver's link": tally.n_bytes / cluster.bytes_per_s,
        "start and result": START_S + RESULT_S * n_jobs,
    }
    wall = START_S + executor.now + RESULT_S * n_jobs
    return Replay(n_workers, wall, alone_s or tally.gpu_s, bounds, tally, own)


def shown(plan: Plan, workers: Iterable[int], calm: Cluster, stormy: Cluster) -> None:
    """A table, a row for so many workers."""
    models = sum(job.kind in HEAVY for job in plan.jobs.values())
    print(f"\n{plan.name}: {len(plan.jobs):,} jobs, {models:,} models\n")
    head(
        "workers",
        "wall time",
        "efficiency",
        "assignments",
        "widest stack",
        "moved",
        "bounded by",
        "with losses",
        "scheduler",
    )
    alone = None
    for n in workers:
        one = replayed(plan, n, calm, alone)
        alone = alone or one.alone_s
        lossy = replayed(plan, n, stormy, alone)
        row(
            f"{n:,}",
            lasting(one.wall_s),
            f"{one.efficiency:.0%}",
            f"{one.tally.n_assignments:,}",
            one.tally.widest,
            f"{one.tally.n_bytes / 1e9:.1f} GB",
            f"{one.bound}, {one.bounds[one.bound]:.0f} s",
            f"{lasting(lossy.wall_s)}, {lossy.tally.n_lost} lost",
            f"{1e3 * one.scheduler_s / one.tally.n_assignments:.1f} ms each",
        )


def lasting(seconds: float) -> str:
    """For people."""
    return f"{seconds / 3600:.2f} h" if seconds >= 3600 else f"{seconds:.0f} s"


def main(path: str = "", *workers: str) -> None:
    """The three plans, or that of one result."""
    sizes = list(map(int, workers)) or [1, 8, 64, 1024]
    stored = [Plan.joined(path, Stored(json.loads(Path(path).read_text())).plans)] if path else []
    plans = stored or [tables(), forty_methods(), language()]
    for plan in plans:
        shown(plan, sizes, Cluster(), Cluster(losses_per_hour=1.0))


if __name__ == "__main__":
    from usage import show_help

    show_help(__doc__)
    main(*sys.argv[1:])
