"""From what was decided in a game to its result: one way to judge, for a run and for an audit of somebody's outputs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from forgetgauge.game.adaptive import stein_intervals, stein_quality_interval
from forgetgauge.game.advantage import PairOutcome
from forgetgauge.game.assessment import Assessment, assess_all
from forgetgauge.game.intervals import IntervalKind
from forgetgauge.game.parts import Codes
from forgetgauge.game.quality import counted_below
from forgetgauge.plan.draws import draw_streams
from forgetgauge.results.assessed import (
    adversary_result,
    assessed_fields,
    comparison_results,
    is_blind,
    noise_floor_of,
    optimism_warnings,
    stability_of_ranks,
    with_shared_retrain,
)
from forgetgauge.results.decisions import pack_decisions, unpack_columns, unpack_decisions
from forgetgauge.results.margin_warnings import silence
from forgetgauge.results.record import (
    DiagnosticResult,
    GameDecisions,
    GameResult,
    MethodResult,
    StrongResult,
    is_run,
)
from forgetgauge.results.roc_and_parts import RocResult, part_results
from forgetgauge.results.silence import Heard, Silence, silence_warnings, silences, with_silence
from forgetgauge.results.verdict import with_verdicts
from forgetgauge.wording import counted, listed

DETAILS = ("utility", "utility_by_pair", "n_gradients", "seconds", "facts", "metrics", "tuning")
"""The fields of a MethodResult that no adversary decides."""


@dataclass(frozen=True)
class Rules:
    """By which a game is judged."""

    n_pairs: int
    n_forget: int
    level: float
    delta: float
    interval: IntervalKind
    seed: int
    """Names the relabellings behind the noise floor."""
    blind: Collection[str]
    """Methods that know nothing of F."""
    n_pilot: int = 0
    """Pairs on which the number of pairs was chosen."""
    drawn: str = "points"
    """What is drawn: points or groups."""
    is_drawn: bool = True
    """Whether F is known to be a random half of each pair's points: a run draws it, an audit is told so."""


def rules_of(spec: Mapping[str, Any], methods: Collection[str]) -> Rules:
    """The rules that the settings of a game, or of an audit, lay down."""
    return Rules(
        n_pairs=spec["pairs"],
        n_forget=spec.get("n_forget", 0),
        level=spec["level"],
        delta=spec["delta"],
        interval=spec["interval"],
        seed=spec["seed"],
        blind=[name for name in methods if is_blind(spec, name)],
        n_pilot=int((spec.get("until") or {}).get("pilot_pairs", 0)),
        drawn=f"{spec.get('by', 'point')}s",
        is_drawn=is_run(spec),
    )


class Played(Protocol):
    """What adversaries decided about the models of a game, and what else is known of its methods."""

    @property
    def adversaries(self) -> Sequence[str]:
        """The names of the adversaries that decided, in the order of every array."""
        ...

    @property
    def outcomes(self) -> Mapping[str, Mapping[int, PairOutcome]]:
        """Method -> pair -> paired differences; a pair of which something is missing is left out."""
        ...

    def margin_warnings(self, methods: Sequence[str]) -> list[str]:
        """What may make a number untrue, as scores and margins show it."""
        ...

    def told_apart(self, method: str, level: float) -> Collection[str]:
        """The adversaries whose margins tell F from T beyond chance, whatever they decided."""
        ...

    def missed(self, methods: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Method -> the adversaries whose thresholds miss what their margins tell."""
        ...

    def diagnostics(self, method: str, adversary: str) -> DiagnosticResult | None:
        """AUC and the like of an adversary's margins; None where it has none."""
        ...

    def strong(self, method: str, adversary: str) -> list[StrongResult]:
        """What it gains with several queries."""
        ...

    def roc(self, method: str, adversary: str, level: float) -> RocResult | None:
        """The curve of its margins; None where it has none."""
        ...

    @property
    def columns(self) -> Mapping[str, Sequence[str]]:
        """Column -> its different values, by which the points are told apart: `class`, and what the data brings."""
        ...

    def codes(self, method: str, pair: Any) -> Mapping[str, Codes]:
        """Column -> which of its values each point of a pair has."""
        ...

    def details(self, method: str) -> dict[str, Any]:
        """DETAILS, as far as they are known."""
        ...


def judge(
    played: Played,
    rules: Rules,
    *,
    spec: dict[str, Any],
    value: Any = None,
    notes: Sequence[str] = (),
    not_covered: Sequence[str] = (),
    utility_name: str = "accuracy",
    progress: Callable[[str], None] = lambda _: None,
) -> GameResult:
    """Every method assessed and compared with the others; `notes` stand before the warnings that are found here."""
    progress("reading decisions")
    outcomes = played.outcomes
    details = {method: played.details(method) for method in outcomes}
    heard = Heard(spec, played.adversaries, outcomes, rules.n_pairs, rules.level, details, utility_name)
    silent = _silences(played, heard)
    progress(f"Q of {counted(len(outcomes), 'method')}")
    assessed = _assess(rules, {method: found for method, found in outcomes.items() if found})
    assessed = {
        name: with_silence(found, silent[name], played.adversaries, list(outcomes[name].values()))
        for name, found in assessed.items()
    }
    judged = {name: found for name, found in assessed.items() if len(silent[name].dropped) < len(played.adversaries)}
    complete = {name: list(outcomes[name].values()) for name in judged if len(outcomes[name]) == rules.n_pairs}
    methods, missed = dict[str, MethodResult](), played.missed(list(assessed))
    for number, method in enumerate(outcomes, 1):
        progress(f"adversaries of {method} ({number} of {len(outcomes)})")
        found = _method(played, rules, method, assessed.get(method), silent[method], details[method])
        methods[method] = replace(found, missed=list(missed.get(method, ())))
    progress(f"comparing {counted(len(complete), 'method')}")
    result = GameResult(
        value=value,
        spec=spec,
        methods=methods,
        noise_floor=noise_floor_of(judged, rules.blind, rules.n_pairs),
        comparisons=comparison_results(complete, rules.level),
        rank_stability=stability_of_ranks(complete),
        interval_basis=next((found.quality_interval.basis for found in judged.values()), None),
        warnings=[
            *notes,
            *optimism_warnings(rules.n_forget, rules.n_pairs, len(played.adversaries), rules.drawn),
            *silence({method: found.dropped for method, found in silent.items()}, played.adversaries),
            *silence_warnings(silent, heard.unjudged),
            *_unlike(judged),
            *played.margin_warnings(list(assessed)),
        ],
        not_covered=list(not_covered),
        utility_name=utility_name,
        decisions=pack_decisions(outcomes, played.adversaries, played.columns, played.codes),
    )
    return with_verdicts(with_shared_retrain(result))


def _unlike(judged: Mapping[str, Assessment]) -> list[str]:
    names = [name for name, found in judged.items() if not found.rests_on_models]
    if not names:
        return []
    return [
        f"F and T of {listed(names)} differ by themselves: what both models of a pair answer about a point depends on "
        "which of them was asked to forget it, so they were not drawn at random from the same points. The swap "
        "cancels that in Q; ε ≥ rests on the mean over pairs alone."
    ]


def _silences(played: Played, heard: Heard) -> dict[str, Silence]:
    """Margins are looked at where it depends on them, which is seldom."""
    found = silences(heard, {})
    told = {method: played.told_apart(method, heard.level) for method, own in found.items() if own.counted}
    return silences(heard, told) if told else found


def _method(
    played: Played,
    rules: Rules,
    method: str,
    found: Assessment | None,
    silent: Silence,
    details: Mapping[str, Any],
) -> MethodResult:
    names, outcomes = played.adversaries, played.outcomes[method]
    judged = found if len(silent.dropped) < len(names) else None
    best = None if judged is None else judged.best
    each = (
        {}
        if found is None
        else {
            name: adversary_result(
                found,
                i,
                played.diagnostics(method, name),
                played.strong(method, name),
                played.roc(method, name, rules.level) if i == best else None,
            )
            for i, name in enumerate(names)
        }
    )
    codes = {} if best is None else {pair: played.codes(method, pair) for pair in outcomes}
    return MethodResult(
        **assessed_fields(judged, names),
        by_adversary=each,
        parts={} if best is None else part_results(outcomes, codes, played.columns, best, rules.level, rules.interval),
        n_pairs=len(outcomes),
        decided_nothing=list(silent.dropped),
        silence_counts=list(silent.counted),
        **details,
    )


def _assess(rules: Rules, outcomes: Mapping[str, Mapping[int, PairOutcome]]) -> dict[str, Assessment]:
    # The relabellings are named by the game and not by the method: methods are compared on the same ones.
    rng = draw_streams(draw="relabel", seed=rules.seed).generator("relabel")
    measured = [list(found.values()) for found in outcomes.values()]
    each = assess_all(
        measured,
        rng,
        level=rules.level,
        delta=rules.delta,
        interval=rules.interval,
        is_drawn=rules.is_drawn,
        n_looks=2 if rules.n_pilot else 1,
    )
    assessed = dict(zip(outcomes, each, strict=True))
    for method, found in assessed.items():
        if rules.n_pilot and len(outcomes[method]) == rules.n_pairs:  # their number was chosen on the pilot: Stein's
            counted = counted_below(list(outcomes[method].values()))
            interval = stein_quality_interval(found.by_pair, rules.n_pilot, rules.level, counted)
            alone = stein_intervals(found.by_pair, rules.n_pilot, rules.level, together=False)
            assessed[method] = replace(found, quality_interval=interval, intervals=tuple(alone))
    return assessed


# -- computed again ----------------------------------------------------------------------------------------------------


def judged_again(game: GameResult) -> GameResult:
    """What the decisions that a result carries say; what does not follow from them is taken from the result."""
    if game.decisions is None:
        raise ValueError("the result carries no decisions")
    stored = _StoredGame(game.methods, game.decisions)
    again = judge(
        stored,
        rules_of(game.spec, stored.outcomes),
        spec=game.spec,
        value=game.value,
        not_covered=game.not_covered,
        utility_name=game.utility_name,
    )
    return replace(again, warnings=game.warnings, made=game.made)


class _StoredGame:
    """A game as its result has it."""

    def __init__(self, methods: Mapping[str, MethodResult], decisions: GameDecisions) -> None:
        self._methods, self.adversaries, self.columns = methods, decisions.adversaries, decisions.columns
        self.outcomes: Mapping[str, Mapping[Any, PairOutcome]] = unpack_decisions(decisions)
        self._codes = unpack_columns(decisions)

    def margin_warnings(self, methods: Sequence[str]) -> list[str]:
        return []  # of margins, which no result carries

    def told_apart(self, method: str, level: float) -> Collection[str]:
        return self._methods[method].decided_nothing  # what margins said of those whose silence could have counted

    def missed(self, methods: Sequence[str]) -> Mapping[str, Sequence[str]]:
        return {method: self._methods[method].missed for method in methods}

    def diagnostics(self, method: str, adversary: str) -> DiagnosticResult | None:
        found = self._methods[method].by_adversary.get(adversary)
        return None if found is None else found.diagnostics

    def strong(self, method: str, adversary: str) -> list[StrongResult]:
        found = self._methods[method].by_adversary.get(adversary)
        return [] if found is None else found.strong

    def roc(self, method: str, adversary: str, level: float) -> RocResult | None:
        found = self._methods[method].by_adversary.get(adversary)
        return None if found is None else found.roc

    def codes(self, method: str, pair: Any) -> Mapping[str, Codes]:
        return self._codes[method, pair]

    def details(self, method: str) -> dict[str, Any]:
        return {name: getattr(self._methods[method], name) for name in DETAILS}
