"""The result of a run's game: what its store says of each method, judged as every game is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from forgetgauge.game.parts import Codes
from forgetgauge.game.roc import ScoredPair
from forgetgauge.plan.game import Game, game_to_json
from forgetgauge.results.assessed import diagnostic_result, mean, mean_of_all, mean_of_each, means_by_group
from forgetgauge.results.game import judge, rules_of
from forgetgauge.results.margin_warnings import MarginEvidence, margin_warnings, told_apart
from forgetgauge.results.record import DiagnosticResult, GameResult, StrongResult
from forgetgauge.results.rivals import Rivals
from forgetgauge.results.roc_and_parts import RocResult, roc_result
from forgetgauge.results.strong import StrongGames
from forgetgauge.results.tuning import price_warnings, strength_warnings, strengths_left_out, tuning_result
from forgetgauge.results.views import GameView


def game_result(view: GameView, progress: Callable[[str], None] = lambda _: None) -> GameResult:
    """The result of a game, from the methods and adversaries whose jobs are done."""
    game = view.game
    n_retain, n_forget = game.sizes
    spec = {**game_to_json(game), "n_retain": n_retain, "n_forget": n_forget}
    on_strengths = [*strengths_left_out(view), *strength_warnings(view), *price_warnings(view)]
    notes = [*_left_out(view), *on_strengths, *view.data_warnings]
    return judge(
        _RunGame(view),
        rules_of(spec, game.methods),
        spec=spec,
        value=game.value,
        notes=notes,
        not_covered=_not_covered(game),
        utility_name=game.utility_name,
        progress=progress,
    )


def _not_covered(game: Game) -> list[str]:
    """`unlearners.mine: my_extension, a compiled module (version 2 is stated)`."""
    return [
        f"{place}: {what}" + (f" (version {named.version} is stated)" if named.version else "")
        for _, place, named in game.choices
        for what in named.not_covered
    ]


def _left_out(view: GameView) -> list[str]:
    """A smaller class of adversaries has a larger Q: who is missing from it."""
    absent = [name for name in view.game.adversaries if name not in view.adversaries]
    return [
        f"The adversary '{name}' failed and is left out: every Q is against the other {len(view.adversaries)} alone; "
        "with it, Q could be lower."
        for name in absent
        if view.adversaries
    ]


class _RunGame:
    """What the store says of each method; what methods share (draws, thresholds) is made once."""

    def __init__(self, view: GameView) -> None:
        self.view, self.adversaries, self.outcomes = view, view.adversaries, view.outcomes
        self._rivals, self._strong = Rivals(view), StrongGames(view)
        self._found: dict[str, MarginEvidence] = {}
        self.columns = {column: names for column, (names, _) in view.columns.items()}

    def margin_warnings(self, methods: Sequence[str]) -> list[str]:
        return margin_warnings({method: self._evidence(method) for method in methods})

    def told_apart(self, method: str, level: float) -> Collection[str]:
        return told_apart(self._evidence(method), level)

    def _evidence(self, method: str) -> MarginEvidence:
        if method not in self._found:
            self._found[method] = self.view.evidence(method)
        return self._found[method]

    def diagnostics(self, method: str, adversary: str) -> DiagnosticResult:
        return diagnostic_result(self._scored(method, adversary))

    def roc(self, method: str, adversary: str, level: float) -> RocResult | None:
        return roc_result(self._scored(method, adversary), level)

    def _scored(self, method: str, adversary: str) -> list[ScoredPair]:
        return [
            ScoredPair(np.stack(self.view.margins(method, adversary, pair), axis=1), *self.view.points_of(pair))
            for pair in self.outcomes[method]
        ]

    def codes(self, method: str, pair: int) -> Mapping[str, Codes]:
        at = self.view.pair(pair).points
        return {column: codes[at] for column, (_, codes) in self.view.columns.items()}

    def strong(self, method: str, adversary: str) -> list[StrongResult]:
        return self._strong.of(method, adversary, list(self.outcomes[method]))

    def details(self, method: str) -> dict[str, Any]:
        graph, run = self.view.graph, self.view.run
        cells = {cell: graph.cells[cell] for cell in sorted(graph.cells) if cell.method == method}
        seconds = [run.state.done[jobs.unlearn].seconds for jobs in cells.values() if jobs.unlearn in run.state.done]
        known = {cell: run.facts(jobs.signals) for cell, jobs in cells.items() if run.has(jobs.signals)}
        facts = list(known.values())
        retrained = list(self.outcomes.get(self._rivals.retrain or "", ()))
        return {
            "utility": mean_of_each([fact["utility"] for fact in facts]),
            "utility_by_pair": means_by_group((cell.pair, fact["utility"]) for cell, fact in known.items()),
            "n_gradients": mean([fact["n_gradients"] for fact in facts]) if facts else None,
            "seconds": round(mean(seconds), 6) if seconds else None,
            "facts": mean_of_all([fact.get("stated", {}) for fact in facts]),
            "metrics": self._rivals.of(method, list(self.outcomes[method]), retrained),
            "tuning": tuning_result(self.view, method),
        }
