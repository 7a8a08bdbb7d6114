"""BaVarIA: the likelihood ratio of LiRA where few reference models leave location and spread of each point uncertain.

The statistic φ of the models on one side of a point is normal with a mean and a variance of its own. Their conjugate
prior, normal and inverse gamma, is learned from all points together (empirical Bayes, by moments): how far variances
differ from point to point says how much a point's own is to be trusted, and the mean of a side is expected where the
other side's is, moved by the mean difference of the sides, for a point that is hard for one side is hard for the other.
What φ of one more model of that side would be then follows Student's t, and its heavy tails are the price of not
knowing. The prior of the published attack is not ours: how it was set we did not copy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from forgetgauge.attack.adversary import Arrays, Attack, Need, Panel, TargetContext
from forgetgauge.attack.lira import SMALLEST_SPREAD
from forgetgauge.attack.reference import mean_where, needed, panel_values, points_of, sides
from forgetgauge.attack.signals import STATISTIC, Signals
from forgetgauge.game.adversary import Access
from forgetgauge.game.arrays import Bools, Floats

LEAST_SHAPE = 2.0 + 1e-3
"""α₀ of the prior: the variance of an inverse gamma variable is finite above 2."""
LARGEST_SHAPE = 1e4
"""Beyond it all points have one variance, and t is normal to four digits."""
LEAST_WEIGHT, LARGEST_WEIGHT = 1e-6, 1e6
"""κ₀ of the prior: how many models the expected location counts for."""


@dataclass(frozen=True)
class Predictive:
    """Student's t of one more model at each point of D: φ = location + scale · t with `freedom` degrees of freedom."""

    location: Floats
    scale: Floats
    freedom: Floats

    def log_density(self, value: Floats, at: npt.NDArray[np.int64]) -> Floats:
        """(n,) log t(value) at these points."""
        location, scale, freedom = self.location[at], self.scale[at], self.freedom[at]
        standard = (value - location) / scale
        constant = gammaln((freedom + 1) / 2) - gammaln(freedom / 2) - 0.5 * np.log(freedom * np.pi) - np.log(scale)
        result: Floats = constant - 0.5 * (freedom + 1) * np.log1p(standard**2 / freedom)
        return result


def predictive(values: Floats, used: Bools, expected: Floats) -> Predictive:
    """Of the models that are used at each point, with a prior that is learned from all points.

    The posterior of a normal inverse gamma prior (m₀, κ₀, α₀, β₀) after n values with mean φ̄ and sum of squares S is
    (m, κ, α, β) with κ = κ₀ + n, m = (κ₀ m₀ + n φ̄)/κ, α = α₀ + n/2, β = β₀ + S/2 + κ₀ n (φ̄ − m₀)²/(2κ), and the
    predictive distribution is t with 2α degrees of freedom, location m and scale √(β (κ + 1)/(α κ)).
    """
    mean, n = mean_where(values, used)
    squares = (np.where(used, values - mean, 0.0) ** 2).sum(axis=0)
    within = max(float(squares.sum() / max(int(np.maximum(n - 1, 0).sum()), 1)), SMALLEST_SPREAD**2)
    weight, shape = _prior_weight(mean, n, expected, within), _prior_shape(squares, n, within)
    kappa, alpha = weight + n, shape + n / 2
    apart = np.where(n > 0, mean - expected, 0.0)
    beta = within * (shape - 1) + squares / 2 + weight * n * apart**2 / (2 * kappa)
    location = expected + n * apart / kappa
    return Predictive(location, np.sqrt(beta * (kappa + 1) / (alpha * kappa)), 2 * alpha)


def _prior_weight(mean: Floats, n: npt.NDArray[np.int64], expected: Floats, within: float) -> float:
    """κ₀: the variance over models, by that of points' true means about what is expected of them."""
    known = n > 0
    if not known.any():
        return 1.0
    about = float(np.mean((mean - expected)[known] ** 2) - within * np.mean(1 / n[known]))
    return float(np.clip(within / max(about, within / LARGEST_WEIGHT), LEAST_WEIGHT, LARGEST_WEIGHT))


def _prior_shape(squares: Floats, n: npt.NDArray[np.int64], within: float) -> float:
    """α₀: from how much sample variances differ beyond what their few models explain.

    For s² = σ² χ²_f / f with f = n − 1, E s⁴ = E σ⁴ · (1 + 2/f), and E σ⁴ / (E σ²)² = 1 + 1/(α₀ − 2).
    """
    freedom = n - 1
    known = freedom > 0
    if not known.any():
        return LARGEST_SHAPE
    f, variance = freedom[known], squares[known] / freedom[known]
    excess = float(np.average(variance**2 / (1 + 2 / f), weights=f)) / within**2 - 1
    return float(np.clip(2 + 1 / max(excess, 1 / LARGEST_SHAPE), LEAST_SHAPE, LARGEST_SHAPE))


@dataclass(frozen=True)
class PredictiveRatio(Attack):
    """log t_in(φ) − log t_out(φ) at each point of D, against 0."""

    seen: Predictive
    unseen: Predictive

    def score(self, signals: Signals) -> Floats:
        """(n,) log density for models that saw the point, minus that for models that did not."""
        at, value = points_of(signals, len(self.seen.location)), STATISTIC(signals)
        return self.seen.log_density(value, at) - self.unseen.log_density(value, at)

    def margin(self, signals: Signals) -> Floats:
        """(n,) the score: its threshold is 0."""
        return self.score(signals)

    def arrays(self) -> Arrays:
        """Location, scale and degrees of freedom of both sides, per point of D."""
        sides = {"in": self.seen, "out": self.unseen}
        return {
            f"{name}_{side}": getattr(found, name)
            for side, found in sides.items()
            for name in ("location", "scale", "freedom")
        }


@dataclass(frozen=True)
class Bavaria:
    """LiRA with the posterior predictive distribution in the place of a fitted normal one."""

    access: Access = Access.BLACK_BOX
    needs: frozenset[Need] = frozenset({Need.REFERENCES})
    reads = frozenset({STATISTIC.name})

    def fit(self, shadows: Panel, target: TargetContext) -> PredictiveRatio:
        """Both sides of each point, each with what is expected of it by the other; the shadow half is not used."""
        references = needed(target.references, "reference models on D")
        values = panel_values(references, STATISTIC)
        seen, unseen = (predictive(values, side.used, side.expected) for side in sides(values, references.role))
        return PredictiveRatio(seen, unseen)

    def load(self, arrays: Arrays) -> PredictiveRatio:
        """The attack again."""
        seen, unseen = (
            Predictive(arrays[f"location_{side}"], arrays[f"scale_{side}"], arrays[f"freedom_{side}"])
            for side in ("in", "out")
        )
        return PredictiveRatio(seen, unseen)


BAVARIA = Bavaria()
