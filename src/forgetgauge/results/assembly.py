"""The result of a run: its games, what failed, how its models were made; and how many pairs a pilot asks for."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from forgetgauge.game.adaptive import pairs_needed
from forgetgauge.plan.graph import Graph
from forgetgauge.plan.jobs import Job
from forgetgauge.provenance import provenance
from forgetgauge.results.made import FailureResult, MadeResult, StackResult
from forgetgauge.results.record import Result
from forgetgauge.results.run_game import game_result
from forgetgauge.results.views import GameView, RunView
from forgetgauge.store.ledger import LedgerState
from forgetgauge.store.runfolder import RunFolder


def assemble(
    graphs: Sequence[Graph],
    folder: RunFolder,
    *,
    sweep_key: str | None,
    environment: Mapping[str, str],
    progress: Callable[[str], None] = lambda _: None,
) -> Result:
    """The result of a run whose jobs are done; what failed is named and left out. `progress` hears what comes next."""
    run = RunView(folder)
    jobs: dict[str, Job] = {key: job for graph in graphs for key, job in graph.jobs.items()}
    games = []
    for number, graph in enumerate(graphs, 1):
        which = f"the result: game {number} of {len(graphs)}, " if len(graphs) > 1 else "the result: "
        game = game_result(GameView(graph, run), partial(_tell, progress, which))
        of_it = _made(graph.jobs, [graph.game.data_digest], run) if len(graphs) > 1 else None
        games.append(replace(game, made=of_it))
    made = _made(jobs, [graph.game.data_digest for graph in graphs], run)
    devices = " and ".join(dict.fromkeys(stack.device for stack in made.stacks))
    return Result(
        environment={
            **provenance(),
            **environment,
            **_versions(jobs, run.state),
            **({"device": devices} if devices else {}),
        },
        digests=made.digests,
        games=games,
        failures=made.failures,
        stacks=made.stacks,
        sweep=sweep_key,
        total_seconds=made.total_seconds,
    )


def _made(jobs: Mapping[str, Job], data: Sequence[str], run: RunView) -> MadeResult:
    """How what these jobs did was made; `data` are the digests of theirs."""
    state = run.state
    failed = sorted((key, line) for key, line in state.failed.items() if key in jobs)
    return MadeResult(
        digests={"data": "+".join(dict.fromkeys(data)), "decisions": _decisions_digest(jobs, state)},
        failures=[FailureResult(jobs[key].label, line, f"failures/{key[:16]}.txt") for key, line in failed],
        stacks=_stacks_that_ran(jobs, run),
        total_seconds=round(sum(state.done[key].seconds for key in jobs if key in state.done), 3),
    )


def _tell(progress: Callable[[str], None], which: str, doing: str) -> None:
    progress(which + doing)


def _stacks_that_ran(jobs: Mapping[str, Job], run: RunView) -> list[StackResult]:
    """One entry for every way in which models were made, with their number; trained ones first.

    Weights are dropped when nothing needs them any more; the signals stay, and carry along what their model's artefact
    said of engine, width of the stack and device.
    """
    made: dict[str, Mapping[str, Any]] = {}
    for key, job in jobs.items():
        model = jobs[job.inputs["model"]] if job.kind == "signals" else None
        if model is None or model.key in made or not run.has(key):
            continue
        facts = run.facts(key)
        both = {model.key: facts.get("ran"), model.inputs.get("model", ""): facts.get("original_ran")}
        made.update({which: ran for which, ran in both.items() if ran})
    ways = Counter((jobs[key].kind, ran["engine"], ran["width"], ran["device"]) for key, ran in made.items())
    return [StackResult(*way, models=ways[way]) for way in sorted(ways)]


def _versions(jobs: Mapping[str, Job], state: LedgerState) -> dict[str, str]:
    """Of all that made artefacts of this run: `2.11.0 and 2.13.0` where it went on on another machine."""
    found: dict[str, dict[str, None]] = {}
    for key in jobs:
        for name, version in (state.done[key].made_with if key in state.done else {}).items():
            found.setdefault(name, {})[version] = None
    return {name: " and ".join(sorted(each)) for name, each in found.items()}


def _decisions_digest(jobs: Mapping[str, Job], state: LedgerState) -> str:
    """One digest over all decisions that enter the result: equal digests mean an equal result."""
    digest = hashlib.sha256()
    for key in sorted(key for key, job in jobs.items() if job.kind == "decide" and key in state.done):
        digest.update(f"{key} {state.done[key].receipt.sha256}\n".encode())
    return digest.hexdigest()


def pairs_wanted(graph: Graph, folder: RunFolder) -> int:
    """How many pairs it takes for an interval as narrow as the game's `until` asks for.

    Judged by the pilot of all methods that completed it.
    """
    game, until = graph.game, graph.game.until
    assert until is not None
    view = GameView(graph, RunView(folder))
    pilots = [[found.advantage for found in outcomes.values()] for outcomes in view.outcomes.values()]
    wanted = [
        pairs_needed(np.asarray(pilot), until["half_width"], game.level, int(until["max_pairs"]))
        for pilot in pilots
        if len(pilot) == game.pairs
    ]
    return max(wanted, default=game.pairs)
