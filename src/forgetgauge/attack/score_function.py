"""A plain score function as an adversary: `@forgetgauge.adversary`.

A function of the signals alone is fitted as thresholds on all shadow models at once. One that also compares with other
models is fitted with each shadow model in the place of the target: the other shadow models that did not see a point are
then what all shadow models are to a point of D, none of which they saw.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from forgetgauge.attack.adversary import (
    COLUMNS,
    LARGEST_MARGIN,
    WHITE_BOX_COLUMNS,
    Arrays,
    Calibration,
    Need,
    Panel,
    Role,
    TargetContext,
)
from forgetgauge.attack.reference import needed, points_of
from forgetgauge.attack.signals import Signals
from forgetgauge.attack.threshold import ClassThresholds, ThresholdAttack, oriented_thresholds
from forgetgauge.errors import UserError, unknown_name
from forgetgauge.game.adversary import Access
from forgetgauge.game.arrays import Floats
from forgetgauge.probing import attribute

Function = Callable[..., Any]
OTHERS = "others"
"""The name of the second argument of a function that compares with other models."""


@dataclass(frozen=True)
class Others:
    """What other models say about the same points, as far as they did not see them."""

    panel: Panel

    def read(self, name: str) -> Floats:
        """(n_models, n) a signal of each model; NaN where it was trained on the point."""
        values = np.stack([self.panel.model(which).read(name) for which in range(self.panel.n_models)])
        unseen = (self.panel.role == Role.OUT).reshape(*self.panel.role.shape, *(1,) * (values.ndim - 2))
        return np.where(unseen, values, np.nan)

    def mean(self, name: str) -> Floats:
        """(n,) the mean of a signal over the models that did not see the point."""
        result: Floats = np.nanmean(self.read(name), axis=0)
        return result


@dataclass(frozen=True)
class ComparingAttack(ThresholdAttack):
    """A score that compares with models on D, against a threshold per class."""

    models: Panel | None = None
    calibration: Calibration = ()

    def arrays(self) -> Arrays:
        """The thresholds, and what the other models say about D."""
        assert self.models is not None
        return {**super().arrays(), "outputs": self.models.outputs, "labels": self.models.labels}


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
        return str(attribute(self.function, "__name__", type(self.function).__name__))

    @property
    def access(self) -> Access:
        """White box where a column that it asks for is."""
        return Access.WHITE_BOX if self.needs & {*WHITE_BOX_COLUMNS} else Access.BLACK_BOX

    @property
    def compares(self) -> bool:
        """Whether it looks at other models."""
        return Need.OUTSIDERS in self.needs

    @property
    def signs(self) -> tuple[int, ...]:
        """Larger first."""
        return (1, -1) if self.either_way else (1,)

    def __call__(self, signals: Signals, *others: Others) -> Floats:
        """(n,) the score of each point; ValueError says what is wrong with what the function gave."""
        with np.errstate(divide="ignore"):
            given = self.function(signals, *others, **self.settings)
        try:
            score = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"{self.__name__} gave a {type(given).__name__}, not one number for each point") from None
        if score.shape != (len(signals),):
            shape = f"an array of shape {score.shape}"
            raise ValueError(f"{self.__name__} gave {shape}, not one number for each of {len(signals)} points")
        if np.isnan(score).any():
            raise ValueError(f"{self.__name__} gave NaN")
        return np.clip(score, -LARGEST_MARGIN, LARGEST_MARGIN)

    def fit(self, shadows: Panel, target: TargetContext) -> ThresholdAttack:
        """Thresholds, and with `either_way` the orientation, that do best on the shadow models."""
        if not self.compares:
            return self._thresholds.fit(shadows, target)
        models = needed(target.outsiders, "the shadow models' signals on D")
        left_out = [self._left_out(shadows, which) for which in range(shadows.n_models)]
        scores, classes, member = (np.concatenate(part) for part in zip(*left_out, strict=True))
        thresholds, sign = oriented_thresholds(scores, classes, member, target.n_classes, self.signs)
        margins = [(sign * score - thresholds[of], saw) for score, of, saw in left_out]
        calibration = tuple((margin[saw], margin[~saw]) for margin, saw in margins)
        return ComparingAttack(partial(self._on_target, models), thresholds, sign, models, calibration)

    def _left_out(self, shadows: Panel, which: int) -> tuple[Floats, npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """(scores, classes, member) of one shadow model, by the others, where one of these did not see the point."""
        others = np.flatnonzero(np.arange(shadows.n_models) != which)
        if not len(others):
            raise ValueError("leaving one shadow model out needs two or more shadow models")
        judged = (shadows.role[which] != Role.NEITHER) & (shadows.role[others] == Role.OUT).any(axis=0)
        at = np.flatnonzero(judged)
        signals = shadows.model(which).take(at)
        scores = self(signals, Others(_part(shadows, others, at)))
        return scores, signals.classes if self.by_class else np.zeros_like(at), shadows.role[which, at] == Role.IN

    def _on_target(self, models: Panel, signals: Signals) -> Floats:
        at = points_of(signals, len(models.labels))
        return self(signals, Others(replace(_part(models, np.arange(models.n_models), at), task=signals.task)))

    def load(self, arrays: Arrays) -> ThresholdAttack:
        """The attack again."""
        if not self.compares:
            return self._thresholds.load(arrays)
        outputs = arrays["outputs"]
        models = Panel(outputs, arrays["labels"], np.full(outputs.shape[:2], Role.OUT, dtype=np.int8))
        scorer = partial(self._on_target, models)
        return ComparingAttack(scorer, arrays["thresholds"], int(arrays["sign"]), models)

    @property
    def _thresholds(self) -> ClassThresholds:
        return ClassThresholds(self, self.access, self.needs, self.signs, self.by_class)


def _part(panel: Panel, models: npt.NDArray[np.int64], points: npt.NDArray[np.int64]) -> Panel:
    """Some models on some points, without columns."""
    here = np.ix_(models, points)
    return Panel(panel.outputs[here], panel.labels[points], panel.role[here], task=panel.task)


# -- the decorator -----------------------------------------------------------------------------------------------------


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

    Its first argument are the signals of one model on some points. A second one that is called `others` is what models
    say that did not see the points. Further ones, which need defaults, are parameters that a run file may set.
    Thresholds are learned from the shadow models, one per class (`by_class=False`: one for all); with `either_way=True`
    so is whether larger or smaller scores are those of training points. `columns` are numbers beyond the model's
    outputs that it reads in `signals.columns`: gradient-norm, landscape or augmented.

    Examples:
        >>> @forgetgauge.adversary
        ... def sharpness(signals, power=2.0):
        ...     return (signals.read("posterior") ** power).sum(axis=1)
        >>> result = forgetgauge.evaluate(unlearner="none", adversaries=["correctness", sharpness], pairs=8)
        >>> list(result.methods["none"].by_adversary)
        ['correctness', 'sharpness']
    """

    def made(function: Function) -> ScoreFunction:
        if not callable(function):
            raise UserError(f"adversary: a {type(function).__name__} is no score function")
        name = attribute(function, "__name__", type(function).__name__)
        for column in columns:
            if column not in COLUMNS:
                raise UserError(f"adversary '{name}': " + unknown_name("column", str(column), map(str, COLUMNS)))
        compares, settings = _arguments(name, function)
        asked = [Need(column) for column in columns] + [Need.OUTSIDERS] * compares
        return ScoreFunction(function, frozenset(asked), either_way, by_class, settings)

    return made if function is None else made(function)


def _arguments(name: str, function: Function) -> tuple[bool, dict[str, Any]]:
    """(whether the second is `others`, the further ones with their defaults)."""
    arguments = [*inspect.signature(function).parameters.values()]
    if not arguments:
        raise UserError(f"adversary '{name}': it takes no argument, but is given the signals")
    compares = len(arguments) > 1 and arguments[1].name == OTHERS
    settings = {}
    for one in arguments[1 + compares :]:
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            raise UserError(f"adversary '{name}': *{one.name} has no names that a run file could set: name them")
        if one.default is one.empty:
            needs = f"argument '{one.name}' needs a default, for a run file may leave it out"
            raise UserError(f"adversary '{name}': {needs} (models to compare with are called '{OTHERS}')")
        settings[one.name] = one.default
    return compares, settings
