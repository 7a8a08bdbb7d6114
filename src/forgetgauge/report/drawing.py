"""A chart drawn: by matplotlib where it is installed, else as an SVG of our own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from forgetgauge.files import write_whole
from forgetgauge.report.chart import Chart
from forgetgauge.report.html import template
from forgetgauge.report.picture import Scale, spread
from forgetgauge.wording import setting, shortened, visible

COLOURS = ("#1d5d8c", "#b5541c", "#8a3a75", "#7a6a12", "#c0334d", "#3c4a9e")
"""Of methods under test, the report's; curves past the sixth begin again, and are told apart by their labels."""
REFERENCES = {"retrain": "#2f6f4f", "none": "#555b63"}
FORMS = {"retrain": "D", "none": "s", "tested": "o"}
"""Retrain is a diamond, None a square, all others are circles; as matplotlib calls them."""
BAND = "#2f6f4f"
WIDTH_PX, TOP_PX, FOOT_PX, ROW_PX, HEIGHT_PX = 680, 34, 54, 28, 300
AIR_PX = 16
_LETTER_PX, _LONGEST = 6.6, 44


@dataclass(frozen=True)
class Picture:
    """A picture as SVG, for where matplotlib is not installed: a notebook shows it, and `save` writes it to a file."""

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return "a picture: a notebook shows it, .save('picture.svg') writes it to a file"

    def save(self, path: str | Path) -> None:
        """Write the SVG to a file."""
        write_whole(Path(path), self.svg)


def drawn(chart: Chart, axes: Any = None) -> Any:
    """The matplotlib axes that it is drawn on, `axes` where they are given; without matplotlib, a `Picture`."""
    if axes is not None or find_spec("matplotlib") is not None:
        return _on_axes(chart, axes)
    return as_picture(chart)


# -- SVG ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Frame:
    """Where the axes of a chart stand, in pixels."""

    chart: Chart
    left: int
    right: int
    bottom: int

    def x(self, value: float) -> float:
        """Where a value lies across, in pixels; curves keep away from the ends."""
        air = 0 if self.chart.is_forest else AIR_PX
        return round(self.left + air + (self.right - self.left - 2 * air) * self.chart.x.percent(value) / 100, 1)

    def y(self, value: float) -> float:
        """Where a value, or a row of a forest plot, lies from the top, in pixels."""
        if self.chart.is_forest:
            return TOP_PX + ROW_PX * (value + 0.5)
        return round(self.bottom - (self.bottom - TOP_PX) * self.chart.y.percent(value) / 100, 1)

    def ends(self, interval: tuple[float, float]) -> tuple[float, float]:
        """Where the two ends of an interval of Q lie, in pixels."""
        low, high = (self.x(end) if self.chart.is_forest else self.y(end) for end in interval)
        return low, high


def as_picture(chart: Chart) -> Picture:
    """The chart as SVG."""
    names = [*(curve.name for curve in chart.curves), *([chart.y_label] if chart.is_forest else [])]
    longest = max((min(len(name), _LONGEST) for name in names), default=0)
    margin = round(34 + _LETTER_PX * longest)
    if chart.is_forest:
        frame = _Frame(chart, margin + 22, WIDTH_PX - 26, TOP_PX + ROW_PX * max(1, len(chart.curves)))
    else:
        frame = _Frame(chart, 74, WIDTH_PX - margin, TOP_PX + HEIGHT_PX)
    ends = [frame.y(curve.marks[-1].y) for curve in chart.curves]
    labels = spread(ends, gap=15, low=TOP_PX, high=frame.bottom) if not chart.is_forest else ends
    ways = list(zip(chart.curves, labels, strict=True))
    text = template("chart.svg.j2").render(
        chart=chart, frame=frame, ways=ways, colours=[colour(chart, i) for i in range(len(ways))], width=WIDTH_PX,
        height=frame.bottom + FOOT_PX, top=TOP_PX, band_colour=BAND, cut=lambda name: shortened(name, _LONGEST),
        number=_tick,
    )  # fmt: skip
    return Picture(visible(text))


def colour(chart: Chart, place: int) -> str:
    """The colour of a curve; the rows of a forest plot, which have names beside them, share one."""
    curve = chart.curves[place]
    if curve.role in REFERENCES:
        return REFERENCES[curve.role]
    before = sum(other.role not in REFERENCES for other in chart.curves[:place])
    return COLOURS[0 if chart.is_forest else before % len(COLOURS)]


def _tick(value: float) -> str:
    return setting(int(value)) if value == int(value) else f"{value:g}"


# -- matplotlib --------------------------------------------------------------------------------------------------------


def _on_axes(chart: Chart, axes: Any) -> Any:
    if axes is None:
        import matplotlib.pyplot as plt

        height = 1.3 + 0.33 * len(chart.curves) if chart.is_forest else 4.2
        _, axes = plt.subplots(figsize=(7.2, height), layout="constrained")
    if chart.band is not None:
        shade = axes.axvspan if chart.is_forest else axes.axhspan
        shade(*chart.band, color=BAND, alpha=0.15, linewidth=0, label="noise floor")
    if chart.limit is not None:
        axes.axvline(chart.limit, color="#555b63", linestyle="--", linewidth=1, label="the price")
    for place in range(len(chart.curves)):
        _draw_curve(chart, place, axes)
    axes.set_title(chart.title, fontsize="medium", loc="left")
    axes.set_xlabel(chart.x_label)
    axes.set_ylabel(chart.y_label)
    if chart.x.logarithmic:
        axes.set_xscale("log")
    axes.set_xlim(*_with_air(chart.x))
    axes.set_xticks(chart.x.ticks, [_tick(tick) for tick in chart.x.ticks])
    axes.minorticks_off()
    if chart.is_forest:
        axes.set_yticks(range(len(chart.curves)), [shortened(curve.name, _LONGEST) for curve in chart.curves])
        axes.set_ylim(max(1, len(chart.curves)) - 0.5, -0.5)
        axes.grid(axis="x", alpha=0.3)
    else:
        axes.set_ylim(chart.y.low, chart.y.high + 0.02 * (chart.y.high - chart.y.low))
        axes.grid(alpha=0.3)
    if chart.curves and not chart.is_forest:
        axes.legend(fontsize="small", frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return axes


def _with_air(scale: Scale) -> tuple[float, float]:
    """The ends of an axis, a little apart from what stands on it."""
    low, high = (math.log(end) if scale.logarithmic else end for end in (scale.low, scale.high))
    air = 0.04 * (high - low) or 0.5
    ends = low - air, high + air
    return (math.exp(ends[0]), math.exp(ends[1])) if scale.logarithmic else ends


def _draw_curve(chart: Chart, place: int, axes: Any) -> None:
    from matplotlib.transforms import ScaledTranslation

    curve, shade = chart.curves[place], colour(chart, place)
    moved = axes.transData + ScaledTranslation(chart.shift(place) / 72, 0, axes.figure.dpi_scale_trans)
    look = {"color": shade, "transform": moved}
    xs, ys = [mark.x for mark in curve.marks], [mark.y for mark in curve.marks]
    hollow = "white" if curve.role != "tested" else shade
    points = {"marker": FORMS[curve.role], "markerfacecolor": hollow, "linestyle": "none" if curve.has_gaps else "-"}
    axes.plot(xs, ys, label=curve.name, zorder=3, **points, **look)
    for line in curve.lines if curve.has_gaps else ():
        axes.plot([mark.x for mark in line], [mark.y for mark in line], zorder=3, **look)
    for mark in curve.marks:
        if mark.interval is not None and chart.is_forest:
            axes.plot(mark.interval, [mark.y] * 2, linewidth=1.6, marker="|", markersize=8, zorder=2, **look)
        elif mark.interval is not None:
            axes.plot([mark.x] * 2, mark.interval, linewidth=1.2, alpha=0.5, zorder=2, **look)
