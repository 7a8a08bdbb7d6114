"""What readers of a result take for granted of `GameResult.spec`, which may hold anything: checked when it is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from forgetgauge.records import validated

MOST = 2**53
"""Counts beyond it are no whole numbers to a program that computes with fractions."""


class _Known:
    """Whatever else is there is let be; a number is no text, and a text no number."""

    __pydantic_config__: ClassVar[Any] = {"extra": "ignore", "allow_inf_nan": False, "strict": True}


@dataclass(frozen=True)
class _Choice(_Known):
    name: str = ""
    params: dict[str, Any] = field(default_factory=dict)
    code: str = ""


@dataclass(frozen=True)
class _Method(_Known):
    unlearner: _Choice = field(default_factory=_Choice)
    learner: _Choice | None = None
    uses_original: bool = True


@dataclass(frozen=True)
class _Adversary(_Known):
    adversary: _Choice = field(default_factory=_Choice)
    needs: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Sensitivity(_Known):
    kind: str = ""
    digest: str = ""
    weights: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class _Spec(_Known):
    data: _Choice = field(default_factory=_Choice)
    learner: _Choice = field(default_factory=_Choice)
    methods: dict[str, _Method] = field(default_factory=dict)
    adversaries: dict[str, _Adversary] = field(default_factory=dict)
    sensitivity: _Sensitivity = field(default_factory=_Sensitivity)
    data_digest: str = ""
    interval: str = ""
    share_retrain: bool = False
    metrics: dict[str, Any] = field(default_factory=dict)
    until: dict[str, float] | None = None
    queries: list[int] = field(default_factory=list)
    level: float = 0.95
    delta: float = 0.0
    alpha: float = 0.5
    pairs: int = 1
    seeds: int = 1
    n_points: int = 0
    n_classes: int = 0
    n_retain: int = 0
    n_forget: int = 0
    by: str = "point"
    oracle: str = "point"
    n_groups: int = 0
    hardest: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.level < 1 or not 0 <= self.delta < 1:
            raise ValueError("level and delta are shares")
        counts = {name: getattr(self, name) for name in ("pairs", "seeds", "n_points", "n_retain", "n_forget")}
        odd = [f"{name} = {count} is no count" for name, count in counts.items() if not 0 <= count < MOST]
        if odd:
            raise ValueError(odd[0])


def refuse_odd_spec(path: Path, place: str, spec: Mapping[str, Any]) -> None:
    """One line that names the field, where a spec holds what no reader of it could cope with."""
    validated(path, _Spec, spec, place)
