"""Where things stand in the experiment's figure: numbers in, pixels out. Nothing here writes markup."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from forgetgauge.report.picture import Scale, advantage_scale
from forgetgauge.suites.splits_record import SwapVsRandom
from forgetgauge.wording import plain, signed

WIDTH = 860
LEFT, RIGHT = 190, 640
"""Between these the axes run; names stand to the left, numbers to the right."""
STRIP, GAP, HEAD, FOOT = 40, 12, 46, 42
_LANES = (0, -5, 5, -10, 10)
"""Pixels by which neighbouring dots give way to each other."""
_STEPS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
_MAX_TICKS = 7


@dataclass(frozen=True)
class Dot:
    """One repetition."""

    x: float
    y: float


@dataclass(frozen=True)
class Strip:
    """All repetitions of one method in one grouping."""

    method: str
    """Written at the first of a method's two strips alone."""
    grouping: str
    y: float
    dots: tuple[Dot, ...]
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
class Panel:
    """Strips over one axis."""

    title: str
    top: float
    bottom: float
    strips: tuple[Strip, ...]
    ticks: tuple[Tick, ...]
    axis: str


Row = tuple[str, str, Sequence[float], float, float, str]
"""(method, grouping, values, mean, deviation, note)."""


def panels(found: SwapVsRandom) -> list[Panel]:
    """Advantages of the loudest adversary, Q, and the look-up adversary, one above the other."""
    name = found.adversary
    placed = [_panel(0, f"Signed advantage of the {name} adversary", "½ (Adv₁ + Adv₂)", _advantages(found), None, 0.0)]
    rows = _qualities(found)
    least = min(value for row in rows for value in row[2])
    title = "Unlearning Quality: 1 − the largest |advantage| of the repetition"
    placed.append(_panel(placed[-1].bottom, title, "Q", rows, Scale(least - 0.01, 1.0), 1.0))
    title = "The look-up adversary of Proposition 3.9, against any method, Retrain included"
    placed.append(_panel(placed[-1].bottom, title, "½ (Adv₁ + Adv₂)", _lookup(found), Scale(-0.05, 1.05), 0.0))
    return placed


def _advantages(found: SwapVsRandom) -> list[Row]:
    rows: list[Row] = []
    for name, method in found.methods.items():
        of = method.by_adversary[found.adversary]
        for grouping, values, deviation in (
            ("swap pairs", of.swap, of.swap_deviation.value),
            ("random splits", of.random, of.random_deviation.value),
        ):
            rows.append((name, grouping, values, of.mean, deviation, f"mean {signed(of.mean)}, sd {plain(deviation)}"))
    return rows


def _qualities(found: SwapVsRandom) -> list[Row]:
    rows: list[Row] = []
    for name, method in found.methods.items():
        q = method.quality
        for grouping, values, mean, deviation in (
            ("swap pairs", q.swap, q.swap_mean, q.swap_deviation.value),
            ("random splits", q.random, q.random_mean, q.random_deviation.value),
        ):
            rows.append((name, grouping, values, mean, deviation, f"mean {plain(mean)}, sd {plain(deviation)}"))
    return rows


def _lookup(found: SwapVsRandom) -> list[Row]:
    unlimited = found.lookup[-1]
    return [
        ("look-up", grouping, values, float(np.mean(values)), float(np.std(values)), f"{np.mean(values):.2f}")
        for grouping, values in (("swap pairs", unlimited.swap), ("random splits", unlimited.random))
    ]


def _panel(top: float, title: str, axis: str, rows: Sequence[Row], scale: Scale | None, ideal: float) -> Panel:
    scale = scale or advantage_scale(value for row in rows for value in row[2])
    strips, y = [], top + HEAD
    for i, row in enumerate(rows):
        strips.append(_strip(row, y + STRIP / 2, scale, named=i == 0 or rows[i - 1][0] != row[0]))
        y += STRIP + (GAP if i + 1 < len(rows) and rows[i + 1][0] != row[0] else 0)
    ticks = tuple(
        Tick(_x(scale, at), "0" if at == 0 else f"{at:g}".replace("-", "−"), at == ideal) for at in _ticks(scale)
    )
    return Panel(title, top, y + FOOT, tuple(strips), ticks, axis)


def _strip(row: Row, y: float, scale: Scale, *, named: bool) -> Strip:
    method, grouping, values, mean, deviation, note = row
    dots = tuple(Dot(_x(scale, value), y + _LANES[i % len(_LANES)]) for i, value in enumerate(sorted(values)))
    return Strip(
        method=method if named else "",
        grouping=grouping,
        y=y,
        dots=dots,
        mean=_x(scale, mean),
        low=_x(scale, mean - deviation),
        high=_x(scale, mean + deviation),
        note=note,
        hollow=grouping == "random splits",
    )


def _ticks(scale: Scale) -> list[float]:
    """Round numbers inside the axis."""
    step = next((s for s in _STEPS if (scale.high - scale.low) / s <= _MAX_TICKS), 1.0)
    first = math.ceil(scale.low / step - 1e-9)
    return [round(i * step, 6) for i in range(first, math.floor(scale.high / step + 1e-9) + 1)]


def _x(scale: Scale, value: float) -> float:
    return round(LEFT + (RIGHT - LEFT) * scale.percent(value) / 100, 1)
