"""What a reader in a hurry takes home: one sentence on the method of highest Q, then what it may be said to beat.

“Better” is said only where the paired comparison says so; that two intervals overlap, or do not, decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from forgetgauge.game.intervals import MIN_PAIRS
from forgetgauge.results.record import (
    NAMES_OF,
    GameResult,
    Result,
    by_quality,
    is_run,
    lacks_pairs,
    nearly_reference,
    pairs_behind,
    role_of,
)
from forgetgauge.results.resolution import COARSE, confidence_of, resolution_on
from forgetgauge.results.silence import silence_lines
from forgetgauge.results.utility import (
    damage,
    has_seen_unseen_line,
    learnt_nothing_line,
    lost_accuracy,
    lost_retained_line,
    points,
    uneven_accuracy,
    yardsticks,
)
from forgetgauge.wording import JOINED, NARROW, bracket, listed, plain, setting, tau_text

STILL_VISIBLE = "still visible"
NOT_BETTER = "not shown to be better than doing nothing"
LIKE_RETRAIN = "not distinguishable from retraining at this resolution"
INCONCLUSIVE = "inconclusive"
NOT_EVALUABLE = "not evaluable"
VERDICTS = (STILL_VISIBLE, NOT_BETTER, LIKE_RETRAIN, INCONCLUSIVE, NOT_EVALUABLE)


CONTROLS_HOLD = "None is visible, Retrain is not"
"""The check on the references: only where it holds does a Q near 1 show anything."""


def without_resolution(verdict: str) -> str:
    """A verdict as part of a sentence that states the resolution itself, or needs none."""
    return verdict.removesuffix(" at this resolution")


def verdict_on(game: GameResult, name: str) -> str:
    """On one method; a later rule is asked where those before it say nothing.

    Not evaluable: it lacks pairs, or it has no Q and its scores say nothing either. Visible: by relabelling F ∪ T its
    advantage is none of chance, at the level of the game; *not shown to be better than doing nothing* where the paired
    comparison with None does not settle it for the method, else *still visible*, which it also is where scores tell F
    from T and thresholds miss it. Inconclusive: it is not visible, but an advantage of ½ might not have been.
    """
    method = game.methods[name]
    seen = resolution_on(game, name)
    if method.missed and method.quality is None and not lacks_pairs(game, method):
        return STILL_VISIBLE
    if method.quality is None or method.p_value is None or seen is None or lacks_pairs(game, method):
        return NOT_EVALUABLE
    if method.p_value <= 1 - confidence_of(game) + 1e-12:
        beside = standings(game, name, _none_of(game)) if role_of(game, name) == "tested" else {}
        return NOT_BETTER if beside.get("open") or beside.get("worse") else STILL_VISIBLE
    if method.missed:
        return STILL_VISIBLE
    return INCONCLUSIVE if seen > COARSE else LIKE_RETRAIN


def with_verdicts(game: GameResult) -> GameResult:
    """The same, its verdicts and resolutions written down."""
    methods = {
        name: replace(method, verdict=verdict_on(game, name), resolution=resolution_on(game, name))
        for name, method in game.methods.items()
    }
    return replace(game, methods=methods)


def verdict_lines(game: GameResult) -> list[str]:
    """`Still visible: fisher and salun.`, a line for each verdict that is given to a tested method."""
    given: dict[str, list[str]] = {said: [] for said in VERDICTS}
    for name, _ in by_quality(game.methods):
        if role_of(game, name) == "tested":
            said, seen = verdict_on(game, name), resolution_on(game, name)
            resolved = f" (an advantage of {plain(seen)} would have been seen)" if said == LIKE_RETRAIN and seen else ""
            given[said].append(f"{name}{resolved}{_beside_none(game, name) if said == STILL_VISIBLE else ''}")
    return [f"{said[0].upper()}{said[1:]}: {listed(names)}." for said, names in given.items() if names]


def _none_of(game: GameResult) -> list[str]:
    return [name for name in game.methods if role_of(game, name) == "none"][:1]


def _beside_none(game: GameResult, name: str) -> str:
    """That a method which is still visible is better than doing nothing, where that is settled; Q does not settle it
    where it is too high."""
    if missed := game.methods[name].missed:
        return f" (in the scores of {listed(missed)}, which thresholds miss)"
    return " (but better than doing nothing)" if standings(game, name, _none_of(game))["better"] else ""


@dataclass(frozen=True)
class Verdict:
    """What a reader in a hurry takes home."""

    headline: str
    remarks: list[str]


@dataclass(frozen=True)
class Known:
    """A method that has a Q."""

    name: str
    quality: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.quality:.3f}{JOINED}{bracket((self.low, self.high))}"

    def holds_one(self) -> bool:
        """Whether nothing left to see is among what the interval allows."""
        return self.high >= 1


def verdict(game: GameResult) -> Verdict:
    """One sentence on the method of highest Q, then what the comparisons, Retrain and None say."""
    known = judged_methods(game)
    if not known:
        return Verdict(_no_headline(game), [*_on_missing_pairs(game), *_on_absent(game)])
    retrain, none = known_of(game, known, "retrain"), known_of(game, known, "none")
    every = tested_methods(game, known)
    tested = [method for method in every if not game.methods[method.name].missed]
    remarks = [
        *_on_missed(game, every),
        *_on_rivals(game, tested),
        *_on_accuracy(game),
        *_on_stability(game),
        *(_on_retrain(game, retrain) if retrain is not None or is_run(game.spec) else []),
        *silence_lines(game),
        *_on_none(game, none, tested),
        *no_controls(game),
        *_on_missing_pairs(game),
        *_on_absent(game),
        *_on_basis(game),
    ]
    return Verdict(_headline(game, tested), remarks)


def _on_missed(game: GameResult, tested: Sequence[Known]) -> list[str]:
    names = [method.name for method in tested if game.methods[method.name].missed]
    is_own = "its Q is" if len(names) == 1 else "their Q are"
    return [f"Of {listed(names)} thresholds miss what scores tell, so {is_own} too high."] if names else []


def _on_accuracy(game: GameResult) -> list[str]:
    every = (has_seen_unseen_line(game), damage(game), lost_retained_line(game), uneven_accuracy(game))
    return [line for line in every if line is not None]


def failed_controls(game: GameResult) -> list[str]:
    """What the references say against the whole run: that Retrain shows something, or that None shows nothing."""
    return list(controls_that_fail(game).values())


def controls_that_fail(game: GameResult) -> dict[str, str]:
    """Reference -> what it says against the whole run."""
    silent = "Nothing was measured of None, which unlearns nothing: this run cannot tell unlearning from doing nothing."
    found = {
        name: silent
        for name, method in game.methods.items()
        if role_of(game, name) == "none" and method.quality is None and method.n_pairs > 0
    }
    found |= {
        name: (
            f"Retrain never saw the forgotten points, but the scores of {listed(method.missed)} tell them from unseen "
            "ones, and thresholds miss it: the points reach its models in some way that they should not. Until that is "
            "found, do not rely on the other rows."
        )
        for name, method in game.methods.items()
        if role_of(game, name) == "retrain" and method.missed and not lacks_pairs(game, method)
    }
    for one in judged_methods(game):
        role = role_of(game, one.name)
        if role == "retrain" and not one.holds_one() and one.name not in found:
            found[one.name] = _on_retrain(game, one)[0]
        elif role == "none" and one.holds_one():
            found[one.name] = _on_none(game, one, [])[0]
    return found


def lacks_controls(game: GameResult) -> list[str]:
    """The references, `retrain` and `none`, that do not stand beside the others with a Q on all pairs.

    Where both sides share one retrained model, Retrain's Q is 1 by construction, which is no control.
    """
    there = {role_of(game, one.name) for one in judged_methods(game)}
    there -= {"retrain"} if game.spec.get("share_retrain") else set()
    return [role for role in NAMES_OF if role not in there]


def no_controls(game: GameResult) -> list[str]:
    """What is not shown where models of somebody's own were judged without their references; of a run nothing: it
    knows which rows are of which points, and says elsewhere what else is missing."""
    if is_run(game.spec) or not judged_methods(game):
        return []
    absent = [role for role in lacks_controls(game) if not any(role_of(game, name) == role for name in game.methods)]
    others = [name for name in game.methods if role_of(game, name) != "retrain"]
    seen = any(verdict_on(game, name) in (STILL_VISIBLE, NOT_BETTER) for name in others)
    lines = []
    if "none" in absent and not seen:
        lines.append(
            "No model that unlearns nothing is in the file (method = none), so it is not shown that these rows would "
            f"tell a model that remembers the points.{_meant(game, 'none')}"
        )
    if "retrain" in absent:
        lines.append(
            "No model that was trained without the points is in the file (method = retrain), so nothing checks that Q "
            f"is 1 where there is nothing to see.{_meant(game, 'retrain')}"
        )
    return lines


def _meant(game: GameResult, role: str) -> str:
    near = [name for name in game.methods if nearly_reference(name) == role]
    return f" {listed(near)}: judged as a method of its own; if it is this reference, call it {role}." if near else ""


def warnings_of(game: GameResult) -> list[str]:
    """What is to be warned of in a game's numbers: what was found while they were made, and what follows from them."""
    first = [line for line in (learnt_nothing_line(game), has_seen_unseen_line(game)) if line is not None]
    return [*first, *failed_controls(game), *game.warnings]


def losses(game: GameResult) -> list[str]:
    """Of which methods a high Q is in part damage."""
    return [line for line in (damage(game), lost_retained_line(game)) if line is not None]


def reservations(game: GameResult) -> list[str]:
    """What speaks against a game's numbers, whatever they say: every place that warns of a game says this."""
    return [*warnings_of(game), *losses(game)]


def _no_headline(game: GameResult) -> str:
    if any(method.quality is not None for method in game.methods.values()):
        return "No method completed every swap pair, so there is no verdict."
    if any(method.n_pairs for method in game.methods.values()):
        return "Every adversary gave the same answer for all points, so nothing was measured and there is no Q."
    return "No method completed a swap pair, so there is no Q to report."


def known_methods(game: GameResult) -> list[Known]:
    """The methods that have a Q, the highest first."""
    return [
        Known(name, method.quality, *method.interval)
        for name, method in by_quality(game.methods)
        if method.quality is not None and method.interval is not None
    ]


def judged_methods(game: GameResult) -> list[Known]:
    """Those of them that completed every pair: a verdict is on these alone."""
    return [method for method in known_methods(game) if not lacks_pairs(game, game.methods[method.name])]


def known_of(game: GameResult, known: Sequence[Known], role: str) -> Known | None:
    """The method of that role, where it has a Q."""
    return next((method for method in known if role_of(game, method.name) == role), None)


def tested_methods(game: GameResult, known: Sequence[Known]) -> list[Known]:
    """All but the two references."""
    return [method for method in known if role_of(game, method.name) == "tested"]


def standings(game: GameResult, method: str, others: Sequence[str]) -> dict[str, list[str]]:
    """The others, sorted by what their comparison with the method says: `better`, `worse`, `open` or `unknown`."""
    sides = {frozenset((found.first, found.second)): found for found in game.comparisons}
    standing: dict[str, list[str]] = {"better": [], "worse": [], "open": [], "unknown": []}
    for other in others:
        found = sides.get(frozenset((method, other)))
        settled = {method: "better", other: "worse", None: "open"}
        standing["unknown" if found is None else settled[found.better]].append(other)
    return standing


def _headline(game: GameResult, tested: Sequence[Known]) -> str:
    if not tested and any(role_of(game, name) == "tested" and one.missed for name, one in game.methods.items()):
        return (
            "Of every method tested thresholds miss what scores tell: what it was to forget is still visible, and no Q "
            "says how much."
        )
    if not tested:
        return "Only reference methods have a Q: no unlearning method was measured."
    shown = [method for method in tested if verdict_on(game, method.name) != NOT_BETTER]
    known = judged_methods(game)
    references = {role: known_of(game, known, role) for role in ("retrain", "none")}
    beside = listed([f"{role.capitalize()} has {found}" for role, found in references.items() if found is not None])
    best = shown[0] if shown else tested[0]
    loss = lost_accuracy(game).get(best.name)
    price = "" if loss is None else f", but it is {points(loss)} less accurate than {yardsticks(game)}"
    if not shown:
        return f"No method is shown to be better than doing nothing: {best.name} has a Q of {best}{price}; {beside}."
    among = "has the highest Q of those that are better than None" if best is not tested[0] else "was tested"
    if best is tested[0] and len(tested) > 1:
        among = _standing(game, tested)
    interval = f"{level_of(game)}interval {bracket((best.low, best.high))}"
    found = f"Q{JOINED}={JOINED}{best.quality:.3f}, {interval}{price}{f'; {beside}' if beside else ''}"
    said = verdict_on(game, best.name)
    subject = {INCONCLUSIVE: "the evidence", STILL_VISIBLE: "what it was to forget"}.get(said, "it")
    return f"{best.name} {among}, and {subject} is {said}: {found}."


def _standing(game: GameResult, tested: Sequence[Known]) -> str:
    best, *others = [method.name for method in tested]
    left_out = len(tested_methods(game, judged_methods(game))) > len(tested)
    which = "tested whose Q is not too high" if left_out else "tested"
    if len(standings(game, best, others)["better"]) == len(others):
        return f"leaves less to see than {'the other method' if len(others) == 1 else 'every other method'} {which}"
    return f"has the highest Q of the {len(tested)} methods {which}"


def level_of(game: GameResult) -> str:
    """`95 % `, to stand before the word interval."""
    return f"{100 * game.spec['level']:g}{NARROW}% " if "level" in game.spec else ""


def _on_rivals(game: GameResult, tested: Sequence[Known]) -> list[str]:
    if not tested:
        return []
    best, *others = tested
    found = standings(game, best.name, [other.name for other in others])
    remarks = []
    if best.holds_one():
        remarks.append(f"The interval of {best.name} contains 1: these adversaries found nothing they could rely on.")
    if found["better"] and len(found["better"]) < len(others):
        remarks.append(f"{best.name} is better than {listed(found['better'])}.")
    if found["open"]:
        remarks.append(f"This run is too small to say whether {best.name} is better than {listed(found['open'])}.")
    if found["worse"]:
        remarks.append(f"Yet compared pair by pair, {_are(found['worse'])} better than {best.name}.")
    if found["unknown"]:
        remarks.append(
            f"{best.name} is not compared with {listed(found['unknown'])}: they did not complete the same pairs."
        )
    return remarks


def _are(names: Sequence[str]) -> str:
    return f"{listed(names)} {'is' if len(names) == 1 else 'are'}"


def _on_stability(game: GameResult) -> list[str]:
    if game.rank_stability is None:
        return []
    tau = f"τ{JOINED}of{JOINED}{tau_text(game.rank_stability)}"
    return [
        "How far the ranking depends on the split: ranked by one swap pair alone, the methods come in an order that "
        f"agrees with this one with a Kendall’s {tau} on average (1: the same order; 0: no relation)."
    ]


def _on_retrain(game: GameResult, retrain: Known | None) -> list[str]:
    if retrain is None:
        return ["Retrain has no Q here, so nothing checks that Q is 1 where there is nothing to see."]
    if game.spec.get("share_retrain"):
        return [
            "Both sides of a pair share one retrained model, so Retrain’s Q is 1 by construction and checks nothing."
        ]
    if game.methods[retrain.name].missed:
        return [controls_that_fail(game)[retrain.name]]
    if retrain.holds_one():
        interval = bracket((retrain.low, retrain.high))
        return [f"Retrain never saw the forgotten points, so its Q should be 1: its interval {interval} contains 1."]
    return [
        f"Retrain never saw the forgotten points, so its Q should be 1, but it is {retrain}. Either this is one of the "
        "few runs whose interval misses the true value, or the forgotten points reach the models in some way that "
        "they should not. Until that is found, do not rely on the other rows."
    ]


def _on_none(game: GameResult, none: Known | None, tested: Sequence[Known]) -> list[str]:
    if none is None:
        return []
    if none.holds_one():
        return [
            f"Even None, which unlearns nothing, has a Q of {none}, and its interval contains 1: this run cannot tell "
            "unlearning from doing nothing. More points to forget (a larger α), more pairs or stronger adversaries may."
        ]
    remarks = [f"None, which unlearns nothing, has a Q of {none}: {1 - none.quality:.3f} below 1."]
    found = standings(game, none.name, [method.name for method in tested])
    if found["worse"]:
        remarks.append(f"{_are(found['worse'])} better than None.")
    if found["open"]:
        remarks.append(f"This run cannot tell {listed(found['open'])} from None.")
    if found["better"]:
        names = listed(found["better"])
        remarks.append(f"None is better than {names}: that unlearning made the forgotten points easier to see.")
    return remarks


def _on_missing_pairs(game: GameResult) -> list[str]:
    lacking = [
        f"{name} ({pairs_behind(game, method)})"
        for name, method in game.methods.items()
        if method.quality is not None and lacks_pairs(game, method)
    ]
    return [f"Not judged, since pairs are missing: {listed(lacking)}."] if lacking else []


def _on_absent(game: GameResult) -> list[str]:
    absent = {name: method for name, method in game.methods.items() if method.quality is None}
    without = [name for name, method in absent.items() if method.n_pairs == 0]
    missed = [name for name, method in absent.items() if method.missed]
    silent = [name for name, method in absent.items() if method.n_pairs > 0 and name not in missed]
    said = "every answer was the same, but scores tell forgotten points from unseen ones"
    return [
        *([f"Of {listed(missed)} {said}."] if missed else []),
        *([f"No pair was completed for {listed(without)}."] if without else []),
        *([f"Nothing was measured of {listed(silent)}: no adversary told any two points apart."] if silent else []),
    ]


def _on_basis(game: GameResult) -> list[str]:
    remarks = []
    if any(method.noise_at_level == 1 for method in game.methods.values()):
        remarks.append(
            f"Relabelling gives no p that is as small as a level of {100 * confidence_of(game):g}{NARROW}% asks, so "
            "nothing can be visible at it."
        )
    if game.interval_basis == "given these models":
        remarks.append(
            f"With fewer than {MIN_PAIRS} pairs, intervals and comparisons are for these models only: "
            "other splits or trainings may differ by more."
        )
    if unsplit := [name for name, method in game.methods.items() if method.chosen_on == "plug-in"]:
        remarks.append(
            "There were too few points to choose the best adversary on some and score it on others, so the Q of "
            f"{listed(unsplit)} is the paper’s estimate, which is biased low."
        )
    return remarks


def sweep_verdict(result: Result) -> Verdict:
    """Which method has the highest Q at which value, and whether Retrain’s interval contains 1 at all of them."""
    best: dict[str, list[str]] = {}
    astray = []
    for game in result.games:
        known = judged_methods(game)
        if tested := [one for one in tested_methods(game, known) if not game.methods[one.name].missed]:
            best.setdefault(tested[0].name, []).append(setting(game.value))
        retrain = known_of(game, known, "retrain")
        if retrain is None or not retrain.holds_one() or game.methods[retrain.name].missed:
            astray.append(setting(game.value))
    remarks = [*_sweep_missed(result), *_sweep_damage(result), _sweep_grounding(result, astray)]
    return Verdict(_sweep_headline(result, best), remarks)


def _sweep_headline(result: Result, best: Mapping[str, Sequence[str]]) -> str:
    n_games = len(result.games)
    if not best:
        return f"No unlearning method has a Q at any value of {result.sweep}."
    if [len(values) for values in best.values()] == [n_games]:
        return f"{next(iter(best))} has the highest Q of the methods tested at every value of {result.sweep}."
    where = "; ".join(f"{name} at {listed(values)}" for name, values in best.items())
    return f"Which method has the highest Q changes with {result.sweep}: {where}."


def _sweep_missed(result: Result) -> list[str]:
    every = [
        method.name
        for game in result.games
        for method in tested_methods(game, judged_methods(game))
        if game.methods[method.name].missed
    ]
    names = listed(list(dict.fromkeys(every)))
    return [f"Left out where thresholds miss what scores tell, so that Q is too high: {names}."] if names else []


def _sweep_damage(result: Result) -> list[str]:
    where: dict[str, list[str]] = {}
    for game in result.games:
        for method in lost_accuracy(game):
            where.setdefault(method, []).append(setting(game.value))
    damaged = "; ".join(f"{method} at {listed(values)}" for method, values in where.items())
    what = f"More than a point of {result.games[0].utility_name}" if result.games else ""
    said = f"{what} below Retrain and None, so that part of Q is damage and not forgetting"
    return [f"{said}: {damaged}."] if damaged else []


def _sweep_grounding(result: Result, astray: Sequence[str]) -> str:
    if not astray:
        return "Retrain’s interval contains 1 at every value, as it should. Comparisons of methods are below, by value."
    where = f"{result.sweep} = {listed(astray)}"
    return f"Retrain’s interval should contain 1, but does not, or is missing, at {where}: do not rely on these."
