"""A comparison as text for a terminal, and the lines under it."""

from __future__ import annotations

from forgetgauge.report.table import align
from forgetgauge.suites.paper import PRINTED, table_name
from forgetgauge.suites.record import CompareCell, Ours, TableComparison
from forgetgauge.wording import bracket, plain, seconds, signed, signed_bracket

AGREEMENT = {True: "inside", False: "outside", None: ""}


def text_table(found: TableComparison) -> str:
    """The table, then what must be known of it."""
    heading = f"{table_name(found.name)}, {found.scale} scale: {found.title}. {_capital(found.quantity)}."
    return "\n".join([heading, "", align(_grid(found)), "", *remarks(found)])


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
        where = f"not at {found.variable} = {', '.join(astray)}" if astray else "in every column"
        lines.append(f"Retrain’s interval holds its ideal {where}.")
    for column, methods in found.over_none.items():
        told = ", ".join(f"{PRINTED.get(name, name)} {_difference(ours)}" for name, ours in methods.items())
        lines.append(f"Q less that of None, pair by pair, at {found.variable} = {column}: {told}.")
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
    lines.append(f"Time: {seconds(found.wall_s)} in {_sittings(found)}; work {seconds(found.work_s)}, {_where(found)}.")
    return lines


def _tau_at(found: TableComparison, column: str) -> str:
    """`0.49 with Retrain, 0.28 without, at η = 1.0`."""
    where, tau = f"at {found.variable} = {column}", tau_text(found.tau[column])
    without = found.tau_without_retrain.get(column)
    return f"{tau} {where}" if without is None else f"{tau} with Retrain, {tau_text(without)} without, {where}"


def _grid(found: TableComparison) -> list[list[str]]:
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
    """`0.340 ± 0.017`."""
    if cell.paper is None:
        return "–"
    return plain(cell.paper) + ("" if cell.spread is None else f" ± {plain(cell.spread)}")


def ours_text(cell: CompareCell) -> str:
    """`0.351 [0.332, 0.370]`."""
    if cell.ours is None:
        return "not run"
    return plain(cell.ours.value) + ("" if cell.ours.interval is None else f" {bracket(cell.ours.interval)}")


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _difference(ours: Ours) -> str:
    """`+0.031 [−0.012, +0.050]`."""
    return signed(ours.value) + ("" if ours.interval is None else f" {signed_bracket(ours.interval)}")


def tau_text(value: float | None) -> str:
    """Two digits, or a dash."""
    return "–" if value is None else f"{value:.2f}".replace("-", "−")


def _sittings(found: TableComparison) -> str:
    n = len(found.sittings)
    return f"{n} sitting{'s' * (n != 1)}"


def _where(found: TableComparison) -> str:
    devices = dict.fromkeys(sitting.device for sitting in found.sittings)
    commits = dict.fromkeys(sitting.commit for sitting in found.sittings)
    commands = dict.fromkeys(sitting.command for sitting in found.sittings if sitting.command)
    told = [f"on {' and '.join(devices)}", f"commit {', '.join(commits)}"]
    return "; ".join([*told, *(f"`{command}`" for command in commands)])
