"""Results as rows of data, made in one place for every format: numbers stay numbers, and an interval is one cell."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from forgetgauge.errors import UserError
from forgetgauge.report.perplexity import perplexities
from forgetgauge.report.settings import ACCURACIES
from forgetgauge.report.strengths import strength_of
from forgetgauge.results.one_model import ModelResult, OneModelResult
from forgetgauge.results.record import (
    AdversaryResult,
    DiagnosticResult,
    GameResult,
    MethodResult,
    Result,
    by_quality,
    role_of,
)
from forgetgauge.results.shared import differing
from forgetgauge.results.utility import loss_interval, utility_below
from forgetgauge.results.verdict import verdict_on
from forgetgauge.wording import bound, chance, p_value, plain, setting, signed

Cell = str | int | float | tuple[float, float] | None


def shown(value: Cell) -> str:
    """As people read it: three decimals, a dash where there is nothing."""
    if value is None:
        return "–"
    if isinstance(value, tuple):
        return f"[{value[0]:.3f}, {value[1]:.3f}]"
    return plain(value) if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Column:
    """One kind of cell."""

    key: str
    """Its name in data."""
    head: str = ""
    """Its name for people; without one it stands in data alone."""
    show: Callable[[Any], str] = shown
    """How people read its numbers."""
    is_interval: bool = False
    """Whether its cells have two ends."""
    is_sweep: bool = False
    """Whether it holds the values of a sweep."""

    def text(self, value: Cell) -> str:
        """A cell as people read it."""
        return shown(value) if value is None or isinstance(value, str) else self.show(value)


@dataclass(frozen=True)
class Rows:
    """A table of data."""

    columns: tuple[Column, ...]
    cells: list[list[Cell]]

    def for_people(self) -> Rows:
        """Without the columns that stand in data alone, and without those that are empty."""
        kept = [
            place
            for place, column in enumerate(self.columns)
            if column.head and (not self.cells or any(row[place] is not None for row in self.cells))
        ]
        return Rows(tuple(self.columns[i] for i in kept), [[row[i] for i in kept] for row in self.cells])

    def flat(self) -> tuple[list[str], list[list[str | int | float | None]]]:
        """(names, cells) of all columns; an interval is two of them, `…_low` and `…_high`."""
        names = [
            name
            for column in self.columns
            for name in ([f"{column.key}_{end}" for end in ENDS] if column.is_interval else [column.key])
        ]
        return names, [
            [end for column, cell in zip(self.columns, row, strict=True) for end in _ends(column, cell)]
            for row in self.cells
        ]


ENDS = ("low", "high")


def _ends(column: Column, cell: Cell) -> Sequence[str | int | float | None]:
    if isinstance(cell, tuple):
        return cell
    return [cell] * (len(ENDS) if column.is_interval else 1)


def rows_of(results: Sequence[tuple[str, Result | OneModelResult]]) -> Rows:
    """Every method of every result, or every test of every model; `results` are (name, what it holds) of one kind.

    With several results the first column says whose a row is.
    """
    found: list[dict[Column, Cell]] = []
    for name, result in results:
        own = _evidence(result) if isinstance(result, OneModelResult) else _methods(result)
        found += [{Column("result", "result"): name, **row} if len(results) > 1 else row for row in own]
    return of_mappings(found)


def of_mappings(found: Sequence[dict[Column, Cell]]) -> Rows:
    """Rows that may lack columns of others."""
    columns = _in_order([list(row) for row in found])
    return Rows(tuple(columns), [[row.get(column) for column in columns] for row in found])


def refuse_unlike_kinds(results: Sequence[tuple[str, Result | OneModelResult]]) -> None:
    """UserError where these cannot stand side by side at all."""
    if len(results) < 2:
        raise UserError("compare: name two results or more")
    names = [name for name, _ in results]
    if again := [name for i, name in enumerate(names) if name in names[:i]]:
        raise UserError(f"compare: {again[0]} is named twice")
    if len({isinstance(found, OneModelResult) for _, found in results}) > 1:
        raise UserError("compare: evidence from one model has no Q: it cannot stand beside results of swap pairs")


def _in_order(each: Sequence[Sequence[Column]]) -> list[Column]:
    """All columns of all rows; one that an earlier row lacks stands behind the one that it follows in its own."""
    order: list[Column] = []
    for columns in each:
        place = 0
        for column in columns:
            if column in order:
                place = order.index(column) + 1
            else:
                order.insert(place, column)
                place += 1
    return order


def unlike(results: Sequence[tuple[str, Result | OneModelResult]]) -> list[str]:
    """What is not the same in all of them and is to be known when their numbers are compared, one line each."""
    return [*differing({name: _game_of(result) for name, result in results}), *_methods_unlike(results)]


def _methods_unlike(results: Sequence[tuple[str, Result | OneModelResult]]) -> list[str]:
    """What differs between methods of one name: parameters, and the code of the user's own."""
    each: dict[str, dict[str, dict[str, str]]] = {}
    for name, result in results:
        methods = {} if isinstance(result, OneModelResult) else result.games[0].spec.get("methods", {})
        for method, how in methods.items():
            chosen = how.get("unlearner", {})
            settings = {f"{method}.{key}": setting(value) for key, value in chosen.get("params", {}).items()}
            each.setdefault(method, {})[name] = settings | {f"code of {method}": chosen.get("code", "")[:8] or "ours"}
    return [line for its in each.values() for line in differing(its)]


def _game_of(result: Result | OneModelResult) -> dict[str, str]:
    """What numbers depend on beside the method and the game."""
    if isinstance(result, OneModelResult):
        drawn = f"{result.n_forget} {result.kind}"
        choices: dict[str, Any] = {"draw": f"{result.commitment[:12]}…, seed {result.seed}", "drawn": drawn}
        return choices | {"level": setting(result.level), "delta": setting(result.delta)}
    first, environment = result.games[0].spec, result.environment
    params = first.get("learner", {}).get("params", {})
    picked: dict[str, Any] = {
        "model": params.get("model"),
        **{f"learner.{key}": value for key, value in params.items() if key != "model"},
        "number of shadow models": first.get("n_shadows"),
        "number of reference models": first.get("n_references"),
        "price": (first.get("price") or {}).get("price"),
        "forgetgauge": environment.get("forgetgauge"),
    }
    return {key: setting(value) for key, value in picked.items() if value not in (None, "", "none")}


# -- games of swap pairs -----------------------------------------------------------------------------------------------


def _methods(result: Result) -> list[dict[Column, Cell]]:
    """Highest Q first, game by game."""
    rows = []
    for game in result.games:
        swept = sweep_cell(result, game)
        rows += [{**swept, **_method(game, name, method)} for name, method in by_quality(game.methods)]
    return rows


def rows_of_adversaries(result: Result, of: Callable[[AdversaryResult], Iterable[dict[Column, Cell]]]) -> Rows:
    """The rows `of` each adversary, under the method that it attacked."""
    return of_mappings(
        [
            {
                **sweep_cell(result, game),
                Column("method", "method"): name,
                Column("adversary", "adversary"): adversary,
                **row,
            }
            for game in result.games
            for name, method in by_quality(game.methods)
            for adversary, found in method.by_adversary.items()
            for row in of(found)
        ]
    )


DIAGNOSTICS = tuple(field.name for field in fields(DiagnosticResult))


def adversary_rows(result: Result) -> Rows:
    """A row for each method and adversary: what it achieved, alone."""

    def of(found: AdversaryResult) -> Iterable[dict[Column, Cell]]:
        yield {
            Column("advantage", "advantage", signed): found.advantage,
            Column("advantage_interval", "interval", is_interval=True): found.interval,
            **{Column(key, key): getattr(found.diagnostics, key, None) for key in DIAGNOSTICS},
        }

    return rows_of_adversaries(result, of)


def pair_rows(result: Result) -> Rows:
    """A row for each method, adversary and swap pair, counted from 0: its signed advantage there."""

    def of(found: AdversaryResult) -> Iterable[dict[Column, Cell]]:
        for pair, advantage in enumerate(found.by_pair):
            yield {Column("pair", "pair"): pair, Column("advantage", "advantage", signed): advantage}

    return rows_of_adversaries(result, of)


def sweep_cell(result: Result, game: GameResult) -> dict[Column, Cell]:
    """The value of a sweep that a row belongs to."""
    if result.sweep is None:
        return {}
    return {Column(result.sweep, result.sweep, setting, is_sweep=True): _swept(game.value)}


def _swept(value: Any) -> Cell:
    return value if isinstance(value, str | int | float) and not isinstance(value, bool) else setting(value)


def _method(game: GameResult, name: str, method: MethodResult) -> dict[Column, Cell]:
    worst = method.worst_pair
    short = "acc" if game.utility_name == "accuracy" else game.utility_name
    key = game.utility_name.replace(" ", "_")
    cells: dict[Column, Cell] = {
        Column("method", "method"): name,
        Column("role"): role_of(game, name),
        **_strength(game, name),
        Column("verdict", "verdict"): method.verdict or verdict_on(game, name),
        Column("q", "Q"): method.quality,
        Column("q_interval", "interval", is_interval=True): method.interval,
        Column("level"): game.spec.get("level"),
        Column("q_plugin"): method.quality_plugin,
        Column("pairs", "pairs"): method.n_pairs,
        Column("worst_pair_q", "worst pair"): None if worst is None else worst.quality,
        Column("epsilon", "ε ≥", bound): method.epsilon,
        Column("p", "p", p_value): method.p_value,
        Column("model_log10_p"): method.model_log10_p,
        Column("noise_floor"): method.noise_floor,
        Column("resolution"): method.resolution,
        Column("adversary", "adversary"): method.adversary,
    }
    for part in ACCURACIES:
        if part in method.utility:
            cells[Column(f"{key}_{part}", f"{short} {part}")] = method.utility[part]
    for part, figure in perplexities(method).items():
        cells[Column(f"perplexity_{part}", f"perplexity {part}")] = figure
    lost = loss_interval(game, name) if role_of(game, name) == "tested" else None
    cells[Column(f"{key}_loss_interval", is_interval=True)] = lost
    below = utility_below(game, name)
    cells |= {Column(f"{key}_below_{role}"): below.get(role) for role in ("retrain", "none")}
    cells[Column("gradients_per_model")] = method.n_gradients
    cells[Column("seconds_per_model", "s/model", _hundredths)] = method.seconds
    return cells


def _strength(game: GameResult, name: str) -> dict[Column, Cell]:
    """Of a method whose strength was chosen, or that is a point of the frontier."""
    found = strength_of(game, name)
    if found is None:
        return {}
    parameter, value, price = found
    return {
        Column("strength", "strength"): f"{parameter} = {value:g}",
        Column("strength_parameter"): parameter,
        Column("strength_value"): value,
        Column("price"): price,
    }


def _hundredths(value: float) -> str:
    return f"{value:.2f}"


# -- evidence from one model -------------------------------------------------------------------------------------------


def _evidence(found: OneModelResult) -> list[dict[Column, Cell]]:
    """A row for each test of each model, the one least like chance first."""
    rows = []
    for name, model in found.models.items():
        about = _model(found, name, model)
        tests = sorted(model.tests.items(), key=lambda one: one[1].log10_p)
        rows += [
            {
                **about,
                Column("test", "adversary"): key,
                Column("right", "right answers"): test.n_right,
                Column("asked", "of"): test.n_asked,
                Column("advantage", "advantage", signed): test.advantage,
                Column("log10_p", "p", chance): test.log10_p,
            }
            for key, test in tests
        ] or [about]
    return rows


def _model(found: OneModelResult, name: str, model: ModelResult) -> dict[Column, Cell]:
    return {
        Column("model", "model"): name,
        Column("verdict", "verdict"): model.verdict,
        Column("log10_p_of_best", "p of the best", chance): model.log10_p,
        Column("epsilon", "ε ≥", bound): model.epsilon,
        Column("point_epsilon", "ε ≥ of each point", bound): model.point_epsilon,
        Column("resolution"): model.resolution,
        Column("level"): found.level,
        Column("delta"): found.delta,
        Column("forgotten"): found.n_forget,
        Column("drawn"): found.kind,
    }
