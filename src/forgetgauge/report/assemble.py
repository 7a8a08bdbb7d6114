"""From decisions to Q: reads finished artefacts, plays the arithmetic of the game, fills in the result."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from forgetgauge.game.adaptive import pairs_needed, stein_quality_interval
from forgetgauge.game.advantage import PairOutcome, outcome_of_decisions
from forgetgauge.game.assessment import Assessment, assess
from forgetgauge.game.comparison import compare_all, rank_stability
from forgetgauge.game.diagnostics import diagnose
from forgetgauge.game.intervals import MIN_PAIRS, pair_interval
from forgetgauge.game.splits import SwapPair
from forgetgauge.game.strong import Queries, draw_queries, strong_advantage, strong_threshold
from forgetgauge.plan.draws import draw_streams, draw_swap_pair, half_sizes
from forgetgauge.plan.graph import SIDES, Cell, Game, Graph
from forgetgauge.plan.jobs import Job
from forgetgauge.plan.record import game_to_json
from forgetgauge.report.making import FactsOf, stacks_that_ran
from forgetgauge.report.result import (
    AdversaryResult,
    ComparisonResult,
    DiagnosticResult,
    FailureResult,
    GameResult,
    MethodResult,
    NoiseFloorResult,
    Result,
    StrongResult,
)
from forgetgauge.report.rivals import Rivals
from forgetgauge.store.artefact import Artefact
from forgetgauge.store.ledger import LedgerState
from forgetgauge.store.runfolder import RunFolder

LARGEST_EPSILON = 1e6
"""Stands for an infinite bound, which JSON cannot say."""


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
    games = [_Assembler(graph, folder, state, facts_of).game_result() for graph in graphs]
    stacks = stacks_that_ran(jobs, facts_of, state)
    devices = " and ".join(dict.fromkeys(stack.device for stack in stacks))
    return Result(
        environment={**environment, **({"device": devices} if devices else {})},
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


def _decisions_digest(jobs: Mapping[str, Job], state: LedgerState) -> str:
    """One digest over all decisions that enter the result: equal digests mean an equal result."""
    digest = hashlib.sha256()
    for key in sorted(key for key, job in jobs.items() if job.kind == "decide" and key in state.done):
        digest.update(f"{key} {state.done[key].receipt.sha256}\n".encode())
    return digest.hexdigest()


class _Assembler:
    """One game's artefacts, read and summed up."""

    def __init__(self, graph: Graph, folder: RunFolder, state: LedgerState, facts_of: FactsOf) -> None:
        self.graph, self.game, self.folder, self.state, self.facts_of = graph, graph.game, folder, state, facts_of
        self.n_target = half_sizes(self.game.n_points, self.game.fraction)[0]
        decided = [(name, key) for jobs in graph.cells.values() for name, key in jobs.decide.items()]
        works = {name for name, key in decided if state.is_available(key)}
        self.adversaries = [name for name in self.game.adversaries if name in works]
        """Those that could be fitted: one that fails everywhere is named among the failures and left out of Q."""

    def game_result(self) -> GameResult:
        outcomes = self._outcomes
        assessed = {method: self._assess(found) for method, found in outcomes.items() if found}
        complete = {name: list(found.values()) for name, found in outcomes.items() if len(found) == self.game.pairs}
        return GameResult(
            value=self.game.value,
            spec=_readable_spec(self.game),
            methods={
                method: self._method_result(method, assessed.get(method), list(found))
                for method, found in outcomes.items()
            },
            noise_floor=self._noise_floor(assessed),
            comparisons=comparison_results(complete, self.game.level),
            rank_stability=stability_of_ranks(complete),
            interval_basis=next((found.quality_interval.basis for found in assessed.values()), None),
        )

    @cached_property
    def _outcomes(self) -> dict[str, dict[int, PairOutcome]]:
        return {method: self.outcomes(method) for method in self.game.methods}

    def outcomes(self, method: str) -> dict[int, PairOutcome]:
        """Pair -> its paired differences over seeds and adversaries; a pair of which a job failed is left out."""
        found = {pair: self._outcome(method, pair) for pair in range(self.game.pairs)}
        return {pair: outcome for pair, outcome in found.items() if outcome is not None}

    def _assess(self, outcomes: Mapping[int, PairOutcome]) -> Assessment:
        # The relabellings are named by the game and not by the method: methods are compared on the same ones.
        rng = draw_streams(draw="relabel", seed=self.game.seed).generator("relabel")
        found = assess(list(outcomes.values()), rng, level=self.game.level, delta=self.game.delta)
        n_pilot = int((self.game.until or {}).get("pilot_pairs", 0))
        if (
            n_pilot and len(outcomes) == self.game.pairs
        ):  # the number of pairs was chosen on the pilot: Stein's interval
            return replace(found, quality_interval=stein_quality_interval(found.by_pair, n_pilot, self.game.level))
        return found

    def _outcome(self, method: str, pair: int) -> PairOutcome | None:
        sides = []
        for side in SIDES:
            cells = [self.graph.cells[Cell(method, pair, side, seed)] for seed in range(self.game.seeds)]
            keys = [[cell.decide[name] for name in self.adversaries] for cell in cells]
            if not self.adversaries or not all(self.state.is_available(key) for seed in keys for key in seed):
                return None
            sides.append([np.stack([self._read(k).arrays["says_forget"] for k in seed], axis=1) for seed in keys])
        decisions = np.asarray(sides)  # (sides, seeds, points, adversaries)
        drawn = self._pair(pair)
        return outcome_of_decisions(decisions[0], decisions[1], drawn.in_forget, self._weight[drawn.points])

    def _method_result(self, method: str, found: Assessment | None, pairs: Sequence[int]) -> MethodResult:
        cells = [self.graph.cells[cell] for cell in sorted(self.graph.cells) if cell.method == method]
        unlearned = [jobs.unlearn for jobs in cells if jobs.unlearn in self.state.done]
        facts = [self.facts_of[jobs.signals] for jobs in cells if self.state.is_available(jobs.signals)]
        return MethodResult(
            **assessed_fields(found),
            adversary=self.adversaries[found.best] if found else None,
            by_adversary=self._by_adversary(method, found, pairs) if found else {},
            n_pairs=len(pairs),
            accuracy=_mean_of_each([fact["accuracy"] for fact in facts]),
            n_gradients=_mean([fact["n_gradients"] for fact in facts]) if facts else None,
            seconds=round(_mean([self.state.done[key].seconds for key in unlearned]), 6) if unlearned else None,
            facts=_mean_of_each([fact.get("told", {}) for fact in facts]),
            metrics=self._rivals.of(method, pairs, list(self._outcomes.get(self._rivals.retrain or "", ()))),
        )

    @cached_property
    def _rivals(self) -> Rivals:
        rooms = self.graph, self.state, self.facts_of
        return Rivals(*rooms, self._read, self._look_up, self._pair, lambda: self._weight, self.adversaries)

    def _by_adversary(self, method: str, found: Assessment, pairs: Sequence[int]) -> dict[str, AdversaryResult]:
        return {
            name: AdversaryResult(
                advantage=float(found.advantage[i]),
                interval=(found.intervals[i].low, found.intervals[i].high),
                by_pair=[float(value) for value in found.by_pair[:, i]],
                diagnostics=self._diagnostics(method, name, pairs),
                strong=[
                    self._strong(method, name, pairs, q) for q in self.game.queries if self._aggregates(method, name)
                ],
            )
            for i, name in enumerate(self.adversaries)
        }

    def _diagnostics(self, method: str, adversary: str, pairs: Sequence[int]) -> DiagnosticResult:
        each = []
        for pair in pairs:
            drawn = self._pair(pair)
            weight = self._weight[drawn.points]
            for first, second in self._margins(method, adversary, pair):
                each.append(diagnose(first, second, drawn.in_forget, weight))
        return DiagnosticResult(
            auc=_mean([found.auc for found in each]),
            tpr_at_fpr_1_percent=_mean([found.tpr_at_1_percent for found in each]),
            tpr_at_fpr_1_permille=_mean([found.tpr_at_01_percent for found in each]),
            ks=_mean([found.ks_envelope for found in each]),
        )

    def _aggregates(self, method: str, adversary: str) -> bool:
        """Whether a threshold for q queries is known: calibrated on shadows, or 0 for likelihood ratios."""
        calibrated = "shadow margin" in self._read(self.graph.fits[method, adversary]).arrays
        return calibrated or not {"outsiders", "background"} & set(self.game.adversaries[adversary].needs)

    def _strong(self, method: str, adversary: str, pairs: Sequence[int], queries: int) -> StrongResult:
        by_pair = [self._strong_by_pair[method, adversary, queries, pair] for pair in pairs]
        interval = pair_interval(np.asarray(by_pair), self.game.level) if len(pairs) >= MIN_PAIRS else None
        return StrongResult(
            queries, _mean(by_pair), (interval.low, interval.high) if interval is not None else None, by_pair
        )

    @cached_property
    def _strong_by_pair(self) -> dict[tuple[str, str, int, int], float]:
        """(method, adversary, queries, pair) -> advantage. What the oracle shows of a pair is the same to all: it is
        drawn once (and not kept: 64 queries, 2000 times, are a megabyte for each set of each pair)."""
        attacks = [
            (method, name)
            for method, outcomes in self._outcomes.items()
            for name in self.adversaries
            if outcomes and self._aggregates(method, name)
        ]
        found = {}
        for pair, queries in product(range(self.game.pairs), self.game.queries):
            shown = self._shown(pair, queries)
            for method, name in attacks:
                if pair in self._outcomes[method]:
                    found[method, name, queries, pair] = self._strong_advantage(method, name, pair, queries, shown)
        return found

    def _strong_advantage(
        self, method: str, adversary: str, pair: int, queries: int, shown: tuple[Queries, Queries]
    ) -> float:
        in_forget, threshold = self._pair(pair).in_forget, self._strong_threshold(method, adversary, queries)
        margins = self._margins(method, adversary, pair)
        return _mean([strong_advantage(first, second, in_forget, threshold, *shown) for first, second in margins])

    def _shown(self, pair: int, queries: int) -> tuple[Queries, Queries]:
        """What the oracle shows of F and of T."""
        drawn = self._pair(pair)
        weight, n_draws = self._weight[drawn.points], self.game.oracle_draws
        return (
            draw_queries(weight[drawn.in_forget], queries, n_draws, self._oracle(pair, "forget")),
            draw_queries(weight[~drawn.in_forget], queries, n_draws, self._oracle(pair, "unseen")),
        )

    def _oracle(self, pair: int, name: str) -> np.random.Generator:
        """Named by the set it shows, so that O_s(0) and O_s'(1) draw the same points."""
        game = self.game
        which = {"data": game.data_digest, "seed": game.seed, "fraction": game.fraction, "alpha": game.alpha}
        return draw_streams(draw="oracle", **which, pair=pair, set=name).generator("queries")

    def _strong_threshold(self, method: str, adversary: str, queries: int) -> float:
        """From the margins of the shadow models; attacks without them are likelihood ratios, whose threshold is 0."""
        key = self.graph.fits[method, adversary]
        arrays = self._read(key).arrays
        if queries == 1 or "shadow margin" not in arrays:
            return 0.0
        cached = self._thresholds.get((key, queries))
        if cached is None:
            margin, member, model = arrays["shadow margin"], arrays["shadow member"], arrays["shadow model"]
            sides = [[margin[(model == m) & (member == side)] for m in np.unique(model)] for side in (True, False)]
            members, others = ([values for values in side if len(values)] for side in sides)
            rng = draw_streams(draw="strong threshold", fit=key, queries=queries).generator("queries")
            cached = strong_threshold(members, others, queries, self.game.oracle_draws, rng)
            self._thresholds[key, queries] = cached
        return cached

    @cached_property
    def _thresholds(self) -> dict[tuple[str, int], float]:
        return {}

    def _margins(self, method: str, adversary: str, pair: int) -> list[tuple[Any, Any]]:
        """Of each seed: (margins of the first side's model, of the second's), over the pair's points."""
        return [
            (
                self._read(self.graph.cells[Cell(method, pair, 0, seed)].decide[adversary]).arrays["margin"],
                self._read(self.graph.cells[Cell(method, pair, 1, seed)].decide[adversary]).arrays["margin"],
            )
            for seed in range(self.game.seeds)
        ]

    def _noise_floor(self, known: Mapping[str, Assessment]) -> NoiseFloorResult | None:
        """What chance gives: from methods that start from no original, else from all; the loudest, to claim no less.

        One retrained model shared by both sides leaves nothing to chance, so it says nothing about it.
        """
        blind = [method for method in known if not self.game.methods[method].uses_original]
        if self.game.share_retrain:
            blind, known = [], {name: found for name, found in known.items() if name not in blind}
        loud = [name for name in blind or known if known[name].noise.q95 > 0]
        if not loud:
            return None
        method = max(loud, key=lambda name: known[name].noise.q95)
        return NoiseFloorResult(method, known[method].noise.mean, known[method].noise.q95)

    def _read(self, key: str) -> Artefact:
        if key not in self._artefacts:
            self._artefacts[key] = self._look_up(key)
        return self._artefacts[key]

    def _look_up(self, key: str) -> Artefact:
        """Read, and not kept: for logits, which are large and needed once."""
        return self.folder.objects.read(key, self.state.done[key].receipt.sha256)

    @cached_property
    def _artefacts(self) -> dict[str, Artefact]:
        return {}

    @cached_property
    def _weight(self) -> Any:
        return self._read(self.graph.initialise).arrays["weight"]

    def _pair(self, pair: int) -> SwapPair:
        if pair not in self._pairs:
            game = self.game
            self._pairs[pair] = draw_swap_pair(
                game.data_digest, self.n_target, game.seed, game.fraction, game.alpha, pair
            )
        return self._pairs[pair]

    @cached_property
    def _pairs(self) -> dict[int, SwapPair]:
        return {}


def pairs_wanted(graph: Graph, folder: RunFolder) -> int:
    """How many pairs the game's `until` takes, judged by the pilot of all methods that completed it."""
    game, until = graph.game, graph.game.until
    assert until is not None
    state = folder.open_ledger().state
    assembler = _Assembler(graph, folder, state, FactsOf(folder, state))
    pilots = [[found.advantage for found in assembler.outcomes(method).values()] for method in game.methods]
    wanted = [
        pairs_needed(np.asarray(pilot), until["half_width"], game.level, int(until["max_pairs"])).n_pairs
        for pilot in pilots
        if len(pilot) == game.pairs
    ]
    return max(wanted, default=game.pairs)


def comparison_results(complete: Mapping[str, Sequence[PairOutcome]], level: float) -> list[ComparisonResult]:
    """Every two methods that completed all pairs."""
    return [
        ComparisonResult(
            first,
            second,
            found.difference,
            (found.interval.low, found.interval.high),
            first if found.first_is_better else second if found.second_is_better else None,
        )
        for (first, second), found in compare_all(complete, level, simultaneous=False).items()
    ]


def stability_of_ranks(complete: Mapping[str, Sequence[PairOutcome]]) -> float | None:
    """Mean Kendall τ; None where there is nothing to rank."""
    if len(complete) < 2:
        return None
    return rank_stability(np.array([[outcome.advantage for outcome in found] for found in complete.values()]))


def assessed_fields(found: Assessment | None) -> dict[str, Any]:
    """The fields of a MethodResult that an assessment fills; all None where there is none."""
    if found is None:
        names = ("quality", "quality_plugin", "chosen_on", "interval", "interval_basis", "epsilon", "p_value")
        return dict.fromkeys((*names, "noise_floor"))
    epsilon = found.epsilon if found.epsilon is None else min(found.epsilon, LARGEST_EPSILON)
    return {
        "quality": found.quality,
        "quality_plugin": found.quality_plugin,
        "chosen_on": found.basis,
        "interval": (found.quality_interval.low, found.quality_interval.high),
        "interval_basis": found.quality_interval.basis,
        "epsilon": epsilon,
        "p_value": found.noise.p_value,
        "noise_floor": found.noise.q95,
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
