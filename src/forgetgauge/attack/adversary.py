"""What every adversary promises: fitted without knowing which points are in F, one function for both sides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from forgetgauge.attack.signals import Signals, read_only
from forgetgauge.game.adversary import Access
from forgetgauge.game.arrays import Floats
from forgetgauge.probing import attribute, has
from forgetgauge.tasks.classification import CLASSIFICATION
from forgetgauge.tasks.task import Labels, Task

Arrays = Mapping[str, npt.NDArray[Any]]


class Need(StrEnum):
    """What an adversary may ask for beyond shadow models on the shadow half; it is made only where one asks."""

    REFERENCES = "references"
    """Models trained on random parts of D, drawn independently of every split."""
    OUTSIDERS = "outsiders"
    """The shadow models' signals on D, whose points they never saw."""
    BACKGROUND = "background"
    """The attacked model's signals on the shadow half, whose points it never saw."""
    UNLEARNED = "unlearned"
    """Shadow and reference models that passed through the same unlearner: the adversary is fitted once per method."""
    GRADIENT_NORM = "gradient-norm"
    """A white-box column: the norm of the loss gradient at the point."""
    LANDSCAPE = "landscape"
    """A white-box column: how much the loss at the point rises when the weights are shaken."""
    RELEARNED = "relearned"
    """A white-box column: the loss at the point after some training on the adversary's own data."""
    AUGMENTED = "augmented"
    """A column of further queries: how many altered copies of the point are given its label. Labels alone are asked."""


WHITE_BOX_COLUMNS = (Need.GRADIENT_NORM, Need.LANDSCAPE, Need.RELEARNED)
COLUMNS = (*WHITE_BOX_COLUMNS, Need.AUGMENTED)
"""Numbers about a point that are computed beside the model, since its outputs for the point do not give them."""


class Role(IntEnum):
    """What a model had to do with a point."""

    NEITHER = -1
    """Not to be used: in an unlearned panel, a point that was trained on and retained."""
    OUT = 0
    """Never seen."""
    IN = 1
    """Trained on; in an unlearned panel, trained on and then forgotten."""


@dataclass(frozen=True)
class Panel:
    """Several models' signals on one set of points."""

    outputs: npt.NDArray[np.float32]
    """(n_models, n_points, n_outputs)."""
    labels: Labels
    """(n_points,)."""
    role: npt.NDArray[np.int8]
    """(n_models, n_points) of Role."""
    columns: Mapping[str, npt.NDArray[np.float32]] = field(default_factory=dict)
    """Columns that were asked for, each (n_models, n_points)."""
    task: Task = CLASSIFICATION
    """What outputs and labels mean."""

    def __post_init__(self) -> None:
        for name in ("outputs", "labels", "role"):
            object.__setattr__(self, name, read_only(getattr(self, name)))
        object.__setattr__(self, "columns", {name: read_only(column) for name, column in self.columns.items()})

    @property
    def n_models(self) -> int:
        """How many models."""
        return int(self.role.shape[0])

    def model(self, which: int) -> Signals:
        """One model's signals on all points."""
        columns = {name: column[which] for name, column in self.columns.items()}
        return Signals(self.outputs[which], self.labels, columns=columns, task=self.task)

    @cached_property
    def rows(self) -> tuple[Signals, npt.NDArray[np.bool_]]:
        """(signals, member) of all models one after another, without the rows that are not to be used."""
        used = (self.role != Role.NEITHER).ravel()
        labels = np.tile(self.labels, self.n_models)
        columns = {name: column.ravel()[used] for name, column in self.columns.items()}
        outputs = self.outputs.reshape(-1, self.outputs.shape[-1])[used]
        signals = Signals(outputs, labels[used], columns=columns, task=self.task)
        return signals, (self.role == Role.IN).ravel()[used]

    @property
    def row_model(self) -> npt.NDArray[np.int64]:
        """Which model each of `rows` is of."""
        used = (self.role != Role.NEITHER).ravel()
        return np.asarray(np.repeat(np.arange(self.n_models), self.role.shape[1])[used], dtype=np.int64)


@dataclass(frozen=True)
class TargetContext:
    """What fitting may know of the target half D: nothing that tells F from T."""

    n_classes: int
    """1 where labels are no classes."""
    references: Panel | None = None
    """Need.REFERENCES: on all points of D, in D's order."""
    outsiders: Panel | None = None
    """Need.OUTSIDERS: on all points of D, in D's order; every role is OUT."""


class Attack(Protocol):
    """A fitted adversary: a fixed function of a model's signals."""

    def score(self, signals: Signals) -> Floats:
        """(n,) larger is more member-like."""
        ...

    def decide(self, signals: Signals) -> npt.NDArray[np.bool_]:
        """(n,) A(m, x) = 1: “x was in the forget set”, by margins that are at least 0."""
        return self.margin(signals) >= 0

    def margin(self, signals: Signals) -> Floats:
        """(n,) how far the score is above the threshold that applies to each point."""
        ...

    def arrays(self) -> Arrays:
        """All it learned, to be stored."""
        ...


Calibration = tuple[tuple[Floats, Floats], ...]
"""Of each shadow model: (margins of its members, margins of its others), none of them from the fit of that model."""

LARGEST_MARGIN = 1e300


def calibration_of(adversary: Adversary, attack: Attack, shadows: Panel) -> Calibration:
    """What a strong adversary chooses its threshold on: margins on the shadow half.

    Attacks that lean on models at each point of D have them from the shadow models they left out, as `calibration`, or
    not at all: a likelihood ratio needs none, its threshold is 0 for any number of queries.
    """
    if attribute(adversary, "needs", frozenset()) & {Need.REFERENCES, Need.OUTSIDERS, Need.BACKGROUND}:
        return _checked_calibration(attribute(attack, "calibration", ()))
    signals, member = shadows.rows
    margin, model = margin_of(attack, signals), shadows.row_model
    return tuple(
        (margin[(model == which) & member], margin[(model == which) & ~member]) for which in range(shadows.n_models)
    )


def margin_of(attack: Attack, signals: Signals) -> Floats:
    """(n,) finite margins; an attack of the user's that has none is given its decisions, ±½."""
    if not has(attack, "margin"):
        return np.where(_checked_decisions(attack.decide(signals), len(signals)), 0.5, -0.5)
    margins = _checked_margins("margin", attack.margin(signals))
    if len(margins) != len(signals):
        raise ValueError(
            f"margin gave an array of shape {margins.shape}, not one number for each of {len(signals)} points"
        )
    return margins


def answers_of(attack: Attack, signals: Signals, order: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.bool_], Floats]:
    """(says_forget, margin), each (n,), of an attack that is shown the points in this order; in the signals' own."""
    shown = signals.take(order)
    says_forget, margin = np.empty(len(order), dtype=bool), np.empty(len(order))
    says_forget[order] = _checked_decisions(attack.decide(shown), len(order))
    margin[order] = margin_of(attack, shown)
    return says_forget, margin


def _checked_decisions(answer: Any, n_points: int) -> npt.NDArray[Any]:
    decisions = np.asarray(answer)
    if decisions.shape != (n_points,):
        raise ValueError(
            f"decide gave an array of shape {decisions.shape}, not one boolean for each of {n_points} points"
        )
    if decisions.dtype != np.bool_ and not (decisions.dtype.kind in "iu" and np.isin(decisions, (0, 1)).all()):
        raise ValueError(
            f"decide gave values of type {decisions.dtype}, not booleans (True: the point was in the forget set)"
        )
    return decisions


def _checked_margins(source: str, given: Any) -> Floats:
    """(n,) in double precision, infinite ones cut; `source` is who gave them."""
    margins = np.asarray(given, dtype=np.float64)
    if margins.ndim != 1:
        raise ValueError(f"{source} gave an array of shape {margins.shape}, not one number for each point")
    if np.isnan(margins).any():
        raise ValueError(f"{source} gave NaN")
    clipped: Floats = np.clip(margins, -LARGEST_MARGIN, LARGEST_MARGIN)
    return clipped


def _checked_calibration(given: Any) -> Calibration:
    try:
        sides = [(members, others) for members, others in given]
    except (TypeError, ValueError):
        raise ValueError(
            "calibration is not, for each shadow model, the margins of its members and of others"
        ) from None
    return tuple(
        (_checked_margins("calibration", members), _checked_margins("calibration", others)) for members, others in sides
    )


@runtime_checkable
class Adversary(Protocol):
    """A of the paper, before it has seen anything.

    A new one is a dataclass with these members, registered by name or named `module:Class`; one that has `reads`, the
    names of the task's signals that it cannot do without, is refused where the task lacks one of them; and one that has
    `least_left_out`, where no shadow model has so many points that neither it nor another one was trained on::

        @dataclass(frozen=True)
        class AlwaysForget:
            access = Access.BLACK_BOX
            needs = frozenset()
            def fit(self, shadows, target):
                return self.load({})
            def load(self, arrays):
                return MyAttack()
    """

    @property
    def access(self) -> Access:
        """What it must see of a model."""
        ...

    @property
    def needs(self) -> frozenset[Need]:
        """What it asks for besides shadow models."""
        ...

    def fit(self, shadows: Panel, target: TargetContext) -> Attack:
        """Learn from models on the shadow half, and from what it asked for of the target half."""
        ...

    def load(self, arrays: Arrays) -> Attack:
        """The attack again from what it stored."""
        ...
