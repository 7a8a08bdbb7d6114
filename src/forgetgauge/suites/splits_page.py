"""What the experiment on splits says: a sentence or two, a table, a figure as an SVG file, and the page around it.

All of it is made from the record alone, and loads nothing; the same record gives the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from forgetgauge.report.html import template_of
from forgetgauge.report.picture import Scale, advantage_scale
from forgetgauge.report.table import align
from forgetgauge.suites.paper import PRINTED
from forgetgauge.suites.spread import AdversaryRecord, LookupRecord, MethodRecord, QualityRecord, SwapVsRandom
from forgetgauge.suites.tables import DATA_NAMES
from forgetgauge.wording import bracket, counted, listed, plain, setting, signed


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


def spread_rows(found: SwapVsRandom) -> list[list[str]]:
    """For the page of all tables: Q of a repetition in both groupings, and which scatters more."""
    ratio = f"variance of the {found.adversary} advantage, random over swap"
    rows = [["method", "Q on swap pairs", "Q on random splits", f"{ratio} [{100 * found.level:g} %]"]]
    for name, method in found.methods.items():
        q = method.quality
        means = [(q.swap_mean, q.swap_deviation.value), (q.random_mean, q.random_deviation.value)]
        shown = [f"{plain(mean)} ± {plain(deviation)}" for mean, deviation in means]
        rows.append([PRINTED.get(name, name), *shown, _ratio(method.by_adversary[found.adversary])])
    return rows


def splitting_setting(found: SwapVsRandom) -> str:
    """`12 repetitions on CIFAR-10, α = 0.1, 20 epochs`."""
    data, epochs = found.settings["data"], found.settings["learner"]["params"].get("epochs")
    trained = "" if epochs is None else f", {counted(epochs, 'epoch')}"
    return f"{found.repetitions} repetitions on {DATA_NAMES.get(data, data)}, α = {found.settings['alpha']}{trained}"


def spread_words(found: SwapVsRandom) -> str:
    """For which methods random splits scatter more, and what the look-up adversary makes of both."""
    records = {name: method.by_adversary[found.adversary] for name, method in found.methods.items()}
    ends = {name: record.variance_ratio_interval for name, record in records.items()}
    more = [PRINTED.get(name, name) for name, interval in ends.items() if interval and interval[0] > 1]
    less = [PRINTED.get(name, name) for name, interval in ends.items() if interval and interval[1] < 1]
    rest = "" if len(more) + len(less) == len(ends) else "; for the others it is open"
    swap, random = (float(np.mean(values)) for values in (found.lookup[-1].swap, found.lookup[-1].random))
    return (
        f"Random splits scatter more, beyond the interval, for {listed(more) or 'no method'}, and less for "
        f"{listed(less) or 'no method'}{rest}. The look-up adversary, who looks at no model and may ask for any "
        f"number of points, has an advantage of {swap:.2f} on swap pairs and of {random:.2f} on random splits, against "
        "Retrain as against any other method: that is why splits come in swap pairs."
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


def splits_text(found: SwapVsRandom) -> str:
    """All numbers and what they say, for a terminal."""
    return f"{splits_table(found)}\n\n{found.takeaway}"


def splits_table(found: SwapVsRandom) -> str:
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


WIDTH = 860
LEFT, RIGHT = 190, 640
"""Between these the axes run; names stand to the left, numbers to the right."""
STRIP, GAP, HEAD, FOOT = 40, 12, 46, 42
_LANES = (0, -5, 5, -10, 10)
"""Pixels by which neighbouring dots give way to each other."""
_STEPS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
_MAX_TICKS = 7


@dataclass(frozen=True)
class Scatter:
    """All repetitions of one method in one grouping."""

    method: str
    """Written at the first of a method's two strips alone."""
    grouping: str
    y: float
    dots: tuple[tuple[float, float], ...]
    """(x, y) of each."""
    mean: float
    low: float
    high: float
    """Mean ± one deviation."""
    note: str
    hollow: bool


@dataclass(frozen=True)
class Tick:
    """A labelled place of an axis."""

    x: float
    label: str
    ideal: bool
    """Where nothing is left to see: advantage 0, Q = 1."""


@dataclass(frozen=True)
class FigurePanel:
    """Strips of dots over one axis."""

    title: str
    top: float
    bottom: float
    strips: tuple[Scatter, ...]
    ticks: tuple[Tick, ...]
    axis: str


GROUPINGS = ("swap pairs", "random splits")

Row = tuple[str, str, Sequence[float], float, float, str]
"""(method, grouping, values, mean, deviation, note)."""


def panels(found: SwapVsRandom) -> list[FigurePanel]:
    """Advantages of the loudest adversary, Q, and the look-up adversary, one above the other."""
    name, methods = found.adversary, found.methods
    each = {method: record.by_adversary[name] for method, record in methods.items()}
    rows = [row for method, of in each.items() for row in _rows(method, of, (of.mean, of.mean), signed)]
    placed = [_panel(0, f"Signed advantage of the {name} adversary", "½ (Adv₁ + Adv₂)", rows, None, 0.0)]
    by_q = {method: record.quality for method, record in methods.items()}
    rows = [row for method, q in by_q.items() for row in _rows(method, q, (q.swap_mean, q.random_mean), plain)]
    least = min(value for row in rows for value in row[2])
    title = "Unlearning Quality: 1 − the largest |advantage| of the repetition"
    placed.append(_panel(placed[-1].bottom, title, "Q", rows, Scale(least - 0.01, 1.0), 1.0))
    title = "The look-up adversary of Proposition 3.7, against any method, Retrain included"
    placed.append(_panel(placed[-1].bottom, title, "½ (Adv₁ + Adv₂)", _lookup(found), Scale(-0.05, 1.05), 0.0))
    return placed


def _rows(
    method: str, of: AdversaryRecord | QualityRecord, means: tuple[float, float], shown: Callable[[float], str]
) -> list[Row]:
    """One row for each grouping."""
    values, deviations = (of.swap, of.random), (of.swap_deviation.value, of.random_deviation.value)
    return [
        (method, grouping, each, mean, deviation, f"mean {shown(mean)}, sd {plain(deviation)}")
        for grouping, each, mean, deviation in zip(GROUPINGS, values, means, deviations, strict=True)
    ]


def _lookup(found: SwapVsRandom) -> list[Row]:
    unlimited = found.lookup[-1]
    return [
        ("look-up", grouping, values, float(np.mean(values)), float(np.std(values)), f"{np.mean(values):.2f}")
        for grouping, values in zip(GROUPINGS, (unlimited.swap, unlimited.random), strict=True)
    ]


def _panel(top: float, title: str, axis: str, rows: Sequence[Row], scale: Scale | None, ideal: float) -> FigurePanel:
    scale = scale or advantage_scale(value for row in rows for value in row[2])
    strips, y = [], top + HEAD
    for i, row in enumerate(rows):
        strips.append(_strip(row, y + STRIP / 2, scale, named=i == 0 or rows[i - 1][0] != row[0]))
        y += STRIP + (GAP if i + 1 < len(rows) and rows[i + 1][0] != row[0] else 0)
    ticks = tuple(
        Tick(_x(scale, at), "0" if at == 0 else f"{at:g}".replace("-", "−"), at == ideal) for at in _ticks(scale)
    )
    return FigurePanel(title, top, y + FOOT, tuple(strips), ticks, axis)


def _strip(row: Row, y: float, scale: Scale, *, named: bool) -> Scatter:
    method, grouping, values, mean, deviation, note = row
    dots = tuple((_x(scale, value), y + _LANES[i % len(_LANES)]) for i, value in enumerate(sorted(values)))
    return Scatter(
        method=method if named else "",
        grouping=grouping,
        y=y,
        dots=dots,
        mean=_x(scale, mean),
        low=_x(scale, mean - deviation),
        high=_x(scale, mean + deviation),
        note=note,
        hollow=grouping == GROUPINGS[1],
    )


def _ticks(scale: Scale) -> list[float]:
    """Round numbers inside the axis."""
    step = next((s for s in _STEPS if (scale.high - scale.low) / s <= _MAX_TICKS), 1.0)
    first = math.ceil(scale.low / step - 1e-9)
    return [round(i * step, 6) for i in range(first, math.floor(scale.high / step + 1e-9) + 1)]


def _x(scale: Scale, value: float) -> float:
    return round(LEFT + (RIGHT - LEFT) * scale.percent(value) / 100, 1)


def splits_figure(found: SwapVsRandom) -> str:
    """The figure, black on white; filled dots are swap pairs, hollow ones random splits."""
    placed = panels(found)
    sizes = {"width": WIDTH, "left": LEFT, "right": RIGHT, "strip": STRIP, "height": round(placed[-1].bottom)}
    return template_of("suites", "swap_vs_random.svg.j2").render(found=found, panels=placed, **sizes)


def splits_page(found: SwapVsRandom) -> str:
    """The page: takeaway, figure, how to read it, all numbers."""
    page = template_of("suites", "swap_vs_random.html.j2", setting=setting)
    return page.render(found=found, figure=splits_figure(found), table=splits_table(found))
