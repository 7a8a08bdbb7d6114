"""What the experiment says, in a sentence or two and as a table; every number in them is of the record."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from forgetgauge.report.table import align
from forgetgauge.suites.splits_record import AdversaryRecord, LookupRecord, MethodRecord, SwapVsRandom
from forgetgauge.wording import bracket, listed, plain, signed


def takeaway(methods: Mapping[str, MethodRecord], adversary: str, lookup: LookupRecord) -> str:
    """Which grouping scatters less, and what the look-up adversary makes of both."""
    found = {name: method.by_adversary[adversary] for name, method in methods.items()}
    clauses = [f"{times(record)} for {name}" for name, record in found.items()]
    swap, random = (float(np.mean(values)) for values in (lookup.swap, lookup.random))
    return (
        f"The same models, grouped as random splits and not as swap pairs, give a variance of the {adversary} "
        f"advantage that is {listed(clauses)}{_caveats(methods, found)}. The look-up adversary, who looks at "
        f"no model, has an advantage of {swap:.2f} on swap pairs and of {random:.2f} on random splits, against Retrain "
        "as against any other method."
    )


def times(record: AdversaryRecord) -> str:
    """`1.9 times as large [1.4, 2.9]`."""
    if record.variance_ratio is None or record.variance_ratio_interval is None:
        return "not 0 as on swap pairs" if record.random_deviation.value > 0 else "0 as on swap pairs"
    low, high = record.variance_ratio_interval
    return f"{record.variance_ratio:.2f} times as large [{low:.2f}, {high:.2f}]"


def _caveats(methods: Mapping[str, MethodRecord], found: Mapping[str, AdversaryRecord]) -> str:
    """The ratios of all adversaries, lest the one drawn be taken for all; and where this run settles nothing."""
    ratios = [record.variance_ratio for method in methods.values() for record in method.by_adversary.values()]
    known = [ratio for ratio in ratios if ratio is not None]
    caveats = [f"{min(known):.2f} to {max(known):.2f} over all adversaries"] if len(known) > 1 else []
    intervals = {name: record.variance_ratio_interval for name, record in found.items()}
    unsettled = [name for name, interval in intervals.items() if interval and interval[0] <= 1 <= interval[1]]
    if unsettled:
        caveats.append(f"unsettled for {listed(unsettled)}, as 1 is in the interval")
    return f" ({'; '.join(caveats)})" if caveats else ""


def table(found: SwapVsRandom) -> str:
    """One row per method and adversary, then Q, then the look-up adversary."""
    level = f"{100 * found.level:g} %"
    rows = [["method", "adversary", "mean", "sd swap", "sd random", "ρ", f"variance ratio, {level} interval"]]
    for name, method in found.methods.items():
        for adversary, record in method.by_adversary.items():
            deviations = (plain(record.swap_deviation.value), plain(record.random_deviation.value))
            rho = "–" if record.correlation is None else f"{record.correlation:+.2f}".replace("-", "−")
            rows.append([name, adversary, signed(record.mean), *deviations, rho, _ratio(record)])
    quality = [["method", "Q swap", "Q random", f"sd swap, {level} interval", f"sd random, {level} interval"]]
    for name, method in found.methods.items():
        q = method.quality
        spreads = [f"{plain(d.value)} {bracket(d.interval)}" for d in (q.swap_deviation, q.random_deviation)]
        quality.append([name, plain(q.swap_mean), plain(q.random_mean), *spreads])
    lookup = [["look-up adversary", "swap pairs", "random splits"]]
    for asked in found.lookup:
        label = "any number of queries" if asked.queries is None else f"queries: {asked.queries}"
        lookup.append([label, plain(float(np.mean(asked.swap))), plain(float(np.mean(asked.random)))])
    return "\n\n".join(align(block) for block in (rows, quality, lookup))


def _ratio(record: AdversaryRecord) -> str:
    if record.variance_ratio is None or record.variance_ratio_interval is None:
        return "–"
    low, high = record.variance_ratio_interval
    return f"{record.variance_ratio:.2f} [{low:.2f}, {high:.2f}]"
