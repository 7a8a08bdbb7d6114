"""Quantile regression: is the model surer of x than it is of nearly all points like x that it did not see?

s is the task's `gap`: of a classifier z_y − max_{i≠y} z_i. For each attacked model, q_τ is fitted to s on the shadow
half, which it never saw, as a linear function of what is known of a point without knowing its membership: its class,
and the mean s of the shadow models that did not see it. A member is said where s ≥ q_τ(x), so that about 1 − τ of the
points never seen are called members. τ is the level with the best balanced accuracy when each shadow model is attacked
by the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forgetgauge.attack.adversary import Arrays, Attack, Calibration, Need, Panel, Role, TargetContext
from forgetgauge.attack.reference import (
    LeftOut,
    background_of,
    leave_one_out,
    mean_where,
    needed,
    panel_values,
    points_of,
)
from forgetgauge.attack.signals import GAP, Signals
from forgetgauge.game.adversary import Access
from forgetgauge.game.arrays import Bools, Floats, Ints

LEVELS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
_SMOOTHING = 1e-3  # of |residual|, in units of the spread
_STEPS = 60  # the loss is then within 0.3 % of the least, the share above within one point of 1 − τ


def pinball_regression(design: Floats, values: Floats, level: float) -> Floats:
    """(n_features,) coefficients with the least Σ τ·(s − q)₊ + (1 − τ)·(q − s)₊.

    Each step minimises a parabola that lies above the (slightly smoothed) loss and touches it at the last answer
    (majorise and minimise), so the loss only falls. A trace of ridge decides what the values leave open.
    """
    centre, scale = _location_and_scale(values)
    wanted = (values - centre) / scale
    ridge = 1e-8 * len(values) * np.eye(design.shape[1])
    tilt = (2 * level - 1) * design.sum(axis=0)
    coefficients = np.linalg.solve(design.T @ design + ridge, design.T @ wanted)
    for _ in range(_STEPS):
        weighted = design / (_SMOOTHING + np.abs(wanted - design @ coefficients))[:, None]
        before = coefficients
        coefficients = np.linalg.solve(weighted.T @ design + ridge, weighted.T @ wanted + tilt)
        if np.abs(coefficients - before).max() < 1e-7:
            break
    result: Floats = np.asarray(coefficients * scale, dtype=np.float64)
    result[0] += centre
    return result


def design_of(usual: Floats, classes: Ints, n_classes: int, centre: float, scale: float) -> Floats:
    """(n, 2 + n_classes): 1, the point's usual s, and its class."""
    of_class = (np.arange(n_classes) == classes[:, None]).astype(np.float64)
    return np.concatenate([np.ones((len(classes), 1)), ((usual - centre) / scale)[:, None], of_class], axis=1)


def _location_and_scale(values: Floats) -> tuple[float, float]:
    centre = float(values.mean())
    scale = float(np.abs(values - centre).mean())
    return centre, scale if scale > 1e-12 * max(abs(centre), 1.0) else 1.0


@dataclass(frozen=True)
class Quantile:
    """q_τ of one model, as a function of a point's class and usual s."""

    coefficients: Floats
    centre: float
    scale: float
    n_classes: int

    @classmethod
    def fit(cls, values: Floats, usual: Floats, classes: Ints, n_classes: int, level: float) -> Quantile:
        """From points that the model did not see."""
        centre, scale = _location_and_scale(usual)
        design = design_of(usual, classes, n_classes, centre, scale)
        return cls(pinball_regression(design, values, level), centre, scale, n_classes)

    def at(self, usual: Floats, classes: Ints) -> Floats:
        """(n,) the quantile there, each point by itself: no batch changes it."""
        design = design_of(usual, classes, self.n_classes, self.centre, self.scale)
        result: Floats = (design * self.coefficients).sum(axis=1)
        return result


@dataclass(frozen=True)
class QuantileAttack(Attack):
    """s − q_τ(x), with q_τ fitted to the attacked model's own signals on the shadow half."""

    usual: Floats
    """(n_points of D,) mean s of models that did not see the point."""
    background: Floats
    """(n_points of the shadow half,) the same there."""
    usable: Bools
    """(n_points of the shadow half,) where it is known."""
    level: Floats
    """() τ."""
    calibration: Calibration = ()

    def score(self, signals: Signals) -> Floats:
        """(n,) how far s is above its quantile."""
        at = points_of(signals, len(self.usual))
        unseen = background_of(signals, len(self.background))
        use = self.usable
        quantile = Quantile.fit(
            GAP(unseen)[use], self.background[use], unseen.classes[use], signals.n_classes, float(self.level)
        )
        return GAP(signals) - quantile.at(self.usual[at], signals.classes)

    def margin(self, signals: Signals) -> Floats:
        """(n,) the score: its threshold is 0."""
        return self.score(signals)

    def arrays(self) -> Arrays:
        """The usual s of each point, and the level."""
        return {"usual": self.usual, "background": self.background, "usable": self.usable, "level": self.level}


@dataclass(frozen=True)
class QuantileRegression:
    """Before it has seen anything."""

    access: Access = Access.BLACK_BOX
    needs: frozenset[Need] = frozenset({Need.OUTSIDERS, Need.BACKGROUND})
    reads = frozenset({GAP.name})

    def fit(self, shadows: Panel, target: TargetContext) -> QuantileAttack:
        """The usual s of every point, and the first best level of the grid on the shadow models."""
        outsiders = needed(target.outsiders, "the shadow models' signals on D")
        values = panel_values(shadows, GAP)
        models = [*leave_one_out(values, shadows, unseen_by_another=True)]
        level = max(LEVELS, key=lambda level: sum(_youden(model, target.n_classes, level) for model in models))
        background, n_out = mean_where(values, shadows.role == Role.OUT)
        usual = panel_values(outsiders, GAP).mean(axis=0)
        margins = tuple(found for model in models if (found := _margins(model, target.n_classes, level)) is not None)
        return QuantileAttack(usual, background, n_out > 0, np.array(level), margins)

    def load(self, arrays: Arrays) -> QuantileAttack:
        """The attack again."""
        return QuantileAttack(arrays["usual"], arrays["background"], arrays["usable"], arrays["level"])


def _margins(model: LeftOut, n_classes: int, level: float) -> tuple[Floats, Floats] | None:
    """s − q_τ of a left-out shadow model's members and of its others; None where it has points of one side only."""
    seen = model.member
    if seen.all() or not seen.any():
        return None
    usual = model.others_out
    quantile = Quantile.fit(model.values[~seen], usual[~seen], model.classes[~seen], n_classes, level)
    margin = model.values - quantile.at(usual, model.classes)
    return margin[seen], margin[~seen]


def _youden(model: LeftOut, n_classes: int, level: float) -> float:
    """P_in(s ≥ q_τ) − P_out(s ≥ q_τ) of a left-out shadow model."""
    margins = _margins(model, n_classes, level)
    return 0.0 if margins is None else float((margins[0] >= 0).mean() - (margins[1] >= 0).mean())


REGRESSION = QuantileRegression()
