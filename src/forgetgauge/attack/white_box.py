"""White-box attacks: a number that only the weights give, against a threshold per class.

Members are expected where it is small (the gradient has vanished, the loss is flat), but an unlearner may turn that
round: the orientation is the one that does better on the shadow models, the same for all classes, fixed thereafter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from forgetgauge.attack.adversary import Arrays, Need, Panel, TargetContext
from forgetgauge.attack.signals import Floats, Signals
from forgetgauge.attack.threshold import class_thresholds
from forgetgauge.game.adversary import Access

LARGEST = float(np.finfo(np.float32).max)  # what overflowed is as large as can be


def column_of(signals: Signals, name: str) -> Floats:
    """(n,) a white-box column, finite."""
    if name not in signals.columns:
        raise ValueError(f"white-box column '{name}' is missing: it is computed with the signals, from the weights")
    column = signals.columns[name].astype(np.float64)
    if np.isnan(column).any():
        raise ValueError(f"white-box column '{name}' holds NaN")
    return np.clip(column, -LARGEST, LARGEST)


@dataclass(frozen=True)
class ColumnAttack:
    """Says “forget” where the oriented column reaches the threshold of the point's class."""

    column: str
    sign: npt.NDArray[np.int64]
    """() −1: small is member-like; 1: large is."""
    thresholds: Floats

    def score(self, signals: Signals) -> Floats:
        """(n,) the oriented column."""
        result: Floats = self.sign * column_of(signals, self.column)
        return result

    def decide(self, signals: Signals) -> npt.NDArray[np.bool_]:
        """(n,) score ≥ threshold of the point's class."""
        return self.margin(signals) >= 0

    def margin(self, signals: Signals) -> Floats:
        """(n,) score − threshold of the point's class."""
        return self.score(signals) - self.thresholds[signals.classes]

    def arrays(self) -> Arrays:
        """Orientation and thresholds."""
        return {"sign": self.sign, "thresholds": self.thresholds}


@dataclass(frozen=True)
class Column:
    """An attack on the column of this name."""

    column: Need
    access: Access = Access.WHITE_BOX

    @property
    def needs(self) -> frozenset[Need]:
        """The column."""
        return frozenset({self.column})

    def fit(self, shadows: Panel, target: TargetContext) -> ColumnAttack:
        """Both orientations with their best thresholds; the better of them, the expected one where they tie."""
        signals, member = shadows.rows
        attacks = []
        for sign in (-1, 1):
            scores = sign * column_of(signals, self.column)
            thresholds = class_thresholds(scores, signals.classes, member, target.n_classes)
            attacks.append(ColumnAttack(self.column, np.array(sign), thresholds))
        says = [attack.decide(signals) for attack in attacks]
        return attacks[int(np.argmax([one[member].mean() - one[~member].mean() for one in says]))]

    def load(self, arrays: Arrays) -> ColumnAttack:
        """The attack again."""
        return ColumnAttack(self.column, arrays["sign"], arrays["thresholds"])


GRADIENT_NORM = Column(Need.GRADIENT_NORM)
LANDSCAPE = Column(Need.LANDSCAPE)
