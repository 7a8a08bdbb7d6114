"""A plain score function as an adversary: `@forgetgauge.adversary`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np

from forgetgauge.attack.adversary import COLUMNS, WHITE_BOX_COLUMNS, Arrays, Need, Panel, TargetContext
from forgetgauge.attack.signals import Floats, Signals
from forgetgauge.attack.threshold import ClassThresholds, ThresholdAttack
from forgetgauge.errors import UserError, unknown_name
from forgetgauge.game.adversary import Access

Function = Callable[..., Any]


@dataclass(frozen=True)
class ScoreFunction:
    """A function of signals that gives each point a score; thresholds come from the shadow models."""

    function: Function
    needs: frozenset[Need] = frozenset()
    either_way: bool = False
    by_class: bool = True
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The function's further arguments, which a run file may set."""

    @property
    def __name__(self) -> str:
        """The function's own: its name in a result where nobody gives it another."""
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    @property
    def access(self) -> Access:
        """White box where a column that it asks for is."""
        return Access.WHITE_BOX if self.needs & {*WHITE_BOX_COLUMNS} else Access.BLACK_BOX

    def __call__(self, signals: Signals) -> Floats:
        """(n,) the score of each point; ValueError says what is wrong with what the function gave."""
        with np.errstate(divide="ignore"):
            given = self.function(signals, **self.settings)
        try:
            score = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"{self.__name__} gave a {type(given).__name__}, not one number for each point") from None
        if score.shape != (len(signals),):
            raise ValueError(
                f"{self.__name__} gave an array of shape {score.shape}, not a number for each of {len(signals)} points"
            )
        if np.isnan(score).any():
            raise ValueError(f"{self.__name__} gave NaN")
        return np.clip(score, -LARGEST_SCORE, LARGEST_SCORE)

    def fit(self, shadows: Panel, target: TargetContext) -> ThresholdAttack:
        """Thresholds, and with `either_way` the orientation, that do best on the shadow models."""
        return self._thresholds.fit(shadows, target)

    def load(self, arrays: Arrays) -> ThresholdAttack:
        """The attack again."""
        return self._thresholds.load(arrays)

    @property
    def _thresholds(self) -> ClassThresholds:
        signs = (1, -1) if self.either_way else (1,)
        return ClassThresholds(self, self.access, self.needs, signs, self.by_class)


LARGEST_SCORE = 1e300
"""In the place of infinite scores, so that a difference of two of them is a number."""


@overload
def adversary(function: Function, /) -> ScoreFunction: ...
@overload
def adversary(
    *, either_way: bool = False, by_class: bool = True, columns: Sequence[str] = ()
) -> Callable[[Function], ScoreFunction]: ...
def adversary(
    function: Function | None = None,
    /,
    *,
    either_way: bool = False,
    by_class: bool = True,
    columns: Sequence[str] = (),
) -> ScoreFunction | Callable[[Function], ScoreFunction]:
    """Make an adversary of a function that gives each point a score, larger being more like a training point.

    Its first argument are the signals of one model on some points; the others, which need defaults, are parameters that
    a run file may set. Thresholds are learned from the shadow models, one per class (`by_class=False`: one for all);
    with `either_way=True` so is whether larger or smaller scores are those of training points. `columns` are numbers
    beyond the model's outputs that it reads in `signals.columns`: gradient-norm, landscape or augmented::

        @forgetgauge.adversary
        def sharpness(signals, power=1.0):
            return (signals.read("posterior") ** (1 + power)).sum(axis=1)
    """

    def made(function: Function) -> ScoreFunction:
        if not callable(function):
            raise UserError(f"adversary: a {type(function).__name__} is no score function")
        name = getattr(function, "__name__", type(function).__name__)
        for column in columns:
            if column not in COLUMNS:
                raise UserError(f"adversary '{name}': " + unknown_name("column", str(column), map(str, COLUMNS)))
        needs = frozenset(Need(column) for column in columns)
        return ScoreFunction(function, needs, either_way, by_class, _settings(name, function))

    return made if function is None else made(function)


def _settings(name: str, function: Function) -> dict[str, Any]:
    """The arguments after the first with their defaults."""
    further = list(inspect.signature(function).parameters.values())[1:]
    for one in further:
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            raise UserError(f"adversary '{name}': *{one.name} has no names that a run file could set: name them")
        if one.default is one.empty:
            raise UserError(
                f"adversary '{name}': argument '{one.name}' needs a default, as a run file may leave it out"
            )
    return {one.name: one.default for one in further}
