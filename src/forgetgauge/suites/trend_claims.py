"""Claims about what falls or rises from one column of a table to the next."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from forgetgauge.suites.claim import Claim, Holds, Statement, interval_of, lacking, named, scale_aside, source_of
from forgetgauge.suites.findings import Stored
from forgetgauge.suites.paper import PRINTED, in_column, table_name
from forgetgauge.suites.records import TableComparison
from forgetgauge.suites.tables import suite
from forgetgauge.wording import bracket, counted, listed, plain


@dataclass(frozen=True)
class Trend:
    """How the rows of a table go from its first column to its last, Retrain left out."""

    methods: tuple[str, ...]
    """Those that were played in some column."""
    falling: tuple[str, ...]
    """Lower in the last column that was run than in the first, beyond both intervals."""
    rising: tuple[str, ...]
    """`SSD from 50 to 150`: steps up between neighbours beyond both intervals."""
    columns: tuple[str, ...]
    """That were run."""
    missing: tuple[str, ...]
    """`ε = 600`, `SSD at 150`: columns that were not run, and cells of the others without an interval over pairs."""
    never: tuple[str, ...]
    """Methods of the paper's table that were played in no column."""

    @property
    def all_fall(self) -> bool:
        """Every method that was played falls, and none rises on the way: known only where no column is missing."""
        return 0 < len(self.methods) == len(self.falling) and not self.rising and not self.missing

    @property
    def words(self) -> str:
        """The trend in words, with what is missing."""
        if len(self.columns) < 2:
            return f"{counted(len(self.columns), 'column')} was run: nothing to compare"
        rise = f"{', '.join(self.rising)} rise beyond them" if self.rising else "none rises beyond them in between"
        never = f"; {named(self.never)} {'was' if len(self.never) == 1 else 'were'} not played" if self.never else ""
        return f"{self.falls}, and {rise}{lacking(self.missing)}{never}".replace("inf", "∞")

    @property
    def falls(self) -> str:
        """`6 of 6 methods are lower at ε = ∞ than at ε = 50 beyond their intervals`."""
        ends = f"at ε = {self.columns[-1]} than at ε = {self.columns[0]}".replace("inf", "∞") if self.columns else ""
        return f"{len(self.falling)} of {len(self.methods)} methods are lower {ends} beyond their intervals"


def trend_of(table: TableComparison, without: Container[str] = ()) -> Trend:
    """Over the columns of the table, in their order; some may be left out."""
    columns = [label for label in table.columns if label not in without]
    run = tuple(label for label in columns if label not in table.not_run)
    rows = [row for row in table.rows if row != "retrain"]
    played = [row for row in rows if any(interval_of(table, row, label) is not None for label in run)] or rows
    missing = [in_column(table.variable, label) for label in columns if label in table.not_run]
    falling: list[str] = []
    rising: list[str] = []
    for row in played:
        name = PRINTED.get(row, row)
        ends = {label: interval_of(table, row, label) for label in run}
        missing += [f"{name} at {label}" for label, found in ends.items() if found is None]
        first, last = (ends[run[0]], ends[run[-1]]) if run else (None, None)
        if first is not None and last is not None and first[0] > last[1]:
            falling.append(row)
        steps = [(a, low, b, high) for (a, low), (b, high) in pairwise(ends.items())]
        rising += [f"{name} from {a} to {b}" for a, low, b, high in steps if low and high and high[0] > low[1]]
    never = tuple(row for row in rows if row not in played)
    return Trend(tuple(played), tuple(falling), tuple(rising), run, tuple(missing), never)


FALLING = Statement(
    "Q is lower the larger ε is",
    "Q against ε",
    "should negatively correlate with ε. Indeed, empirically, we observe such a trend with high precision",
    "yes where every method that was played, Retrain apart, has a lower Q at the largest ε than at the smallest, "
    "beyond both intervals, and none rises beyond them from one ε to the next, with and without columns whose models "
    "are not the paper’s; no where one rises so",
)
RIVAL_RULE = (
    "yes where the score of some method, Retrain apart, rises beyond its intervals from one ε to the next; no where "
    "the scores of all that were played are lower at the largest ε than at the smallest; both with and without columns "
    "whose models are not the paper’s"
)


def falling_claim(stored: Stored | None, apart: Container[str] = ()) -> Claim:
    """Q falls as ε grows, for every method but Retrain; columns `apart` have other models than the paper's."""
    if stored is None:
        return FALLING.not_run
    trend, holds, finding = _judged(stored, apart, if_rising="no", if_falling="yes")
    cells = stored.comparison.rows.get("none", {})
    none = [cells[label].ours for label in trend.columns if label in cells]
    ends = f", from {plain(none[0].value)} to {plain(none[-1].value)} for None" if none and none[0] and none[-1] else ""
    short = f"Q is lower the larger the ε of training{ends}{scale_aside(stored)}" if holds == "yes" else ""
    return FALLING.judged(holds, finding, source_of(stored), short)


def rival_claim(name: str, words: str, score: str, stored: Stored | None, apart: Container[str] = ()) -> Claim:
    """A rival metric does not fall as ε grows: it rises somewhere."""
    statement = Statement(name, score, words, RIVAL_RULE)
    if stored is None:
        return statement.not_run
    _, holds, finding = _judged(stored, apart, if_rising="yes", if_falling="no")
    short = f"the {score}, too, is lower the larger ε is{scale_aside(stored)}" if holds == "no" else ""
    return statement.judged(holds, finding, source_of(stored), short)


def _judged(stored: Stored, apart: Container[str], *, if_rising: Holds, if_falling: Holds) -> tuple[Trend, Holds, str]:
    """The trend over all columns, whether it holds, with and without those that are apart, and both in words."""
    table = stored.comparison
    trend = trend_of(table)
    holds = _holds(trend, if_rising=if_rising, if_falling=if_falling)
    others = [label.replace("inf", "∞") for label in table.columns if label in apart]
    if not others:
        return trend, holds, trend.words
    alike = trend_of(table, apart)
    sure = holds == _holds(alike, if_rising=if_rising, if_falling=if_falling)
    why = f"; our models at ε = {listed(others)} are not the paper’s"
    why += f", and without these {alike.falls}" if len(alike.columns) > 1 else ""
    return trend, holds if sure else "open", trend.words + why


def _holds(trend: Trend, *, if_rising: Holds, if_falling: Holds) -> Holds:
    if len(trend.columns) < 2:
        return "not run"
    return if_rising if trend.rising else if_falling if trend.all_fall else "open"


ACCURACY = Statement(
    "Accuracy rises with ε",
    "accuracy against ε",
    "the classification accuracy increases as the ε is relaxed to a larger value",
    "yes where in both halves of Table 5 accuracy is higher at the largest ε than at the smallest, beyond both "
    "intervals, and falls beyond them from no ε to the next; no where it falls so; both with and without columns whose "
    "models are not the paper’s",
)


def rising_accuracy_claim(tables: Sequence[Stored | None], apart: Container[str] = ()) -> Claim:
    """Models that may spend more of a privacy budget are more accurate."""
    there = [stored for stored in tables if stored is not None]
    if not there:
        return ACCURACY.not_run
    turned = [replace(one.comparison, columns=one.comparison.columns[::-1]) for one in there]
    trends = [trend_of(table) for table in turned]  # what rises there falls here
    alike = [trend_of(table, apart) for table in turned]
    holds: Holds = "open"
    if len(there) == len(tables) and all(trend.all_fall for trend in (*trends, *alike)):
        holds = "yes"
    elif any(trend.rising for trend in trends) and any(trend.rising for trend in alike):
        holds = "no"
    cells = [stored.comparison.rows["accuracy"].values() for stored in there]
    values = [
        f"{table_name(stored.comparison.name)} has {', '.join(plain(cell.ours.value) for cell in row if cell.ours)}"
        for stored, row in zip(there, cells, strict=True)
    ]
    missing = [label for trend in trends for label in trend.missing]
    missing += [] if len(there) == len(tables) else ["a half of the table"]
    finding = f"{' and '.join(values)}{lacking(missing)}"
    short = f"accuracy rises with ε{scale_aside(there[0])}" if holds == "yes" else ""
    return ACCURACY.judged(holds, finding, listed([source_of(one) for one in there]), short)


REMOVAL = Statement(
    "The advantage is smaller the smaller the ε of certified removal is",
    "certified removal",
    "the Advantage monotonically decreases as ε decreases",
    "yes where the advantage at the smallest ε is below that at the largest, beyond both intervals, and rises beyond "
    "them from no ε to the next smaller; no where it rises so",
)


def removal_claim(stored: Stored | None) -> Claim:
    """The advantage against certified removal falls with its ε."""
    if stored is None:
        return REMOVAL.not_run
    table = stored.comparison
    trend = trend_of(table, ["Retrain"])
    holds = _holds(trend, if_rising="no", if_falling="yes")
    cells = [table.rows["advantage"][label].ours for label in trend.columns]
    known = [f"{plain(cell.value)} {bracket(cell.interval)}" for cell in cells if cell and cell.interval]
    alike = same_models(stored)
    finding = f"the advantages are {', '.join(known)}" if known else "no interval over pairs is stored"
    finding += f"; at ε = {listed(alike)} the models are the same, so nothing can fall there" if alike else ""
    return REMOVAL.judged(holds, finding + lacking(trend.missing), source_of(stored))


def same_models(stored: Stored) -> list[str]:
    """Columns of certified removal whose methods gave the very same models, no budget being exceeded. Known only where
    games say how many were."""
    labels: list[str] = []
    models: set[tuple[tuple[str, tuple[float, ...]], ...]] = set()
    for column in suite(stored.comparison.name, stored.comparison.scale).columns:
        game = stored.games.get(column.label)
        found = None if game is None else game.methods.get(column.method)
        if found is not None and found.facts.get("retrainings") == 0:
            labels.append(column.label)
            models.add(tuple((name, tuple(one.by_pair)) for name, one in found.by_adversary.items()))
    return labels if len(labels) > 1 == len(models) else []
