"""Where things stand in the pictures of Q along a knob. Values are drawn at equal steps; nothing here writes markup."""

from __future__ import annotations

from dataclasses import dataclass

from forgetgauge.suites.claim import counted
from forgetgauge.suites.knob_record import KnobCurve, KnobCurves, Measured
from forgetgauge.suites.paper import PRINTED

LEFT_PX, RIGHT_PX = 34, 316
TOP_PX, BOTTOM_PX = 14, 164
"""Of Q = 1 and Q = 0."""
HEIGHT_PX = 190


@dataclass(frozen=True)
class Dot:
    """One value of the knob, in pixels."""

    label: str
    x: float
    quality: float | None
    low: float | None
    high: float | None
    accuracy: float | None
    chosen: bool


@dataclass(frozen=True)
class CurvePicture:
    """One method."""

    name: str
    knob: str
    words: str
    """The same for who cannot see it."""
    dots: list[Dot]
    none: float | None
    retrain: float | None
    """Heights of the two yardsticks' Q."""

    @property
    def quality_line(self) -> str:
        """Points of the line through Q."""
        return " ".join(f"{dot.x:g},{dot.quality:g}" for dot in self.dots if dot.quality is not None)

    @property
    def accuracy_line(self) -> str:
        """Points of the line through accuracy."""
        return " ".join(f"{dot.x:g},{dot.accuracy:g}" for dot in self.dots if dot.accuracy is not None)


def curve_pictures(found: KnobCurves) -> list[CurvePicture]:
    """One for each method."""
    return [_picture(PRINTED[method], curve, found) for method, curve in found.curves.items()]


def _picture(name: str, curve: KnobCurve, found: KnobCurves) -> CurvePicture:
    step = (RIGHT_PX - LEFT_PX) / len(curve.values)
    dots = [
        _dot(value, point, LEFT_PX + (i + 0.5) * step, value == curve.chosen)
        for i, (value, point) in enumerate(zip(curve.values, curve.points, strict=True))
    ]
    said = [f"{curve.knob} {v:g}: {_words(p)}" for v, p in zip(curve.values, curve.points, strict=True)]
    mark = "chosen" if found.tuned else "default"
    words = f"{name}: {'; '.join(said)}; {mark} {curve.chosen:g}; None {_words(found.none)}"
    return CurvePicture(
        name,
        curve.knob,
        f"{words}; Retrain {_words(found.retrain)}",
        dots,
        _quality_height(found.none),
        _quality_height(found.retrain),
    )


def _dot(value: float, point: Measured, x: float, chosen: bool) -> Dot:
    low, high = (None, None) if point.quality is None else point.quality.interval or (None, None)
    return Dot(
        f"{value:g}", round(x, 1), _quality_height(point), _height(low), _height(high), _height(point.accuracy), chosen
    )


def _quality_height(point: Measured) -> float | None:
    return None if point.quality is None else _height(point.quality.value)


def _height(share: float | None) -> float | None:
    if share is None:
        return None
    return round(BOTTOM_PX - min(max(share, 0.0), 1.0) * (BOTTOM_PX - TOP_PX), 1)


def _words(point: Measured) -> str:
    if point.quality is None:
        return f"only {counted(point.pairs, 'pair')} completed" if point.pairs else "no pair completed"
    return f"Q {point.quality.value:.3f}" + ("" if point.accuracy is None else f", accuracy {point.accuracy:.3f}")
