"""One test in one shape, for every record that is made of it: of a method by swap pairs, or of one model by a draw.

A record passes nothing that the test did not say: what was asked is answered by the verdict, and everything that a
reader must know before relying on it (what is not stated, warnings, accuracy lost) is a check of its own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from forgetgauge.errors import UserError, unknown_name
from forgetgauge.report.one_model import drawn, limits, was_drawn
from forgetgauge.results.one_model import (
    CONTROL_SEEN,
    ModelResult,
    OneModelResult,
    controls,
    names_of_tests,
    no_control,
    unstated,
    warnings_on,
)
from forgetgauge.results.record import GameResult, MethodResult, Result, pairs_behind, role_of
from forgetgauge.results.resolution import resolution_on
from forgetgauge.results.utility import NAMES, loss_interval, lost_accuracy, points, unseen_accuracy, yardsticks
from forgetgauge.results.verdict import (
    CONTROLS_HOLD,
    INCONCLUSIVE,
    LIKE_RETRAIN,
    NOT_BETTER,
    NOT_EVALUABLE,
    STILL_VISIBLE,
    controls_that_fail,
    lacks_controls,
    losses,
    no_controls,
    reservations,
    verdict_on,
    warnings_of,
    without_resolution,
)
from forgetgauge.wording import bound, chance, counted, interval_basis, listed, plain, setting

Outcome = Literal["PASSED", "WARNED", "FAILED"]
OUTCOMES: dict[str, Outcome] = {
    LIKE_RETRAIN: "PASSED",
    STILL_VISIBLE: "FAILED",
    NOT_BETTER: "FAILED",
    INCONCLUSIVE: "WARNED",
    NOT_EVALUABLE: "WARNED",
}
"""What each verdict is to whoever asks whether forgotten points can be told from unseen ones."""
NOT_TOLD_APART = "forgotten points are not told from unseen ones"
ACCURACY_KEPT = "accuracy is kept"
ALL_STATED = "everything that the test rests on is stated"
DRAWN_BY_OTHERS = "the seed of the draw is somebody else's"
DRAWN = "the forgotten points were drawn at random"
WHOLE_DRAW = "the forgotten points are all that the seed draws of the list"
NO_WARNING = "the result carries no warning"
ALL_DONE = "no job failed"
LIMITS_OF_PAIRS = (
    "It speaks for the attackers that were tried. A stronger one may see more: a Q of 1 is no proof of deletion.",
    "It is about the method on this data, over new splits and trainings; not about one model in use.",
    "It says nothing of copies of the data elsewhere: backups, logs, other models.",
)
"""What a test by swap pairs does not say."""


@dataclass(frozen=True)
class StatedNumber:
    """A number for other programs."""

    key: str
    name: str
    value: float
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Tested:
    """What was tested and what came out."""

    kind: Literal["swap pairs", "one model"]
    name: str
    """The method, or the model."""
    verdict: str
    resolution: float | None
    numbers: list[str]
    """The verdict's number and what it cost, a sentence each."""
    checks: dict[str, Outcome]
    scope: dict[str, str]
    """What was tested, in words: label -> text."""
    limits: Sequence[str]
    """What it does not say."""
    warnings: list[str]
    environment: dict[str, str]
    data: str
    """The data that the test is about."""
    digests: dict[str, str]
    """What it was computed from -> SHA-256."""
    settings: dict[str, Any]
    measured: dict[str, Any]
    """Everything that was measured of it, as it is stored."""
    metrics: list[StatedNumber]

    @property
    def outcome(self) -> Outcome:
        """Of all checks together: one that failed decides, then one that warned."""
        found = self.checks.values()
        return "FAILED" if "FAILED" in found else "WARNED" if "WARNED" in found else "PASSED"

    def checks_that(self, outcome: Outcome) -> list[str]:
        """Their names."""
        return [name for name, found in self.checks.items() if found == outcome]


def what_was_tested(found: Result | OneModelResult, method: str | None, source: str) -> Tested:
    """The one test of a result, or the one that is named; UserError where that is not one."""
    if isinstance(found, OneModelResult):
        judged = [name for name in found.models if name not in controls(found)]
        name = _chosen(method, judged, found.models, "model", source)
        return _tested_model(found, name, found.models[name])
    if found.sweep is not None or len(found.games) != 1:
        raise UserError(f"{source}: a sweep over {found.sweep} is several tests; a record is of one: run it alone")
    game = found.games[0]
    judged = [name for name in game.methods if role_of(game, name) == "tested"] or list(game.methods)
    name = _chosen(method, judged, game.methods, "method", source)
    verdict = game.methods[name].verdict
    if verdict and verdict not in OUTCOMES:
        raise UserError(f"{source}: the verdict on {name} is one of {', '.join(OUTCOMES)}, not {verdict[:40]!r}")
    return _tested_method(found, game, name, game.methods[name])


def _chosen(asked: str | None, usual: Sequence[str], all_names: Iterable[str], what: str, source: str) -> str:
    if asked is not None:
        if asked not in all_names:
            raise UserError(f"{source}: {unknown_name(what, asked, all_names)}")
        return asked
    if len(usual) != 1:
        raise UserError(f"{source}: name the {what} that the record is of with --method: {listed(usual) or 'none'}")
    return usual[0]


def _warned(is_fine: bool) -> Outcome:
    return "PASSED" if is_fine else "WARNED"


# -- a method, by swap pairs -------------------------------------------------------------------------------------------


def _tested_method(result: Result, game: GameResult, name: str, method: MethodResult) -> Tested:
    verdict = method.verdict or verdict_on(game, name)
    lost = loss_interval(game, name) if role_of(game, name) == "tested" else None
    alone = _beside_references(game, name)
    checks: dict[str, Outcome] = {NOT_TOLD_APART: OUTCOMES[verdict]}
    if lost is not None:
        checks[ACCURACY_KEPT] = _warned(not losses(alone))
    checks |= {
        CONTROLS_HOLD: _warned(not lacks_controls(game) and not controls_that_fail(game)),
        NO_WARNING: _warned(not warnings_of(alone)),
        ALL_DONE: _warned(not result.failures),
    }
    spec = game.spec
    seen = method.resolution if method.resolution is not None else resolution_on(game, name)
    data = str(spec.get("data", {}).get("name", "not stated"))
    compared = [dataclasses.asdict(found) for found in game.comparisons if name in (found.first, found.second)]
    return Tested(
        kind="swap pairs",
        name=name,
        verdict=verdict,
        resolution=seen,
        numbers=[
            _quality_in_words(game, method),
            *_missed_in_words(method),
            *_accuracy_in_words(game, name, method),
        ],
        checks=checks,
        scope=_scope_of_pairs(game, name, method, data),
        limits=LIMITS_OF_PAIRS,
        warnings=[
            *reservations(alone),
            *_without_controls(game),
            *(f"failed: {failed.job}: {failed.error}" for failed in result.failures),
        ],
        environment=result.environment,
        data=data,
        digests=result.digests,
        settings=spec,
        measured={
            "method": dataclasses.asdict(method),
            "noise_floor": None if game.noise_floor is None else dataclasses.asdict(game.noise_floor),
            "comparisons": compared,
            "references": {
                role_of(game, other): {"quality": found.quality, "interval": found.interval, "utility": found.utility}
                for other, found in game.methods.items()
                if role_of(game, other) != "tested" and other != name
            },
            "accuracy_loss_interval": lost,
        },
        metrics=_metrics_of_pairs(game, method),
    )


def _beside_references(game: GameResult, name: str) -> GameResult:
    """The game without the other methods, of which a record says nothing."""
    kept = {one: found for one, found in game.methods.items() if one == name or role_of(game, one) != "tested"}
    return dataclasses.replace(game, methods=kept)


def _without_controls(game: GameResult) -> list[str]:
    """What is not shown for want of a reference, whoever played."""
    absent = [role.capitalize() for role in lacks_controls(game)]
    if not absent:
        return []
    return no_controls(game) or [
        f"{listed(absent)} {'is' if len(absent) == 1 else 'are'} no control here, so it is not shown that these "
        "attackers see what was not forgotten and nothing else."
    ]


def _quality_in_words(game: GameResult, method: MethodResult) -> str:
    if method.quality is None or method.interval is None:
        return "There is no Q: no pair was completed, or no attacker could decide anything."
    low, high = method.interval
    level = f"{100 * game.spec['level']:g} % " if "level" in game.spec else ""
    basis = interval_basis(method.interval_basis, game.spec.get("interval", "student"))
    explained = {"retrain": "Retrain, which never saw the points, has", "none": "None, which unlearns nothing, has"}
    references = [
        f"{explained[role]} {plain(found.quality)}"
        for other, found in game.methods.items()
        if found is not method and (role := role_of(game, other)) in explained and found.quality is not None
    ]
    return (
        f"Unlearning Quality Q = {plain(method.quality)}, {level}interval [{plain(low)}, {plain(high)}] {basis}, from "
        f"{pairs_behind(game, method)} swap pairs: 1 is nothing left to see, 0 an attacker who is always right"
        f"{'; ' + listed(references) if references else ''}."
    )


def _missed_in_words(method: MethodResult) -> list[str]:
    if not method.missed:
        return []
    but = "so Q is too high" if method.quality is not None else "so no Q says how much"
    return [
        f"The scores of {listed(method.missed)} tell forgotten points from unseen ones, and thresholds miss it, {but}."
    ]


def _accuracy_in_words(game: GameResult, name: str, method: MethodResult) -> list[str]:
    own = unseen_accuracy(method)
    if own is None:
        return [f"What it cost in {game.utility_name} is not known."]
    part, share = own
    others = [
        f"{role_of(game, other).capitalize()} {plain(theirs[1])}"
        for other, found in game.methods.items()
        if other != name and role_of(game, other) != "tested" and (theirs := unseen_accuracy(found)) is not None
    ]
    beside = f" ({', '.join(others)})" if others else ""
    loss = lost_accuracy(game).get(name)
    price = "" if loss is None else f": {points(loss)} less than {yardsticks(game)}, so it is in part a damaged model"
    return [f"{game.utility_name.capitalize()} on the {NAMES[part]}: {plain(share)}{beside}{price}."]


def _scope_of_pairs(game: GameResult, name: str, method: MethodResult, data: str) -> dict[str, str]:
    spec = game.spec
    role = {
        "retrain": "; a reference, trained anew without the points",
        "none": "; a reference, which unlearns nothing",
    }
    model = spec.get("learner", {}).get("params", {}).get("model")
    n_models = 2 * method.n_pairs * int(spec.get("seeds", 1))
    swaps = counted(method.n_pairs, "swap pair")
    sizes = f"{spec['n_forget']} in each split" if "n_forget" in spec else "not the same number in each split"
    others = f"; {spec['n_retain']} points were kept" if "n_retain" in spec else ""
    return {
        "method": f"{name}{role.get(role_of(game, name), '')}{_strength(method)}",
        "data": data,
        "forgotten points": f"{sizes}; as many were never trained on{others}",
        "models": f"{n_models}{f' of the kind {setting(model)}' if model else ''}: {swaps}, in each of which forgotten "
        "and unseen points change places",
        "attackers": listed(list(method.by_adversary) or list(spec.get("adversaries", {}))) or "none",
    }


def _strength(method: MethodResult) -> str:
    """At which strength it was tested, where that was chosen by what it costs."""
    found = method.tuning
    if found is None:
        return ""
    rule = "chosen by price: it cost" if found.holds else "the weakest that was tried; all cost shadow models more than"
    price = (
        f"{counted(found.n_models, 'shadow model')} no more than {points(found.price)}"
        if found.holds
        else points(found.price)
    )
    return f"; {found.parameter} = {found.chosen:g}, {rule} {price}"


def _metrics_of_pairs(game: GameResult, method: MethodResult) -> list[StatedNumber]:
    found = []
    if method.quality is not None and method.interval is not None:
        details = {
            "interval_low": method.interval[0],
            "interval_high": method.interval[1],
            "level": game.spec.get("level"),
            "swap_pairs": method.n_pairs,
        }
        known = {key: value for key, value in details.items() if value is not None}
        found.append(
            StatedNumber("unlearning-quality", "Unlearning Quality Q (1: nothing left to see)", method.quality, known)
        )
    if method.epsilon is not None:
        found.append(StatedNumber("epsilon-lower-bound", "ε of certified removal, at least", method.epsilon))
    if (own := unseen_accuracy(method)) is not None:
        found.append(StatedNumber(game.utility_name, f"{game.utility_name} on the {NAMES[own[0]]}", own[1]))
    return found


# -- one model, by a draw ----------------------------------------------------------------------------------------------


def _of_the_draw(found: OneModelResult) -> dict[str, Outcome]:
    is_named = bool(found.seed_from.strip()) and not found.own_draw
    return {DRAWN_BY_OTHERS: _warned(is_named), WHOLE_DRAW: _warned(found.list_shown)}


def _tested_model(found: OneModelResult, name: str, model: ModelResult) -> Tested:
    lacking, warnings = unstated(found), warnings_on(found)
    checks: dict[str, Outcome] = {
        NOT_TOLD_APART: OUTCOMES[model.verdict],
        ALL_STATED: _warned(not lacking),
        **(_of_the_draw(found) if was_drawn(found) else {DRAWN: "WARNED"}),
        NO_WARNING: _warned(not warnings),
    }
    before = controls(found)
    if no_control(found) or (before and name not in before):
        seen = [found.models[other].verdict == STILL_VISIBLE for other in before]
        checks[CONTROL_SEEN] = _warned(bool(seen) and all(seen))
    rests_on = (
        f"not stated: {'; '.join(lacking)} (F: the forgotten, T: the unseen)" if lacking else "all of it is stated"
    )
    own = "; the tester’s own" if found.own_draw else ""
    others = [f"{other} ({without_resolution(its.verdict)})" for other, its in found.models.items() if other != name]
    whole, elsewhere = dataclasses.asdict(found), ("models", "environment", "digests", "schema")
    return Tested(
        kind="one model",
        name=name,
        verdict=model.verdict,
        resolution=model.resolution,
        numbers=_evidence_in_words(found, model, whole["models"][name].get("reason", "")),
        checks=checks,
        scope={
            "model": f"{name}, one model, by its outputs",
            "forgotten points": f"{drawn(found)}{'; drawn at random before training' if was_drawn(found) else ''}",
            **(
                {
                    "seed of the draw": f"{found.seed}, from {found.seed_from}{own}",
                    "list committed to before the seed": "yes, as the draw says"
                    if found.committed_first
                    else "not shown",
                }
                if was_drawn(found)
                else {}
            ),
            "what it rests on": rests_on,
            "attackers": names_of_tests(model.tests) or "none",
            **({"other models of the same file": listed(others)} if others else {}),
        },
        limits=limits(found),
        warnings=warnings,
        environment=found.environment,
        data="points of the draw" if was_drawn(found) else "points whose deletion was asked for",
        digests=({"list that was drawn from": found.commitment} if was_drawn(found) else {})
        | {"outputs of the model" if key == "file" else key: digest for key, digest in found.digests.items()},
        settings={"level": found.level, "delta": found.delta, "tests": list(model.tests)},
        measured={key: value for key, value in whole.items() if key not in elsewhere}
        | {"model": whole["models"][name]},
        metrics=_metrics_of_model(found, model),
    )


def _evidence_in_words(found: OneModelResult, model: ModelResult, reason: str) -> list[str]:
    """The right answers, p and ε; of what is not evaluable, why."""
    best = model.tests.get(model.best)
    if best is None or model.verdict == NOT_EVALUABLE:
        return [reason or "No attacker’s answers could be judged."]
    level = f"{100 * found.level:g} %"
    lines = [
        f"The attacker whose answers are least like chance, {model.best}, was right in {best.n_right} of "
        f"{best.n_asked} answers, where about half are right by chance: p = {chance(model.log10_p)}, corrected for the "
        f"choice among {counted(len(model.tests), 'test')}.",
    ]
    if model.epsilon is not None:
        lines.append(
            f"With {level} confidence any certified removal of these points together has ε ≥ {bound(model.epsilon)} "
            f"(δ = {setting(found.delta)})."
        )
    accuracies = [f"{plain(share)} on {part} points" for part, share in model.utility.items()]
    return [*lines, *([f"Accuracy: {listed(accuracies)}."] if accuracies else [])]


def _metrics_of_model(found: OneModelResult, model: ModelResult) -> list[StatedNumber]:
    """None where nothing could be judged: a number that is no evidence would be taken for some."""
    best = model.tests.get(model.best)
    if best is None or model.verdict == NOT_EVALUABLE:
        return []
    details = {"right": best.n_right, "asked": best.n_asked, "test": model.best}
    metrics = [
        StatedNumber("attack-advantage", "Advantage of the best attacker", best.advantage, details),
        StatedNumber("log10-p", "log10 of p that the model knows nothing of F", model.log10_p, {"test": model.best}),
    ]
    if model.epsilon is not None:
        name = "ε of certified removal, at least"
        metrics.append(StatedNumber("epsilon-lower-bound", name, model.epsilon, {"delta": found.delta}))
    return metrics
