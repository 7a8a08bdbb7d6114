"""The result as one HTML file: it loads nothing, runs nothing, and the same result gives the same bytes.

Sentences and choices are made here, positions in `picture`, markup in `report.html.j2`. Every number shown stands in
the result or is a difference of two that do. All names are escaped by the template engine, whoever chose them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import jinja2

from forgetgauge.game.intervals import MIN_PAIRS
from forgetgauge.report.picture import Estimate, Overview, Scale, advantage_scale, overview, quality_scale
from forgetgauge.report.result import GameResult, MethodResult, Result
from forgetgauge.report.table import by_quality

ACCURACIES = {"retain": "retain R", "forget": "forget F", "unseen": "unseen T", "test": "test set"}
NARROW, JOINED = "\u202f", "\u00a0"
"""Spaces at which no line breaks."""
_HEAT_LEVELS = 5
_LEAST_HOT = 0.1  # the strongest tint stands for this advantage at least, so that small ones never look large


def render_report(result: Result) -> str:
    """The whole page; deterministic, self-contained, without a script."""
    return _template().render(
        result=result,
        games=[_view(game, result) for game in result.games],
        overview=_overview(result),
        sweep_verdict=sweep_verdict(result),
        facts=_facts(result),
        methods=_methods(result),
        shortfalls=[line for game in result.games for line in _shortfalls(game, result.sweep)],
        settings=_settings(result),
        adversaries=_adversaries(result.games),
        min_pairs=MIN_PAIRS,
    )


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("forgetgauge", "report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        plain=plain, signed=signed, bracket=bracket, signed_bracket=signed_bracket, p_value=p_value, percent=percent,
        count=count, seconds=seconds, setting=setting, listed=listed,
    )  # fmt: skip
    return environment.get_template("report.html.j2")


# --- numbers and lists as people write them -------------------------------------------------------------------------


def plain(value: float) -> str:
    """Three decimals."""
    return f"{value:.3f}"


def signed(value: float) -> str:
    """Three decimals with a sign, except for what rounds to zero."""
    text = f"{value:+.3f}".replace("-", "−")
    return "0.000" if text[1:] == "0.000" else text


def bracket(interval: tuple[float, float]) -> str:
    """[low, high], on one line."""
    return f"[{plain(interval[0])},{JOINED}{plain(interval[1])}]"


def signed_bracket(interval: tuple[float, float]) -> str:
    """[low, high], with signs."""
    return f"[{signed(interval[0])},{JOINED}{signed(interval[1])}]"


def p_value(value: float) -> str:
    """Two decimals, or one digit that says something."""
    return f"{value:.2f}" if value >= 0.1 else f"{value:.1g}" if value >= 0.0001 else "< 0.0001"


def percent(share: float) -> str:
    """One decimal."""
    return f"{100 * share:.1f}{NARROW}%"


def count(value: float) -> str:
    """A whole number with thin spaces at the thousands."""
    return f"{value:,.0f}".replace(",", NARROW)


def seconds(value: float) -> str:
    """Two digits that say something, and whole seconds from ten on."""
    return f"{count(value) if value >= 10 else f'{value:.2g}'}{NARROW}s"


def setting(value: Any) -> str:
    """A parameter as it stands in a run file, near enough; a mapping as `key = value` pairs."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} = {setting(inner)}" for key, inner in value.items()) or "none"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def listed(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


# --- the verdict ----------------------------------------------------------------------------------------------------


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

    def overlaps(self, other: Known) -> bool:
        """Whether the two intervals share a value."""
        return self.low <= other.high and other.low <= self.high


def verdict(game: GameResult) -> Verdict:
    """One sentence on the best method, then what Retrain and None say about the game itself."""
    known = _known(game)
    if not known:
        return Verdict("No method completed a swap pair, so there is no Q to report.", [])
    retrain, none = _known_of(game, known, "retrain"), _known_of(game, known, "none")
    tested = _tested(game, known)
    remarks = [
        *_on_rivals(tested),
        *_on_retrain(game, retrain),
        *_on_none(none, tested),
        *_on_absent(game),
        *_on_basis(game),
    ]
    return Verdict(_headline(game, tested), remarks)


def _known(game: GameResult) -> list[Known]:
    return [
        Known(name, method.quality, *method.interval)
        for name, method in by_quality(game.methods)
        if method.quality is not None and method.interval is not None
    ]


def _known_of(game: GameResult, known: Sequence[Known], role: str) -> Known | None:
    return next((method for method in known if _role(game, method.name) == role), None)


def _tested(game: GameResult, known: Sequence[Known]) -> list[Known]:
    return [method for method in known if _role(game, method.name) == "tested"]


def _role(game: GameResult, method: str) -> str:
    """`retrain`, `none` or `tested`, by the unlearner's own name, which the method's id may hide."""
    unlearner = game.spec.get("methods", {}).get(method, {}).get("unlearner", {}).get("name", method)
    return unlearner if unlearner in ("retrain", "none") else "tested"


def _headline(game: GameResult, tested: Sequence[Known]) -> str:
    if not tested:
        return "Only reference methods have a Q: no unlearning method was measured."
    best = tested[0]
    among = f"leaves the least to see of the {len(tested)} methods tested" if len(tested) > 1 else "was tested"
    interval = f"{_level(game)}interval {bracket((best.low, best.high))}"
    return f"{best.name} {among}: Q{JOINED}={JOINED}{best.quality:.3f}, {interval}."


def _level(game: GameResult) -> str:
    return f"{100 * game.spec['level']:g}{NARROW}% " if "level" in game.spec else ""


def _on_rivals(tested: Sequence[Known]) -> list[str]:
    if not tested:
        return []
    best, *others = tested
    rivals = [other.name for other in others if other.overlaps(best)]
    remarks = []
    if best.holds_one():
        remarks.append(f"The interval of {best.name} holds 1: these adversaries found nothing they could rely on.")
    if rivals:
        remarks.append(f"Its interval overlaps {_that_of(rivals)}, so this run does not settle which is better.")
    elif others:
        remarks.append("No other tested method’s interval reaches it.")
    return remarks


def _that_of(names: Sequence[str]) -> str:
    return f"{'that' if len(names) == 1 else 'those'} of {listed(names)}"


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


def _on_none(none: Known | None, tested: Sequence[Known]) -> list[str]:
    if none is None:
        return []
    if none.holds_one():
        return [
            f"Even None, which unlearns nothing, is at {none}, and its interval holds 1: this game cannot tell "
            "unlearning from doing nothing. A larger α, more pairs or stronger adversaries may."
        ]
    remarks = [f"None, which unlearns nothing, is at {none}: {1 - none.quality:.3f} below 1."]
    level = [method.name for method in tested if method.overlaps(none)]
    below = [method.name for method in tested if method.high < none.low]
    if level:
        remarks.append(f"By their intervals, {listed(level)} cannot be told from None.")
    if below:
        remarks.append(f"Below None: {listed(below)}. Here unlearning made the forgotten data easier to see.")
    return remarks


def _on_absent(game: GameResult) -> list[str]:
    absent = [name for name, method in game.methods.items() if method.quality is None]
    return [f"No pair was completed for {listed(absent)}."] if absent else []


def _on_basis(game: GameResult) -> list[str]:
    if game.interval_basis != "given these models":
        return []
    return [
        f"With fewer than {MIN_PAIRS} pairs, intervals are given these models: "
        "other splits or trainings may differ by more."
    ]


# --- one game -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GameView:
    """One game as the template shows it."""

    title: str
    """`key = value` in a sweep, else empty."""
    game: GameResult
    verdict: Verdict
    rows: list[tuple[str, MethodResult]]
    """Best first."""
    roles: dict[str, str]
    """Method -> `retrain`, `none` or `tested`."""
    adversaries: list[str]
    accuracies: dict[str, str]
    """Key -> column head, for those that were measured."""
    quality: Scale
    advantage: Scale
    heat_top: float
    """The |advantage| of the strongest tint."""
    level: str

    def heat(self, method: MethodResult, advantage: float) -> int:
        """0 where chance alone may give as much, else 1 … 5."""
        if abs(advantage) <= (method.noise_floor or 0.0):
            return 0
        return max(1, min(_HEAT_LEVELS, round(_HEAT_LEVELS * abs(advantage) / self.heat_top)))


def _view(game: GameResult, result: Result) -> GameView:
    return GameView(
        title="" if result.sweep is None else f"{result.sweep} = {setting(game.value)}",
        game=game,
        verdict=verdict(game),
        rows=by_quality(game.methods),
        roles={name: _role(game, name) for name in game.methods},
        adversaries=_adversaries([game]),
        accuracies={
            key: head for key, head in ACCURACIES.items() if any(key in m.accuracy for m in game.methods.values())
        },
        quality=quality_scale(_least(result.games)),
        advantage=advantage_scale(_each_advantage(result.games)),
        heat_top=max([_LEAST_HOT, *(1 - method.quality for other in result.games for method in _known(other))]),
        level=_level(game),
    )


def _adversaries(games: Iterable[GameResult]) -> list[str]:
    """All that were declared or have played, each once."""
    names: dict[str, None] = {}
    for game in games:
        names.update(dict.fromkeys(game.spec.get("adversaries", {})))
        for method in game.methods.values():
            names.update(dict.fromkeys(method.by_adversary))
    return list(names)


def _least(games: Iterable[GameResult]) -> Iterable[float]:
    """The ends that the axis of Q must reach, the same for all games so that they compare."""
    for game in games:
        yield from (end for method in _known(game) for end in (method.low, method.quality))
        if game.noise_floor is not None:
            yield 1 - game.noise_floor.q95


def _each_advantage(games: Iterable[GameResult]) -> list[float]:
    methods = [method for game in games for method in game.methods.values()]
    found = [adversary for method in methods for adversary in method.by_adversary.values()]
    return [value for adversary in found for value in (*adversary.by_pair, *adversary.interval, adversary.advantage)]


def _shortfalls(game: GameResult, sweep: str | None) -> list[str]:
    """Methods that completed fewer pairs than the game has."""
    pairs = game.spec.get("pairs")
    place = "" if sweep is None else f"{sweep} = {setting(game.value)}: "
    return [
        f"{place}{name} completed {method.n_pairs} of {pairs} pairs{_weaker(game, method)}."
        for name, method in game.methods.items()
        if pairs is not None and method.n_pairs < pairs
    ]


def _weaker(game: GameResult, method: MethodResult) -> str:
    """One basis is on record for a game, but a method that lost pairs may have fallen to the weaker one."""
    fell = 0 < method.n_pairs < MIN_PAIRS and game.interval_basis == "over pairs"
    return "; its intervals are given these models, not over pairs" if fell else ""


# --- a sweep --------------------------------------------------------------------------------------------------------


def sweep_verdict(result: Result) -> Verdict:
    """Which method is best at which value, and whether Retrain is grounded at all of them."""
    best: dict[str, list[str]] = {}
    astray = []
    for game in result.games:
        known = _known(game)
        if tested := _tested(game, known):
            best.setdefault(tested[0].name, []).append(setting(game.value))
        retrain = _known_of(game, known, "retrain")
        if retrain is None or not retrain.holds_one():
            astray.append(setting(game.value))
    return Verdict(_sweep_headline(result, best), [_sweep_grounding(result, astray)])


def _sweep_headline(result: Result, best: Mapping[str, Sequence[str]]) -> str:
    n_games = len(result.games)
    if not best:
        return f"No unlearning method has a Q at any value of {result.sweep}."
    if [len(values) for values in best.values()] == [n_games]:
        return f"{next(iter(best))} leaves the least to see at every value of {result.sweep}."
    where = "; ".join(f"{name} at {listed(values)}" for name, values in best.items())
    return f"Which method leaves the least to see depends on {result.sweep}: {where}."


def _sweep_grounding(result: Result, astray: Sequence[str]) -> str:
    if not astray:
        return "Retrain’s interval holds 1 in every game. Each game is told in full below."
    where = f"{result.sweep} = {listed(astray)}"
    return f"Retrain’s interval does not hold 1, or it has none, at {where}: read these with care."


def _overview(result: Result) -> Overview | None:
    """Q against the swept value, where the values are different numbers."""
    values = [game.value for game in result.games]
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    if result.sweep is None or not numbers or len(set(values)) < 2:
        return None
    return overview(values, {name: [_estimate(game, name) for game in result.games] for name in _methods(result)})


def _methods(result: Result) -> list[str]:
    return list(dict.fromkeys(name for game in result.games for name, _ in by_quality(game.methods)))


def _estimate(game: GameResult, name: str) -> Estimate | None:
    return next(((m.quality, m.low, m.high) for m in _known(game) if m.name == name), None)


def _facts(result: Result) -> list[str]:
    """The line under the title: what all games have in common."""
    n_adversaries = len(_adversaries(result.games))
    each = [
        {
            "data": game.spec.get("data", {}).get("name", ""),
            "alpha": f"α = {setting(game.spec['alpha'])}" if "alpha" in game.spec else "",
            "pairs": f"swap pairs: {game.spec['pairs']}" if "pairs" in game.spec else "",
        }
        for game in result.games
    ]
    common = [found for key, found in each[0].items() if found and all(other[key] == found for other in each)]
    sweep = [] if result.sweep is None else [f"sweep over {result.sweep}"]
    return [*common, f"adversaries: {n_adversaries}", *sweep]


# --- settings -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Setting:
    """One line of the settings; several values where the games of a sweep differ."""

    name: str
    values: list[str]


def _settings(result: Result) -> dict[str, list[Setting]]:
    """Heading -> lines."""
    groups = {"Game": _game_settings, "Unlearners": _unlearner_settings, "Adversaries": _adversary_settings}
    merged = {heading: _merged([choose(game.spec) for game in result.games]) for heading, choose in groups.items()}
    run = {
        **result.environment,
        "work": f"{seconds(result.total_seconds)}, summed over processes",
        "digest of all decisions": _short(result.digests.get("decisions", "")),
        "result schema": str(result.schema),
    }
    return {**merged, "Environment": _merged([run])}


def _merged(games: Sequence[Mapping[str, str]]) -> list[Setting]:
    names = dict.fromkeys(name for game in games for name in game)
    columns = {name: [game.get(name, "–") for game in games] for name in names}
    return [Setting(name, column if len(set(column)) > 1 else column[:1]) for name, column in columns.items()]


def _game_settings(spec: Mapping[str, Any]) -> dict[str, str]:
    lines = {
        "data set": _named(spec.get("data", {})),
        "digest of the data": _short(spec.get("data_digest", "")),
        "points, classes": _joined(spec, "n_points", "n_classes"),
        "share of each half used, η": _joined(spec, "fraction"),
        "α = |F| / |R ∪ F|": _joined(spec, "alpha"),
        "|R|": _joined(spec, "n_retain"),
        "|F| = |T|": _joined(spec, "n_forget"),
        "swap pairs": _joined(spec, "pairs"),
        "trainings per side of a pair": _joined(spec, "seeds"),
        "shadow models": _joined(spec, "n_shadows"),
        "seed": _joined(spec, "seed"),
        "level of intervals": _joined(spec, "level"),
        "sensitivity": _sensitivity(spec.get("sensitivity", {})),
        "Retrain shared by both sides": {True: "yes", False: "no"}.get(spec.get("share_retrain", ""), ""),
        "learner": _named(spec.get("learner", {})),
    }
    return {name: text for name, text in lines.items() if text}


def _unlearner_settings(spec: Mapping[str, Any]) -> dict[str, str]:
    return {name: _named(method.get("unlearner", {}), name) for name, method in spec.get("methods", {}).items()}


def _adversary_settings(spec: Mapping[str, Any]) -> dict[str, str]:
    return {name: _named(adversary, name) for name, adversary in spec.get("adversaries", {}).items()}


def _joined(spec: Mapping[str, Any], *keys: str) -> str:
    return ", ".join(setting(spec[key]) for key in keys if key in spec)


def _named(choice: Mapping[str, Any], known_as: str = "") -> str:
    """Name unless it is known already, parameters, and the digest of the code where it is the user's own."""
    name, params, code = choice.get("name", known_as), choice.get("params", {}), choice.get("code", "")
    parts = [
        "" if name == known_as else name,
        setting(params) if params else "",
        f"code {_short(code)}" if code else "",
    ]
    return "; ".join(part for part in parts if part) or ("no parameters" if known_as else "")


def _sensitivity(choice: Mapping[str, Any]) -> str:
    if choice.get("kind") == "by-class":
        return f"by class; {setting(choice.get('weights', {}))}"
    return (
        f"file; digest {_short(choice.get('digest', ''))}" if choice.get("kind") == "file" else choice.get("kind", "")
    )


def _short(digest: str) -> str:
    return f"{digest[:12]}…" if len(digest) > 12 else digest
