"""Claims about rankings: which method is best, and whether methods stand in the same order everywhere.

A method takes part in a ranking only where it did something in every column: what is ranked, Q or a rival score, is
above None's beyond chance, no column's models are damaged by it, and its strength kept the price. What is at None in
one column and above it in another, or ruins its models in one of them, changes its place by its strength, which is
nobody's claim.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from forgetgauge.metrics.scores import over_pairs
from forgetgauge.results.record import GameResult
from forgetgauge.results.utility import lost_accuracy
from forgetgauge.suites.compare import beyond_price, mean_tau_of_columns, over_none
from forgetgauge.suites.findings import Stored
from forgetgauge.suites.paper import PRINTED, in_column, paper_table
from forgetgauge.suites.rankings import ByMethod, Couples, Tau, bootstrap_tau, every_two
from forgetgauge.suites.records import Ours
from forgetgauge.suites.verdicts import (
    APPROXIMATE,
    BORROWED,
    MISSING,
    TOO_FEW,
    Claim,
    Statement,
    Verdict,
    incomplete,
    judged,
    named,
    reasons,
    source_of,
)
from forgetgauge.wording import counted, listed, tau_text

SAME_ORDER = 0.5
"""τ from which a ranking counts as the same: three of four couples of methods in the same order."""
LEAST_RANKED = 4
"""Methods that a ranking must have: two orders of three agree by chance in one case of six, of four in one of 24."""

_WHO = (
    "the six methods less those that somewhere are not above None beyond chance, damage their models by over a point "
    f"or kept no price, at least {LEAST_RANKED} (bootstrap over pairs)"
)
_SAME = (
    f"mean Kendall τ of {{}} is at least {SAME_ORDER}: {_WHO}, at strengths chosen for each column; not confirmed "
    "where it is less and two methods change places, each order beyond chance"
)


def ranking_claim(name: str, words: str, table: str, stored: Stored | None, larger: Sequence[Stored] = ()) -> Claim:
    """The columns of one table rank the methods alike; `larger` has it at larger scales, where columns are missing."""
    statement = (name, words, _SAME.format("every two columns"))
    if stored is None:
        return Claim(*statement, "not run")
    beside = _disagreement(stored, larger)
    return _by_tau(statement, stored, _Ranked(approximate_columns(stored), every_two, table), beside)


def rival_ranking_claim(name: str, words: str, metric: str, table: str, stored: Stored | None) -> Claim:
    """The columns of a rival metric do not rank the methods alike."""
    statement = (
        name,
        words,
        f"mean Kendall τ of every two columns is below {SAME_ORDER}: {_WHO}, at strengths chosen for each column; and "
        "two methods change places, each order beyond chance; not confirmed where τ is at least that; what is above "
        "None is told by that score, pair by pair (Student’s t)",
    )
    if stored is None:
        return Claim(*statement, "not run")
    alike = _by_tau(statement, stored, _Ranked(score_columns(stored, metric), every_two, table, metric))
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
        "so that it did something there; undecided where strengths were not chosen for each column",
    )
    if stored is None:
        return Claim(*statement, "not run")
    table, better, n_played = stored.comparison, 0, 0
    worse: dict[str, list[str]] = {}
    is_beaten = False
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
            n_played += pair is not None
            if pair is None and label in table.not_run:
                missing += [] if in_column(table.variable, label) in missing else [in_column(table.variable, label)]
            elif pair is None:
                missing.append(f"{PRINTED[other]} at {in_column(table.variable, label)}")
            elif pair.better == method:
                better += 1
            elif pair.better == other:
                worse.setdefault(PRINTED[other], []).append(label)
                is_beaten = is_beaten or not is_idle
    n = len(table.columns) * len(others)
    verdict: Verdict = "not confirmed" if is_beaten else "confirmed" if better == n else "undecided"
    verdict = "undecided" if stored.is_borrowed else verdict
    is_open = verdict == "undecided"
    why = reasons(
        {MISSING: is_open and missing, BORROWED: stored.is_borrowed, f"our {name} does nothing": is_open and idle}
    )
    beaten = [f"{other} at {in_column(table.variable, listed(labels))}" for other, labels in worse.items()]
    figure = f"higher than another of the five methods in {better} of {n_played} comparisons"
    figure += f"; lower than {', '.join(beaten) or 'none'}"
    if idle:
        figure += f"; not above None at {in_column(table.variable, listed(idle))}, where our {name} does nothing"
    figure += f"; {BORROWED}" if stored.is_borrowed else ""
    return Claim(*statement, verdict, f"{figure}{incomplete(missing)}", source_of(stored), why)


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
        return Claim(*statement, "not run", "η = 1.0 is missing", source_of(stored))
    return _by_tau(statement, stored, _Ranked(columns, _with_last, "table1"))


def approximate_columns(stored: Stored) -> dict[str, ByMethod]:
    """The approximate methods of every column that was run, in the order of the table."""
    columns = {label: stored.columns[label] for label in stored.comparison.columns if label in stored.columns}
    return {label: {m: found for m, found in c.items() if m in APPROXIMATE} for label, c in columns.items()}


def left_out(stored: Stored, metric: str = "") -> dict[str, list[str]]:
    """Why -> methods that take no part in a ranking of the table, because of one column or more; by Q, or by a rival
    metric where it is what ranks."""
    games = stored.games.values()
    gains = (score_over_none(game, metric) if metric else over_none(game) for game in games)
    idle = {name for found in gains for name, gain in found.items() if _not_above(gain)}
    damaged = {name for game in games for name in lost_accuracy(game)}
    beyond = {name for game in games for name in beyond_price(game)}
    each = {"idle": idle, "damaged": damaged, "beyond the price": beyond}
    return {why: [m for m in APPROXIMATE if m in those] for why, those in each.items()}


def score_over_none(game: GameResult, metric: str) -> dict[str, Ours]:
    """Method -> its rival score less None's, pair by pair; of methods that have as many pairs."""
    scores = {name: one.metrics[metric].by_pair for name, one in game.methods.items() if metric in one.metrics}
    none = scores.pop("none", [])
    gains = {
        name: over_pairs((np.array(scores[name]) - np.array(none)).tolist(), game.spec["level"])
        for name in APPROXIMATE
        if none and len(scores.get(name, [])) == len(none)
    }
    return {name: Ours(gain.value, gain.interval) for name, gain in gains.items()}


def _not_above(gain: Ours) -> bool:
    """No interval has a difference that is the same in every pair, or is of few."""
    return gain.value <= 0 if gain.interval is None else gain.interval[0] <= 0


_LEFT = {
    "idle": "{} (somewhere not above None{} beyond chance)",
    "damaged": "{} (models damaged somewhere)",
    "beyond the price": "{} (somewhere no strength kept the price)",
}


def _with_last(n_columns: int) -> Couples:
    return [(i, n_columns - 1) for i in range(n_columns - 1)]


def paper_tau(
    table: str, methods: Sequence[str], labels: Sequence[str], couples: Callable[[int], Couples] = every_two
) -> float | None:
    """Mean τ of the paper's numbers, which have no pairs, over these methods and columns: those that ours has."""
    rows = paper_table(table).rows
    columns = [{row: rows[row][label].mean for row in methods} for label in labels]
    return mean_tau_of_columns(columns, couples(len(columns)))


def tau_of_all(stored: Stored) -> Tau | None:
    """Mean τ of our columns over all methods that every column has, whatever they do."""
    return _tau_of(list(approximate_columns(stored).values()), every_two)


def _disagreement(stored: Stored, larger: Sequence[Stored]) -> str:
    """`; paper scale, 3 of 4 columns, disagrees: τ = 0.20 [−0.07, 0.47]`: of all methods that are in both, by intervals
    on either side of the bar."""
    own, said = _tau_of(list(approximate_columns(stored).values()), every_two), ""
    for other in larger:
        table, columns = other.comparison, list(approximate_columns(other).values())
        tau = _tau_of(columns, every_two)
        if own is None or own.interval is None or tau is None or tau.interval is None:
            continue
        if {judged(*own.interval, SAME_ORDER), judged(*tau.interval, SAME_ORDER)} == set(OPPOSITE):
            strengths = f", {other.strengths}" if other.strengths != stored.strengths else ""
            n_columns = f"{len(columns)} of {len(table.columns)} columns"
            said += f"; {table.scale} scale{strengths}, {n_columns}, disagrees: {_tau_words(tau)}"
    return said


def _tau_of(columns: Sequence[ByMethod], couples: Callable[[int], Couples]) -> Tau | None:
    return bootstrap_tau(columns, couples(len(columns)))


@dataclass(frozen=True)
class _Ranked:
    """What a claim about rankings compares."""

    columns: Mapping[str, ByMethod]
    couples: Callable[[int], Couples]
    printed: str
    """The paper's table of it."""
    metric: str = ""
    """Which rival score; empty: Q."""

    @property
    def every(self) -> Tau | None:
        """Over all methods that every column has."""
        return _tau_of(list(self.columns.values()), self.couples)

    @property
    def papers(self) -> str:
        """`; the paper’s own numbers: 0.97`: over the same methods and columns as `every`; where these are too few,
        over all methods."""
        every = self.every
        tau = paper_tau(self.printed, APPROXIMATE if every is None else every.methods, list(self.columns), self.couples)
        return f"; the paper’s own numbers: {tau_text(tau)}"


def _by_tau(statement: Statement, stored: Stored, ranked_by: _Ranked, beside: str = "") -> Claim:
    """`beside` is what stands behind the figure, whatever it is."""
    columns, couples = ranked_by.columns, ranked_by.couples
    table, labels = stored.comparison, list(columns)
    if len(labels) < 2:
        n_run = len(table.columns) - len(table.not_run)
        if n_run < 2:
            return Claim(*statement, "not run", f"{counted(n_run, 'column')}: nothing to compare", source_of(stored))
        none = "no result.json with advantages by pair is stored"
        return Claim(*statement, "undecided", none, source_of(stored), (MISSING,))
    out = left_out(stored, ranked_by.metric)
    played = [m for m in APPROXIMATE if any(m in column for column in columns.values())]
    counting = [m for m in played if not any(m in those for those in out.values())]
    tau = _tau_of([{m: a for m, a in column.items() if m in counting} for column in columns.values()], couples)
    ranked = [m for m in counting if tau is not None and m in tau.methods]
    unknown = [m for m in counting if tau is not None and m not in ranked]
    missing = [in_column(table.variable, label) for label in table.columns if label not in labels]
    missing += [f"{named(unknown)} in some column"] if unknown else []
    never = [m for m in APPROXIMATE if m not in played]
    missing += [f"{named(never)} in every column"] if never else []
    is_few = len(counting) < LEAST_RANKED
    figure = _too_few(counting) if is_few else _tau_words(tau)
    if len(counting) < len(APPROXIMATE):
        figure += "" if is_few or tau is None else f" over {named(tau.methods)}"
        by = f" by the {ranked_by.metric.upper()} score" if ranked_by.metric else ""
        left = [_LEFT[why].format(named(those), by) for why, those in out.items() if those]
        figure += f"; left out: {', '.join(left)}" if left else ""
        figure += f"; with all that every column has {_tau_words(ranked_by.every)}"
    verdict: Verdict = "undecided"
    if not is_few and tau is not None and tau.interval is not None:
        verdict = judged(*tau.interval, SAME_ORDER)
        if verdict == "not confirmed":
            figure += _exchanges(tau)
            verdict = verdict if tau.exchanged else "undecided"
    figure += f"; {BORROWED}" if stored.is_borrowed else ""
    why = reasons({MISSING: missing, BORROWED: stored.is_borrowed, TOO_FEW: is_few})
    if why:
        verdict = "undecided"
    source = f"{source_of(stored)}, {in_column(table.variable, listed(labels))}"
    return Claim(*statement, verdict, f"{figure}{incomplete(missing)}{beside}{ranked_by.papers}", source, why)


def _too_few(counting: Sequence[str]) -> str:
    if not counting:
        return "no method counts"
    return f"only {named(counting)} count{'s' if len(counting) == 1 else ''}, too few to rank"


def _tau_words(tau: Tau | None) -> str:
    """`τ = 0.55 [0.33, 0.64]`."""
    if tau is None:
        return "there are fewer than three methods in common"
    if tau.interval is None:
        return f"τ = {tau_text(tau.value)}, too few pairs for an interval"
    return f"τ = {tau_text(tau.value)} [{tau_text(tau.interval[0])}, {tau_text(tau.interval[1])}]"


def _exchanges(tau: Tau) -> str:
    """`; SSD and SalUn change places beyond chance`."""
    each = [f"{PRINTED[one]} and {PRINTED[other]}" for one, other in tau.exchanged]
    more = f" and {counted(len(each) - 3, 'other couple')}" if len(each) > 3 else ""
    return f"; {', '.join(each[:3]) or 'no two methods'}{more} change places beyond chance"
