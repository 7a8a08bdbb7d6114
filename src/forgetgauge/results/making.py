"""How the models of a run were made: engine, width of the stack, device, as the signals taken of them say.

Weights are dropped when nothing needs them any more; the signals stay, and carry along what the artefact of their
model said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from forgetgauge.plan.jobs import Job
from forgetgauge.results.record import StackResult
from forgetgauge.store.ledger import LedgerState
from forgetgauge.store.runfolder import RunFolder


class FactsOf:
    """What artefacts say besides their arrays, each read and checked once; the arrays (logits) are not kept."""

    def __init__(self, folder: RunFolder, state: LedgerState) -> None:
        self._folder, self._state = folder, state
        self._read: dict[str, dict[str, Any]] = {}

    def __getitem__(self, key: str) -> dict[str, Any]:
        if key not in self._read:
            self._read[key] = self._folder.objects.read(key, self._state.done[key].receipt.sha256).facts
        return self._read[key]


def stacks_that_ran(jobs: Mapping[str, Job], facts_of: FactsOf, state: LedgerState) -> list[StackResult]:
    """One entry for every way in which models were made, with their number; trained ones first."""
    made: dict[str, Mapping[str, Any]] = {}
    for key, job in jobs.items():
        model = jobs[job.inputs["model"]] if job.kind == "signals" else None
        if model is None or model.key in made or not state.is_available(key):
            continue
        facts = facts_of[key]
        told = {model.key: facts.get("ran"), model.inputs.get("model", ""): facts.get("original_ran")}
        made.update({which: ran for which, ran in told.items() if ran})
    ways = Counter((jobs[key].kind, ran["engine"], ran["width"], ran["device"]) for key, ran in made.items())
    return [StackResult(*way, models=ways[way]) for way in sorted(ways)]
