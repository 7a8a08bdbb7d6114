"""Likelihood-ratio attacks: is the model's answer at x more like that of models that saw x, or that did not?

The task's statistic φ, of a classifier log p_y − log Σ_{i≠y} p_i, is near to Gaussian over models. A
Gaussian's location is the mean over the models of its side (not the median, as in the code of the authors: with the few
models we have the mean is the better estimate, and it is the maximum of the likelihood that is then computed). Below 64
models the spread is pooled: the variance about each point's own mean, averaged over points with their degrees of
freedom, σ_in from the models that saw the point and σ_out from those that did not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from forgetgauge.attack.adversary import Arrays, Attack, Calibration, Need, Panel, Role, TargetContext
from forgetgauge.attack.reference import leave_one_out, mean_where, means_in_and_out, needed, panel_values, points_of
from forgetgauge.attack.signals import STATISTIC, Signals
from forgetgauge.attack.threshold import calibrate
from forgetgauge.game.adversary import Access
from forgetgauge.game.arrays import Bools, Floats
from forgetgauge.plan.parameters import Range, declared

ENOUGH_MODELS = 64
OWN_SPREAD = "from so many models on, the spread is each point's own and not pooled"
SMALLEST_SPREAD = 1e-6  # of φ: models that all answer alike


def pooled_spread(values: Floats, used: Bools) -> float | None:
    """σ about each point's own mean, over all points; None where no point has two models."""
    mean, count = mean_where(values, used)
    freedom = int(np.maximum(count - 1, 0).sum())
    if freedom == 0:
        return None
    squares = (np.where(used, values - mean, 0.0) ** 2).sum()
    return max(float(np.sqrt(squares / freedom)), SMALLEST_SPREAD)


def spreads(values: Floats, used: Bools, pooled: float, enough: int) -> Floats:
    """(n_points,) the pooled σ, or with enough models each point's own where it has two models or more."""
    if len(values) < enough:
        return np.full(values.shape[1], pooled)
    mean, count = mean_where(values, used)
    squares = (np.where(used, values - mean, 0.0) ** 2).sum(axis=0)
    own = np.sqrt(squares / np.maximum(count - 1, 1))
    return np.where(count >= 2, np.maximum(own, SMALLEST_SPREAD), pooled)


def log_normal(value: Floats, mean: Floats, spread: Floats) -> Floats:
    """log N(value; mean, spread²) without the constant −½ log 2π."""
    return -np.log(spread) - 0.5 * ((value - mean) / spread) ** 2


@dataclass(frozen=True)
class TwoSidedAttack(Attack):
    """log N(φ; μ_in, σ_in) − log N(φ; μ_out, σ_out) at each point of D, against 0."""

    mean_in: Floats
    mean_out: Floats
    spread_in: Floats
    spread_out: Floats

    def score(self, signals: Signals) -> Floats:
        """(n,) the log likelihood ratio."""
        at, value = points_of(signals, len(self.mean_in)), STATISTIC(signals)
        seen = log_normal(value, self.mean_in[at], self.spread_in[at])
        return seen - log_normal(value, self.mean_out[at], self.spread_out[at])

    def margin(self, signals: Signals) -> Floats:
        """(n,) the score: its threshold is 0."""
        return self.score(signals)

    def arrays(self) -> Arrays:
        """Location and spread of both sides, per point of D."""
        return {
            "mean_in": self.mean_in,
            "mean_out": self.mean_out,
            "spread_in": self.spread_in,
            "spread_out": self.spread_out,
        }


@dataclass(frozen=True)
class Lira:
    """Online LiRA; with `Need.UNLEARNED`, U-LiRA: “trained on, then forgotten” against “never seen”."""

    access: Access = Access.BLACK_BOX
    needs: frozenset[Need] = frozenset({Need.REFERENCES})
    own_spread_from: int = declared(ENOUGH_MODELS, OWN_SPREAD, within=Range(least=2))
    reads = frozenset({STATISTIC.name})

    def fit(self, shadows: Panel, target: TargetContext) -> TwoSidedAttack:
        """A Gaussian per point and side from the references; the shadow half is not used."""
        references = needed(target.references, "reference models on D")
        values, is_in, is_out = (
            panel_values(references, STATISTIC),
            references.role == Role.IN,
            references.role == Role.OUT,
        )
        mean_in, mean_out = means_in_and_out(values, references.role)
        pooled_in, pooled_out = pooled_spread(values, is_in), pooled_spread(values, is_out)
        pooled_in, pooled_out = pooled_in or pooled_out or 1.0, pooled_out or pooled_in or 1.0
        sides, enough = ((is_in, pooled_in), (is_out, pooled_out)), self.own_spread_from
        return TwoSidedAttack(mean_in, mean_out, *(spreads(values, used, pooled, enough) for used, pooled in sides))

    def load(self, arrays: Arrays) -> TwoSidedAttack:
        """The attack again."""
        return TwoSidedAttack(arrays["mean_in"], arrays["mean_out"], arrays["spread_in"], arrays["spread_out"])


@dataclass(frozen=True)
class OneSidedAttack(Attack):
    """(φ − μ_out)/σ_out at each point of D against one threshold.

    The published score is Φ of it. Φ keeps the order and rounds to 1 beyond 8.3, so the score is its argument.
    """

    mean_out: Floats
    spread_out: Floats
    threshold: Floats
    """() one for all points."""
    calibration: Calibration = ()

    def score(self, signals: Signals) -> Floats:
        """(n,) how many σ_out above the models that did not see the point."""
        at = points_of(signals, len(self.mean_out))
        return (STATISTIC(signals) - self.mean_out[at]) / self.spread_out[at]

    def margin(self, signals: Signals) -> Floats:
        """(n,) score − threshold."""
        return self.score(signals) - self.threshold

    def arrays(self) -> Arrays:
        """Location and spread of the models that did not see the point, and the threshold."""
        return {"mean_out": self.mean_out, "spread_out": self.spread_out, "threshold": self.threshold}


@dataclass(frozen=True)
class OfflineLira:
    """LiRA without models trained on the points: one-sided, its threshold from left-out shadow models."""

    access: Access = Access.BLACK_BOX
    needs: frozenset[Need] = frozenset({Need.OUTSIDERS})
    own_spread_from: int = declared(ENOUGH_MODELS, OWN_SPREAD, within=Range(least=2))
    least_left_out: ClassVar[int] = 1
    reads = frozenset({STATISTIC.name})

    def fit(self, shadows: Panel, target: TargetContext) -> OneSidedAttack:
        """A Gaussian per point of D from the shadow models; the threshold that best tells the members of each shadow
        model by the others. The pooled σ_out is that on D in both places, so that they share a scale."""
        outsiders = needed(target.outsiders, "the shadow models' signals on D")
        values, out = panel_values(outsiders, STATISTIC), outsiders.role == Role.OUT
        pooled = pooled_spread(values, out) or 1.0
        scores = []
        for left_out in leave_one_out(panel_values(shadows, STATISTIC), shadows, unseen_by_another=True):
            spread = spreads(left_out.others, left_out.role == Role.OUT, pooled, self.own_spread_from)
            score = (left_out.values - left_out.others_out) / spread
            scores.append((score[left_out.member], score[~left_out.member]))
        threshold, _, calibration = calibrate(scores)
        mean = mean_where(values, out)[0]
        spread = spreads(values, out, pooled, self.own_spread_from)
        return OneSidedAttack(mean, spread, np.array(threshold), calibration)

    def load(self, arrays: Arrays) -> OneSidedAttack:
        """The attack again."""
        return OneSidedAttack(arrays["mean_out"], arrays["spread_out"], arrays["threshold"])


ONLINE = Lira()
OFFLINE = OfflineLira()
UNLEARNING = Lira(needs=frozenset({Need.REFERENCES, Need.UNLEARNED}))
