"""Claims on how high Q and its rivals are: on easy and difficult data, and as the privacy budget ε grows."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from forgetgauge.suites.claim import APPROXIMATE, Claim, Verdict, counted, incomplete, named, source_of
from forgetgauge.suites.findings import Stored
from forgetgauge.suites.paper import PRINTED
from forgetgauge.suites.record import TableComparison
from forgetgauge.suites.scales import SCALES


def difficulty_claim(data: Stored | None, sizes: Stored | None) -> Claim:
    """MNIST > CIFAR-10 > CIFAR-100, for most methods."""
    told = (
        "Q tells easy data from difficult ones",
        "the Unlearning Quality of most unlearning methods is higher on MNIST while lower on CIFAR100, in comparison "
        "to those on CIFAR10",
        "for more than half of the six methods MNIST > CIFAR-10 > CIFAR-100 beyond their intervals",
    )
    if data is None or sizes is None:
        return Claim(*told, "not run")
    seven, one = data.comparison, sizes.comparison
    source = f"Tables 7 and 1 (η = 1.0), {seven.scale} scale"
    if seven.scale != one.scale or SCALES[seven.scale].fraction != 1.0:
        return Claim(*told, "not run", "no CIFAR-10 column has the share of the data that Table 7 has", source)
    places = [(seven, "MNIST"), (one, "1.0"), (seven, "CIFAR100")]
    rows = {m: [interval_of(table, m, label) for table, label in places] for m in APPROXIMATE}
    known = {m: [i for i in found if i is not None] for m, found in rows.items()}
    known = {m: found for m, found in known.items() if len(found) == len(places)}
    if any(label in table.not_run for table, label in places):
        return Claim(*told, "not run", "a column is missing", source)
    if not known:
        return Claim(*told, "undecided", "no intervals over pairs", source)
    ordered = [m for m, (easy, middle, hard) in known.items() if easy[0] > middle[1] and middle[0] > hard[1]]
    against = [m for m, (easy, middle, hard) in known.items() if easy[1] < middle[0] or middle[1] < hard[0]]
    half = len(APPROXIMATE) / 2
    verdict: Verdict = "confirmed" if len(ordered) > half else "not confirmed" if len(against) >= half else "undecided"
    n_open = len(APPROXIMATE) - len(ordered) - len(against)
    figure = f"in this order: {named(ordered)}; not in it: {named(against)}; open: {counted(n_open, 'method')}"
    return Claim(*told, verdict, figure, source)


def falling_claim(stored: Stored | None) -> Claim:
    """Q falls as ε grows, for every method but Retrain."""
    told = (
        "Q falls with ε",
        "should negatively correlate with ε. Indeed, empirically, we observe such a trend with high precision",
        "every method but Retrain has a lower Q at the largest ε than at the smallest, beyond their intervals, and "
        "none rises beyond them from one ε to the next",
    )
    if stored is None:
        return Claim(*told, "not run")
    trend = trend_of(stored.comparison)
    verdict: Verdict = "not confirmed" if trend.rising else "confirmed" if trend.all_fall else "undecided"
    return Claim(*told, verdict if trend.n_columns > 1 else "not run", trend.words, source_of(stored.comparison))


def rival_claim(name: str, words: str, stored: Stored | None) -> Claim:
    """A rival metric does not fall as ε grows: it rises somewhere."""
    told = (
        name,
        words,
        "some method but Retrain rises beyond its intervals from one ε to the next; not confirmed where all fall",
    )
    if stored is None:
        return Claim(*told, "not run")
    trend = trend_of(stored.comparison)
    verdict: Verdict = "confirmed" if trend.rising else "not confirmed" if trend.all_fall else "undecided"
    return Claim(*told, verdict if trend.n_columns > 1 else "not run", trend.words, source_of(stored.comparison))


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
        """As a figure."""
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
