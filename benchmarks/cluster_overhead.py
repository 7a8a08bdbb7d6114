"""What the executor `ray` costs: how near to ideal jobs of half a second are done, and the driver's time for each job.

    python benchmarks/cluster_overhead.py [scaling] [driver N_JOBS]

Both on a cluster of this machine alone. Jobs sleep, so that as many can be done at once as Ray is told that there are
cores. The clock starts when every process has done its first job: to start one takes as long as importing Python's
libraries does, once a run. The driver's time is that of its process on all of its threads,
Ray's among them, with one assignment for each job and all of them waiting at once: the worst that a plan can ask for.
"""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from forgetgauge.attack.adversary import Need
from forgetgauge.plan.jobs import FitJob, Job, Named
from forgetgauge.run.assignments import Sources
from forgetgauge.run.cluster import connection
from forgetgauge.run.executors import usable_cores
from forgetgauge.run.options import RunOptions
from forgetgauge.run.scheduler import execute
from forgetgauge.store.runfolder import RunFolder

SECONDS = 0.5
WARM_UP_S = 5.0
"""Of each of three jobs for every worker, before the clock starts: meanwhile all processes start."""
EACH = 40
"""Jobs for each worker: twenty seconds of work."""


@dataclass
class Sleeps:
    """An adversary that learns nothing, in so many seconds."""

    number: int
    seconds: float
    needs = frozenset({Need.BACKGROUND})

    def fit(self, shadows: Any, context: Any) -> Sleeps:
        """Take the time."""
        time.sleep(self.seconds)
        return self

    def arrays(self) -> dict[str, Any]:
        """A few bytes."""
        return {"number": np.array([self.number])}


@dataclass(frozen=True)
class Given(Job):
    """Signals that are there already."""

    kind = "signals"

    @property
    def params(self) -> dict[str, Any]:
        """Nothing."""
        return {}

    @property
    def choices(self) -> list[tuple[str, Named]]:
        """Nobody's."""
        return []


def planned(folder: RunFolder, numbers: range, seconds: float) -> dict[str, Job]:
    """So many jobs that sleep, each of which reads the same small artefact."""
    given = Given()
    if given.key not in folder.open_ledger().state.done:
        arrays = {"outputs": np.zeros((8, 2), np.float32), "labels": np.arange(8) % 2, "role": np.zeros(8, np.int8)}
        receipt = folder.objects.write(given.key, arrays, {})
        folder.open_ledger().record_done({given.key: receipt}, 0.0)
    jobs: list[Job] = [given]
    for number in numbers:
        adversary = Named("cluster_overhead:Sleeps", {"number": number, "seconds": seconds})
        jobs.append(
            FitJob(
                adversary=adversary, n_classes=2, task="classification", inputs={"shadow-0": given.key}, label="sleep"
            )
        )
    return {job.key: job for job in jobs}


def played(n_workers: int, n_jobs: int, seconds: float) -> tuple[float, float]:
    """(seconds on the clock, seconds of the driver's own) that so many jobs take."""
    connection.usable_cores = lambda: n_workers
    hire = RunOptions("ray", "cpu").load_executor()
    with tempfile.TemporaryDirectory() as scratch:
        folder = RunFolder(Path(scratch) / "run")
        folder.create()
        workers = hire(folder.objects.folder, Sources({}), "cpu")
        try:
            for numbers, each in ((range(-3 * n_workers, 0), WARM_UP_S), (range(n_jobs), seconds)):
                jobs = planned(folder, numbers, each)
                wall, own = time.perf_counter(), time.process_time()
                ending = execute(jobs, folder, workers)
                wall, own = time.perf_counter() - wall, time.process_time() - own
                if ending.failed or ending.n_run != len(numbers):
                    raise SystemExit(next(iter(ending.failed.values())).line)
        finally:
            workers.close()
    return wall, own


def scaling() -> None:
    """Half a second a job on 1, 2, 4 and 8 workers."""
    print("| workers | jobs of 0.5 s | ideal | measured | of ideal |\n|---|---|---|---|---|")
    for n_workers in (1, 2, 4, 8):
        n_jobs = EACH * n_workers
        wall, _ = played(n_workers, n_jobs, SECONDS)
        print(
            f"| {n_workers} | {n_jobs} | {EACH * SECONDS:.1f} s | {wall:.1f} s | {EACH * SECONDS / wall:.1%} |",
            flush=True,
        )


def driver(n_jobs: int = 10_000) -> None:
    """The driver's own time for each of many jobs that take none."""
    wall, own = played(usable_cores(), n_jobs, 0.0)
    each = f"{1e3 * own / n_jobs:.2f} ms of the driver's own a job, {1e3 * wall / n_jobs:.2f} ms on the clock"
    print(f"{n_jobs} jobs: {each}")


if __name__ == "__main__":
    from usage import show_help

    show_help(__doc__)
    if sys.argv[1:2] != ["driver"]:
        scaling()
    if sys.argv[1:2] != ["scaling"]:
        driver(*map(int, sys.argv[2:3]))
