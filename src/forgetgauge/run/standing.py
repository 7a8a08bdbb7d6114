"""Where a run stands, read from its folder by anybody who sees it, how long a planned one would take, and how
large what it keeps would be."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from forgetgauge.errors import UserError
from forgetgauge.plan.graph import CONFUSED, PAIR, PLAINLY, SHADOW_HALF, TARGET_HALF, Graph
from forgetgauge.plan.jobs import HEAVY, UTILITY, Job, SignalsJob
from forgetgauge.results.record import Result, read_result
from forgetgauge.run.campaign import Campaign, assembled
from forgetgauge.run.packing import jobs_to_do, stack_kind
from forgetgauge.run.stages import is_open
from forgetgauge.store.ledger import LedgerState
from forgetgauge.store.objects import CorruptArtefact
from forgetgauge.store.runfolder import RunFolder
from forgetgauge.streams import identity_key

RUNNING, STOPPED, FINISHED = "running", "stopped", "finished"
HEADER_BYTES = 250
"""Bytes that an artefact's own description takes, roughly."""


@dataclass(frozen=True)
class Standing:
    """What `status` says of a run."""

    state: str
    """`running` while a process holds the folder; else `finished`, or `stopped` where jobs are left."""
    jobs: Mapping[str, tuple[int, int]]
    """Kind -> how many are planned, and how many are done."""
    n_left: int
    """Jobs that are neither done nor failed for good."""
    failed: list[tuple[str, str]]
    """(Job, why)."""
    work_s: float
    """Seconds that all jobs took, summed over those that worked side by side."""
    idle_s: float | None
    """Since the last job was finished; None before the first."""
    n_bytes: int


def standing(folder: RunFolder) -> tuple[Standing, Campaign]:
    """Where the run of a folder stands, and what it is."""
    campaign = Campaign.read(folder)
    state, jobs = folder.open_ledger().state, campaign.jobs
    left = [key for key in jobs_to_do(jobs, state, hopeless=state.failed) if key not in state.failed]
    more = any(is_open(graph.game) for graph in campaign.graphs)
    at_rest = STOPPED if left or more else FINISHED
    found = Standing(
        state=RUNNING if folder.is_in_use() else at_rest,
        jobs=counts(jobs, state),
        n_left=len(left),
        failed=[(jobs[key].label, why) for key, why in state.failed.items() if key in jobs],
        work_s=sum(done.seconds for done in state.done.values()),
        idle_s=max(0.0, time.time() - (folder.changed_at() or 0.0)) if state.done else None,
        n_bytes=folder.objects.n_bytes(),
    )
    return found, campaign


def counts(jobs: Mapping[str, Job], state: LedgerState) -> dict[str, tuple[int, int]]:
    """Kind -> how many jobs are planned, and how many are done."""
    kinds = dict.fromkeys(job.kind for job in jobs.values())
    keys = {kind: [key for key, job in jobs.items() if job.kind == kind] for kind in kinds}
    return {kind: (len(each), sum(key in state.done for key in each)) for kind, each in keys.items()}


def result_so_far(campaign: Campaign, folder: RunFolder, state: str) -> Result | None:
    """The result, or what the pairs that are finished would give; None where there are none."""
    if state == FINISHED and folder.result.exists():
        return read_result(folder.result)
    graphs = [_begun(graph) for graph in campaign.graphs]
    try:
        found = assembled(Campaign(graphs, campaign.resolved), folder)
    except (CorruptArtefact, UserError):  # made again by whoever runs it
        return None
    return (
        found if any(method.quality is not None for game in found.games for method in game.methods.values()) else None
    )


def _begun(graph: Graph) -> Graph:
    """Without the methods whose strength is not chosen yet."""
    known = {cell.method for cell in graph.cells}
    methods = {name: method for name, method in graph.game.methods.items() if name in known}
    return replace(graph, game=replace(graph.game, methods=methods))


def seconds_needed(campaign: Campaign, folder: RunFolder, known: Iterable[RunFolder]) -> tuple[float, int, int]:
    """(Seconds of work, jobs that they are of, other jobs): what is left of a run, by the pace of jobs just like its
    own that are done in it or in `known` folders."""
    data = {game.data_digest for game in campaign.resolved.games}
    totals: dict[str, tuple[float, int]] = {}
    for one in (folder, *known):
        for key, seconds in _paces(one, data):
            total, n = totals.get(key, (0.0, 0))
            totals[key] = total + seconds, n + 1
    to_do = jobs_to_do(campaign.jobs, folder.open_ledger().state, keep_weights=campaign.keep_weights)
    kinds = [_alike(campaign.jobs[key]) for key in to_do]
    paces = [totals[kind][0] / totals[kind][1] for kind in kinds if kind in totals]
    return sum(paces), len(paces), len(kinds) - len(paces)


def _paces(folder: RunFolder, data: set[str]) -> list[tuple[str, float]]:
    """(What jobs are alike in, seconds of one) of a folder's jobs on the same data; none of one that cannot be read."""
    try:
        campaign, done = Campaign.read(folder), folder.open_ledger().state.done
    except UserError:
        return []
    if data.isdisjoint(game.data_digest for game in campaign.resolved.games):
        return []
    return [(_alike(job), done[key].seconds) for key, job in campaign.jobs.items() if key in done]


def _alike(job: Job) -> str:
    """Jobs that take about as long."""
    return stack_kind(job) + "".join(identity_key(named.identity) for _, named in job.choices)


def artefact_bytes(graph: Graph) -> dict[str, int]:
    """Bytes of what each job makes, beside its header, by its key."""
    game, sizes = graph.game, dict.fromkeys(graph.jobs, 0)
    n_retain, n_forget = (round(size * game.n_points / game.n_drawn) for size in game.sizes)
    half = n_retain + 2 * n_forget
    confused = (n_retain + n_forget) // game.n_classes  # half of two classes, were all equally large
    rows = {PAIR: 2 * n_forget, TARGET_HALF: half, SHADOW_HALF: half, PLAINLY: half, CONFUSED: confused, UTILITY: 0}
    for key, job in graph.jobs.items():
        if job.kind in HEAVY:
            sizes[key] = game.model_bytes
        elif isinstance(job, SignalsJob):
            sizes[key] = rows[job.look_at] * (4 * game.n_classes + 8)  # float32 outputs, a label
        elif job.kind == "decide":
            sizes[key] = 2 * n_forget * (1 + 8)  # a bit and a margin
    return sizes


def disk_estimate(graphs: Sequence[Graph]) -> tuple[int, int]:
    """(bytes of all signals, fits, decisions and headers; bytes of all weights if none were dropped)."""
    sizes: dict[str, int] = {}
    weights: set[str] = set()
    for graph in graphs:  # games of a sweep share jobs
        sizes = artefact_bytes(graph) | sizes
        weights.update(key for key, job in graph.jobs.items() if job.kind in HEAVY)
    heavy = sum(sizes[key] for key in weights)
    return sum(sizes.values()) - heavy + HEADER_BYTES * len(sizes), heavy
