"""Q at a price: which strengths were chosen and what they cost, and Q of each method along its strength."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from forgetgauge.plan.game import PRICE_RULE
from forgetgauge.report.picture import (
    HEIGHT_PX,
    Overview,
    Point,
    Scale,
    Segment,
    Series,
    height,
    quality_scale,
    spread,
    value_scale,
)
from forgetgauge.results.price import RUINED, ruined_between, stepped_back
from forgetgauge.results.record import GameResult, MethodResult, Result, TuningResult, role_of
from forgetgauge.results.utility import NAMES, points, unseen_accuracy, yardsticks
from forgetgauge.wording import bracket, counted, listed, plain

WINDOW = 0.1
"""The map shows models that are less accurate than Retrain and None by no more than this; a table has them all."""


@dataclass(frozen=True)
class AtStrength:
    """A method at one value of its strength."""

    parameter: str
    value: float
    method: MethodResult
    remark: str = ""
    """What makes it more than a point of the curve: `chosen by price`, `as published`, `as the run file has it`."""
    after_gap: bool = False
    """Whether values between it and the point before it ruin models: no line joins the two."""


def price_line(game: GameResult) -> str | None:
    """How strengths were chosen, in one sentence; None where none was."""
    tuned = {name: method.tuning for name, method in game.methods.items() if method.tuning is not None}
    if not tuned:
        return None
    first = next(iter(tuned.values()))
    holding = {name: one for name, one in tuned.items() if one.holds}
    is_early = (game.spec.get("price") or {}).get("rule", 1) < PRICE_RULE
    lines = [f"Q at a price of {_points(first.price)}:"]
    if holding:
        chosen = listed([f"{_base(game, name)} ({_found(game, name, one)})" for name, one in holding.items()])
        which = "that was tried and" if is_early else "up to which every value that was tried"
        models = counted(first.n_models, "shadow model")
        lines.append(
            f"the strength of {chosen} is the strongest {which} is shown, on {models}, to cost no more than that, "
            f"counted from the lower of Retrain and None{' (an earlier rule, decision 0043)' * is_early}."
        )
    if not is_early and (back := [_base(game, name) for name, one in holding.items() if stepped_back(one)]):
        lines.append(f"Of {listed(back)} it is the value before that, since at the next one a model gave no numbers.")
    if beyond := [_base(game, name) for name, one in tuned.items() if not one.holds]:
        no = "No" if holding else "no"
        lines.append(f"{no} strength that was tried keeps {listed(beyond)} within it: the weakest is shown.")
    if ends := [_base(game, name) for name, one in holding.items() if one.tried and one.chosen == one.tried[-1].value]:
        lines.append(f"The range of {listed(ends)} ends there: a wider one may forget more.")
    return " ".join(lines)


def _found(game: GameResult, name: str, tuning: TuningResult) -> str:
    """`lr = 0.2`; of a point of the frontier, which has no row of its own, with what came of it."""
    method, chosen = game.methods[name], f"{tuning.parameter} = {tuning.chosen:g}"
    if not _variant(game, name) or method.quality is None:
        return chosen
    return f"{chosen}: Q = {plain(method.quality)}" + (f" {bracket(method.interval)}" if method.interval else "")


def _base(game: GameResult, name: str) -> str:
    """The method that a point of the frontier is of; else itself."""
    variant = _variant(game, name)
    return str(variant["method"]) if variant else name


def _points(price: float) -> str:
    return "one point" if price == 0.01 else f"{100 * price:g} points"


def strength_note(game: GameResult, name: str) -> str:
    """`lr = 0.0072, by price`; empty of a method whose strength was not chosen in the run."""
    tuning = game.methods[name].tuning
    if tuning is not None:
        return f"{tuning.parameter} = {tuning.chosen:g}, {'by price' if tuning.holds else 'beyond the price'}"
    source, but, others = _spec(game, name).get("source", "").partition("; but ")
    return "published settings" * bool(source) + (f", but {others}" if but else "")


def strength_of(game: GameResult, name: str) -> tuple[str, float, float | None] | None:
    """(parameter, value, the price that it was chosen by) of a method; None where its strength is nobody's subject."""
    tuning, variant = game.methods[name].tuning, _variant(game, name)
    if tuning is not None:
        return tuning.parameter, tuning.chosen, tuning.price
    if variant:
        return variant["parameter"], variant["value"], None
    parameter = _parameter(game, name)
    value = None if parameter is None else _value(game, name, parameter)
    return None if parameter is None or value is None else (parameter, value, None)


def _parameter(game: GameResult, name: str) -> str | None:
    """By which others play along a method's strength."""
    variants = filter(None, (_variant(game, other) for other in game.methods))
    return next((variant["parameter"] for variant in variants if variant["method"] == name), None)


def _value(game: GameResult, name: str, parameter: str) -> float | None:
    """What a method has of a parameter, where that is a number."""
    value = _spec(game, name).get("unlearner", {}).get("params", {}).get(parameter)
    return None if isinstance(value, bool) or not isinstance(value, int | float) else value


# -- the frontier ------------------------------------------------------------------------------------------------------


def is_frontier(game: GameResult) -> bool:
    """Whether methods were played along their strengths."""
    return any(_variant(game, name) for name in game.methods)


def without_variants(result: Result) -> Result:
    """The methods of the run alone, each at its own strength: what all but the frontier is about."""
    return replace(result, games=[_plain(game) for game in result.games])


def _plain(game: GameResult) -> GameResult:
    kept = {name: method for name, method in game.methods.items() if not _variant(game, name)}
    comparisons = [one for one in game.comparisons if one.first in kept and one.second in kept]
    return replace(game, methods=kept, comparisons=comparisons)


def along(game: GameResult) -> dict[str, list[AtStrength]]:
    """Method -> itself at each strength that it was played at, the weakest first."""
    found: dict[str, list[AtStrength]] = {}
    for name, method in game.methods.items():
        if variant := _variant(game, name):
            remark = "" if method.tuning is None else _how_chosen(method.tuning)
            at = AtStrength(variant["parameter"], variant["value"], method, remark)
            found.setdefault(variant["method"], []).append(at)
    for name, method in game.methods.items():
        if method.tuning is not None and not _variant(game, name):
            found.setdefault(name, [])
    for name, curve in found.items():
        own = _own(game, name, curve) if name in game.methods else None
        others = [at for at in curve if own is None or at.value != own.value]
        every = [*others, *([own] if own else [])]
        found[name] = _with_gaps(sorted(every, key=lambda at: at.value, reverse=_falls(curve, own)))
    return {name: found[name] for name in sorted(found)}


def _falls(curve: Sequence[AtStrength], own: AtStrength | None) -> bool:
    """Whether smaller values are stronger, as the search for the strength had it, which tried the weakest first."""
    tuning = next((at.method.tuning for at in (*curve, own) if at is not None and at.method.tuning is not None), None)
    return tuning is not None and bool(tuning.tried) and tuning.tried[0].value > tuning.tried[-1].value


def _with_gaps(curve: list[AtStrength]) -> list[AtStrength]:
    tuning = next((at.method.tuning for at in curve if at.method.tuning is not None), None)
    if tuning is None:
        return curve
    return [
        replace(at, after_gap=before is not None and bool(ruined_between(tuning, before.value, at.value)))
        for before, at in zip([None, *curve], curve, strict=False)
    ]


def gap_lines(game: GameResult) -> list[str]:
    """Where curves have gaps, in words."""
    said = []
    for name, curve in along(game).items():
        tuning = next((at.method.tuning for at in curve if at.method.tuning is not None), None)
        for before, at in pairwise(curve):
            if at.after_gap and tuning is not None:
                ruined = [f"{value:g}" for value in ruined_between(tuning, before.value, at.value)]
                said.append(
                    f"{name} was not played between {at.parameter} = {before.value:g} and {at.value:g}: at "
                    f"{listed(ruined)} shadow models may lose more than {points(RUINED * tuning.price)}, gave no "
                    "numbers, or their jobs failed."
                )
    return said


def without_strength(game: GameResult) -> dict[str, MethodResult]:
    """The methods under test that have one setting alone: points of the map, no curves."""
    curves = along(game)
    return {
        name: method
        for name, method in game.methods.items()
        if role_of(game, name) == "tested" and name not in curves and not _variant(game, name)
    }


def _own(game: GameResult, name: str, curve: list[AtStrength]) -> AtStrength | None:
    """The method as the run plays it."""
    method = game.methods[name]
    parameter = method.tuning.parameter if method.tuning is not None else curve[0].parameter
    value = _value(game, name, parameter)
    if value is None:
        return None
    if method.tuning is not None:
        return AtStrength(parameter, value, method, _how_chosen(method.tuning))
    source, but, others = _spec(game, name).get("source", "").partition("; but ")
    remark = "as published" + (f", but {others}" if but else "") if source else "as the run file has it"
    return AtStrength(parameter, value, method, remark)


def _how_chosen(tuning: TuningResult) -> str:
    return "chosen by price" if tuning.holds else "beyond the price"


def frontier_rows(game: GameResult) -> list[list[str]]:
    """Head, Retrain and None, then each method along its strength, the weakest first; last those that have none."""
    ends = _ends_of(game)
    usual = {role_of(game, name): unseen_accuracy(game.methods[name]) for name in reversed(ends)}
    part = next((found[0] for found in usual.values() if found), "unseen")
    accuracy = f"{game.utility_name} ({NAMES[part]})"
    rows = [["method", "strength", "Q", "interval", accuracy, "points below Retrain", "below None", ""]]

    def row(name: str, strength: str, method: MethodResult, remark: str) -> list[str]:
        own = unseen_accuracy(method)
        below = [_below(own, usual.get(role)) for role in ("retrain", "none")]
        quality = "–" if method.quality is None else plain(method.quality)
        interval = "–" if method.interval is None else bracket(method.interval)
        return [name, strength, quality, interval, "–" if own is None else plain(own[1]), *below, remark]

    rows += [row(name, "–", game.methods[name], "") for name in ends]
    for name, curve in along(game).items():
        rows += [row(name, f"{at.parameter} = {at.value:g}", at.method, at.remark) for at in curve]
    rows += [row(name, "–", method, "no strength") for name, method in without_strength(game).items()]
    return rows


def _ends_of(game: GameResult) -> list[str]:
    """Retrain and None, by the names they have, in this order, as far as they are there."""
    return [name for role in ("retrain", "none") for name in sorted(game.methods) if role_of(game, name) == role]


def _below(own: tuple[str, float] | None, usual: tuple[str, float] | None) -> str:
    return "–" if own is None or usual is None else f"{100 * (usual[1] - own[1]):+.1f}".replace("-", "−")


def map_of(game: GameResult) -> tuple[Overview, int] | None:
    """(Q against accuracy: a curve for each method, Retrain and None as points; how many models are left of it)."""
    ends = {name: game.methods[name] for name in _ends_of(game)}
    alone = {name: [AtStrength("", 0.0, method)] for name, method in (ends | without_strength(game)).items()}
    curves = alone | along(game)
    known = {name: placed(curve) for name, curve in curves.items()}
    everyone = [accuracy_at(at) for curve in known.values() for at in curve]
    if not everyone or not ends:
        return None
    yardstick = min((accuracy_at(at) for name in ends for at in known[name]), default=max(everyone))
    least = max(min(everyone), yardstick - WINDOW)
    shown = {name: within(curve, least) for name, curve in known.items()}
    n_left = len(everyone) - sum(map(len, shown.values()))
    price = next((m.tuning.price for m in game.methods.values() if m.tuning is not None), None)
    limit = [] if price is None else [yardstick - price]
    across = accuracy_scale([*limit, *(accuracy_at(at) for curve in shown.values() for at in curve)])
    up = quality_scale(end for curve in shown.values() for at in curve for end in _ends(at))
    series = [(name, curve, [_place(at, across, up) for at in curve]) for name, curve in shown.items() if curve]
    label_ys = spread([way[0].y for *_, way in series], gap=17, low=0, high=HEIGHT_PX)
    picture = Overview(
        HEIGHT_PX,
        across,
        up,
        tuple(
            Series(name, tuple(way), _segments(curve, way), label_y, 0.0)
            for (name, curve, way), label_y in zip(series, label_ys, strict=True)
        ),
        rings=tuple(_place(at, across, up) for curve in shown.values() for at in curve if at.remark),
        limit=across.percent(limit[0]) if limit else None,
    )
    return picture, n_left


def _segments(curve: list[AtStrength], way: list[Point]) -> tuple[Segment, ...]:
    return tuple(Segment(a, b) for (a, b), at in zip(pairwise(way), curve[1:], strict=True) if not at.after_gap)


def placed(curve: list[AtStrength]) -> list[AtStrength]:
    """Those that have a place on the map: a Q and an accuracy."""
    return _kept(curve, [at.method.quality is not None and unseen_accuracy(at.method) is not None for at in curve])


def within(curve: list[AtStrength], least: float) -> list[AtStrength]:
    """Those that are as accurate as this."""
    return _kept(curve, [accuracy_at(at) >= least for at in curve])


def _kept(curve: list[AtStrength], keep: list[bool]) -> list[AtStrength]:
    """Some of a curve: where one is left out it has a gap."""
    found, gap = list[AtStrength](), False
    for at, is_kept in zip(curve, keep, strict=True):
        gap = bool(found) and (gap or at.after_gap or not is_kept)
        if is_kept:
            found.append(replace(at, after_gap=gap))
            gap = False
    return found


def map_headline(game: GameResult) -> str:
    """What the map shows, in words."""
    part = next((found[0] for method in game.methods.values() if (found := unseen_accuracy(method))), "unseen")
    return f"Q against {game.utility_name} ({NAMES[part]}), each method along its strength"


def map_legend(game: GameResult, n_left: int) -> str:
    """How to read it."""
    lines = [
        "Up is better forgotten, right is more useful: the best corner is the upper right. Upright lines: intervals."
    ]
    if any(method.tuning is not None for method in game.methods.values()):
        lines.append(
            "Rings are the strengths chosen by price or named in the run file; left of the dashed line a method "
            f"costs more than the price, counted from the lower of {yardsticks(game)}."
        )
    lines += gap_lines(game)
    if n_left:
        lines.append(f"{counted(n_left, 'point')} with a loss of over {points(WINDOW)} stand in the table alone.")
    return " ".join(lines)


def _place(at: AtStrength, across: Scale, up: Scale) -> Point:
    quality = at.method.quality or 0.0
    low, high = at.method.interval or (quality, quality)
    return Point(across.percent(accuracy_at(at)), height(up, quality), height(up, high), height(up, low))


def _ends(at: AtStrength) -> tuple[float, ...]:
    return (at.method.quality or 0.0, *(at.method.interval or ()))


def accuracy_at(at: AtStrength) -> float:
    """On points that the model never saw."""
    found = unseen_accuracy(at.method)
    return 0.0 if found is None else found[1]


def accuracy_scale(values: list[float]) -> Scale:
    """From a round number below all values to one above, with ticks at round numbers."""
    span = max(max(values) - min(values), 0.01)
    step = next(step for step in (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1e9) if span <= 6 * step)
    first = int(min(values) // step)
    n_steps = max(1, -int(-(max(values) - first * step) // step))
    ticks = [round((first + i) * step, 6) for i in range(n_steps + 1)]
    return replace(value_scale(ticks, logarithmic=False), ticks=tuple(ticks))


def _spec(game: GameResult, name: str) -> dict[str, Any]:
    found: dict[str, Any] = game.spec.get("methods", {}).get(name, {})
    return found


def _variant(game: GameResult, name: str) -> dict[str, Any] | None:
    return _spec(game, name).get("variant")
