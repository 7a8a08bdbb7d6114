"""Yeom's, Song and Mittal's attacks: one number per point against thresholds chosen on the shadow models.

The threshold of class y is the observed shadow value t that maximises ½[P_in(a ≥ t) + P_out(a < t)], the first such
value where several do: one sort per class, O(n log n).

Some of these numbers are columns that are computed beside the model's outputs for the point, which do not give them.

**White box.** Members are expected where such a number is small (the gradient has vanished, the loss is flat), but an
unlearner may turn that round: the orientation is the one that does better on the shadow models, the same for all
classes, fixed thereafter. Relearning trains a copy of the model on data that neither the model nor the game has to do
with: what was only hidden may come back, and a retrained model has nothing to bring back.

**Labels only.** The adversary sees no more of the model than which label it predicts, and asks about altered copies of
the point as well: shifted and mirrored images, noise on inputs of other kinds. Models are more robust around points
that they were trained on. The published attack teaches a classifier the whole vector of answers; this one counts them,
the answer for the point itself weighing more than those for all copies together. So it can be no more than the gap
attack where copies tell nothing: on CIFAR-10 the plain count was much worse than that (0.27 against 0.60).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from forgetgauge.attack import signals as read
from forgetgauge.attack.adversary import Arrays, Attack, Calibration, Need, Panel, TargetContext
from forgetgauge.attack.signals import Signals
from forgetgauge.game.adversary import Access
from forgetgauge.game.arrays import Floats
from forgetgauge.probing import attribute

Score = Callable[[Signals], Floats]
LARGEST = float(np.finfo(np.float32).max)  # what overflowed is as large as can be


def best_threshold(members: Floats, others: Floats) -> float:
    """The smallest observed value that best separates members (at or above it) from others (below it)."""
    if len(members) == 0 or len(others) == 0:
        raise ValueError("a threshold needs shadow points of both sorts: members and others")
    values = np.unique(np.concatenate([members, others]))
    members_at_or_above = len(members) - np.searchsorted(np.sort(members), values, side="left")
    others_below = np.searchsorted(np.sort(others), values, side="left")
    # ½[P_in(a ≥ t) + P_out(a < t)] times 2·|members|·|others|: whole numbers, so that ties are ties
    return float(values[np.argmax(members_at_or_above * len(others) + others_below * len(members))])


def calibrate(scores: Iterable[tuple[Floats, Floats]]) -> tuple[float, float, Calibration]:
    """(threshold, balanced accuracy, margins) of the left-out shadow models' members against their others."""
    by_model = list(scores)
    members, others = (np.concatenate(side) for side in zip(*by_model, strict=True))
    threshold = best_threshold(members, others)
    margins = tuple((m - threshold, o - threshold) for m, o in by_model)
    return threshold, float((members >= threshold).mean() + (others < threshold).mean()) / 2, margins


def class_thresholds(scores: Floats, classes: npt.NDArray[np.int64], member: npt.NDArray[np.bool_], n: int) -> Floats:
    """(n,) one threshold per class; a class without both members and others takes that of all classes together."""
    pooled = best_threshold(scores[member], scores[~member])
    thresholds = np.full(n, pooled)
    for label in range(n):
        of_class = classes == label
        if (of_class & member).any() and (of_class & ~member).any():
            thresholds[label] = best_threshold(scores[of_class & member], scores[of_class & ~member])
    return thresholds


def oriented_thresholds(
    scores: Floats, classes: npt.NDArray[np.int64], member: npt.NDArray[np.bool_], n: int, signs: tuple[int, ...]
) -> tuple[Floats, int]:
    """(thresholds of sign · score, sign): of the signs the one that tells members best, the first where they tie."""
    fitted = []
    for sign in signs:
        thresholds = class_thresholds(sign * scores, classes, member, n)
        says = sign * scores >= thresholds[classes]
        fitted.append((says[member].mean() - says[~member].mean(), thresholds, sign))
    _, thresholds, sign = max(fitted, key=lambda one: one[0])
    return thresholds, sign


@dataclass(frozen=True)
class ThresholdAttack(Attack):
    """Says “forget” where the score reaches the threshold of the point's class."""

    scorer: Score
    thresholds: Floats
    sign: int = 1
    """−1 where small values are member-like."""

    def score(self, signals: Signals) -> Floats:
        """(n,) the scorer's value, so turned that larger is more member-like."""
        value = self.scorer(signals)
        return value if self.sign == 1 else -value

    def margin(self, signals: Signals) -> Floats:
        """(n,) score − threshold of the point's class; infinite scores keep their sign."""
        return self.score(signals) - self.thresholds[signals.classes]

    def arrays(self) -> Arrays:
        """The thresholds, and which way round they are meant."""
        return {"thresholds": self.thresholds, "sign": np.array(self.sign)}


def reads_of(scorer: Score) -> frozenset[str]:
    """The names of the task's signals that a score is made of; of a plain function, nobody knows."""
    return frozenset(attribute(scorer, "reads", ()))


@dataclass(frozen=True)
class FixedThreshold:
    """A score whose threshold is known beforehand, the same for every class."""

    scorer: Score
    threshold: float
    access: Access = Access.BLACK_BOX
    needs: frozenset[Need] = frozenset()

    @property
    def reads(self) -> frozenset[str]:
        """The signal that its scorer reads."""
        return reads_of(self.scorer)

    def fit(self, shadows: Panel, target: TargetContext) -> ThresholdAttack:
        """Nothing to learn."""
        return self.load({"thresholds": np.full(target.n_classes, self.threshold)})

    def load(self, arrays: Arrays) -> ThresholdAttack:
        """The attack again."""
        return ThresholdAttack(self.scorer, arrays["thresholds"])


@dataclass(frozen=True)
class ClassThresholds:
    """A score with one threshold per class, learned from the shadow models.

    With two signs, so is the orientation, the same for all classes: the one that does better on the shadow models, the
    first where they tie.
    """

    scorer: Score
    access: Access = Access.BLACK_BOX
    needs: frozenset[Need] = frozenset()
    signs: tuple[int, ...] = (1,)
    by_class: bool = True
    """One threshold for all classes without it."""

    @property
    def reads(self) -> frozenset[str]:
        """The signal that its scorer reads."""
        return reads_of(self.scorer)

    def fit(self, shadows: Panel, target: TargetContext) -> ThresholdAttack:
        """Best thresholds on the shadow half, and the better of two orientations."""
        signals, member = shadows.rows
        classes = signals.classes if self.by_class else np.zeros_like(signals.classes)
        found = oriented_thresholds(self.scorer(signals), classes, member, target.n_classes, self.signs)
        return ThresholdAttack(self.scorer, *found)

    def load(self, arrays: Arrays) -> ThresholdAttack:
        """The attack again."""
        return ThresholdAttack(self.scorer, arrays["thresholds"], int(arrays.get("sign", self.signs[0])))


@dataclass(frozen=True)
class MeanOfMembers:
    """A score with one threshold for all classes: the mean score of the shadow models' members."""

    scorer: Score
    access: Access = Access.BLACK_BOX
    needs: frozenset[Need] = frozenset()

    @property
    def reads(self) -> frozenset[str]:
        """The signal that its scorer reads."""
        return reads_of(self.scorer)

    def fit(self, shadows: Panel, target: TargetContext) -> ThresholdAttack:
        """The mean over all members of all shadow models."""
        signals, member = shadows.rows
        if not member.any():
            raise ValueError("the mean score of members needs shadow points that are members")
        return self.load({"thresholds": np.full(target.n_classes, self.scorer(signals)[member].mean())})

    def load(self, arrays: Arrays) -> ThresholdAttack:
        """The attack again."""
        return ThresholdAttack(self.scorer, arrays["thresholds"])


CORRECTNESS = FixedThreshold(read.CORRECTNESS, 1.0)  # its advantage is acc(F) − acc(T)
CONFIDENCE = ClassThresholds(read.CONFIDENCE)
ENTROPY = ClassThresholds(read.NEGATIVE_ENTROPY)
MODIFIED_ENTROPY = ClassThresholds(read.NEGATIVE_MODIFIED_ENTROPY)
LOSS = MeanOfMembers(read.NEGATIVE_LOSS)  # a loss at most the mean training loss

# of language models
CALIBRATED_LOSS = ClassThresholds(read.NEGATIVE_BASE_DIFFERENCE)
ZLIB_RATIO = ClassThresholds(read.NEGATIVE_ZLIB_RATIO)
PARAPHRASED_LOSS = MeanOfMembers(read.NEGATIVE_PARAPHRASED_LOSS)  # as LOSS, so that the prompt alone differs
EIGHT_BIT_LOSS = MeanOfMembers(read.NEGATIVE_8_BIT_LOSS)  # as LOSS, so that the weights alone differ


# -- on columns --------------------------------------------------------------------------------------------------------


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
    reads = read.CORRECTNESS.reads

    def __call__(self, signals: Signals) -> Floats:
        """(n,) of each point."""
        return read.CORRECTNESS(signals) + self.copies(signals)


def white_box(column: Need) -> ClassThresholds:
    """An attack on a white-box column, small values being tried first."""
    return ClassThresholds(Column(column), Access.WHITE_BOX, frozenset({column}), signs=(-1, 1))


GRADIENT_NORM = white_box(Need.GRADIENT_NORM)
LANDSCAPE = white_box(Need.LANDSCAPE)
RELEARNING = white_box(Need.RELEARNED)
LABEL_ONLY = ClassThresholds(Robustness(), needs=frozenset({Need.AUGMENTED}))
