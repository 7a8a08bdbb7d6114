"""Attacks on one number about a point that the model's outputs for it do not give, against a threshold per class.

**White box.** Members are expected where it is small (the gradient has vanished, the loss is flat), but an unlearner
may turn that round: the orientation is the one that does better on the shadow models, the same for all classes, fixed
thereafter. Relearning trains a copy of the model on data that neither the model nor the game has to do with: what was
only hidden may come back, and a retrained model has nothing to bring back.

**Labels only.** The adversary sees no more of the model than which label it predicts, and asks about altered copies of
the point as well: shifted and mirrored images, noise on inputs of other kinds. Models are more robust around points
that they were trained on. The published attack teaches a classifier the whole vector of answers; this one counts them,
the answer for the point itself weighing more than those for all copies together. So it can be no more than the gap
attack where copies tell nothing: on CIFAR-10 the plain count was much worse than that (0.27 against 0.60).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from forgetgauge.attack.adversary import Need
from forgetgauge.attack.signals import CORRECTNESS, Signals
from forgetgauge.attack.threshold import ClassThresholds
from forgetgauge.game.adversary import Access
from forgetgauge.game.arrays import Floats

LARGEST = float(np.finfo(np.float32).max)  # what overflowed is as large as can be


@dataclass(frozen=True)
class Column:
    """A score that is the column of this name, finite."""

    name: str

    def __call__(self, signals: Signals) -> Floats:
        """(n,) of each point."""
        if self.name not in signals.columns:
            raise ValueError(f"column '{self.name}' is missing: it is computed beside the model, with the signals")
        column = signals.columns[self.name].astype(np.float64)
        if np.isnan(column).any():
            raise ValueError(f"column '{self.name}' holds NaN")
        return np.clip(column, -LARGEST, LARGEST)


@dataclass(frozen=True)
class Robustness:
    """1 where the point is given its label, plus the share of its altered copies that are."""

    copies: Column = Column(Need.AUGMENTED)
    reads = CORRECTNESS.reads

    def __call__(self, signals: Signals) -> Floats:
        """(n,) of each point."""
        return CORRECTNESS(signals) + self.copies(signals)


def white_box(column: Need) -> ClassThresholds:
    """An attack on a white-box column, small values being tried first."""
    return ClassThresholds(Column(column), Access.WHITE_BOX, frozenset({column}), signs=(-1, 1))


GRADIENT_NORM = white_box(Need.GRADIENT_NORM)
LANDSCAPE = white_box(Need.LANDSCAPE)
RELEARNING = white_box(Need.RELEARNED)
LABEL_ONLY = ClassThresholds(Robustness(), needs=frozenset({Need.AUGMENTED}))
