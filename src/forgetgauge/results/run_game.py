"""The result of a run's game: what its store says of each method, judged as every game is; and what adversaries who
see q points of a set at once gain, from the margins of single points."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from forgetgauge.game.arrays import Floats
from forgetgauge.game.intervals import MIN_PAIRS, agree, pair_interval
from forgetgauge.game.parts import Codes
from forgetgauge.game.roc import ScoredPair
from forgetgauge.game.strong import Queries, draw_queries, strong_advantage, strong_threshold
from forgetgauge.plan.draws import draw_streams
from forgetgauge.plan.game import Game, game_to_json
from forgetgauge.plan.graph import SIDES
from forgetgauge.results.assessed import diagnostic_result, mean, mean_of_all, mean_of_each, means_by_group
from forgetgauge.results.game import judge, rules_of
from forgetgauge.results.margin_warnings import MarginEvidence, margin_warnings, missed_by, told_apart
from forgetgauge.results.record import DiagnosticResult, GameResult, StrongResult
from forgetgauge.results.rivals import Rivals
from forgetgauge.results.roc_and_parts import RocResult, roc_result
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

    def missed(self, methods: Sequence[str]) -> Mapping[str, Sequence[str]]:
        return missed_by({method: self._evidence(method) for method in methods})

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
        whole = self.outcomes.get(method, {})  # of other pairs a side may be missing, so that means would be of others
        known = {cell: run.facts(jobs.signals) for cell, jobs in cells.items() if cell.pair in whole}
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


class StrongGames:
    """What the methods of one game show to adversaries with several queries."""

    def __init__(self, view: GameView) -> None:
        self.view, self.game = view, view.game
        self._thresholds: dict[tuple[str, int], float] = {}

    def of(self, method: str, adversary: str, pairs: Sequence[int]) -> list[StrongResult]:
        """One for each number of queries that is asked for; none where no threshold is known."""
        return [
            self._result(method, adversary, pairs, queries)
            for queries in self.game.queries
            if self._aggregates(method, adversary)
        ]

    def _result(self, method: str, adversary: str, pairs: Sequence[int], queries: int) -> StrongResult:
        by_pair = [self._by_pair[method, adversary, queries, pair] for pair in pairs]
        known = len(pairs) >= MIN_PAIRS and not agree(np.asarray(by_pair))  # no spread says nothing about new pairs
        interval = pair_interval(np.asarray(by_pair), self.game.level) if known else None
        return StrongResult(
            queries, mean(by_pair), (interval.low, interval.high) if interval is not None else None, by_pair
        )

    def _aggregates(self, method: str, adversary: str) -> bool:
        """Whether a threshold for q queries is known: calibrated on shadows, or 0 for likelihood ratios."""
        calibrated = "shadow margin" in self.view.run.read(self.view.graph.fits[method, adversary]).arrays
        return calibrated or not {"outsiders", "background"} & set(self.game.adversaries[adversary].needs)

    @cached_property
    def _by_pair(self) -> dict[tuple[str, str, float, int], float]:
        """(method, adversary, queries, pair) -> advantage. What the oracle shows of a pair is the same to all: it is
        drawn once (and not kept: 64 queries, 2000 times, are a megabyte for each set of each pair)."""
        attacks = [
            (method, name)
            for method, outcomes in self.view.outcomes.items()
            for name in self.view.adversaries
            if outcomes and self._aggregates(method, name)
        ]
        found = {}
        for pair in range(self.game.pairs):
            here = [(method, name) for method, name in attacks if pair in self.view.outcomes[method]]
            if here:
                for queries, advantages in self._advantages(here, pair).items():
                    for (method, name), advantage in zip(here, advantages, strict=True):
                        found[method, name, queries, pair] = float(advantage)
        return found

    def _advantages(self, attacks: Sequence[tuple[str, str]], pair: int) -> dict[float, Floats]:
        """Queries -> advantage of each attack on one pair, averaged over seeds."""
        seeds = [
            (method, name, margins) for method, name in attacks for margins in self.view.margins(method, name, pair)
        ]
        first, second = (np.column_stack([margins[side] for *_, margins in seeds]) for side in SIDES)
        thresholds: dict[float, Floats] = {
            queries: np.array([self._threshold(method, name, queries) for method, name, _ in seeds])
            for queries in self.game.queries
        }
        found = strong_advantage(first, second, self.view.pair(pair).in_forget, thresholds, *self._shown(pair))
        return {queries: each.reshape(len(attacks), -1).mean(axis=1) for queries, each in found.items()}

    def _shown(self, pair: int) -> tuple[Queries, Queries]:
        """What the oracle shows of F and of T."""
        in_forget, weight = self.view.points_of(pair)
        asked, n_draws = self.game.queries, self.game.oracle_draws
        return (
            draw_queries(weight[in_forget], asked, n_draws, self._oracle(pair, "forget")),
            draw_queries(weight[~in_forget], asked, n_draws, self._oracle(pair, "unseen")),
        )

    def _oracle(self, pair: int, name: str) -> np.random.Generator:
        """Named by the set it shows, so that O_s(0) and O_s'(1) draw the same points."""
        game = self.game
        which = {"data": game.data_digest, "seed": game.seed, "fraction": game.fraction, "alpha": game.alpha}
        return draw_streams(draw="oracle", **which, pair=pair, set=name).generator("queries")

    def _threshold(self, method: str, adversary: str, queries: int) -> float:
        """From the margins of the shadow models; attacks without them are likelihood ratios, whose threshold is 0."""
        key = self.view.graph.fits[method, adversary]
        arrays = self.view.run.read(key).arrays
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
