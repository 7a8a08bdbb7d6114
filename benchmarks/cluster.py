"""A plan on many GPUs that nobody has: the run's own scheduler, with measured job times, on simulated workers.

    python benchmarks/cluster.py                       # the three plans of docs/scale.md, without losses and with
    python benchmarks/cluster.py RESULT_JSON [N…]      # the plan of a stored result of yours, on N workers

What is real: the job graph of a stored result, which stacks are formed of it for so many GPUs, and the scheduler, which
hands out assignments in its own order. What is simulated: the clock. A worker is one GPU with eight cores; an
assignment waits for the driver, which serves one at a time, for its inputs, which share the driver's link with all
that comes back, and for a free GPU or core; it then takes as long as its jobs were measured to take. A worker may be
lost at a given rate: what it was doing is done again elsewhere, and another takes its place. Constants and where they
were measured stand below.
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
from dataclasses import dataclass, fields, replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from forgetgauge.plan.game import Game, game_from_json
from forgetgauge.plan.graph import Graph, build_graph
from forgetgauge.plan.jobs import HEAVY, USES_TORCH, Job, UnlearnJob
from forgetgauge.run.assignments import Assignment, Outcome
from forgetgauge.run.disk import artefact_bytes
from forgetgauge.run.packing import STACK_ON_GPU
from forgetgauge.run.scheduler import execute
from forgetgauge.store.objects import Receipt
from forgetgauge.store.runfolder import RunFolder

RESULTS = Path(__file__).parents[1] / "results"
PACE = {6: 398_000.0, 10: 414_000.0, 16: 497_780.0, 64: 564_199.0}
"""Images a second of so many ResNet-20s in one stack on an H200 (docs/performance.md). Fewer were not measured,
and are taken to make as many steps a second as six: nothing is sooner for being narrower than that."""
FIT_S, DECIDE_S = 0.7, 0.006
"""Of one job, measured in results/paper-scale (2.9 s for four fits, 1.2 s for 192 decisions)."""
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


@dataclass(frozen=True)
class Cost:
    """What a job takes, as it was measured."""

    seconds: float
    width: int | None = None
    """Of the stack in which it was measured; None where it is done alone."""


def pace(width: int) -> float:
    """Images a second of a stack, between what was measured."""
    least, most = min(PACE), max(PACE)
    if width < least:
        return PACE[least] * width / least
    return float(np.interp(min(width, most), list(PACE), list(PACE.values())))


@dataclass
class Plan:
    """Jobs, what each takes and how large its artefact is."""

    name: str
    jobs: dict[str, Job]
    costs: dict[str, Cost]
    sizes: dict[str, int]

    @staticmethod
    def joined(name: str, parts: Iterable[Plan]) -> Plan:
        """Several plans as one run; what they share is done once."""
        whole = Plan(name, {}, {}, {})
        for part in parts:
            whole.jobs |= part.jobs
            whole.costs |= part.costs
            whole.sizes |= part.sizes
        return whole

    def seconds(self, assignment: Assignment) -> float:
        """That an assignment takes on one worker."""
        costs = [self.costs[job.key] for job in assignment.jobs]
        if assignment.jobs[0].coupled and costs[0].width is not None:
            n = len(costs)
            return sum(cost.seconds for cost in costs) * pace(costs[0].width) / pace(n)
        return sum(cost.seconds for cost in costs)


def planned(record: Mapping[str, Any], stacks: Iterable[Mapping[str, Any]], share_s: float, **changed: Any) -> Plan:
    """The plan of one game of a stored result, with its measured times; `share_s` is what all its jobs took.

    A result has the seconds of each method. A training is taken to take what Retrain's does, for as many points as it
    has; what is then left of all seconds is that of the signals.
    """
    known = {one.name for one in fields(Game)}
    measured = game_from_json({name: value for name, value in record["spec"].items() if name in known})
    seconds = {name: one["seconds"] or 0.0 for name, one in record["methods"].items()}
    widths = {one["kind"]: max(s["width"] for s in stacks if s["kind"] == one["kind"]) for one in stacks}
    n_retain, n_forget = measured.sizes
    by_unlearner = {one.unlearner.name: seconds[name] for name, one in measured.methods.items() if name in seconds}
    training = by_unlearner["retrain"] * (n_retain + n_forget) / n_retain
    before = _costs(build_graph(measured), by_unlearner, training, 0.0, widths)
    left = share_s - sum(cost.seconds for cost in before.values())
    n_signals = sum(job.kind == "signals" for job in build_graph(measured).jobs.values())
    graph = build_graph(replace(measured, **changed))
    costs = _costs(graph, by_unlearner, training, max(left, 0.0) / n_signals, widths)
    return Plan("", graph.jobs, costs, artefact_bytes(graph))


def _costs(
    graph: Graph, by_unlearner: Mapping[str, float], training: float, signals: float, widths: Mapping[str, int]
) -> dict[str, Cost]:
    costs = {}
    for key, job in graph.jobs.items():
        if isinstance(job, UnlearnJob):
            costs[key] = Cost(by_unlearner[job.unlearner.name], widths["unlearn"] if job.coupled else None)
        elif job.kind == "train":
            costs[key] = Cost(training, widths["train"])
        else:
            costs[key] = Cost({"signals": signals, "fit": FIT_S, "decide": DECIDE_S}.get(job.kind, 0.1))
    return costs


def of_result(path: Path, name: str = "") -> Plan:
    """The plan of a stored result."""
    result = json.loads(path.read_text())
    share = result["total_seconds"] / len(result["games"])
    return Plan.joined(name or str(path), [planned(game, result["stacks"], share) for game in result["games"]])


# -- the simulated cluster ---------------------------------------------------------------------------------------------


@dataclass
class Tally:
    """What was counted on the way."""

    gpu_s: float = 0.0
    lost_s: float = 0.0
    n_lost: int = 0
    n_bytes: int = 0
    n_assignments: int = 0
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


# -- the plans of docs/scale.md ----------------------------------------------------------------------------------------

TABLES = {
    "Tables 1 and 2": ("reproduce/paper/table1", "reproduce/paper/table2"),
    "3 to 5": ("reproduce/paper/table4a",),
    "6 and 7, small": ("reproduce/small/table6", "reproduce/small/table7"),
}


def tables() -> Plan:
    """The paper's tables that were played on a GPU, as they are stored."""
    names = [name for some in TABLES.values() for name in some]
    return Plan.joined("the paper's tables", [of_result(RESULTS / name / "result.json") for name in names])


def forty_methods(n_methods: int = 40, n_data: int = 5, n_pairs: int = 20) -> Plan:
    """Many methods, each the measured cost of one of the eight, on so many data sets, each as costly as CIFAR-10."""
    result = json.loads((RESULTS / "reproduce/paper/table1/result.json").read_text())
    record, share = result["games"][-1], result["total_seconds"] / len(result["games"])
    known = {one.name for one in fields(Game)}
    game = game_from_json({name: value for name, value in record["spec"].items() if name in known})
    methods, others = dict(game.methods), [name for name in game.methods if name not in ("retrain", "none")]
    for number in range(n_methods - len(methods)):
        like = game.methods[others[number % len(others)]]
        unlearner = replace(like.unlearner, params={**like.unlearner.params, "variant": number})
        methods[f"method {number}"] = replace(like, unlearner=unlearner)
    parts = [
        planned(record, result["stacks"], share, methods=methods, pairs=n_pairs, data_digest=f"{number:064d}")
        for number in range(n_data)
    ]
    return Plan.joined(f"{n_methods} methods × {n_data} data sets × {n_pairs} pairs", parts)


def language() -> Plan:
    """The run with a language model that was measured: SST-5, a MiniLM, at small scale."""
    result = json.loads((RESULTS / "reproduce/small/table7/result.json").read_text())
    game = next(one for one in result["games"] if one["value"] == "SST5")
    share = result["total_seconds"] / len(result["games"])
    stacks = [{**one, "width": min(one["width"], 10)} for one in result["stacks"]]
    return replace(planned(game, stacks, share), name="a language model: SST-5")


def shown(plan: Plan, workers: Iterable[int], cluster: Cluster) -> None:
    """A table, a row for so many workers."""
    models = sum(job.kind in HEAVY for job in plan.jobs.values())
    losses = f", a worker lost every {1 / cluster.losses_per_hour:g} hours of it" if cluster.losses_per_hour else ""
    print(f"\n{plan.name}: {len(plan.jobs):,} jobs, {models:,} models{losses}\n")
    print("| workers | wall time | efficiency | assignments | moved | lost | bounded by | scheduler, here |")
    print("|---|---|---|---|---|---|---|---|")
    alone = None
    for n in workers:
        one = replayed(plan, n, cluster, alone)
        alone = alone or one.alone_s
        wall = f"{one.wall_s / 3600:.2f} h" if one.wall_s >= 3600 else f"{one.wall_s:.0f} s"
        each = 1e3 * one.scheduler_s / one.tally.n_assignments
        print(
            f"| {n:,} | {wall} | {one.efficiency:.0%} | {one.tally.n_assignments:,} | {one.tally.n_bytes / 1e9:.1f} GB "
            f"| {one.tally.n_lost} | {one.bound} ({one.bounds[one.bound]:.0f} s) | {each:.1f} ms each |",
            flush=True,
        )


def main(path: str = "", *workers: str) -> None:
    """The three plans, or that of one result."""
    sizes = list(map(int, workers)) or [1, 8, 64, 1024]
    if path:
        return shown(of_result(Path(path)), sizes, Cluster())
    for plan in (tables(), forty_methods(), language()):
        for rate in (0.0, 1 / 24):
            shown(plan, sizes, Cluster(losses_per_hour=rate))
    return None


if __name__ == "__main__":
    main(*sys.argv[1:])
