"""The paper's table beside ours: inside its ± or not, the same ranking or not, Retrain at its ideal or not.

The paper's estimator everywhere: for Q the plug-in 1 − max |advantage|, chosen and scored on the same pairs and so
biased low, which is what its numbers are. Our own unbiased Q stands in result.json.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from forgetgauge.game.comparison import kendall_tau
from forgetgauge.metrics.scores import over_pairs
from forgetgauge.plan.graph import Graph
from forgetgauge.report.table import align
from forgetgauge.results.record import GameResult, MetricResult, Result
from forgetgauge.results.utility import lost_accuracy, unseen_accuracy, unseen_part
from forgetgauge.results.views import RunView
from forgetgauge.store.runfolder import RunFolder
from forgetgauge.suites.paper import PRINTED, Value, paper_table, table_name
from forgetgauge.suites.rankings import Couples, every_two
from forgetgauge.suites.records import CompareCell, Invocation, Ours, TableComparison, made_by
from forgetgauge.suites.tables import Layout, Suite, TableColumn
from forgetgauge.wording import bracket, counted, plain, seconds, signed, signed_bracket, tau_text

IC_ACCURACY = "ic_accuracy"


def with_confused_accuracy(result: Result, graphs: Sequence[Graph], folder: RunFolder) -> Result:
    """With `ic_accuracy` among the metrics of None, whose models are the originals, where there was an IC test."""
    run = RunView(folder)
    games = [_with_ic_accuracy(game, graph, run) for game, graph in zip(result.games, graphs, strict=True)]
    return replace(result, games=games)


def _with_ic_accuracy(game: GameResult, graph: Graph, run: RunView) -> GameResult:
    by_pair: dict[int, list[float]] = {}
    for (method, pair, _), key in graph.confused.items():
        if method == "none" and run.has(key):
            accuracy = run.facts(key)["utility"]
            if (part := unseen_part(accuracy)) is not None:
                by_pair.setdefault(pair, []).append(accuracy[part])
    if not by_pair:
        return game
    means = [float(np.mean(values)) for values in by_pair.values()]
    found = over_pairs(means, graph.game.level, least=0, most=1)
    none = game.methods["none"]
    measured = replace(none, metrics={**none.metrics, IC_ACCURACY: MetricResult(found.value, found.interval, means)})
    return replace(game, methods={**game.methods, "none": measured})


QUANTITIES: dict[Layout, str] = {
    "quality": "Q, the paper’s estimator",
    "advantage": "advantage, 1 − Q",
    "accuracy": "test accuracy of the original models",
    "confused accuracy": "test accuracy of the models of the IC test",
    "ic": "IC score",
    "mia": "MIA score, 1 − AUC",
}

IDEALS: dict[Layout, float] = {"quality": 1.0, "advantage": 0.0, "mia": 0.5}
"""What Retrain's interval should hold."""


def column_values(layout: Layout, column: TableColumn, game: GameResult) -> dict[str, Ours]:
    """Our values of one column, by row."""
    return _READERS[layout](column, game)


def _quality(column: TableColumn, game: GameResult) -> dict[str, Ours]:
    return {
        name: Ours(method.quality_plugin, method.interval)
        for name, method in game.methods.items()
        if method.quality_plugin is not None
    }


def _advantage(column: TableColumn, game: GameResult) -> dict[str, Ours]:
    found = _quality(column, game).get(column.method)
    if found is None:
        return {}
    ends = None if found.interval is None else (1 - found.interval[1], 1 - found.interval[0])
    return {"advantage": Ours(1 - found.value, ends)}


def _accuracy(column: TableColumn, game: GameResult) -> dict[str, Ours]:
    """Of None, whose models are the originals; T where the data have no official test set."""
    none = game.methods["none"]
    found = unseen_accuracy(none)
    if found is None:
        return {}
    by_pair = none.utility_by_pair.get(found[0])
    interval = over_pairs(by_pair, game.spec["level"], least=0, most=1).interval if by_pair else None
    return {"accuracy": Ours(found[1], interval)}


def _metric(name: str) -> Callable[[TableColumn, GameResult], dict[str, Ours]]:
    def read(column: TableColumn, game: GameResult) -> dict[str, Ours]:
        found = {method: result.metrics.get(name) for method, result in game.methods.items()}
        return {method: Ours(one.value, one.interval) for method, one in found.items() if one is not None}

    return read


def _confused_accuracy(column: TableColumn, game: GameResult) -> dict[str, Ours]:
    found = game.methods["none"].metrics.get(IC_ACCURACY)
    return {} if found is None else {"accuracy": Ours(found.value, found.interval)}


_READERS: dict[Layout, Callable[[TableColumn, GameResult], dict[str, Ours]]] = {
    "quality": _quality,
    "advantage": _advantage,
    "accuracy": _accuracy,
    "confused accuracy": _confused_accuracy,
    "ic": _metric("ic"),
    "mia": _metric("mia"),
}


Values = Mapping[str, float]


def compare_suite(
    suite: Suite,
    shown: Sequence[TableColumn],
    result: Result | None,
    not_run: Mapping[str, str],
    invocations: Sequence[Invocation],
) -> TableComparison:
    """`shown` are the columns whose games the result has, in its order; None where there is no result at all."""
    paper, labels = paper_table(suite.name), [column.label for column in suite.columns]
    games = {} if result is None else {c.label: (c, game) for c, game in zip(shown, result.games, strict=True)}
    ours = {label: column_values(suite.layout, *of) for label, of in games.items()}
    points = {label: {row: found.value for row, found in ours.get(label, {}).items()} for label in labels}
    printed = {label: {row: cells[label].mean for row, cells in paper.rows.items()} for label in labels}
    of_quality = {label: game for label, (_, game) in games.items() if suite.layout == "quality"}
    further = dict.fromkeys(row for column in ours.values() for row in column if row not in paper.rows)
    return TableComparison(
        name=suite.name,
        title=suite.title,
        scale=suite.scale,
        variable=suite.variable,
        quantity=QUANTITIES[suite.layout],
        columns=labels,
        rows={
            row: {label: cell(paper.rows.get(row, {}).get(label), ours.get(label, {}).get(row)) for label in labels}
            for row in (*paper.rows, *further)
        },
        tau={label: _tau(printed[label], points[label]) for label in labels},
        tau_between_columns=mean_tau_of_columns([points[label] for label in ours]),
        tau_between_columns_paper=mean_tau_of_columns(list(printed.values())),
        grounding={label: _grounded(suite, label, ours.get(label, {})) for label in labels},
        not_run=dict(not_run),
        notes=[*suite.notes, *dict.fromkeys(column.note for column in shown if column.note)],
        basis=list(dict.fromkeys(game.interval_basis for _, game in games.values() if game.interval_basis)),
        invocations=list(invocations),
        work_s=0.0 if result is None else result.total_seconds,
        environment={} if result is None else dict(result.environment),
        digests={} if result is None else dict(result.digests),
        failures=[] if result is None else [f"{failure.job}: {failure.error}" for failure in result.failures],
        over_none={label: over_none(game) for label, game in of_quality.items()},
        lost_accuracy={label: lost_accuracy(game) for label, game in of_quality.items()},
        tau_without_retrain={
            label: _tau({row: mean for row, mean in printed[label].items() if row != "retrain"}, points[label])
            for label in labels
            if "retrain" in paper.rows
        },
    )


def over_none(game: GameResult) -> dict[str, Ours]:
    """Method -> Q less None's: does it do more than nothing? Retrain apart, of which nobody asks that."""
    found = {}
    for pair in game.comparisons:
        if "none" in (pair.first, pair.second) and "retrain" not in (pair.first, pair.second):
            sign, method = (1, pair.first) if pair.second == "none" else (-1, pair.second)
            low, high = sorted(sign * end for end in pair.interval)
            found[method] = Ours(sign * pair.difference, (low, high))
    return found


def cell(paper: Value | None, ours: Ours | None) -> CompareCell:
    """Two numbers side by side; agreement only where the paper gives a ±."""
    inside = overlaps = None
    if paper is not None and paper.spread is not None and ours is not None:
        low, high = paper.mean - paper.spread - _ROUNDING, paper.mean + paper.spread + _ROUNDING
        inside = low <= ours.value <= high
        if ours.interval is not None:
            overlaps = ours.interval[0] <= high and low <= ours.interval[1]
    return CompareCell(
        None if paper is None else paper.mean, None if paper is None else paper.spread, ours, inside, overlaps
    )


_ROUNDING = 0.0005
"""The paper prints three digits."""


def mean_tau_of_columns(columns: Sequence[Values], couples: Couples | None = None) -> float | None:
    """Kendall's τ_b of couples of columns, every two without, each over the rows both have, averaged."""
    couples = every_two(len(columns)) if couples is None else couples
    found = [tau for one, other in couples if (tau := _tau(columns[one], columns[other])) is not None]
    return float(np.mean(found)) if found else None


def _tau(one: Values, other: Values) -> float | None:
    """None below three common rows, where a ranking says nothing, and where one ties them all."""
    rows = [row for row in one if row in other]
    if len(rows) < 3:
        return None
    tau = kendall_tau(np.array([one[row] for row in rows]), np.array([other[row] for row in rows]))
    return None if math.isnan(tau) else tau


def _grounded(suite: Suite, label: str, column: Mapping[str, Ours]) -> bool | None:
    """Retrain cannot know what was forgotten: its interval should hold the ideal."""
    found = column.get("retrain")
    if suite.layout == "advantage":  # methods stand across
        found = column.get("advantage") if label == "Retrain" else None
    ideal = IDEALS.get(suite.layout)
    if ideal is None or found is None or found.interval is None:
        return None
    return found.interval[0] <= ideal <= found.interval[1]


AGREEMENT = {True: "inside", False: "outside", None: ""}


def text_table(found: TableComparison) -> str:
    """The table, then what must be known of it."""
    heading = f"{table_name(found.name)}, {found.scale} scale: {found.title}. {_capital(found.quantity)}."
    return "\n".join([heading, "", align(_text_grid(found)), "", *remarks(found)])


def remarks(found: TableComparison) -> list[str]:
    """Agreement, rankings, Retrain, time, provenance: one line each."""
    cells = [cell for row in found.rows.values() for cell in row.values() if cell.inside is not None]
    met = [cell for cell in cells if cell.overlaps is not None]
    lines = list(found.notes)
    if cells:
        meeting = f"; intervals that meet it: {sum(bool(cell.overlaps) for cell in met)} of {len(met)}" if met else ""
        lines.append(
            f"Inside the paper’s ±: {sum(bool(cell.inside) for cell in cells)} of {len(cells)} cells{meeting}."
        )
    taus = [_tau_at(found, column) for column, tau in found.tau.items() if tau is not None]
    if taus:
        lines.append(f"Kendall τ of our ranking against the paper’s: {'; '.join(taus)}.")
    if found.tau_between_columns is not None or found.tau_between_columns_paper is not None:
        lines.append(
            f"Kendall τ between columns, mean: ours {tau_text(found.tau_between_columns)}, "
            f"the paper’s {tau_text(found.tau_between_columns_paper)}."
        )
    grounded = {column: yes for column, yes in found.grounding.items() if yes is not None}
    if grounded:
        astray = [column for column, yes in grounded.items() if not yes]
        where = f" but at {found.variable} = {', '.join(astray)}" if astray else ""
        lines.append(f"Retrain’s interval contains its ideal value in every column{where}.")
    for column, methods in found.over_none.items():
        each = ", ".join(f"{PRINTED.get(name, name)} {_difference(ours)}" for name, ours in methods.items())
        lines.append(f"Q less that of None, pair by pair, at {found.variable} = {column}: {each}.")
    damaged = [
        f"{PRINTED.get(name, name)} by {100 * loss:.1f} at {found.variable} = {column}"
        for column, methods in found.lost_accuracy.items()
        for name, loss in methods.items()
    ]
    if damaged:
        lines.append(
            f"Less accurate than Retrain and None by over a point, so that Q is in part damage: {', '.join(damaged)}."
        )
    lines += [f"Not run: {column}: {why}." for column, why in found.not_run.items()]
    lines += [f"Failed: {failure}." for failure in found.failures]
    if found.basis and any(c.ours and c.ours.interval for row in found.rows.values() for c in row.values()):
        lines.append(f"Intervals: {', '.join(found.basis)}.")
    made = f"work {seconds(found.work_s)}, {'; '.join(made_by(found.invocations))}".removesuffix(", ")
    return [*lines, f"Time: {seconds(found.wall_s)} in {counted(len(found.invocations), 'invocation')}; {made}."]


def _tau_at(found: TableComparison, column: str) -> str:
    """`0.49 with Retrain, 0.28 without, at η = 1.0`."""
    where, tau = f"at {found.variable} = {column}", tau_text(found.tau[column])
    without = found.tau_without_retrain.get(column)
    return f"{tau} {where}" if without is None else f"{tau} with Retrain, {tau_text(without)} without, {where}"


def _text_grid(found: TableComparison) -> list[list[str]]:
    head = ["method"]
    for column in found.columns:
        head += [f"{found.variable} = {column}: paper", "ours", "agrees"]
    rows = []
    for name, cells in found.rows.items():
        row = [PRINTED.get(name, name)]
        for column in found.columns:
            row += [paper_text(cells[column]), ours_text(cells[column]), AGREEMENT[cells[column].inside]]
        rows.append(row)
    return [head, *rows]


def paper_text(cell: CompareCell) -> str:
    """The paper's number: `0.340 ± 0.017`."""
    if cell.paper is None:
        return "–"
    return plain(cell.paper) + ("" if cell.spread is None else f" ± {plain(cell.spread)}")


def ours_text(cell: CompareCell) -> str:
    """Our number: `0.351 [0.332, 0.370]`."""
    if cell.ours is None:
        return "not run"
    return plain(cell.ours.value) + ("" if cell.ours.interval is None else f" {bracket(cell.ours.interval)}")


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _difference(ours: Ours) -> str:
    """A difference with its sign: `+0.031 [−0.012, +0.050]`."""
    return signed(ours.value) + ("" if ours.interval is None else f" {signed_bracket(ours.interval)}")
