"""From decisions to Q: reads finished artefacts, plays the arithmetic of the game, fills in the result."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from forgetgauge.plan.graph import Graph
from forgetgauge.plan.jobs import Job
from forgetgauge.results.game import game_result
from forgetgauge.results.making import FactsOf, stacks_that_ran
from forgetgauge.results.played import Played
from forgetgauge.results.record import FailureResult, Result
from forgetgauge.store.ledger import LedgerState
from forgetgauge.store.runfolder import RunFolder


def assemble(
    graphs: Sequence[Graph],
    folder: RunFolder,
    *,
    sweep_key: str | None,
    environment: Mapping[str, str],
) -> Result:
    """The result of a run whose jobs are done; what failed is named and left out."""
    state = folder.open_ledger().state
    jobs: dict[str, Job] = {key: job for graph in graphs for key, job in graph.jobs.items()}
    facts_of = FactsOf(folder, state)
    games = [game_result(Played(graph, folder, state), facts_of) for graph in graphs]
    stacks = stacks_that_ran(jobs, facts_of, state)
    devices = " and ".join(dict.fromkeys(stack.device for stack in stacks))
    return Result(
        environment={**environment, **_versions(jobs, state), **({"device": devices} if devices else {})},
        digests={
            "data": "+".join(dict.fromkeys(graph.game.data_digest for graph in graphs)),
            "decisions": _decisions_digest(jobs, state),
        },
        games=games,
        failures=[
            FailureResult(jobs[key].label, line, f"failures/{key[:16]}.txt")
            for key, line in sorted(state.failed.items())
            if key in jobs
        ],
        stacks=stacks,
        sweep=sweep_key,
        total_seconds=round(sum(state.done[key].seconds for key in jobs if key in state.done), 3),
    )


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
