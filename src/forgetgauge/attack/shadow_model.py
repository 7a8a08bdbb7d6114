"""Shokri's attack: a classifier per true class learns on the shadow models what a member's prediction looks like.

The classifier is a logistic regression on features of a prediction, standardised, both sides weighing the same; a class
with fewer than 50 rows on a side takes the classifier of all classes together. Of a classifier's outputs the features
are the sorted log-posteriors and the true label's log-probability, of a language model's all columns of the task.
Stored are its coefficients, so that nothing is unpickled and deciding needs numpy alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from forgetgauge.attack.adversary import Arrays, Attack, Need, Panel, TargetContext
from forgetgauge.attack.signals import Signals
from forgetgauge.game.adversary import Access
from forgetgauge.game.arrays import Floats
from forgetgauge.plan.parameters import Range, declared

ENOUGH_ROWS = 50


Features = Callable[[Signals], Floats]
"""(n, n_features) what the classifier looks at."""


def sorted_posteriors(signals: Signals) -> Floats:
    """(n, n_classes + 1): log-posteriors from the largest to the smallest, then that of the true label."""
    log_posterior = signals.read("log-posterior")
    true = np.take_along_axis(log_posterior, signals.labels[:, None], axis=1)
    return np.concatenate([np.sort(log_posterior, axis=1)[:, ::-1], true], axis=1)


def all_columns(signals: Signals) -> Floats:
    """(n, n_columns): everything that the task keeps of a record."""
    return signals.read("all-columns")


@dataclass(frozen=True)
class ClassifierAttack(Attack):
    """Says “forget” where the classifier of the point's class gives P(in) ≥ ½."""

    features: Features
    centre: Floats
    """(n_classes, n_features), as the next two."""
    scale: Floats
    weight: Floats
    intercept: Floats
    """(n_classes,)."""

    def score(self, signals: Signals) -> Floats:
        """(n,) log-odds of being a member: P(in) without its rounding to 0 and 1."""
        y = signals.classes
        standardised = (self.features(signals) - self.centre[y]) / self.scale[y]
        result: Floats = (standardised * self.weight[y]).sum(axis=1) + self.intercept[y]
        return result

    def margin(self, signals: Signals) -> Floats:
        """(n,) the score: its threshold is 0."""
        return self.score(signals)

    def arrays(self) -> Arrays:
        """The classifiers' coefficients."""
        return {"centre": self.centre, "scale": self.scale, "weight": self.weight, "intercept": self.intercept}


def fit_classifier(rows: Floats, member: npt.NDArray[np.bool_]) -> tuple[Floats, Floats, Floats, float]:
    """(centre, scale, weight, intercept) of a logistic regression with both sides weighing the same."""
    from sklearn.linear_model import LogisticRegression

    centre, scale = rows.mean(axis=0), rows.std(axis=0)
    scale = np.where(scale > 1e-12 * np.maximum(np.abs(centre), 1.0), scale, 1.0)
    regression = LogisticRegression(class_weight="balanced", solver="newton-cholesky", tol=1e-8)
    regression.fit((rows - centre) / scale, member)
    return centre, scale, regression.coef_[0], float(regression.intercept_[0])


@dataclass(frozen=True)
class ShadowModels:
    """Plain, or with `Need.UNLEARNED` aware: the shadow models passed through the same unlearner."""

    features: Features
    reads: frozenset[str]
    access: Access = Access.BLACK_BOX
    needs: frozenset[Need] = frozenset()
    rows_per_class: int = declared(
        ENOUGH_ROWS, "members and others that a class needs to have its own classifier", within=Range(least=1)
    )

    def fit(self, shadows: Panel, target: TargetContext) -> ClassifierAttack:
        """A classifier per class, and one of all classes for those with few rows."""
        signals, member = shadows.rows
        if member.all() or not member.any():
            raise ValueError("a classifier needs shadow points of both sorts: members and others")
        rows, classes = self.features(signals), signals.classes
        of_all = fit_classifier(rows, member)
        fits = []
        for label in range(target.n_classes):
            of_class = classes == label
            enough = min((of_class & member).sum(), (of_class & ~member).sum()) >= self.rows_per_class
            fits.append(fit_classifier(rows[of_class], member[of_class]) if enough else of_all)
        centre, scale, weight, intercept = (np.array(part, dtype=np.float64) for part in zip(*fits, strict=True))
        return ClassifierAttack(self.features, centre, scale, weight, intercept)

    def load(self, arrays: Arrays) -> ClassifierAttack:
        """The attack again."""
        parts = (arrays[name] for name in ("centre", "scale", "weight", "intercept"))
        return ClassifierAttack(self.features, *parts)


PLAIN = ShadowModels(sorted_posteriors, frozenset({"log-posterior"}))
AWARE = replace(PLAIN, needs=frozenset({Need.UNLEARNED}))
ALL_SIGNALS = ShadowModels(all_columns, frozenset({"all-columns"}))
ALL_SIGNALS_AWARE = replace(ALL_SIGNALS, needs=frozenset({Need.UNLEARNED}))
