"""Q along the strength: four methods at several, on the models of Table 1 at η = 1, which are not trained again.

The strengths of the tables are chosen by accuracy on the shadow half; those of tables stored before a run could do that
by a search (`tuning.json`, one folder `tuning-*` a search). What another choice would have shown is the reader's
question, not a way to choose.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Literal

from forgetgauge.errors import UserError, unknown_name
from forgetgauge.files import read_json
from forgetgauge.records import Record, validated
from forgetgauge.report.strengths import along
from forgetgauge.report.table import align
from forgetgauge.results.record import GameResult, MethodResult, Result
from forgetgauge.results.utility import unseen_part
from forgetgauge.suites.compare import ROUNDING
from forgetgauge.suites.invocation import Invoked, play_single
from forgetgauge.suites.paper import PRINTED, Value, paper_table
from forgetgauge.suites.records import Invocation, Ours, made_by, read_strictly
from forgetgauge.suites.strengths import PUBLISHED, remark
from forgetgauge.suites.tables import SCALES, frontier_game
from forgetgauge.wording import bracket, plain, seconds

FILE = "strengths.json"
MAP = "quality-map.svg"
NAME = "strengths"
SEARCH_FILE = "tuning.json"


@dataclass(frozen=True)
class Measured(Record):
    """One method at one setting."""

    quality: Ours | None
    """As ours in the tables; None where a pair is missing: a Q over the models that did not
    diverge would be that of a selection."""
    accuracy: float | None
    pairs: int
    """Swap pairs that were completed."""


@dataclass(frozen=True)
class Frontier(Record):
    """Q and accuracy of one method along its strength."""

    strength: str
    """The name of the parameter."""
    chosen: float
    """What the tables have."""
    values: list[float]
    """Weakest first."""
    points: list[Measured]
    """One for each value."""


@dataclass(frozen=True)
class Published(Record):
    """One method at the setting of its authors."""

    value: float
    """Of the strength."""
    point: Measured


@dataclass(frozen=True)
class Frontiers(Record):
    """All of them, in one game."""

    scale: str
    tuned: bool
    """Whether the chosen values were chosen, on the shadow half; else they are defaults."""
    curves: dict[str, Frontier]
    none: Measured
    retrain: Measured
    accuracy_on: str
    """`test`, or `unseen` where the data have no official test set."""
    basis: str | None
    """What the intervals are over."""
    notes: list[str]
    invocations: list[Invocation]
    work_s: float
    environment: dict[str, str]
    digests: dict[str, str]
    failures: list[str] = field(default_factory=list)
    """Jobs that failed, in words."""
    published: dict[str, Published] = field(default_factory=dict)
    """Method -> its published setting on the same originals, which Table 1 has; of the strength alone differs."""
    fixed: dict[str, Measured] = field(default_factory=dict)
    """Method without a strength -> what Table 1 has of it on the same originals."""
    rule: int = 1
    """By which the chosen values were chosen (`plan.game.PRICE_RULE`); older records have no number."""
    schema: int = 1


def joined(found: Frontiers, method: str) -> Frontier:
    """A curve with the published setting in its place."""
    curve, also = found.curves[method], found.published.get(method)
    if also is None or also.value in curve.values:
        return curve
    falls = curve.values[0] > curve.values[-1]
    every = sorted(
        [*zip(curve.values, curve.points, strict=True), (also.value, also.point)], key=lambda at: at[0], reverse=falls
    )
    return replace(curve, values=[value for value, _ in every], points=[point for _, point in every])


def with_table(found: Frontiers, game: GameResult) -> Frontiers:
    """With what a table has beside the curves, where it was played on the same originals: None and Retrain are then
    the very same numbers."""
    ends = (("none", found.none), ("retrain", found.retrain))
    if any(
        name not in game.methods or _measured(game, game.methods[name], found.accuracy_on) != end for name, end in ends
    ):
        return found
    points = {name: _measured(game, one, found.accuracy_on) for name, one in game.methods.items()}
    published = {}
    for method, curve in found.curves.items():
        own, theirs = (_params(game, name) for name in (method, PUBLISHED.get(method, "")))
        value = theirs.get(curve.strength)
        if value is not None and own | {curve.strength: value} == theirs:
            published[method] = Published(value, points[PUBLISHED[method]])
    fixed = {name: points[name] for name in WITHOUT_STRENGTH if name in points}
    return replace(found, published=published, fixed=fixed)


WITHOUT_STRENGTH = ("retrain-final", "ft-final")


def _params(game: GameResult, name: str) -> dict[str, Any]:
    params: dict[str, Any] = game.spec.get("methods", {}).get(name, {}).get("unlearner", {}).get("params", {})
    return params


def read_frontiers(path: Path) -> Frontiers:
    """A validated record, or one line on what is wrong with the file."""
    found = read_strictly(path, Frontiers)
    for method, curve in found.curves.items():
        if method not in PRINTED:
            raise UserError(f"{path}: curves: {unknown_name('method', method, PRINTED)}")
        if len(curve.points) != len(curve.values):
            raise UserError(f"{path}: curves.{method}: not one point for each value")
    return found


def play_frontiers(scale: str, out: Path, **how: Any) -> tuple[Invoked, Frontiers | None]:
    """None where the time was up; `how` is what `play_single` takes."""
    invoked = play_single(NAME, frontier_game(SCALES[scale]), scale, out, frontier=SCALES[scale].strengths, **how)
    if invoked.result is None:
        return invoked, None
    found = frontiers_of(invoked.result, scale, invoked.invocations)
    invoked.folder.write_text(out / NAME / FILE, found.to_json())
    invoked.folder.write_text(out / NAME / "table.txt", frontier_text(found) + "\n")
    return invoked, found


def frontiers_of(result: Result, scale: str, invocations: Sequence[Invocation]) -> Frontiers:
    """From the result of the game of `frontier_game`."""
    (game,), size = result.games, SCALES[scale]
    looked_at = unseen_part(game.methods["none"].utility) or "unseen"
    notes = (*size.notes_for([frontier_game(size)]), size.stand_in("cifar10"), remark(size.tuning_shadows))
    curves = {}
    for method, curve in along(game).items():
        chosen = next(at.value for at in curve if at.remark)
        points = [_measured(game, at.method, looked_at) for at in curve]
        curves[method] = Frontier(curve[0].parameter, chosen, [at.value for at in curve], points)
    return Frontiers(
        scale=scale,
        tuned=True,
        curves=curves,
        none=_measured(game, game.methods["none"], looked_at),
        retrain=_measured(game, game.methods["retrain"], looked_at),
        accuracy_on=looked_at,
        basis=game.interval_basis,
        notes=[note for note in notes if note],
        invocations=list(invocations),
        work_s=result.total_seconds,
        environment=dict(result.environment),
        digests=dict(result.digests),
        failures=_failures(result),
        rule=(game.spec.get("price") or {}).get("rule", 1),
    )


def _measured(game: GameResult, found: MethodResult, looked_at: str) -> Measured:
    if found.quality_plugin is None or found.n_pairs < game.methods["none"].n_pairs:
        return Measured(None, None, found.n_pairs)
    return Measured(Ours(found.quality_plugin, found.interval), found.utility.get(looked_at), found.n_pairs)


def _failures(result: Result) -> list[str]:
    """One line for all models of a method that failed alike."""
    alike = Counter((re.sub(r", pair .*", "", failure.job), failure.error) for failure in result.failures)
    return [f"{n} × {job}: {error}" for (job, error), n in alike.items()]


def frontier_rows(found: Frontiers) -> list[list[str]]:
    """Head and one row for each value, weakest first; the two yardsticks on top."""
    mark = "chosen" if found.tuned else "default"
    rows = [["method", "strength", "Q", f"accuracy ({found.accuracy_on})", ""]]
    for name, point in (("retrain", found.retrain), ("none", found.none)):
        rows.append([PRINTED[name], "–", *_cells(point), ""])
    rows += [[PRINTED[name], "–", *_cells(point), "has no strength"] for name, point in found.fixed.items()]
    for method in found.curves:
        curve = joined(found, method)
        for value, point in zip(curve.values, curve.points, strict=True):
            said = [mark] if value == curve.chosen else []
            said += ["published"] if method in found.published and value == found.published[method].value else []
            if point.pairs < found.none.pairs:
                said.append(f"only {point.pairs} of {found.none.pairs} pairs")
            rows.append([PRINTED[method], f"{curve.strength} = {value:g}", *_cells(point), ", ".join(said)])
    return rows


def _cells(point: Measured) -> list[str]:
    quality = "–"
    if point.quality is not None:
        interval = point.quality.interval
        quality = plain(point.quality.value) + ("" if interval is None else f" {bracket(interval)}")
    return [quality, "–" if point.accuracy is None else plain(point.accuracy)]


@dataclass(frozen=True)
class Meeting:
    """Where a curve has the paper's Q, between two values that were played."""

    value: float
    """The strength there, found on a logarithmic scale."""
    accuracy: float | None


def printed(method: str) -> Value:
    """The paper's cell of a method where the curves are played: Table 1 at η = 1."""
    return paper_table("table1").rows[method]["1.0"]


def printed_quality(method: str) -> float:
    """The number in it."""
    return printed(method).mean


def meeting(curve: Frontier, quality: float) -> Meeting | None:
    """The weakest strength at which a curve has this Q, on straight lines between its points; None where none has."""
    known = [(v, p) for v, p in zip(curve.values, curve.points, strict=True) if p.quality is not None]
    for (weaker, one), (stronger, other) in pairwise(known):
        low, high = (p.quality.value for p in (one, other) if p.quality is not None)
        if min(low, high) <= quality <= max(low, high):
            share = (quality - low) / (high - low) if high != low else 0.0
            pair = (one.accuracy, other.accuracy)
            accuracy = None if pair[0] is None or pair[1] is None else pair[0] + share * (pair[1] - pair[0])
            return Meeting(weaker * (stronger / weaker) ** share, accuracy)
    return None


@dataclass(frozen=True)
class PaperCell(Record):
    """One cell of the paper's, and where on our map it lies."""

    method: str
    quality: float
    spread: float | None
    how: Literal["met", "inside", "not met"]
    """`met`: a curve has this Q between two values that were played. `inside`: one of our points is within the paper's
    ±. `not met`: neither, within what was played."""
    value: float | None = None
    """Of the strength, where it has one."""
    ours: float | None = None
    """Q there; where it is not met, the nearest that was played."""
    accuracy: float | None = None


def paper_cells(found: Frontiers) -> list[PaperCell]:
    """The paper's seven cells, in its order; those of which nothing was played are left out."""
    every = [_paper_cell(found, method) for method in paper_table("table1").rows]
    return [cell for cell in every if cell is not None]


def _paper_cell(found: Frontiers, method: str) -> PaperCell | None:
    value = printed(method)
    if method in found.curves:
        curve = joined(found, method)
        at = meeting(curve, value.mean)
        if at is not None:
            return PaperCell(method, value.mean, value.spread, "met", at.value, value.mean, at.accuracy)
        known: list[tuple[float | None, Measured]] = list(zip(curve.values, curve.points, strict=True))
    else:
        alone = found.retrain if method == "retrain" else found.fixed.get(method)
        known = [] if alone is None else [(None, alone)]
    known = [(strength, point) for strength, point in known if point.quality is not None]
    if not known:
        return None
    strength, point = min(known, key=lambda one: abs(quality_of(one[1]) - value.mean))
    is_inside = abs(quality_of(point) - value.mean) <= (value.spread or 0.0) + ROUNDING
    how: Literal["inside", "not met"] = "inside" if is_inside else "not met"
    return PaperCell(method, value.mean, value.spread, how, strength, quality_of(point), point.accuracy)


def quality_of(point: Measured) -> float:
    """Q of a point that has one."""
    return 0.0 if point.quality is None else point.quality.value


def _on_the_paper(found: Frontiers) -> str:
    """Where the curves meet the paper's numbers, and which do not within what was played."""
    said: dict[str, list[str]] = {"met": [], "inside": [], "not met": []}
    for cell in paper_cells(found):
        curve = found.curves.get(cell.method)
        at = "" if cell.accuracy is None else f", at an accuracy of {plain(cell.accuracy)}"
        own = "" if cell.ours is None else plain(cell.ours)
        if cell.how == "met" and curve is not None and cell.value is not None:
            words = f"{plain(cell.quality)}) about {curve.strength} = {cell.value:.2g}{at}"
        elif cell.how == "inside":
            where = "" if curve is None else f" at {curve.strength} = {cell.value:g}"
            words = f"{plain(cell.quality)} ± {plain(cell.spread or 0)}; ours {own}{where}{at})"
        elif curve is None:
            words = f"{plain(cell.quality)}; ours {own}, and it has no strength)"
        else:
            is_above = cell.ours is not None and cell.quality > cell.ours
            words = f"{plain(cell.quality)} is {'above' if is_above else 'below'} all of them, the nearest is {own})"
        said[cell.how].append(f"{PRINTED[cell.method]} ({words}")
    lines = [
        f"The paper’s Q at η = 1.0 is met by {'; '.join(said['met'])}." if said["met"] else "",
        f"Inside the paper’s ±: {'; '.join(said['inside'])}." if said["inside"] else "",
        f"Not met within the values that were played: {'; '.join(said['not met'])}." if said["not met"] else "",
    ]
    return " ".join(filter(None, lines))


def frontier_remarks(found: Frontiers) -> list[str]:
    """What must be known of the table: one line each."""
    lines = [
        *filter(None, [_on_the_paper(found)]),
        *found.notes,
        *(f"Failed: {failure}." for failure in found.failures),
    ]
    if found.basis:
        lines.append(f"Intervals: {found.basis}.")
    time = seconds(sum(one.wall_s for one in found.invocations))
    made = [f"Time: {time}, the models of Table 1 not counted where they were there", *made_by(found.invocations)]
    return [*lines, "; ".join(made) + "."]


def frontier_text(found: Frontiers) -> str:
    """Q along the strengths, for a terminal."""
    heading = f"Q along the strength, {found.scale} scale. Weakest values first."
    return "\n".join([heading, "", align(frontier_rows(found)), "", *frontier_remarks(found)])


_LENIENT = {"extra": "ignore", "allow_inf_nan": False}  # a search knows more than is shown
RULE = (
    "The strongest value at which no model of the shadow half loses more than a point of accuracy on shadow points "
    "that it was not trained on. Neither F and T of the game nor Q were looked at."
)


@dataclass(frozen=True)
class Tried:
    """One value of a strength that was tried."""

    __pydantic_config__: ClassVar[Any] = _LENIENT
    value: float
    worst_loss: float
    """The largest loss of any model."""


@dataclass(frozen=True)
class Searched:
    """The search for one method's strength."""

    __pydantic_config__: ClassVar[Any] = _LENIENT
    strength: str
    """The name of the strength parameter, as the file calls it."""
    params: dict[str, Any]
    """What else the method was given."""
    chosen: float | None
    """None: every value cost more than a point."""
    trials: list[Tried]
    """Weakest first."""


@dataclass(frozen=True)
class Search:
    """All methods, on the same shadow models."""

    name: str
    """The name of its folder, without `tuning-`."""
    before: list[float]
    """Accuracy of each model on its unseen points, before anything is unlearned."""
    methods: dict[str, Searched]
    seconds: float | None = None
    """What it took, the training of models that were made for it alone included; None where nobody wrote it down."""
    device: str = "unknown"


def read_search(path: Path) -> Search:
    """A validated search, or one line on what is wrong with the file."""
    record = read_json(path)
    if not isinstance(record, dict) or not isinstance(record.get("before"), list):
        raise UserError(f"{path}: no search: it has no list 'before'")
    before = validated(path, list[float], record.pop("before"))
    seconds, device = (record.pop(key, usual) for key, usual in (("seconds", None), ("device", "unknown")))
    methods = validated(path, dict[str, Searched], record)
    took = None if seconds is None else validated(path, float, seconds), validated(path, str, device)
    return Search(path.parent.name.removeprefix("tuning-"), before, methods, *took)


def search_rows(search: Search) -> list[list[str]]:
    """Head, and one row a method: each value with the largest loss in points, and what the rule chose."""
    rows = [["method", "strength", "value: largest loss in points", "chosen"]]
    for name, found in search.methods.items():
        also = "".join(f", {key} = {value}" for key, value in found.params.items())
        tried = ", ".join(f"{trial.value:g}: {_percentage_points(trial.worst_loss)}" for trial in found.trials)
        rows.append([name, found.strength + also, tried, "none" if found.chosen is None else f"{found.chosen:g}"])
    return rows


def _percentage_points(loss: float) -> str:
    return f"{100 * loss:+.2f}".replace("-", "−")
