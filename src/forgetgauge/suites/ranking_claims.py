"""Claims about rankings: which method is best, and whether methods stand in the same order everywhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from forgetgauge.suites.compare import mean_tau_of_columns
from forgetgauge.suites.findings import Stored
from forgetgauge.suites.paper import PRINTED, in_column, paper_table
from forgetgauge.suites.rankings import ByMethod, Couples, Tau, bootstrap_tau, every_two
from forgetgauge.suites.records import TableComparison
from forgetgauge.suites.verdicts import APPROXIMATE, Claim, Statement, Verdict, incomplete, judged, named, source_of
from forgetgauge.wording import counted, listed, tau_text

SAME_ORDER = 0.5
"""τ from which a ranking counts as the same: three of four couples of methods in the same order."""

_SAME = (
    f"mean Kendall τ of {{}} is at least {SAME_ORDER}, six methods, Retrain and None left out (bootstrap over pairs); "
    "not confirmed where it is less and two methods change places, each order beyond chance"
)


def ranking_claim(name: str, words: str, table: str, stored: Stored | None) -> Claim:
    """The columns of one table rank the methods alike."""
    statement = (name, words, _SAME.format("every two columns"))
    if stored is None:
        return Claim(*statement, "not run")
    columns = approximate_columns(stored)
    tau = bootstrap_tau(list(columns.values()), every_two(len(columns)))
    return _by_tau(statement, tau, stored.comparison, list(columns), _paper_tau(table, every_two))


def rival_ranking_claim(name: str, words: str, metric: str, table: str, stored: Stored | None) -> Claim:
    """The columns of a rival metric do not rank the methods alike."""
    statement = (
        name,
        words,
        f"mean Kendall τ of every two columns is below {SAME_ORDER}, six methods, Retrain and None left out (bootstrap "
        "over pairs), and two methods change places, each order beyond chance; not confirmed where τ is at least that",
    )
    if stored is None:
        return Claim(*statement, "not run")
    columns = score_columns(stored, metric)
    tau = bootstrap_tau(list(columns.values()), every_two(len(columns)))
    alike = _by_tau(statement, tau, stored.comparison, list(columns), _paper_tau(table, every_two))
    return replace(alike, verdict=OPPOSITE.get(alike.verdict, alike.verdict))


OPPOSITE: dict[Verdict, Verdict] = {"confirmed": "not confirmed", "not confirmed": "confirmed"}


def score_columns(stored: Stored, metric: str) -> dict[str, ByMethod]:
    """Of every column 1 − the score by pair, (pairs, 1): ranked as advantages are, the highest score comes first."""
    return {
        label: {
            m: 1 - np.array(stored.games[label].methods[m].metrics[metric].by_pair)[:, None]
            for m in APPROXIMATE
            if m in stored.games[label].methods and metric in stored.games[label].methods[m].metrics
        }
        for label in stored.comparison.columns
        if label in stored.games
    }


def best_claim(method: str, words: str, stored: Stored | None) -> Claim:
    """One of the approximate methods has the highest Q in every column."""
    name, others = PRINTED[method], [m for m in APPROXIMATE if m != method]
    statement = (
        f"{name} is the best method",
        words,
        f"in every column the Q of {name} is higher than that of each of the other five, by the interval of their "
        f"difference pair by pair; not confirmed where that of another is higher and that of {name} is above None’s, "
        "so that it did something there",
    )
    if stored is None:
        return Claim(*statement, "not run")
    table, better = stored.comparison, 0
    worse: dict[str, list[str]] = {}
    idle: list[str] = []
    missing: list[str] = []
    for label in table.columns:
        played = stored.games[label].comparisons if label in stored.games else []
        found = {frozenset((pair.first, pair.second)): pair for pair in played}
        with_none = found.get(frozenset((method, "none")))
        is_idle = with_none is not None and with_none.better != method
        idle += [label] if is_idle else []
        for other in others:
            pair = found.get(frozenset((method, other)))
            if pair is None:
                missing.append(f"{PRINTED[other]} at {in_column(table.variable, label)}")
            elif pair.better == method:
                better += 1
            elif pair.better == other and not is_idle:
                worse.setdefault(PRINTED[other], []).append(label)
    n = len(table.columns) * len(others)
    verdict: Verdict = "not confirmed" if worse else "confirmed" if better == n else "undecided"
    beaten = [f"{other} at {in_column(table.variable, listed(labels))}" for other, labels in worse.items()]
    figure = f"higher than another of the five methods in {better} of {n} comparisons"
    figure += f"; lower than {', '.join(beaten) or 'none'}"
    if idle:
        figure += f"; not above None at {in_column(table.variable, listed(idle))}, where our {name} does nothing"
    return Claim(*statement, verdict, f"{figure}{incomplete(missing)}", source_of(table))


def small_predicts_large(stored: Stored | None) -> Claim:
    """The smaller columns of Table 1 rank the methods as the whole data set does."""
    statement = (
        "Small data predict the ranking on all data",
        "small-scale evaluations can reliably approximate large-scale performance",
        _SAME.format("each smaller η with η = 1.0"),
    )
    if stored is None:
        return Claim(*statement, "not run")
    columns = approximate_columns(stored)
    if columns and "1.0" not in columns:
        return Claim(*statement, "not run", "η = 1.0 is missing", source_of(stored.comparison))
    tau = bootstrap_tau(list(columns.values()), _with_last(len(columns)))
    return _by_tau(statement, tau, stored.comparison, list(columns), _paper_tau("table1", _with_last))


def approximate_columns(stored: Stored) -> dict[str, ByMethod]:
    """The approximate methods of every column that was run, in the order of the table."""
    columns = {label: stored.columns[label] for label in stored.comparison.columns if label in stored.columns}
    return {label: {m: found for m, found in c.items() if m in APPROXIMATE} for label, c in columns.items()}


def _with_last(n_columns: int) -> Couples:
    return [(i, n_columns - 1) for i in range(n_columns - 1)]


def _paper_tau(table: str, couples: Callable[[int], Couples]) -> float | None:
    """Mean τ of the paper's columns, whose numbers have no pairs."""
    printed = paper_table(table)
    rows = {row: cells for row, cells in printed.rows.items() if row in APPROXIMATE}
    columns = [{row: cells[label].mean for row, cells in rows.items()} for label in printed.columns]
    return mean_tau_of_columns(columns, couples(len(columns)))


def _by_tau(
    statement: Statement, tau: Tau | None, table: TableComparison, labels: Sequence[str], paper: float | None
) -> Claim:
    source = f"{source_of(table)}, {in_column(table.variable, listed(labels))}"
    if len(labels) < 2:
        n_run = len(table.columns) - len(table.not_run)
        if n_run < 2:
            return Claim(*statement, "not run", f"{counted(n_run, 'column')}: nothing to compare", source_of(table))
        return Claim(*statement, "undecided", "no result.json with advantages by pair is stored", source_of(table))
    missing = [in_column(table.variable, label) for label in table.columns if label not in labels]
    found = _judged_tau(statement, tau, source, missing)
    return Claim(*statement, found.verdict, f"{found.figure}; the paper’s own numbers: {tau_text(paper)}", source)


def _judged_tau(statement: Statement, tau: Tau | None, source: str, missing: Sequence[str]) -> Claim:
    """Undecided where columns are missing, or some method is in not all of them."""
    if tau is None:
        return Claim(*statement, "undecided", f"fewer than three methods in common{incomplete(missing)}", source)
    unranked = [method for method in APPROXIMATE if method not in tau.methods]
    missing = [*missing, *([f"{named(unranked)} in some column"] if unranked else [])]
    if tau.interval is None:
        figure = f"τ = {tau_text(tau.value)}; too few pairs for an interval{incomplete(missing)}"
        return Claim(*statement, "undecided", figure, source)
    ends = f"[{tau_text(tau.interval[0])}, {tau_text(tau.interval[1])}]"
    verdict, changed = judged(*tau.interval, SAME_ORDER), ""
    if verdict == "not confirmed":
        each = [f"{PRINTED[one]} and {PRINTED[other]}" for one, other in tau.exchanged]
        more = f" and {counted(len(each) - 3, 'other couple')}" if len(each) > 3 else ""
        changed = f"; {', '.join(each[:3]) or 'no two methods'}{more} change places beyond chance"
    if missing or (verdict == "not confirmed" and not tau.exchanged):
        verdict = "undecided"
    return Claim(*statement, verdict, f"τ = {tau_text(tau.value)} {ends}{changed}{incomplete(missing)}", source)
