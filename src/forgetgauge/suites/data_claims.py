"""Claims about levels of Q on one data set beside another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from forgetgauge.suites.findings import Stored
from forgetgauge.suites.paper import paper_table
from forgetgauge.suites.records import TableComparison
from forgetgauge.suites.tables import SCALES
from forgetgauge.suites.verdicts import (
    APPROXIMATE,
    BORROWED,
    MISSING,
    Claim,
    Verdict,
    interval_of,
    named,
    source_of,
)
from forgetgauge.wording import counted

NOT_COUNTED = "; not counted, since models are damaged in one of them: {}"
Place = tuple[TableComparison, str]
"""A table and one of its columns."""


def difficulty_claim(
    data: Stored | None, sizes: Stored | None, smaller: tuple[Stored | None, Stored | None] = (None, None)
) -> Claim:
    """MNIST > CIFAR-10 > CIFAR-100, for most methods; `smaller` are Tables 7 and 2 at small scale, which say something
    where the claim itself was not run."""
    statement = (
        "Q tells easy data from difficult ones",
        "the Unlearning Quality of most unlearning methods is higher on MNIST while lower on CIFAR100, in comparison "
        "to those on CIFAR10 and SST5",
        "for more than half of the six methods MNIST > CIFAR-10 > CIFAR-100 beyond their intervals, at paper scale, "
        "where all three have the same share of their data; methods that damage their models do not count",
    )
    beside, agrees = _at_smaller_scale(*smaller)
    if data is None or sizes is None:
        return Claim(*statement, "not run", beside, aside=agrees)
    seven, one = data.comparison, sizes.comparison
    source = f"Tables 7 and 1 (η = 1.0), {seven.scale} scale"
    if seven.scale != one.scale or SCALES[seven.scale].fraction != 1.0:
        return Claim(*statement, "not run", "no CIFAR-10 column has the share of the data that Table 7 has", source)
    places = [(seven, "MNIST"), (one, "1.0"), (seven, "CIFAR100")]
    if any(label in table.not_run for table, label in places):
        return Claim(
            *statement, "not run", "; ".join(filter(None, ["a column is missing", beside])), source, aside=agrees
        )
    found = _order(places)
    if not found.known:
        return Claim(*statement, "undecided", "no intervals over pairs", source, (MISSING,))
    counting = [m for m in found.known if m not in found.damaged]
    ordered, against = ([m for m in those if m in counting] for those in (found.ordered, found.against))
    half = len(APPROXIMATE) / 2
    verdict: Verdict = "confirmed" if len(ordered) > half else "not confirmed" if len(against) >= half else "undecided"
    n_open = len(counting) - len(ordered) - len(against)
    figure = f"in this order: {named(ordered)}; not in it: {named(against)}; open: {counted(n_open, 'method')}"
    if found.damaged:
        figure += NOT_COUNTED.format(named(found.damaged))
    if data.is_borrowed or sizes.is_borrowed:
        return Claim(*statement, "undecided", f"{figure}; {BORROWED}", source, (BORROWED,))
    return Claim(*statement, verdict, figure, source)


@dataclass(frozen=True)
class _Order:
    """Which methods have their Q in the order of three places."""

    known: Mapping[str, Sequence[tuple[float, float]]]
    ordered: Sequence[str]
    """Beyond all intervals."""
    against: Sequence[str]
    """With one step the other way round, beyond both intervals."""
    damaged: Sequence[str]


def _order(places: Sequence[Place]) -> _Order:
    rows = {m: [interval_of(table, m, label) for table, label in places] for m in APPROXIMATE}
    known = {m: [i for i in found if i is not None] for m, found in rows.items()}
    known = {m: found for m, found in known.items() if len(found) == len(places)}
    harmed = {m for table, label in places for m in table.lost_accuracy.get(label, {})}
    return _Order(
        known,
        [m for m, (easy, middle, hard) in known.items() if easy[0] > middle[1] and middle[0] > hard[1]],
        [m for m, (easy, middle, hard) in known.items() if easy[1] < middle[0] or middle[1] < hard[0]],
        [m for m in APPROXIMATE if m in harmed],
    )


def _at_smaller_scale(data: Stored | None, shares: Stored | None) -> tuple[str, str]:
    """What Tables 7 and 2 at small scale show, and why it decides nothing; and in short, where most methods have the
    order. Those that damage their models do not count here either."""
    if data is None or shares is None or data.comparison.scale != "small" or shares.comparison.scale != "small":
        return "", ""
    seven, two = data.comparison, shares.comparison
    places = [(seven, "MNIST"), (two, "0.1"), (seven, "CIFAR100")]
    found = _order(places)
    if not found.known or any(label in table.not_run for table, label in places):
        return "", ""
    counting, ordered = ([m for m in those if m not in found.damaged] for those in (found.known, found.ordered))
    figure = (
        f"at small scale in this order beyond intervals: {len(ordered)} of {counted(len(counting), 'method')}"
        " (Table 7, and Table 2 at α = 0.1 for CIFAR-10"
        f"{NOT_COUNTED.format(named(found.damaged)) if found.damaged else ''})"
    )
    against = len(ordered) <= len(APPROXIMATE) / 2
    why = (
        "; this decides nothing: CIFAR-10 has all of its data there and the others half, which alone lowers Q (Table "
        "1), and strengths are of two sorts"
    )
    return figure + why, "" if against else "small scale: same order, other shares of data"


def sentences_claim(stored: Stored | None) -> Claim:
    """SST-5 > CIFAR-100, for most methods: what the paper says of them, against its own numbers."""
    statement = (
        "Q is higher on SST-5 than on CIFAR-100",
        "the Unlearning Quality scores are higher on MNIST and SST5 while lower on CIFAR100, in comparison to those on "
        "CIFAR10",
        "more than half of the six methods have a higher Q on SST-5 than on CIFAR-100 beyond both intervals; not "
        "confirmed where half of them have a lower one; methods that damage their models do not count",
    )
    if stored is None:
        return Claim(*statement, "not run")
    table, labels = stored.comparison, ("SST5", "CIFAR100")
    printed = paper_table("table7").rows
    own = sum(cells["SST5"].mean > cells["CIFAR100"].mean for cells in printed.values())
    theirs = f"; the paper’s own numbers: {own} of {len(printed)} methods"
    if any(label in table.not_run for label in labels):
        return Claim(*statement, "not run", f"a column is missing{theirs}", source_of(stored))
    both = {m: [interval_of(table, m, label) for label in labels] for m in APPROXIMATE}
    damaged = {m for label in labels for m in table.lost_accuracy.get(label, {})}
    higher = [m for m, (words, images) in both.items() if words and images and words[0] > images[1]]
    lower = [m for m, (words, images) in both.items() if words and images and words[1] < images[0]]
    figure, half = f"higher: {named(higher)}; lower: {named(lower)}", len(APPROXIMATE) / 2
    higher, lower = ([m for m in those if m not in damaged] for those in (higher, lower))
    verdict: Verdict = "confirmed" if len(higher) > half else "not confirmed" if len(lower) >= half else "undecided"
    if out := [m for m in APPROXIMATE if m in damaged]:
        figure += NOT_COUNTED.format(named(out))
    if stored.is_borrowed:
        return Claim(*statement, "undecided", f"{figure}; {BORROWED}{theirs}", source_of(stored), (BORROWED,))
    return Claim(*statement, verdict, f"{figure}{theirs}", source_of(stored))
