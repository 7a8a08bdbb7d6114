"""Claims on rankings: by Kendall's τ between columns, with its bootstrap interval."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from forgetgauge.suites.claim import APPROXIMATE, Claim, Verdict, counted, incomplete, named, source_of
from forgetgauge.suites.findings import Stored
from forgetgauge.suites.paper import paper_table, table_name
from forgetgauge.suites.rankings import Column, Couples, Tau, every_two, mean_tau
from forgetgauge.suites.record import TableComparison
from forgetgauge.suites.text import tau_text
from forgetgauge.wording import listed

SAME_ORDER = 0.5
"""τ from which a ranking counts as the same: three of four couples of methods in the same order."""

_SAME = (
    f"mean Kendall τ of {{}} is at least {SAME_ORDER}, six methods, Retrain and None left out (bootstrap over pairs)"
)


def ranking_claim(name: str, words: str, table: str, stored: Stored | None) -> Claim:
    """The columns of one table rank the methods alike."""
    told = (name, words, _SAME.format("every two columns"))
    if stored is None:
        return Claim(*told, "not run")
    columns = approximate_columns(stored)
    tau = mean_tau(list(columns.values()), every_two(len(columns)))
    return _by_tau(told, tau, stored.comparison, list(columns), _paper_tau(table, every_two))


def small_predicts_large(stored: Stored | None) -> Claim:
    """The smaller columns of Table 1 rank the methods as the whole data set does."""
    told = (
        "Small data predict the ranking on all of them",
        "small-scale evaluations can reliably approximate large-scale performance",
        _SAME.format("each smaller η with η = 1.0"),
    )
    if stored is None:
        return Claim(*told, "not run")
    columns = approximate_columns(stored)
    if columns and "1.0" not in columns:
        return Claim(*told, "not run", "η = 1.0 is missing", source_of(stored.comparison))
    tau = mean_tau(list(columns.values()), _with_last(len(columns)))
    return _by_tau(told, tau, stored.comparison, list(columns), _paper_tau("table1", _with_last))


def scales_claim(stored: Mapping[tuple[str, str], Stored]) -> Claim:
    """Our own short trainings rank the methods as the paper's long ones do."""
    told = (
        "Short trainings predict the ranking of long ones",
        "enabling model maintainers to conduct small-scale experiments",
        _SAME.format("small with paper scale, in each column that was run at both,"),
    )
    columns: list[Column] = []
    tables: list[str] = []
    for name in ("table1", "table2", "table3", "table6", "table7"):
        small, paper = (stored.get((name, scale)) for scale in ("small", "paper"))
        if small is None or paper is None:
            continue
        ours, theirs = approximate_columns(small), approximate_columns(paper)
        for label in [label for label in ours if label in theirs]:
            columns += [ours[label], theirs[label]]
            tables.append(f"{table_name(name)}, {small.comparison.variable} = {label}")
    if not columns:
        return Claim(*told, "not run")
    tau = mean_tau(columns, [(i, i + 1) for i in range(0, len(columns), 2)])
    return _judged_tau(told, tau, f"{'; '.join(tables)}: at both scales", [])


def judged(low: float, high: float, bar: float) -> Verdict:
    """Is something at least `bar`, by its interval?"""
    return "confirmed" if low >= bar else "not confirmed" if high < bar else "undecided"


def approximate_columns(stored: Stored) -> dict[str, Column]:
    """The approximate methods of every column that was run, in the order of the table."""
    columns = {label: stored.columns[label] for label in stored.comparison.columns if label in stored.columns}
    return {label: {m: found for m, found in c.items() if m in APPROXIMATE} for label, c in columns.items()}


def _with_last(n_columns: int) -> Couples:
    return [(i, n_columns - 1) for i in range(n_columns - 1)]


def _paper_tau(table: str, couples: Callable[[int], Couples]) -> float | None:
    """The same of the paper's numbers, which have no pairs."""
    printed = paper_table(table)
    columns: list[Column] = [
        {row: np.array([[1 - cells[label].mean]]) for row, cells in printed.rows.items() if row in APPROXIMATE}
        for label in printed.columns
    ]
    found = mean_tau(columns, couples(len(columns)))
    return None if found is None else found.value


def _by_tau(
    told: tuple[str, str, str], tau: Tau | None, table: TableComparison, labels: Sequence[str], paper: float | None
) -> Claim:
    source = f"{source_of(table)}, {table.variable} = {listed(labels)}"
    if len(labels) < 2:
        played = [label for label in table.columns if label not in table.not_run]
        if len(played) < 2:
            return Claim(*told, "not run", f"{counted(len(played), 'column')}: nothing to compare", source_of(table))
        return Claim(*told, "undecided", "no result.json with advantages by pair is stored", source_of(table))
    found = _judged_tau(told, tau, source, [f"{table.variable} = {c}" for c in table.columns if c not in labels])
    return Claim(*told, found.verdict, f"{found.figure}; the paper’s own numbers: {tau_text(paper)}", source)


def _judged_tau(told: tuple[str, str, str], tau: Tau | None, source: str, missing: Sequence[str]) -> Claim:
    """Undecided where columns are missing, or some method is in not all of them."""
    if tau is None:
        return Claim(*told, "undecided", f"fewer than three methods in common{incomplete(missing)}", source)
    unranked = [method for method in APPROXIMATE if method not in tau.methods]
    missing = [*missing, *([f"{named(unranked)} in some column"] if unranked else [])]
    if tau.interval is None:
        figure = f"τ = {tau_text(tau.value)}; too few pairs for an interval{incomplete(missing)}"
        return Claim(*told, "undecided", figure, source)
    ends = f"[{tau_text(tau.interval[0])}, {tau_text(tau.interval[1])}]"
    verdict = "undecided" if missing else judged(*tau.interval, SAME_ORDER)
    return Claim(*told, verdict, f"τ = {tau_text(tau.value)} {ends}{incomplete(missing)}", source)
