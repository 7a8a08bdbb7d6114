"""A whole run in one call: plan, do what is missing, assemble the result. The command line and `evaluate` share it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from forgetgauge import plugins
from forgetgauge.errors import UserError
from forgetgauge.plan.graph import Graph, Named, build_graph
from forgetgauge.plan.jobs import HEAVY, Job
from forgetgauge.plan.record import game_from_json, game_to_json
from forgetgauge.report.assemble import assemble
from forgetgauge.report.result import Result
from forgetgauge.run.executors import Executor, Inline, Processes
from forgetgauge.run.packing import jobs_to_do
from forgetgauge.run.scheduler import Ending, Progress, execute
from forgetgauge.run.tasks import Resolved, Sources
from forgetgauge.store.runfolder import RunFolder

ExecutorName = Literal["inline", "processes"]


@dataclass(frozen=True)
class Campaign:
    """A planned run: its games and their jobs."""

    graphs: list[Graph]
    resolved: Resolved

    @property
    def jobs(self) -> dict[str, Job]:
        """All jobs of all games; those that games share stand once."""
        return {key: job for graph in self.graphs for key, job in graph.jobs.items()}

    @property
    def keep_weights(self) -> bool:
        """Whether weights stay on disk."""
        return self.resolved.keep_weights

    def to_json(self) -> dict[str, Any]:
        """What `run.json` keeps: enough to score, assemble and report again."""
        return {
            "games": [game_to_json(game) for game in self.resolved.games],
            "sweep": self.resolved.sweep_key,
            "keep_weights": self.keep_weights,
            "environment": self.resolved.environment,
        }

    @staticmethod
    def plan(resolved: Resolved) -> Campaign:
        """Build the job graphs."""
        return Campaign([build_graph(game) for game in resolved.games], resolved)

    @staticmethod
    def read(folder: RunFolder) -> Campaign:
        """The campaign a run folder was made for."""
        run = folder.read_run()
        games = [game_from_json(record) for record in run["games"]]
        sources = Sources({game.data_digest: game.data.name for game in games})
        return Campaign.plan(Resolved(games, run["sweep"], run["keep_weights"], sources, run["environment"]))


def play(
    campaign: Campaign,
    folder: RunFolder,
    *,
    executor: ExecutorName = "inline",
    time_limit_s: float | None = None,
    tell: Callable[[Progress], None] = lambda _: None,
) -> tuple[Ending, Result | None]:
    """Do what is missing and assemble the result; None where jobs are missing because the time was up."""
    deadline = None if time_limit_s is None else time.monotonic() + time_limit_s
    folder.create()
    with folder.locked():
        folder.write_run(campaign.to_json())
        workers: Executor = (
            Processes(folder.objects.folder, campaign.resolved.sources)
            if executor == "processes"
            else Inline(folder.objects.folder, campaign.resolved.sources)
        )
        try:
            ending = execute(
                campaign.jobs,
                folder,
                workers,
                keep_weights=campaign.keep_weights,
                deadline=deadline,
                tell=tell,
            )
        finally:
            workers.close()
        if ending.out_of_time:
            return ending, None
        result = assemble(
            campaign.graphs,
            folder,
            sweep_key=campaign.resolved.sweep_key,
            environment=campaign.resolved.environment,
        )
        folder.write_text(folder.result, result.to_json())
    return ending, result


def add_adversaries(folder: RunFolder, names: Sequence[str]) -> Campaign:
    """The campaign of a run folder with further adversaries; refused where that would mean training."""
    resolved = Campaign.read(folder).resolved
    further = {name: Named(name, {}, plugins.code_of(plugins.adversaries, name)) for name in names}
    for name in names:
        plugins.adversaries.load(name)
    games = [replace(game, adversaries={**game.adversaries, **further}) for game in resolved.games]
    campaign = Campaign.plan(replace(resolved, games=games))
    jobs = campaign.jobs
    unseen = [key for key in jobs_to_do(jobs, folder.open_ledger().state) if jobs[key].kind not in ("fit", "decide")]
    if unseen:
        raise UserError(f"{folder.path}: {len(unseen)} jobs of the run itself are not done: finish it first")
    return campaign


def disk_estimate(campaign: Campaign) -> tuple[int, int]:
    """(bytes of all signals, fits and decisions; bytes of all weights if none were dropped), before anything is run."""
    light = weights = 0
    for graph in campaign.graphs:
        game = graph.game
        n_retain, n_forget = game.sizes
        rows = {"target": 2 * n_forget, "shadow": n_retain + 2 * n_forget}
        for job in graph.jobs.values():
            if job.kind in HEAVY:
                weights += game.model_bytes
            elif job.kind == "signals":
                light += rows[job.params["role"]] * (4 * game.n_classes + 8)  # float32 logits, int64 label
            elif job.kind == "decide":
                light += 2 * n_forget
    return light, weights
