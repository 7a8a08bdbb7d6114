"""`knobs.json`: Q and accuracy of four methods along their knobs. Table and pictures are made from it alone."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from forgetgauge.errors import UserError, unknown_name
from forgetgauge.suites.paper import PRINTED
from forgetgauge.suites.reading import read_strictly
from forgetgauge.suites.record import Ours, Sitting

SCHEMA = 1
_STRICT = {"extra": "forbid", "allow_inf_nan": False}  # read by pydantic in `read_strictly`; nothing here imports it
FILE = "knobs.json"


@dataclass(frozen=True)
class Measured:
    """One method at one setting."""

    __pydantic_config__: ClassVar[Any] = _STRICT
    quality: Ours | None
    """By the paper's estimator, as in the tables; None where a pair is missing: a Q over the models that did not
    diverge would be that of a selection."""
    accuracy: float | None
    pairs: int
    """Swap pairs that were completed."""


@dataclass(frozen=True)
class KnobCurve:
    """One method along its knob."""

    __pydantic_config__: ClassVar[Any] = _STRICT
    knob: str
    chosen: float
    """What the tables have."""
    values: list[float]
    """Weakest first."""
    points: list[Measured]
    """One for each value."""


@dataclass(frozen=True)
class KnobCurves:
    """All of them, in one game."""

    __pydantic_config__: ClassVar[Any] = _STRICT
    scale: str
    tuned: bool
    """Whether the chosen values were chosen, on the shadow half; else they are defaults."""
    curves: dict[str, KnobCurve]
    none: Measured
    retrain: Measured
    accuracy_on: str
    """`test`, or `unseen` where the data have no official test set."""
    basis: str | None
    """What the intervals are over."""
    notes: list[str]
    sittings: list[Sitting]
    work_s: float
    environment: dict[str, str]
    digests: dict[str, str]
    failures: list[str] = field(default_factory=list)
    """Jobs that failed, in words."""
    schema: int = SCHEMA

    def to_json(self) -> str:
        """The text of the file."""
        return json.dumps(dataclasses.asdict(self), indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def read_curves(path: Path) -> KnobCurves:
    """A validated record, or one line on what is wrong with the file."""
    found = read_strictly(path, KnobCurves)
    for method, curve in found.curves.items():
        if method not in PRINTED:
            raise UserError(f"{path}: curves: {unknown_name('method', method, PRINTED)}")
        if len(curve.points) != len(curve.values):
            raise UserError(f"{path}: curves.{method}: not one point for each value")
    return found
