"""From decisions to Q: reads finished artefacts, plays the arithmetic of the game, fills in the result."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from forgetgauge.game.advantage import PairOutcome, outcome_of_decisions
from forgetgauge.game.assessment import Assessment, assess
from forgetgauge.game.splits import SwapPair
from forgetgauge.plan.draws import draw_swap_pair, half_sizes
from forgetgauge.plan.graph import SIDES, Cell, Game, Graph
from forgetgauge.plan.jobs import Job
from forgetgauge.plan.record import game_to_json
from forgetgauge.report.result import (
    AdversaryResult,
    FailureResult,
    GameResult,
    MethodResult,
    NoiseFloorResult,
    Result,
)
from forgetgauge.store.artefact import Artefact
from forgetgauge.store.ledger import LedgerState
from forgetgauge.store.runfolder import RunFolder
from forgetgauge.streams import Streams, identity_key


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
    games = [_Assembler(graph, folder, state).game_result() for graph in graphs]
    return Result(
        environment=dict(environment),
        digests={"data": graphs[0].game.data_digest, "decisions": _decisions_digest(jobs, state)},
        games=games,
        failures=[
            FailureResult(jobs[key].label, line, f"failures/{key[:16]}.txt")
            for key, line in sorted(state.failed.items())
            if key in jobs
        ],
        sweep=sweep_key,
        total_seconds=round(sum(state.done[key].seconds for key in jobs if key in state.done), 3),
    )


def _decisions_digest(jobs: Mapping[str, Job], state: LedgerState) -> str:
    """One digest over all decisions that enter the result: equal digests mean an equal result."""
    digest = hashlib.sha256()
    for key in sorted(key for key, job in jobs.items() if job.kind == "decide" and key in state.done):
        digest.update(f"{key} {state.done[key].receipt.sha256}\n".encode())
    return digest.hexdigest()


class _Assembler:
    """One game's artefacts, read and summed up."""

    def __init__(self, graph: Graph, folder: RunFolder, state: LedgerState) -> None:
        self.graph, self.game, self.folder, self.state = graph, graph.game, folder, state
        self.n_target = half_sizes(self.game.n_points, self.game.fraction)[0]

    def game_result(self) -> GameResult:
        assessed = {method: self._assess(method) for method in self.game.methods}
        known = {method: found for method, found in assessed.items() if found is not None}
        return GameResult(
            value=self.game.value,
            spec=_readable_spec(self.game),
            methods={method: self._method_result(method, found) for method, found in assessed.items()},
            noise_floor=self._noise_floor(known),
            interval_basis=next((found.quality_interval.basis for found in known.values()), None),
        )

    def _assess(self, method: str) -> Assessment | None:
        outcomes = [found for pair in range(self.game.pairs) if (found := self._outcome(method, pair)) is not None]
        if not outcomes:
            return None
        # The relabellings are named by the game and not by the method: methods are compared on the same ones.
        rng = Streams(identity_key({"draw": "relabel", "seed": self.game.seed})).generator("relabel")
        return assess(outcomes, rng, level=self.game.level)

    def _outcome(self, method: str, pair: int) -> PairOutcome | None:
        """The pair's paired differences over seeds and adversaries; None where a job of it failed."""
        sides = []
        for side in SIDES:
            keys = [self._decision_keys(Cell(method, pair, side, seed)) for seed in range(self.game.seeds)]
            if not all(self.state.is_available(key) for seed_keys in keys for key in seed_keys):
                return None
            sides.append([np.stack([self._read(k).arrays["says_forget"] for k in seed], axis=1) for seed in keys])
        decisions = np.asarray(sides)  # (sides, seeds, points, adversaries)
        drawn = self._pair(pair)
        return outcome_of_decisions(decisions[0], decisions[1], drawn.in_forget, self._weight[drawn.points])

    def _method_result(self, method: str, found: Assessment | None) -> MethodResult:
        cells = [self.graph.cells[cell] for cell in sorted(self.graph.cells) if cell.method == method]
        unlearned = [jobs.unlearn for jobs in cells if jobs.unlearn in self.state.done]
        accuracies = [self._read(jobs.signals).facts for jobs in cells if self.state.is_available(jobs.signals)]
        return MethodResult(
            quality=found.quality if found else None,
            interval=(found.quality_interval.low, found.quality_interval.high) if found else None,
            adversary=list(self.game.adversaries)[found.best] if found else None,
            by_adversary=_by_adversary(self.game, found) if found else {},
            p_value=found.noise.p_value if found else None,
            noise_floor=found.noise.q95 if found else None,
            n_pairs=len(found.by_pair) if found else 0,
            accuracy=_mean_of_each([facts["accuracy"] for facts in accuracies]),
            n_gradients=_mean([facts["n_gradients"] for facts in accuracies]),
            seconds=round(_mean([self.state.done[key].seconds for key in unlearned]), 6),
        )

    def _noise_floor(self, known: Mapping[str, Assessment]) -> NoiseFloorResult | None:
        """Retrain-like methods (which start from no original) say what chance gives; else the quietest method does."""
        if not known:
            return None
        blind = [method for method in known if not self.game.methods[method].uses_original]
        method = min(blind or known, key=lambda name: known[name].noise.q95)
        return NoiseFloorResult(method, known[method].noise.mean, known[method].noise.q95)

    def _decision_keys(self, cell: Cell) -> list[str]:
        return list(self.graph.cells[cell].decide.values())

    def _read(self, key: str) -> Artefact:
        return self.folder.objects.read(key, self.state.done[key].receipt.sha256)

    @cached_property
    def _weight(self) -> Any:
        return self._read(self.graph.initialise).arrays["weight"]

    def _pair(self, pair: int) -> SwapPair:
        game = self.game
        return draw_swap_pair(game.data_digest, self.n_target, game.seed, game.fraction, game.alpha, pair)


def _by_adversary(game: Game, found: Assessment) -> dict[str, AdversaryResult]:
    return {
        name: AdversaryResult(
            advantage=float(found.advantage[i]),
            interval=(found.intervals[i].low, found.intervals[i].high),
            by_pair=[float(value) for value in found.by_pair[:, i]],
        )
        for i, name in enumerate(game.adversaries)
    }


def _readable_spec(game: Game) -> dict[str, Any]:
    n_retain, n_forget = game.sizes
    return {**game_to_json(game), "n_retain": n_retain, "n_forget": n_forget}


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else 0.0


def _mean_of_each(records: Sequence[Mapping[str, float]]) -> dict[str, float]:
    columns: dict[str, list[float]] = defaultdict(list)
    for record in records:
        for name, value in record.items():
            columns[name].append(value)
    return {name: _mean(values) for name, values in columns.items()}
