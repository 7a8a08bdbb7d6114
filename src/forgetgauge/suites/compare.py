"""The paper's table beside ours: inside its ± or not, the same ranking or not, Retrain at its ideal or not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from forgetgauge.game.comparison import kendall_tau
from forgetgauge.results.record import GameResult, Result
from forgetgauge.results.utility import lost_accuracy
from forgetgauge.suites.cells import IDEALS, QUANTITIES, column_values
from forgetgauge.suites.paper import PaperTable, Value, paper_table
from forgetgauge.suites.record import CompareCell, Ours, Sitting, TableComparison
from forgetgauge.suites.suites import Column, Suite

Values = Mapping[str, float]


def compare_suite(
    suite: Suite,
    played: Sequence[Column],
    result: Result | None,
    not_run: Mapping[str, str],
    sittings: Sequence[Sitting],
) -> TableComparison:
    """`played` are the columns whose games the result has, in its order; None where there is no result at all."""
    paper = paper_table(suite.name)
    games: Sequence[GameResult] = () if result is None else result.games
    ours = {column.label: column_values(suite.layout, column, game) for column, game in zip(played, games, strict=True)}
    further = dict.fromkeys(row for column in ours.values() for row in column if row not in paper.rows)
    labels = [column.label for column in suite.columns]
    return TableComparison(
        name=suite.name,
        title=suite.title,
        scale=suite.scale,
        variable=suite.variable,
        quantity=QUANTITIES[suite.layout],
        columns=labels,
        rows={
            row: {label: cell(_printed(paper, row, label), ours.get(label, {}).get(row)) for label in labels}
            for row in (*paper.rows, *further)
        },
        tau={label: _tau(_means(paper, label), _points(ours.get(label, {}))) for label in labels},
        tau_between_columns=mean_tau([_points(column) for column in ours.values()]),
        tau_between_columns_paper=mean_tau([_means(paper, label) for label in paper.columns]),
        grounding={label: _grounded(suite, label, ours.get(label, {})) for label in labels},
        not_run=dict(not_run),
        notes=[*suite.notes, *dict.fromkeys(column.note for column in played if column.note)],
        basis=list(dict.fromkeys(game.interval_basis for game in games if game.interval_basis)),
        sittings=list(sittings),
        work_s=0.0 if result is None else result.total_seconds,
        environment={} if result is None else dict(result.environment),
        digests={} if result is None else dict(result.digests),
        failures=[] if result is None else [f"{failure.job}: {failure.error}" for failure in result.failures],
        over_none={column.label: over_none(game) for column, game in zip(played, games, strict=True)}
        if suite.layout == "quality"
        else {},
        lost_accuracy={column.label: lost_accuracy(game) for column, game in zip(played, games, strict=True)}
        if suite.layout == "quality"
        else {},
        tau_without_retrain={
            label: _tau(_means(paper, label), _less_retrain(_points(ours.get(label, {}))))
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


def mean_tau(columns: Sequence[Values]) -> float | None:
    """Kendall's τ_b of every two columns, each over the rows both have, averaged."""
    found = [tau for one, other in combinations(columns, 2) if (tau := _tau(one, other)) is not None]
    return float(np.mean(found)) if found else None


def _less_retrain(column: Values) -> Values:
    return {row: value for row, value in column.items() if row != "retrain"}


def _tau(one: Values, other: Values) -> float | None:
    """None below three common rows, where a ranking says nothing, and where one ties them all."""
    rows = [row for row in one if row in other]
    if len(rows) < 3:
        return None
    tau = kendall_tau(np.array([one[row] for row in rows]), np.array([other[row] for row in rows]))
    return None if math.isnan(tau) else tau


def _grounded(suite: Suite, label: str, column: Mapping[str, Ours]) -> bool | None:
    """Retrain cannot know what was forgotten: its interval should hold the ideal."""
    found = column.get("retrain") if suite.layout != "advantage" else column.get("advantage")
    if suite.layout == "advantage" and label != "Retrain":
        return None
    ideal = IDEALS.get(suite.layout)
    if ideal is None or found is None or found.interval is None:
        return None
    return found.interval[0] <= ideal <= found.interval[1]


def _printed(paper: PaperTable, row: str, label: str) -> Value | None:
    return paper.rows.get(row, {}).get(label)


def _means(paper: PaperTable, label: str) -> dict[str, float]:
    return {row: cells[label].mean for row, cells in paper.rows.items() if label in cells}


def _points(column: Mapping[str, Ours]) -> dict[str, float]:
    return {row: found.value for row, found in column.items()}
