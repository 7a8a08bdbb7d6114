"""The paper's table beside ours: inside its ± or not, the same ranking or not, Retrain at its ideal or not.

Like is compared with like: whether a number lies inside the paper's ±, and which ranking a column has, goes by our
numbers as the paper computes them (`readings`). Our own form, with its interval, stands beside; it is what claims are
judged by. Of both the adversary is chosen and scored on the same pairs; the Q that is not stands in result.json.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace

import numpy as np

from forgetgauge.errors import UserError, about_failure, unknown_name
from forgetgauge.game.comparison import kendall_tau
from forgetgauge.report.table import align, failed_alike
from forgetgauge.results.record import GameResult, Result
from forgetgauge.results.utility import accuracy_below, lost_accuracy, lost_retained
from forgetgauge.suites.paper import PRINTED, Value, in_column, paper_table, table_name
from forgetgauge.suites.rankings import Couples, every_two
from forgetgauge.suites.readings import IDEALS, QUANTITIES, Reading, column_readings
from forgetgauge.suites.records import CompareCell, Invocation, Ours, TableComparison, made_by
from forgetgauge.suites.strengths import METHOD_OF
from forgetgauge.suites.tables import OUTLINES, SCALE_NOTE, Suite, TableColumn, suite
from forgetgauge.wording import bracket, capital, counted, listed, plain, seconds, signed, signed_bracket, tau_text

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
    ours = {label: column_readings(suite.layout, *of, paper.spread) for label, of in games.items()}
    points = {
        label: {row: found.as_paper.value for row, found in ours.get(label, {}).items() if found.as_paper is not None}
        for label in labels
    }
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
            row: {
                label: cell(paper.rows.get(METHOD_OF.get(row, row), {}).get(label), ours.get(label, {}).get(row))
                for label in labels
            }
            for row in (*paper.rows, *further)
        },
        tau={label: _tau(printed[label], points[label]) for label in labels},
        tau_between_columns=mean_tau_of_columns([_only(points[label], paper.rows) for label in ours]),
        tau_between_columns_paper=mean_tau_of_columns([_only(printed[label], points[label]) for label in ours]),
        grounding={label: _grounded(suite, label, ours.get(label, {})) for label in labels},
        not_run=dict(not_run),
        notes=[*suite.notes, *dict.fromkeys(column.note for column in shown if column.note)],
        basis=list(dict.fromkeys(game.interval_basis for _, game in games.values() if game.interval_basis)),
        invocations=list(invocations),
        work_s=0.0 if result is None else result.total_seconds,
        environment={} if result is None else dict(result.environment),
        digests={} if result is None else dict(result.digests),
        failures=[] if result is None else [f"{failure.job}: {failure.error}" for failure in result.failures],
        replicates=suite.replicates,
        published=suite.published,
        over_none={label: over_none(game) for label, game in of_quality.items()},
        lost_accuracy={label: lost_accuracy(game) for label, game in of_quality.items()},
        lost_retained={label: lost for label, game in of_quality.items() if (lost := lost_retained(game))},
        accuracy_below={label: accuracy_below(game) for label, game in of_quality.items()},
        beyond_price={label: beyond for label, game in of_quality.items() if (beyond := beyond_price(game))},
        tau_without_retrain={
            label: _tau({row: mean for row, mean in printed[label].items() if row != "retrain"}, points[label])
            for label in labels
            if "retrain" in paper.rows
        },
    )


def judged_cells(
    found: TableComparison, *, published: bool = False, without: Container[str] = ()
) -> list[tuple[str, CompareCell]]:
    """Rows and cells of columns that were run of which it is known whether they lie inside the paper's ±: of the
    table's own rows, or of those with published settings, which stand beside the same numbers of the paper and are
    counted apart; some columns may be left out."""
    rows = [(row, cells) for row, cells in found.rows.items() if (row in METHOD_OF) is published]
    return [
        (row, cell)
        for row, cells in rows
        for label, cell in cells.items()
        if cell.inside is not None and label not in found.not_run and label not in without
    ]


def _only(column: Values, rows: Container[str]) -> Values:
    """What of a column the other side has too."""
    return {row: value for row, value in column.items() if row in rows}


def compared_again(found: TableComparison, result: Result) -> TableComparison:
    """A stored table by the rules of today, from the result beside it; what only the record knows stays as it is."""
    made = suite(found.name, found.scale, found.replicates, published=found.published)
    columns = {column.label: column for column in made.columns}
    for game in result.games:
        if str(game.value) not in columns:
            raise UserError(f"{found.name}: {unknown_name('column', str(game.value), columns)}")
    shown = [columns[str(game.value)] for game in result.games]
    again = compare_suite(made, shown, result, found.not_run, found.invocations)
    return replace(again, title=found.title, notes=_notes_again(found, made))


def _notes_again(found: TableComparison, made: Suite) -> list[str]:
    """The notes of the record, but for what the suite itself says of its scale: that is in the words of today."""
    head = SCALE_NOTE.format(found.scale.capitalize())
    today = next((note for note in made.notes if note.startswith(head)), "")
    return [today if note.startswith(head) and today else note for note in found.notes]


def over_none(game: GameResult) -> dict[str, Ours]:
    """Method -> Q less None's: does it do more than nothing? Retrain apart, of which nobody asks that."""
    found = {}
    for pair in game.comparisons:
        if "none" in (pair.first, pair.second) and "retrain" not in (pair.first, pair.second):
            sign, method = (1, pair.first) if pair.second == "none" else (-1, pair.second)
            low, high = sorted(sign * end for end in pair.interval)
            found[method] = Ours(sign * pair.difference, (low, high))
    return found


def damage_to(game: GameResult) -> dict[str, float]:
    """Method -> the accuracy that it lost beside Retrain and None, on points nobody learnt or on those that stay, where
    that is too much to be chance."""
    return lost_retained(game) | lost_accuracy(game)


def beyond_price(game: GameResult) -> list[str]:
    """Methods of which no strength was shown to keep the price, so that the weakest was played."""
    return [name for name, one in game.methods.items() if one.tuning is not None and not one.tuning.holds]


def cell(paper: Value | None, found: Reading | None) -> CompareCell:
    """The paper's number beside ours; agreement only where the paper gives a ±."""
    ours, as_paper = (None, None) if found is None else (found.ours, found.as_paper)
    inside = overlaps = None
    if paper is not None and paper.spread is not None:
        low, high = paper.mean - paper.spread - ROUNDING, paper.mean + paper.spread + ROUNDING
        if as_paper is not None:
            inside = low <= as_paper.value <= high
        if ours is not None and ours.interval is not None:
            overlaps = ours.interval[0] <= high and low <= ours.interval[1]
    mean, spread = (None, None) if paper is None else (paper.mean, paper.spread)
    return CompareCell(mean, spread, ours, inside, overlaps, as_paper)


ROUNDING = 0.0005
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


def _grounded(suite: Suite, label: str, column: Mapping[str, Reading]) -> bool | None:
    """Retrain cannot know what was forgotten: its interval should hold the ideal."""
    found = column.get("retrain")
    if suite.layout in ("advantage", "certified"):  # methods stand across
        found = column.get("advantage") if label == "Retrain" else None
    ideal = IDEALS.get(suite.layout)
    if ideal is None or found is None or found.ours.interval is None:
        return None
    return found.ours.interval[0] <= ideal <= found.ours.interval[1]


AGREEMENT = {True: "inside", False: "outside", None: ""}


def text_table(found: TableComparison) -> str:
    """The table, then what must be known of it."""
    heading = f"{table_name(found.name)}, {found.scale} scale: {found.title}. {capital(found.quantity)}."
    return "\n".join([heading, "", align(_text_grid(found)), "", *remarks(found)])


def remarks(found: TableComparison) -> list[str]:
    """Agreement, rankings, Retrain, time, provenance: one line each."""
    cells = [cell for _, cell in judged_cells(found)]
    met = [cell for cell in cells if cell.overlaps is not None]
    lines = [*found.notes, *_adjacency(found)]
    if cells:
        meeting = f"; intervals that meet it: {sum(bool(cell.overlaps) for cell in met)} of {len(met)}" if met else ""
        lines.append(
            f"Inside the paper’s ±: {sum(bool(cell.inside) for cell in cells)} of {len(cells)} cells{meeting}."
        )
    if published := judged_cells(found, published=True):
        n_inside = sum(bool(cell.inside) for _, cell in published)
        lines.append(f"With published settings, not counted there: {n_inside} of {counted(len(published), 'cell')}.")
    taus = [_tau_at(found, column) for column, tau in found.tau.items() if tau is not None]
    if taus:
        lines.append(f"Kendall τ of our ranking against the paper’s: {'; '.join(taus)}.")
    if found.tau_between_columns is not None or found.tau_between_columns_paper is not None:
        lines.append(
            "Kendall τ between the columns that we ran, over the rows that both have, mean: ours "
            f"{tau_text(found.tau_between_columns)}, the paper’s {tau_text(found.tau_between_columns_paper)}."
        )
    grounded = {column: yes for column, yes in found.grounding.items() if yes is not None}
    if grounded:
        astray = [column for column, yes in grounded.items() if not yes]
        where = f" but at {in_column(found.variable, ', '.join(astray))}" if astray else ""
        lines.append(f"Retrain’s interval contains its ideal value in every column{where}.")
    for column, methods in found.over_none.items():
        each = ", ".join(f"{PRINTED.get(name, name)} {difference_text(ours)}" for name, ours in methods.items())
        lines.append(f"Q minus None’s Q, pair by pair, at {in_column(found.variable, column)}: {each}.")
    for column, names in found.beyond_price.items():
        where, weakest = in_column(found.variable, column), listed([PRINTED.get(name, name) for name in names])
        lines.append(
            f"At {where} no strength of {weakest} was shown to keep the price: what stands there is the weakest."
        )
    lines += _costs(found)
    damaged = [
        f"{PRINTED.get(name, name)} by {100 * loss:.1f} at {in_column(found.variable, column)}"
        for column, methods in found.lost_accuracy.items()
        for name, loss in methods.items()
    ]
    if damaged:
        lines.append(
            "Less accurate than Retrain and None in the models that were played, by a point or more and beyond what "
            f"the test points leave to chance, so that Q is in part damage: {', '.join(damaged)}."
        )
    ruined = [
        f"{PRINTED.get(name, name)} by {100 * loss:.1f} points at {in_column(found.variable, column)}"
        for column, methods in found.lost_retained.items()
        for name, loss in methods.items()
    ]
    if ruined:
        lines.append(f"Less accurate than Retrain and None on the points that stay, so too: {', '.join(ruined)}.")
    lines += [f"Not run: {column}: {why}." for column, why in found.not_run.items()]
    lines += _failed(found.failures)
    if found.basis and any(c.ours and c.ours.interval for row in found.rows.values() for c in row.values()):
        lines.append(f"Intervals: {', '.join(found.basis)}.")
    made = f"work {seconds(found.work_s)}, {'; '.join(made_by(found.invocations))}".removesuffix(", ")
    return [*lines, f"Time: {seconds(found.wall_s)} in {counted(len(found.invocations), 'invocation')}; {made}."]


def _costs(found: TableComparison) -> list[str]:
    """What each method costs, published settings included: a line for each column."""
    lines = []
    for column, methods in found.accuracy_below.items():
        each = [f"{PRINTED.get(row, row)} {100 * methods[row]:.1f}" for row in found.rows if row in methods]
        if each:
            lines.append(
                "Points of accuracy below the less accurate of Retrain and None, at "
                f"{in_column(found.variable, column)}: {', '.join(each)}.".replace("-0.0", "0.0").replace(" -", " −")
            )
    return lines


def _adjacency(found: TableComparison) -> list[str]:
    """For whom the ε of training holds, where models are trained by DP-SGD."""
    columns = suite(found.name, found.scale, found.replicates).columns if found.name in OUTLINES else ()
    is_private = any(column.raw["learner"].get("name") == "dp-sgd" for column in columns)
    return [f"The ε of training {ADJACENCY}"] if is_private else []


ADJACENCY = (
    "holds where the number of points n is public and neighbouring data sets have the same: one point of one of them "
    "gives no gradient (zero-out neighbours; docs/decisions/0026). It does not hold for one point added or removed."
)


def _failed(failures: Sequence[str]) -> list[str]:
    """A line for each kind of failure: `signals of neg-grad, pair 3 side 0: NaN` and 21 others like it are one."""
    parts = [failure.partition(": ") for failure in failures]
    errors = [(job, about_failure(error).removesuffix(".")) for job, _, error in parts]
    return [
        f"Failed: {jobs[0]}: {error}." if len(jobs) == 1 else f"Failed: {counted(len(jobs), 'job')} of {what}: {error}."
        for what, error, jobs in failed_alike(errors)
    ]


def _tau_at(found: TableComparison, column: str) -> str:
    """`0.49 with Retrain, 0.28 without, at η = 1.0`."""
    where, tau = f"at {in_column(found.variable, column)}", tau_text(found.tau[column])
    without = found.tau_without_retrain.get(column)
    return f"{tau} {where}" if without is None else f"{tau} with Retrain, {tau_text(without)} without, {where}"


def _text_grid(found: TableComparison) -> list[list[str]]:
    head = ["method"]
    for column in found.columns:
        head += [f"{in_column(found.variable, column)}: paper", "ours, as the paper computes it", "agrees", "ours"]
    rows = []
    for name, cells in found.rows.items():
        row = [PRINTED.get(name, name)]
        for column in found.columns:
            cell = cells[column]
            row += [paper_text(cell), as_paper_text(cell), AGREEMENT[cell.inside], ours_text(cell)]
        rows.append(row)
    return [head, *rows]


def paper_text(cell: CompareCell) -> str:
    """The paper's number: `0.340 ± 0.017`."""
    if cell.paper is None:
        return "–"
    return plain(cell.paper) + ("" if cell.spread is None else f" ± {plain(cell.spread)}")


def as_paper_text(cell: CompareCell) -> str:
    """Our number as the paper computes its own, with the ± that it prints: `0.349 ± 0.012`."""
    if cell.as_paper is None:
        return ours_text(cell) if cell.ours is None else "–" if cell.paper is None else "pairs not stored"
    if cell.as_paper.spread is None:
        return plain(cell.as_paper.value) + ("" if cell.spread is None else " ± not stored")
    return f"{plain(cell.as_paper.value)} ± {plain(cell.as_paper.spread)}"


def ours_text(cell: CompareCell) -> str:
    """Our number: `0.351 [0.332, 0.370]`."""
    if cell.ours is None:
        return "–" if cell.paper is None else "not run"
    return plain(cell.ours.value) + ("" if cell.ours.interval is None else f" {bracket(cell.ours.interval)}")


def difference_text(ours: Ours) -> str:
    """A difference with its sign: `+0.031 [−0.012, +0.050]`."""
    return signed(ours.value) + ("" if ours.interval is None else f" {signed_bracket(ours.interval)}")
