"""Claims about numbers themselves: what is higher than what, what falls, what is near a value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from scipy import special

from forgetgauge.suites.accuracy import FullData, paper_accuracy
from forgetgauge.suites.findings import EMBEDDED, OTHER_MODELS, Stored
from forgetgauge.suites.paper import PRINTED, in_column, paper_table, table_name
from forgetgauge.suites.rankings import LEVEL
from forgetgauge.suites.records import TableComparison
from forgetgauge.suites.replicates import LEAST, Replicates
from forgetgauge.suites.spread import deviation_interval
from forgetgauge.suites.tables import DATA_NAMES
from forgetgauge.suites.verdicts import (
    ANOTHER,
    GUESSED,
    MISSING,
    Claim,
    Statement,
    Verdict,
    incomplete,
    interval_of,
    source_of,
    why_open,
)
from forgetgauge.wording import bracket, counted, listed, plain

GROUND = 0.95
"""Q that Retrain must have at least: below it an advantage of a twentieth is left."""


def grounding_claim(tables: Sequence[Stored | None]) -> Claim:
    """Retrain has nothing to show."""
    statement = (
        "Q of Retrain is 1 up to chance",
        "Q(Retrain) ≈ 1 with high precision for all ε, achieving grounding almost perfectly",
        f"in every column of Tables 1 and 3 that counts the interval of Retrain lies at {GROUND} or above; not "
        "confirmed where one lies below it. A column whose models remember less than the paper’s is left out: any "
        "method is near 1 there",
    )
    there = [stored for stored in tables if stored is not None]
    found = [stored.comparison for stored in there]
    if not found:
        return Claim(*statement, "not run")
    places = [(table, label) for table in found for label in table.columns if table.not_run.get(label) != OTHER_MODELS]
    ends = {in_column(t.variable, c): interval_of(t, "retrain", c) for t, c in places}
    known = {place: ends for place, ends in ends.items() if ends is not None}
    missing = [place for place in ends if place not in known]
    if len(found) < len(tables):
        missing.append("a table")
    source = listed([source_of(stored) for stored in there])
    if not known:
        return Claim(*statement, "undecided", f"no intervals over pairs{incomplete(missing)}", source, (MISSING,))
    least = min(known, key=lambda place: known[place][0])
    low = any(high < GROUND for _, high in known.values())
    sure = known[least][0] >= GROUND and not missing
    n_ideal = sum(start <= 1 <= high for start, high in known.values())
    n_above = sum(start > GROUND for start, _ in known.values())
    above = "all" if n_above == len(known) else f"{n_above} of them"
    figure = f"{n_ideal} of {len(known)} intervals contain 1 and {above} lie above {GROUND}"
    figure += f"; lowest: {bracket(known[least])} at {least}"
    judged_in = [
        in_column(table.variable, listed([label for of, label in places if of is table]).replace("inf", "∞"))
        for table in found
    ]
    figure += f"; columns: {', '.join(judged_in)}"
    verdict: Verdict = "not confirmed" if low else "confirmed" if sure else "undecided"
    return Claim(*statement, verdict, f"{figure}{incomplete(missing)}", source, why_open(verdict, missing))


def falling_claim(stored: Stored | None) -> Claim:
    """Q falls as ε grows, for every method but Retrain."""
    statement = (
        "Q is lower the larger ε is",
        "should negatively correlate with ε. Indeed, empirically, we observe such a trend with high precision",
        "every method but Retrain has a lower Q at the largest ε than at the smallest, beyond their intervals, and "
        "none rises beyond them from one ε to the next",
    )
    return _by_trend(statement, stored, if_rising="not confirmed", if_falling="confirmed")


def rival_claim(name: str, words: str, stored: Stored | None) -> Claim:
    """A rival metric does not fall as ε grows: it rises somewhere."""
    rule = "some method but Retrain rises beyond its intervals from one ε to the next; not confirmed where all fall"
    return _by_trend((name, words, rule), stored, if_rising="confirmed", if_falling="not confirmed")


def rising_accuracy_claim(tables: Sequence[Stored | None]) -> Claim:
    """Models that may spend more of a privacy budget are more accurate."""
    statement = (
        "Accuracy rises with ε",
        "the classification accuracy increases as the ε is relaxed to a larger value",
        "in both halves of Table 5 accuracy is higher at the largest ε than at the smallest, beyond both intervals, "
        "and none falls beyond them from one ε to the next",
    )
    there = [stored for stored in tables if stored is not None]
    found = [stored.comparison for stored in there]
    if not found:
        return Claim(*statement, "not run")
    trends = [trend_of(_turned(table)) for table in found]
    values = [
        f"{table_name(table.name)}: {', '.join(plain(c.ours.value) for c in table.rows['accuracy'].values() if c.ours)}"
        for table in found
    ]
    missing = [_unknown(table, trend) for table, trend in zip(found, trends, strict=True) if trend.missing]
    missing += ["a half of it"] if len(found) < len(tables) else []
    falls = any(trend.rising for trend in trends)
    verdict: Verdict = "undecided" if missing or not all(trend.all_fall for trend in trends) else "confirmed"
    figure, source = f"{'; '.join(values)}{incomplete(missing)}", listed([source_of(one) for one in there])
    if falls:
        return Claim(*statement, "not confirmed", figure, source)
    return Claim(*statement, verdict, figure, source, why_open(verdict, missing))


def _unknown(table: TableComparison, trend: Trend) -> str:
    """`intervals of Table 5b`, or what of it is missing."""
    alone = all(interval_of(table, "accuracy", label) is None for label in trend.columns)
    return f"intervals of {table_name(table.name)}" if alone else f"{table_name(table.name)}, {listed(trend.missing)}"


def _turned(table: TableComparison) -> TableComparison:
    """The same with its columns in the opposite order: what rises there falls here."""
    return replace(table, columns=table.columns[::-1])


def _by_trend(statement: Statement, stored: Stored | None, *, if_rising: Verdict, if_falling: Verdict) -> Claim:
    if stored is None:
        return Claim(*statement, "not run")
    trend = trend_of(stored.comparison)
    verdict: Verdict = if_rising if trend.rising else if_falling if trend.all_fall else "undecided"
    verdict = verdict if trend.n_columns > 1 else "not run"
    return Claim(*statement, verdict, trend.words, source_of(stored), why_open(verdict, trend.missing))


@dataclass(frozen=True)
class Trend:
    """How the rows of a table go from its first column to its last."""

    falling: tuple[str, ...]
    """Methods that are lower in the last column that was run than in the first, beyond both intervals."""
    rising: tuple[str, ...]
    """`SSD from 50 to 150`: steps up beyond both intervals."""
    n_methods: int
    """Number of methods that were played, Retrain not counted."""
    missing: tuple[str, ...]
    """`ε = 600`, `SSD at 150`, `NegGrad in every column`: columns that were not run, and cells of the others without an
    interval over pairs."""
    columns: tuple[str, ...]
    """The columns that were run."""

    @property
    def n_columns(self) -> int:
        """How many were run."""
        return len(self.columns)

    @property
    def all_fall(self) -> bool:
        """Every method falls, and none rises on the way: known only where nothing is missing."""
        return 0 < self.n_methods == len(self.falling) and not self.rising and not self.missing

    @property
    def words(self) -> str:
        """The trend in words, with what is missing."""
        ends = f"at {self.columns[-1]} than at {self.columns[0]}" if self.columns else ""
        fall = f"{len(self.falling)} of {self.n_methods} methods are lower {ends}".replace("inf", "∞")
        rise = ", ".join(self.rising).replace("inf", "∞") or "none"
        return f"{fall}; higher from one column to the next: {rise}{incomplete(self.missing)}"


def trend_of(table: TableComparison, columns: Sequence[str] = ()) -> Trend:
    """Over these columns of the table, all without, in their order; Retrain left out. A step is between neighbours."""
    columns = columns or table.columns
    run = tuple(label for label in columns if label not in table.not_run)
    falling: list[str] = []
    rising: list[str] = []
    missing = [in_column(table.variable, label) for label in columns if label in table.not_run]
    methods = [row for row in table.rows if row != "retrain"]
    if played := [row for row in methods if any(interval_of(table, row, label) is not None for label in run)]:
        missing += [f"{PRINTED.get(row, row)} in every column" for row in methods if row not in played]
        methods = played
    for row in methods:
        name = PRINTED.get(row, row)
        ends = {label: interval_of(table, row, label) for label in columns}
        missing += [f"{name} at {a}" for a, found in ends.items() if found is None and a not in table.not_run]
        first, last = (ends[run[0]], ends[run[-1]]) if run else (None, None)
        if first is not None and last is not None and first[0] > last[1]:
            falling.append(row)
        steps = [(a, low, b, high) for (a, low), (b, high) in pairwise(ends.items())]
        rising += [f"{name} from {a} to {b}" for a, low, b, high in steps if low and high and high[0] > low[1]]
    return Trend(tuple(falling), tuple(rising), len(methods), tuple(missing), run)


NEAR = 0.01
"""How far an accuracy may be from the paper's."""


def replicates_claim(found: Replicates | None) -> Claim:
    """Q of one split hardly moves when it is trained again."""
    printed = paper_table("table1").rows
    bar = max(cell.spread or 0.0 for row in printed.values() for cell in row.values())
    statement = (
        "Q is robust to the random seed",
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
    return Claim(*statement, verdict, figure, source, why_open(verdict, missing))


def accuracy_claim(kind: str, words: str, found: FullData | None) -> Claim:
    """The paper's accuracy on all of CIFAR-10."""
    how = "augmented" if kind == "flip-crop" else "not augmented"
    name = f"The model reaches {100 * paper_accuracy(kind):.2f} % on all training images, {how}"
    rule = (
        f"our mean is within {100 * NEAR:g} point of it (Student’s t over models), trained by the paper’s recipe; it "
        "does not say which model nor which batch size, so that a mean outside it leaves the claim undecided: "
        "ResNet-20 in batches of 128 is our reading"
    )
    trained = None if found is None or found.scale == "smoke" else found.kinds.get(kind)
    if found is None or trained is None:
        return Claim(name, words, rule, "not run")
    source = f"{DATA_NAMES.get(found.data, found.data)}, {found.scale} scale"
    mean, n = trained.mean, len(trained.accuracies)
    model = "ResNet-20" if found.learner.get("model") == "resnet20" else f"model{'s' * (n > 1)}"
    shown = f"{100 * mean:.2f} % over {n} {model}"
    if n < 2:
        return Claim(name, words, rule, "undecided", f"{shown}; no interval", source, (MISSING,))
    half = float(special.stdtrit(n - 1, (1 + LEVEL) / 2)) * trained.deviation / math.sqrt(n)
    ends = f"[{100 * (mean - half):.2f} %, {100 * (mean + half):.2f} %]"
    figure = f"{shown}, deviation {100 * trained.deviation:.2f} points, mean {ends}"
    if found.scale != "paper":
        return Claim(name, words, rule, "undecided", f"{figure}; {ANOTHER}", source, (ANOTHER,))
    off = mean - paper_accuracy(kind)
    if abs(off) - half > NEAR:
        return Claim(name, words, rule, "undecided", f"{figure}; {GUESSED}", source, (GUESSED,))
    return Claim(name, words, rule, "confirmed" if abs(off) + half <= NEAR else "undecided", figure, source)
