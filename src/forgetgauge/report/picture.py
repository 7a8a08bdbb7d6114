"""Where things stand in the report's pictures: numbers in, positions out.

Across, positions are percentages, so that one picture serves a telephone and a wide screen without scaling its letters.
Nothing here writes markup. Each method has one marker, the same in every picture of a page, told apart by form and by
colour.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from forgetgauge.results.record import Result, by_quality, role_of

_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2)
_MAX_INTERVALS = 5  # more tick labels than this run into each other on a telephone
_LEAST_SPAN = 0.1  # a picture of chance differences alone must not look like a picture of large ones
_LABEL_LETTERS = 16
_LOG_RATIO = 30  # values that span more than this are shown on a logarithmic axis
HEIGHT_PX = 260
_SHIFT_PX = 3  # between the lines of neighbouring methods, so that their intervals do not hide each other
CIRCLE, SQUARE, DIAMOND, UP, DOWN, PLUS, CROSS, RING = range(8)
"""The marks by number, in the order in which the template draws them."""
_FORMS = (CIRCLE, UP, DOWN, PLUS, CROSS, RING)
_COLOURS = ("c0", "c1", "c3", "c4", "c5", "c6")


@dataclass(frozen=True)
class Scale:
    """An axis from `low` to `high`; `percent` maps it onto 0 … 100 and keeps what lies outside at the ends."""

    low: float
    high: float
    ticks: tuple[float, ...] = ()
    logarithmic: bool = False

    def percent(self, value: float) -> float:
        """How far along the axis a value stands."""
        low, high, at = (math.log(v) if self.logarithmic else v for v in (self.low, self.high, value))
        share = (at - low) / (high - low) if high > low else 0.5
        return round(100 * min(max(share, 0.0), 1.0), 2)


def quality_scale(least: Iterable[float]) -> Scale:
    """An axis of Q that ends at 1 and starts at a round number at or below all that must be shown."""
    span = min(1.0, max(_LEAST_SPAN, 1 - min(least, default=1.0)))
    step = next(step for step in _STEPS if span <= _MAX_INTERVALS * step * (1 + 1e-9))
    n_steps = math.ceil(span / step - 1e-9)
    ticks = tuple(round(1 - i * step, 2) for i in range(n_steps, -1, -1))
    return Scale(ticks[0], 1.0, ticks)


def advantage_scale(advantages: Iterable[float]) -> Scale:
    """An axis of signed advantages that holds 0, all that are given, and a little air."""
    shown = [0.0, *advantages]
    air = max(0.06 * (max(shown) - min(shown)), 0.005)
    return Scale(min(shown) - air, max(shown) + air)


def value_scale(values: Sequence[float], logarithmic: bool | None = None) -> Scale:
    """An axis of values, each with its own tick; logarithmic, where nothing is said, if they span orders of
    magnitude."""
    low, high = min(values), max(values)
    if logarithmic is None:
        logarithmic = low > 0 and high / low >= _LOG_RATIO
    return Scale(low, high, tuple(sorted(set(values))), logarithmic)


@dataclass(frozen=True)
class Point:
    """One Q of a curve: `x` in percent, the rest in pixels from the top."""

    x: float
    y: float
    top: float
    bottom: float


@dataclass(frozen=True)
class Segment:
    """A line between neighbouring values."""

    start: Point
    end: Point


@dataclass(frozen=True)
class Series:
    """One method's way through the values."""

    name: str
    points: tuple[Point, ...]
    segments: tuple[Segment, ...]
    """None across a value at which the method has no Q."""
    label_y: float
    shift: float
    """Pixels to the right of where its values stand."""

    @property
    def label(self) -> str:
        """The name, cut where it would leave no room for the picture."""
        return self.name if len(self.name) <= _LABEL_LETTERS else f"{self.name[: _LABEL_LETTERS - 1]}…"


@dataclass(frozen=True)
class Overview:
    """Q against a number: the swept value, or how many queries an adversary has."""

    height: int
    values: Scale
    quality: Scale
    series: tuple[Series, ...]
    rings: tuple[Point, ...] = ()
    """Points that stand out."""
    limit: float | None = None
    """Where something ends, in percent of the way across."""

    def y(self, quality: float) -> float:
        """Pixels from the top, where Q = 1 is."""
        return height(self.quality, quality, self.height)

    @property
    def label_width(self) -> int:
        """Pixels for the longest label and the marker before it."""
        return 30 + 7 * max((len(series.label) for series in self.series), default=0)


Estimate = tuple[float, float, float]
"""Q, and the low and the high end of its interval."""


def overview(
    values: Sequence[float],
    by_method: Mapping[str, Sequence[Estimate | None]],
    *,
    logarithmic: bool | None = None,
) -> Overview:
    """The picture of one curve per method; `by_method` holds one estimate, or None, for each value."""
    across = value_scale(values, logarithmic)
    up = quality_scale(low for estimates in by_method.values() for found in estimates if found for low in found[:2])
    order = sorted(range(len(values)), key=lambda i: values[i])

    def place(i: int, found: Estimate) -> Point:
        y, bottom, top = (height(up, quality, HEIGHT_PX) for quality in found)
        return Point(across.percent(values[i]), y, top, bottom)

    ways = {
        name: [place(i, found) if (found := estimates[i]) else None for i in order]
        for name, estimates in by_method.items()
    }
    lasts = {name: [point for point in way if point] for name, way in ways.items()}
    shown = [name for name, points in lasts.items() if points]
    label_ys = spread([lasts[name][-1].y for name in shown], gap=17, low=0, high=HEIGHT_PX)
    series = tuple(
        Series(name, tuple(lasts[name]), _segments(ways[name]), label_y, _SHIFT_PX * (i - (len(shown) - 1) / 2))
        for i, (name, label_y) in enumerate(zip(shown, label_ys, strict=True))
    )
    return Overview(HEIGHT_PX, across, up, series)


def magnitude(interval: tuple[float, float]) -> tuple[float, float]:
    """The interval of Q = 1 − |advantage| that follows from one of a signed advantage."""
    low, high = interval
    return 1 - max(abs(low), abs(high)), 1 - max(0.0, low, -high)


def spread(wanted: Sequence[float], *, gap: float, low: float, high: float) -> list[float]:
    """Positions near those wanted, in their order, at least `gap` apart and, where there is room, within the ends."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    placed = [0.0] * len(wanted)
    floor = low
    for i in order:
        placed[i] = max(wanted[i], floor)
        floor = placed[i] + gap
    ceiling = max(high, low + gap * (len(wanted) - 1))
    for i in reversed(order):
        placed[i] = min(placed[i], ceiling)
        ceiling = placed[i] - gap
    return [round(position, 1) for position in placed]


def height(scale: Scale, value: float, n_pixels: int = HEIGHT_PX) -> float:
    """Pixels from the top, where the scale ends."""
    return round(n_pixels * (1 - scale.percent(value) / 100), 1)


def _segments(way: Sequence[Point | None]) -> tuple[Segment, ...]:
    return tuple(Segment(a, b) for a, b in pairwise(way) if a and b)


@dataclass(frozen=True)
class Marker:
    """How a method is drawn."""

    form: int
    colour: str
    """A class of the style sheet."""
    dashed: bool = False


REFERENCES = {"retrain": Marker(DIAMOND, "retrain"), "none": Marker(SQUARE, "none")}


def markers_of(result: Result) -> dict[str, Marker]:
    """Of every method: Retrain is a diamond, None a square, the others as they come, highest Q first."""
    roles = {name: role_of(game, name) for game in result.games for name, _ in by_quality(game.methods)}
    tested = tested_markers(name for name, role in roles.items() if role == "tested")
    return {name: REFERENCES.get(role) or tested[name] for name, role in roles.items()}


def tested_markers(names: Iterable[str]) -> dict[str, Marker]:
    """Forms and colours go round at different paces: 36 methods differ."""
    return {
        name: Marker(_FORMS[i % len(_FORMS)], _COLOURS[(i + i // len(_FORMS)) % len(_COLOURS)], i >= len(_FORMS))
        for i, name in enumerate(names)
    }
