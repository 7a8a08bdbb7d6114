"""The result of one finished game: every method assessed, compared with the others and set beside its rivals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from forgetgauge.game.adaptive import stein_quality_interval
from forgetgauge.game.advantage import PairOutcome
from forgetgauge.game.assessment import Assessment, assess_all
from forgetgauge.game.diagnostics import diagnose
from forgetgauge.game.supremum import counted_below
from forgetgauge.plan.draws import draw_streams
from forgetgauge.plan.graph import Game
from forgetgauge.plan.record import game_to_json
from forgetgauge.results.assessed import (
    adversary_result,
    assessed_fields,
    comparison_results,
    diagnostic_result,
    noise_floor_of,
    optimism_warnings,
    stability_of_ranks,
    with_shared_retrain,
)
from forgetgauge.results.doubts import doubts, silence
from forgetgauge.results.making import FactsOf
from forgetgauge.results.means import mean, mean_of_each, means_by_group
from forgetgauge.results.played import Played
from forgetgauge.results.record import (
    AdversaryResult,
    DiagnosticResult,
    GameResult,
    MethodResult,
)
from forgetgauge.results.rivals import Rivals
from forgetgauge.results.strong import StrongGames


def game_result(played: Played, facts_of: FactsOf) -> GameResult:
    """Of the methods and adversaries whose jobs are done."""
    game, outcomes = played.game, played.outcomes
    silent = {method: played.decided_nothing(method) for method in outcomes}
    assessed = _assess(game, {method: found for method, found in outcomes.items() if found})
    judged = {name: found for name, found in assessed.items() if len(silent[name]) < len(played.adversaries)}
    complete = {name: list(outcomes[name].values()) for name in judged if len(outcomes[name]) == game.pairs}
    methods = _Methods(played, facts_of)
    result = GameResult(
        value=game.value,
        spec=_readable_spec(game),
        methods={
            method: methods.result(method, assessed.get(method), list(found), silent[method])
            for method, found in outcomes.items()
        },
        noise_floor=noise_floor_of(
            judged, [name for name, how in game.methods.items() if not how.uses_original], game.pairs
        ),
        comparisons=comparison_results(complete, game.level),
        rank_stability=stability_of_ranks(complete),
        interval_basis=next((found.quality_interval.basis for found in judged.values()), None),
        warnings=[
            *_left_out(played),
            *played.data_doubts,
            *optimism_warnings(game.sizes[1], game.pairs, len(played.adversaries)),
            *silence(silent, played.adversaries),
            *doubts({method: played.evidence(method) for method in judged}),
        ],
        not_covered=_not_covered(game),
    )
    return with_shared_retrain(result)


def _not_covered(game: Game) -> list[str]:
    """`unlearners.mine: my_extension, a compiled module (version 2 is stated)`."""
    return [
        f"{place}: {what}" + (f" (version {named.version} is stated)" if named.version else "")
        for _, place, named in game.choices
        for what in named.not_covered
    ]


def _left_out(played: Played) -> list[str]:
    """A smaller class of adversaries has a larger Q: who is missing from it."""
    absent = [name for name in played.game.adversaries if name not in played.adversaries]
    return [
        f"The adversary '{name}' failed and is left out: every Q is against the other {len(played.adversaries)} alone; "
        "with it, Q could be lower."
        for name in absent
        if played.adversaries
    ]


def _assess(game: Game, outcomes: Mapping[str, Mapping[int, PairOutcome]]) -> dict[str, Assessment]:
    # The relabellings are named by the game and not by the method: methods are compared on the same ones.
    rng = draw_streams(draw="relabel", seed=game.seed).generator("relabel")
    measured = [list(found.values()) for found in outcomes.values()]
    each = assess_all(measured, rng, level=game.level, delta=game.delta, interval=game.interval)
    assessed = dict(zip(outcomes, each, strict=True))
    n_pilot = int((game.until or {}).get("pilot_pairs", 0))
    for method, found in assessed.items():
        if n_pilot and len(outcomes[method]) == game.pairs:  # their number was chosen on the pilot: Stein's interval
            counted = counted_below(list(outcomes[method].values()))
            interval = stein_quality_interval(found.by_pair, n_pilot, game.level, counted)
            assessed[method] = replace(found, quality_interval=interval)
    return assessed


def _readable_spec(game: Game) -> dict[str, Any]:
    n_retain, n_forget = game.sizes
    return {**game_to_json(game), "n_retain": n_retain, "n_forget": n_forget}


class _Methods:
    """What is said of each method; what they share (draws, thresholds) is made once."""

    def __init__(self, played: Played, facts_of: FactsOf) -> None:
        self.played, self.facts_of = played, facts_of
        self.rivals, self.strong = Rivals(played, facts_of), StrongGames(played)

    def result(
        self, method: str, found: Assessment | None, pairs: Sequence[int], silent: Sequence[str]
    ) -> MethodResult:
        graph, state, outcomes = self.played.graph, self.played.state, self.played.outcomes
        cells = {cell: graph.cells[cell] for cell in sorted(graph.cells) if cell.method == method}
        unlearned = [jobs.unlearn for jobs in cells.values() if jobs.unlearn in state.done]
        known = {c: self.facts_of[jobs.signals] for c, jobs in cells.items() if state.is_available(jobs.signals)}
        facts = list(known.values())
        judged = found if len(silent) < len(self.played.adversaries) else None
        return MethodResult(
            **assessed_fields(judged, self.played.adversaries),
            by_adversary=self._by_adversary(method, found, pairs) if found else {},
            n_pairs=len(pairs),
            accuracy=mean_of_each([fact["accuracy"] for fact in facts]),
            accuracy_by_pair=means_by_group((cell.pair, fact["accuracy"]) for cell, fact in known.items()),
            n_gradients=mean([fact["n_gradients"] for fact in facts]) if facts else None,
            seconds=round(mean([state.done[key].seconds for key in unlearned]), 6) if unlearned else None,
            facts=mean_of_each([fact.get("told", {}) for fact in facts]),
            decided_nothing=list(silent),
            metrics=self.rivals.of(method, pairs, list(outcomes.get(self.rivals.retrain or "", ()))),
        )

    def _by_adversary(self, method: str, found: Assessment, pairs: Sequence[int]) -> dict[str, AdversaryResult]:
        return {
            name: adversary_result(
                found, i, self._diagnostics(method, name, pairs), self.strong.of(method, name, pairs)
            )
            for i, name in enumerate(self.played.adversaries)
        }

    def _diagnostics(self, method: str, adversary: str, pairs: Sequence[int]) -> DiagnosticResult:
        return diagnostic_result(
            [
                diagnose(first, second, *self.played.points_of(pair))
                for pair in pairs
                for first, second in self.played.margins(method, adversary, pair)
            ]
        )
