"""What the paper says in words, judged by what is stored: confirmed, not confirmed, undecided, or not run.

A claim is confirmed only where an interval says so, and not confirmed only where an interval says the opposite. What
a rule names must all be there, methods and columns, or the claim is undecided; but one counterexample refutes what is
said of every method. Numbers at smoke scale, or from the embedded digits, count for none. Each claim's rule is stated
beside it; the bars are ours, since the paper gives none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from scipy import special

from forgetgauge.suites.accuracy import FullData, paper_accuracy
from forgetgauge.suites.compare import mean_tau_of_columns
from forgetgauge.suites.findings import EMBEDDED, Findings, Stored
from forgetgauge.suites.paper import PRINTED, paper_table, table_name
from forgetgauge.suites.rankings import LEVEL, ByMethod, Couples, Tau, bootstrap_tau, every_two
from forgetgauge.suites.records import TableComparison
from forgetgauge.suites.replicates import LEAST, Replicates
from forgetgauge.suites.spread import deviation_interval
from forgetgauge.suites.tables import SCALES
from forgetgauge.wording import bracket, counted, listed, plain, tau_text

Verdict = Literal["confirmed", "not confirmed", "undecided", "not run"]

APPROXIMATE = ("neg-grad", "retrain-final", "ft-final", "fisher", "salun", "ssd")
"""The methods that claims are about; Retrain and None are yardsticks."""

Statement = tuple[str, str, str]
"""A claim's name, the paper's words, and the rule by which it is judged."""


@dataclass(frozen=True)
class Claim:
    """One statement of the paper."""

    name: str
    words: str
    """The paper's."""
    rule: str
    """When it counts as confirmed."""
    verdict: Verdict
    figure: str = ""
    """The numbers behind the verdict; empty where nothing was run."""
    source: str = ""
    """Which of our results."""


def source_of(table: TableComparison) -> str:
    """Where a number is from: `Table 1, paper scale`."""
    return f"{table_name(table.name)}, {table.scale} scale"


def named(methods: Sequence[str]) -> str:
    """Methods as the paper prints them."""
    return listed([PRINTED.get(method, method) for method in methods]) or "none"


def incomplete(parts: Sequence[str]) -> str:
    """`; missing: SSD at 150`: what a rule names and nobody knows, so that nothing is decided; empty without."""
    return f"; missing: {', '.join(parts)}" if parts else ""


SAME_ORDER = 0.5
"""τ from which a ranking counts as the same: three of four couples of methods in the same order."""

_SAME = (
    f"mean Kendall τ of {{}} is at least {SAME_ORDER}, six methods, Retrain and None left out (bootstrap over pairs)"
)


def ranking_claim(name: str, words: str, table: str, stored: Stored | None) -> Claim:
    """The columns of one table rank the methods alike."""
    statement = (name, words, _SAME.format("every two columns"))
    if stored is None:
        return Claim(*statement, "not run")
    columns = approximate_columns(stored)
    tau = bootstrap_tau(list(columns.values()), every_two(len(columns)))
    return _by_tau(statement, tau, stored.comparison, list(columns), _paper_tau(table, every_two))


def small_predicts_large(stored: Stored | None) -> Claim:
    """The smaller columns of Table 1 rank the methods as the whole data set does."""
    statement = (
        "Small data predict the ranking on all of them",
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


def scales_claim(stored: Mapping[tuple[str, str], Stored]) -> Claim:
    """Our own short trainings rank the methods as the paper's long ones do."""
    statement = (
        "Short trainings predict the ranking of long ones",
        "enabling model maintainers to conduct small-scale experiments",
        _SAME.format("small with paper scale, in each column that was run at both,"),
    )
    columns: list[ByMethod] = []
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
        return Claim(*statement, "not run")
    tau = bootstrap_tau(columns, [(i, i + 1) for i in range(0, len(columns), 2)])
    return _judged_tau(statement, tau, f"{'; '.join(tables)}: at both scales", [])


def judged(low: float, high: float, bar: float) -> Verdict:
    """Is something at least `bar`, by its interval?"""
    return "confirmed" if low >= bar else "not confirmed" if high < bar else "undecided"


def approximate_columns(stored: Stored) -> dict[str, ByMethod]:
    """The approximate methods of every column that was run, in the order of the table."""
    columns = {label: stored.columns[label] for label in stored.comparison.columns if label in stored.columns}
    return {label: {m: found for m, found in c.items() if m in APPROXIMATE} for label, c in columns.items()}


def _with_last(n_columns: int) -> Couples:
    return [(i, n_columns - 1) for i in range(n_columns - 1)]


def _paper_tau(table: str, couples: Callable[[int], Couples]) -> float | None:
    """The same of the paper's numbers, which have no pairs."""
    printed = paper_table(table)
    rows = {row: cells for row, cells in printed.rows.items() if row in APPROXIMATE}
    columns = [{row: cells[label].mean for row, cells in rows.items()} for label in printed.columns]
    return mean_tau_of_columns(columns, couples(len(columns)))


def _by_tau(
    statement: Statement, tau: Tau | None, table: TableComparison, labels: Sequence[str], paper: float | None
) -> Claim:
    source = f"{source_of(table)}, {table.variable} = {listed(labels)}"
    if len(labels) < 2:
        n_run = len(table.columns) - len(table.not_run)
        if n_run < 2:
            return Claim(*statement, "not run", f"{counted(n_run, 'column')}: nothing to compare", source_of(table))
        return Claim(*statement, "undecided", "no result.json with advantages by pair is stored", source_of(table))
    found = _judged_tau(statement, tau, source, [f"{table.variable} = {c}" for c in table.columns if c not in labels])
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
    verdict = "undecided" if missing else judged(*tau.interval, SAME_ORDER)
    return Claim(*statement, verdict, f"τ = {tau_text(tau.value)} {ends}{incomplete(missing)}", source)


def difficulty_claim(data: Stored | None, sizes: Stored | None) -> Claim:
    """MNIST > CIFAR-10 > CIFAR-100, for most methods."""
    statement = (
        "Q tells easy data from difficult ones",
        "the Unlearning Quality of most unlearning methods is higher on MNIST while lower on CIFAR100, in comparison "
        "to those on CIFAR10",
        "for more than half of the six methods MNIST > CIFAR-10 > CIFAR-100 beyond their intervals",
    )
    if data is None or sizes is None:
        return Claim(*statement, "not run")
    seven, one = data.comparison, sizes.comparison
    source = f"Tables 7 and 1 (η = 1.0), {seven.scale} scale"
    if seven.scale != one.scale or SCALES[seven.scale].fraction != 1.0:
        return Claim(*statement, "not run", "no CIFAR-10 column has the share of the data that Table 7 has", source)
    places = [(seven, "MNIST"), (one, "1.0"), (seven, "CIFAR100")]
    rows = {m: [interval_of(table, m, label) for table, label in places] for m in APPROXIMATE}
    known = {m: [i for i in found if i is not None] for m, found in rows.items()}
    known = {m: found for m, found in known.items() if len(found) == len(places)}
    if any(label in table.not_run for table, label in places):
        return Claim(*statement, "not run", "a column is missing", source)
    if not known:
        return Claim(*statement, "undecided", "no intervals over pairs", source)
    ordered = [m for m, (easy, middle, hard) in known.items() if easy[0] > middle[1] and middle[0] > hard[1]]
    against = [m for m, (easy, middle, hard) in known.items() if easy[1] < middle[0] or middle[1] < hard[0]]
    half = len(APPROXIMATE) / 2
    verdict: Verdict = "confirmed" if len(ordered) > half else "not confirmed" if len(against) >= half else "undecided"
    n_open = len(APPROXIMATE) - len(ordered) - len(against)
    figure = f"in this order: {named(ordered)}; not in it: {named(against)}; open: {counted(n_open, 'method')}"
    return Claim(*statement, verdict, figure, source)


def falling_claim(stored: Stored | None) -> Claim:
    """Q falls as ε grows, for every method but Retrain."""
    statement = (
        "Q falls with ε",
        "should negatively correlate with ε. Indeed, empirically, we observe such a trend with high precision",
        "every method but Retrain has a lower Q at the largest ε than at the smallest, beyond their intervals, and "
        "none rises beyond them from one ε to the next",
    )
    return _by_trend(statement, stored, if_rising="not confirmed", if_falling="confirmed")


def rival_claim(name: str, words: str, stored: Stored | None) -> Claim:
    """A rival metric does not fall as ε grows: it rises somewhere."""
    rule = "some method but Retrain rises beyond its intervals from one ε to the next; not confirmed where all fall"
    return _by_trend((name, words, rule), stored, if_rising="confirmed", if_falling="not confirmed")


def _by_trend(statement: Statement, stored: Stored | None, *, if_rising: Verdict, if_falling: Verdict) -> Claim:
    if stored is None:
        return Claim(*statement, "not run")
    trend = trend_of(stored.comparison)
    verdict: Verdict = if_rising if trend.rising else if_falling if trend.all_fall else "undecided"
    return Claim(*statement, verdict if trend.n_columns > 1 else "not run", trend.words, source_of(stored.comparison))


@dataclass(frozen=True)
class Trend:
    """How the rows of a table go from its first column to its last."""

    falling: tuple[str, ...]
    """Methods that are lower in the last column of the table than in the first, beyond both intervals."""
    rising: tuple[str, ...]
    """`SSD from 50 to 150`: steps up beyond both intervals."""
    n_methods: int
    """All but Retrain."""
    missing: tuple[str, ...]
    """`ε = 600`, `SSD at 150`: columns that were not run, and cells of the others without an interval over pairs."""
    n_columns: int
    """Those that were run."""

    @property
    def all_fall(self) -> bool:
        """Every method falls, and none rises on the way: known only where nothing is missing."""
        return 0 < self.n_methods == len(self.falling) and not self.rising and not self.missing

    @property
    def words(self) -> str:
        """The trend in words, with what is missing."""
        fall = f"{len(self.falling)} of {self.n_methods} methods fall"
        return f"{fall}; steps up: {', '.join(self.rising) or 'none'}{incomplete(self.missing)}"


def trend_of(table: TableComparison) -> Trend:
    """Over the columns of the table, in its order; Retrain left out. A step is between neighbours."""
    falling: list[str] = []
    rising: list[str] = []
    missing = [f"{table.variable} = {label}" for label in table.columns if label in table.not_run]
    methods = [row for row in table.rows if row != "retrain"]
    for row in methods:
        name = PRINTED.get(row, row)
        ends = {label: interval_of(table, row, label) for label in table.columns}
        missing += [f"{name} at {a}" for a, found in ends.items() if found is None and a not in table.not_run]
        first, last = ends[table.columns[0]], ends[table.columns[-1]]
        if first is not None and last is not None and first[0] > last[1]:
            falling.append(row)
        steps = [(a, low, b, high) for (a, low), (b, high) in pairwise(ends.items())]
        rising += [f"{name} from {a} to {b}" for a, low, b, high in steps if low and high and high[0] > low[1]]
    n_columns = len(table.columns) - len(table.not_run)
    return Trend(tuple(falling), tuple(rising), len(methods), tuple(missing), n_columns)


def interval_of(table: TableComparison, row: str, label: str) -> tuple[float, float] | None:
    """Of one cell, over pairs; None where there is none, or one for the models at hand alone."""
    cell = table.rows.get(row, {}).get(label)
    if cell is None or cell.ours is None or set(table.basis) - {"over pairs"}:
        return None
    return cell.ours.interval


NEAR = 0.01
"""How far an accuracy may be from the paper's."""

RANKINGS = {
    "table1": ("Ranking across sizes of the data set", "the relative ranking … remains consistent across sizes"),
    "table2": ("Ranking across α", "the relative ranking … remains largely consistent across varying α values"),
    "table3": ("Ranking across ε", "maintains a consistent relative ranking … among different ε"),
    "table6": ("Ranking across architectures", "stays mostly consistent across different architectures"),
    "table7": ("Ranking across data sets", "the consistency we have observed throughout this section"),
}
RIVALS = {
    "table4a": (
        "IC score does not fall with ε",
        "the IC test fails to produce a negatively correlated evaluation result with ε",
    ),
    "table4b": ("MIA score does not fall with ε", "MIA AUC also fails to produce a similar trend"),
}
ACCURACIES = {
    "none": "With the full dataset, the model achieved an accuracy of 85.34 %",
    "flip-crop": "After incorporating data augmentation, the accuracy further improved to 91.13 %",
}


def claims(found: Findings) -> list[Claim]:
    """All of them; of a table at several scales that with most columns counts."""
    return [
        replicates_claim(found.replicates),
        *(ranking_claim(*statement, table, found.fullest(table)) for table, statement in RANKINGS.items()),
        small_predicts_large(found.fullest("table1")),
        scales_claim(found.stored),
        difficulty_claim(*(found.stored.get((table, "paper")) for table in ("table7", "table1"))),
        falling_claim(found.fullest("table3")),
        *(rival_claim(*statement, found.fullest(table)) for table, statement in RIVALS.items()),
        *(accuracy_claim(kind, words, found.accuracy) for kind, words in ACCURACIES.items()),
    ]


def replicates_claim(found: Replicates | None) -> Claim:
    """Q of one split hardly moves when it is trained again."""
    printed = paper_table("table1").rows
    bar = max(cell.spread or 0.0 for row in printed.values() for cell in row.values())
    statement = (
        "Robust to the random seed",
        "this test proves robust to changes in random seed",
        f"of every method of the paper’s Table 1 the deviation of Q over replicates is at most {plain(bar)}, the "
        "largest ± there (95 % intervals by χ²)",
    )
    if found is None or found.data in EMBEDDED or found.n_replicates < LEAST:
        return Claim(*statement, "not run")
    spreads = {method: deviation_interval(found.deviation(method), found.n_freedom, LEVEL) for method in found.quality}
    worst = max(spreads, key=found.deviation)
    lows, highs = zip(*spreads.values(), strict=True)
    missing = [PRINTED[method] for method in printed if method not in found.quality]
    small = max(highs) <= bar and not missing
    verdict: Verdict = "confirmed" if small else "not confirmed" if max(lows) > bar else "undecided"
    each = ", ".join(f"{PRINTED.get(m, m)} {plain(found.deviation(m))}" for m in found.quality)
    largest = f"{PRINTED.get(worst, worst)} {plain(found.deviation(worst))} {bracket(spreads[worst])}"
    figure = f"largest: {largest}; {each}{incomplete(missing)}"
    size = f"{counted(found.n_pairs, 'pair')}, {found.n_replicates} replicates"
    source = f"{found.data}, {found.model}, α = {found.alpha}: {size}"
    return Claim(*statement, verdict, figure, source)


def accuracy_claim(kind: str, words: str, found: FullData | None) -> Claim:
    """The paper's accuracy on all of CIFAR-10."""
    name = "Accuracy on all training images" + (", augmented" if kind == "flip-crop" else "")
    rule = f"our mean is within {100 * NEAR:g} point of it (Student’s t over models), trained by the paper’s recipe"
    trained = None if found is None or found.scale == "smoke" else found.kinds.get(kind)
    if found is None or trained is None:
        return Claim(name, words, rule, "not run")
    source = f"{found.data}, {found.scale} scale"
    mean, n = trained.mean, len(trained.accuracies)
    shown = f"{100 * mean:.2f} % over {counted(n, 'model')}"
    if n < 2:
        return Claim(name, words, rule, "undecided", f"{shown}; no interval", source)
    half = float(special.stdtrit(n - 1, (1 + LEVEL) / 2)) * trained.deviation / math.sqrt(n)
    ends = f"[{100 * (mean - half):.2f} %, {100 * (mean + half):.2f} %]"
    figure = f"{shown}, deviation {100 * trained.deviation:.2f} points, mean {ends}"
    if found.scale != "paper":
        return Claim(name, words, rule, "undecided", f"{figure}; another recipe than the paper’s", source)
    off = mean - paper_accuracy(kind)
    inside, outside = abs(off) + half <= NEAR, abs(off) - half > NEAR
    verdict: Verdict = "confirmed" if inside else "not confirmed" if outside else "undecided"
    return Claim(name, words, rule, verdict, figure, source)


def claim_rows(every: Sequence[Claim]) -> list[list[str]]:
    """Head and one row a claim."""
    rows = [["claim", "the paper", "verdict", "figure", "from"]]
    return [*rows, *([c.name, f"“{c.words}”", c.verdict, c.figure or "–", c.source or "–"] for c in every)]


def claim_rules(every: Sequence[Claim]) -> list[str]:
    """When each counts as confirmed; claims with the same rule in one line."""
    names: dict[str, list[str]] = {}
    for claim in every:
        names.setdefault(claim.rule, []).append(claim.name)
    return [f"{'; '.join(those)}: {rule}." for rule, those in names.items()]
