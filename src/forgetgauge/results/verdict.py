"""What a reader in a hurry takes home: one sentence on the method of highest Q, then what it may be said to beat.

“Better” is said only where the paired comparison says so; that two intervals overlap, or do not, decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from forgetgauge.game.intervals import MIN_PAIRS
from forgetgauge.results.record import GameResult, Result, by_quality, lacks_pairs, pairs_behind, role_of
from forgetgauge.results.utility import damage, lost_accuracy, points, uneven_accuracy, yardsticks
from forgetgauge.wording import JOINED, NARROW, bracket, listed, setting, tau_text


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
    tested = tested_methods(game, known)
    remarks = [
        *_on_rivals(game, tested),
        *(line for line in (damage(game), uneven_accuracy(game)) if line is not None),
        *_on_stability(game),
        *_on_retrain(game, retrain),
        *_on_none(game, none, tested),
        *_on_missing_pairs(game),
        *_on_absent(game),
        *_on_basis(game),
    ]
    return Verdict(_headline(game, tested), remarks)


def _no_headline(game: GameResult) -> str:
    if any(method.quality is not None for method in game.methods.values()):
        return "No method completed every swap pair, so there is no verdict."
    if any(method.n_pairs for method in game.methods.values()):
        return "No adversary could decide anything, so there is no evidence and no Q to report."
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
    if not tested:
        return "Only reference methods have a Q: no unlearning method was measured."
    best = tested[0]
    among = _standing(game, tested) if len(tested) > 1 else "was tested"
    interval = f"{level_of(game)}interval {bracket((best.low, best.high))}"
    loss = lost_accuracy(game).get(best.name)
    price = "" if loss is None else f", but it is {points(loss)} less accurate than {yardsticks(game)}"
    return f"{best.name} {among}: Q{JOINED}={JOINED}{best.quality:.3f}, {interval}{price}."


def _standing(game: GameResult, tested: Sequence[Known]) -> str:
    best, *others = [method.name for method in tested]
    if len(standings(game, best, others)["better"]) == len(others):
        return f"leaves less to see than {'the other method' if len(others) == 1 else 'every other method'} tested"
    return f"has the highest Q of the {len(tested)} methods tested"


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
        remarks.append(f"The interval of {best.name} holds 1: these adversaries found nothing they could rely on.")
    if found["better"] and len(found["better"]) < len(others):
        remarks.append(f"It is better than {listed(found['better'])}.")
    if found["open"]:
        remarks.append(f"Whether it is better than {listed(found['open'])} this run does not settle.")
    if found["worse"]:
        remarks.append(f"Yet compared pair by pair, {_are(found['worse'])} better than {best.name}.")
    if found["unknown"]:
        remarks.append(f"For want of the same pairs, it is not compared with {listed(found['unknown'])}.")
    return remarks


def _are(names: Sequence[str]) -> str:
    return f"{listed(names)} {'is' if len(names) == 1 else 'are'}"


def _on_stability(game: GameResult) -> list[str]:
    if game.rank_stability is None:
        return []
    tau = f"τ{JOINED}of{JOINED}{tau_text(game.rank_stability)}"
    return [
        f"Single pairs rank the methods as the whole run does to a mean Kendall’s {tau}, where 1 means that all agree "
        "and chance gives somewhat more than 0."
    ]


def _on_retrain(game: GameResult, retrain: Known | None) -> list[str]:
    if retrain is None:
        return ["Retrain has no Q here, so nothing checks that this game gives 1 where nothing is left to see."]
    if game.spec.get("share_retrain"):
        return [
            "Both sides of a pair share one retrained model: Retrain stands at 1 by construction and checks nothing."
        ]
    if retrain.holds_one():
        return [f"Retrain is grounded: its interval {bracket((retrain.low, retrain.high))} holds 1."]
    return [
        f"Retrain is not grounded: {retrain} lies below 1, although its models never saw the forget set. Either this "
        "is one of the few runs whose interval misses, or something leaks; read every other row with care."
    ]


def _on_none(game: GameResult, none: Known | None, tested: Sequence[Known]) -> list[str]:
    if none is None:
        return []
    if none.holds_one():
        return [
            f"Even None, which unlearns nothing, is at {none}, and its interval holds 1: this game cannot tell "
            "unlearning from doing nothing. A larger α, more pairs or stronger adversaries may."
        ]
    remarks = [f"None, which unlearns nothing, is at {none}: {1 - none.quality:.3f} below 1."]
    found = standings(game, none.name, [method.name for method in tested])
    if found["worse"]:
        remarks.append(f"{_are(found['worse'])} better than None.")
    if found["open"]:
        remarks.append(f"{listed(found['open'])} cannot be told from None.")
    if found["better"]:
        remarks.append(f"None is better than {listed(found['better'])}: unlearning made the forgotten easier to see.")
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
    silent = [name for name, method in absent.items() if method.n_pairs > 0]
    return [
        *([f"No pair was completed for {listed(without)}."] if without else []),
        *([f"There is no evidence about {listed(silent)}: no adversary could decide anything."] if silent else []),
    ]


def _on_basis(game: GameResult) -> list[str]:
    remarks = []
    if game.interval_basis == "given these models":
        remarks.append(
            f"With fewer than {MIN_PAIRS} pairs, intervals and comparisons are given these models: "
            "other splits or trainings may differ by more."
        )
    if unsplit := [name for name, method in game.methods.items() if method.chosen_on == "plug-in"]:
        remarks.append(f"Too small to choose an adversary on other data: {listed(unsplit)}, at the paper’s estimate.")
    return remarks


def sweep_verdict(result: Result) -> Verdict:
    """Which method has the highest Q at which value, and whether Retrain is grounded at all of them."""
    best: dict[str, list[str]] = {}
    astray = []
    for game in result.games:
        known = judged_methods(game)
        if tested := tested_methods(game, known):
            best.setdefault(tested[0].name, []).append(setting(game.value))
        retrain = known_of(game, known, "retrain")
        if retrain is None or not retrain.holds_one():
            astray.append(setting(game.value))
    return Verdict(_sweep_headline(result, best), [*_sweep_damage(result), _sweep_grounding(result, astray)])


def _sweep_headline(result: Result, best: Mapping[str, Sequence[str]]) -> str:
    n_games = len(result.games)
    if not best:
        return f"No unlearning method has a Q at any value of {result.sweep}."
    if [len(values) for values in best.values()] == [n_games]:
        return f"{next(iter(best))} has the highest Q of the methods tested at every value of {result.sweep}."
    where = "; ".join(f"{name} at {listed(values)}" for name, values in best.items())
    return f"Which method has the highest Q changes with {result.sweep}: {where}."


def _sweep_damage(result: Result) -> list[str]:
    where: dict[str, list[str]] = {}
    for game in result.games:
        for method in lost_accuracy(game):
            where.setdefault(method, []).append(setting(game.value))
    damaged = "; ".join(f"{method} at {listed(values)}" for method, values in where.items())
    return [f"Damaged, more than a point of accuracy below the references: {damaged}."] if damaged else []


def _sweep_grounding(result: Result, astray: Sequence[str]) -> str:
    if not astray:
        return "Retrain’s interval holds 1 in every game. Which differences are real stands game by game below."
    where = f"{result.sweep} = {listed(astray)}"
    return f"Retrain’s interval does not hold 1, or it has none, at {where}: read these with care."
