"""RMIA: how often does a point's rise in probability beat that of points the model certainly did not see?

ratio(x) = p_θ(x) / p(x) with p_θ the model's probability of the true label and p(x) what other models give it; the
score is the share of background points z with ratio(x) / ratio(z) ≥ γ. The z are the shadow half, which no target saw,
so they are never in F or T. p(z) comes from the shadow models in the same way as p(x) does: at a point that the model
did not see, ratio(x) is then distributed like ratio(z), up to the number of models behind them. γ is 1, as in the code
of the authors: a larger one ties most points of an accurate model at 0. A run file may set another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from forgetgauge.attack.adversary import Arrays, Attack, Calibration, Need, Panel, Role, TargetContext
from forgetgauge.attack.reference import (
    LeftOut,
    background_of,
    leave_one_out,
    mean_where,
    means_in_and_out,
    needed,
    panel_values,
    points_of,
)
from forgetgauge.attack.signals import CONFIDENCE, Signals
from forgetgauge.attack.threshold import calibrate
from forgetgauge.game.adversary import Access
from forgetgauge.game.arrays import Bools, Floats, Ints
from forgetgauge.plan.parameters import Range, declared
from forgetgauge.tasks.classification import LOG_FLOOR

GAMMA = "γ: how many times a background point's ratio a point's must be to beat it"
OFFLINE_A = tuple(np.round(np.linspace(0, 1, 11), 1).tolist())  # the grid of the authors


def log_ratio(p: Floats, p_elsewhere: Floats) -> Floats:
    """log(p_θ / p), each at least LOG_FLOOR."""
    result: Floats = np.log(np.maximum(p, LOG_FLOOR)) - np.log(np.maximum(p_elsewhere, LOG_FLOOR))
    return result


def n_beaten(log_ratios: Floats, background: Floats, gamma: float) -> Ints:
    """(n,) how many of the background's log ratios are lower by log γ or more."""
    result: Ints = np.searchsorted(np.sort(background), log_ratios - np.log(gamma), side="right")
    return result


def offline_probability(mean_out: Floats, a: float) -> Floats:
    """p(x) = ½[(1 + a)·mean_out + (1 − a)]: a guess of the mean over both sides from one of them."""
    return 0.5 * ((1 + a) * mean_out + (1 - a))


def online_probability(p: Floats, role: npt.NDArray[np.int8]) -> Floats:
    """p(x) = ½(mean_in + mean_out); a side guessed from the other one stays a probability."""
    mean_in, mean_out = (np.clip(mean, 0.0, 1.0) for mean in means_in_and_out(p, role))
    return 0.5 * (mean_in + mean_out)


def scores_left_out(left_out: LeftOut, p_elsewhere: Floats, gamma: float) -> tuple[Floats, Floats]:
    """Scores of a shadow model's members, and of its others: each of these against the rest of them."""
    ratios = log_ratio(left_out.values, p_elsewhere)
    members, others = ratios[left_out.member], ratios[~left_out.member]
    if len(others) < 2:  # nothing to compare with
        return np.empty(0), np.empty(0)
    itself = int(gamma <= 1)
    beaten = n_beaten(members, others, gamma), n_beaten(others, others, gamma)
    return beaten[0] / len(others), (beaten[1] - itself) / (len(others) - 1)


@dataclass(frozen=True)
class RmiaAttack(Attack):
    """The share of the shadow half that a point beats, against one threshold."""

    elsewhere: Floats
    """(n_points of D,) p(x)."""
    background: Floats
    """(n_points of the shadow half,) p(z)."""
    usable: Bools
    """(n_points of the shadow half,) where p(z) is known."""
    threshold: Floats
    """() one for all points."""
    gamma: float
    calibration: Calibration = ()

    def score(self, signals: Signals) -> Floats:
        """(n,) share of the background with ratio(x) / ratio(z) ≥ γ."""
        at, background = points_of(signals, len(self.elsewhere)), background_of(signals, len(self.background))
        ratios = log_ratio(CONFIDENCE(background)[self.usable], self.background[self.usable])
        return n_beaten(log_ratio(CONFIDENCE(signals), self.elsewhere[at]), ratios, self.gamma) / len(ratios)

    def margin(self, signals: Signals) -> Floats:
        """(n,) score − threshold."""
        return self.score(signals) - self.threshold

    def arrays(self) -> Arrays:
        """p(x), p(z) and the threshold."""
        return {
            "elsewhere": self.elsewhere,
            "background": self.background,
            "usable": self.usable,
            "threshold": self.threshold,
        }


def load_rmia(arrays: Arrays, gamma: float) -> RmiaAttack:
    """The attack again."""
    return RmiaAttack(arrays["elsewhere"], arrays["background"], arrays["usable"], arrays["threshold"], gamma)


@dataclass(frozen=True)
class OfflineRmia:
    """RMIA without models trained on the points; a and the threshold are those that do best on the shadow models."""

    access: Access = Access.BLACK_BOX
    needs: frozenset[Need] = frozenset({Need.OUTSIDERS, Need.BACKGROUND})
    least_left_out: ClassVar[int] = 2
    gamma: float = declared(1.0, GAMMA, within=Range(above=0))
    reads = frozenset({CONFIDENCE.name})

    def fit(self, shadows: Panel, target: TargetContext) -> RmiaAttack:
        """p(x) and p(z) from the shadow models that did not see the point; the first best a of the grid."""
        outsiders = needed(target.outsiders, "the shadow models' signals on D")
        p = panel_values(shadows, CONFIDENCE)
        models = [(one, one.others_out) for one in leave_one_out(p, shadows, unseen_by_another=True)]
        trials = []
        for a in OFFLINE_A:
            found = calibrate(scores_left_out(one, offline_probability(out, a), self.gamma) for one, out in models)
            trials.append((a, *found))
        a, threshold, _, margins = max(trials, key=lambda trial: trial[2])
        mean_out, n_out = mean_where(p, shadows.role == Role.OUT)
        elsewhere = panel_values(outsiders, CONFIDENCE).mean(axis=0)
        elsewhere, background = (offline_probability(mean, a) for mean in (elsewhere, mean_out))
        return RmiaAttack(elsewhere, background, n_out > 0, np.array(threshold), self.gamma, margins)

    def load(self, arrays: Arrays) -> RmiaAttack:
        """The attack again."""
        return load_rmia(arrays, self.gamma)


@dataclass(frozen=True)
class OnlineRmia:
    """RMIA with models trained on the points; the threshold is the one that does best on the shadow models."""

    access: Access = Access.BLACK_BOX
    needs: frozenset[Need] = frozenset({Need.REFERENCES, Need.BACKGROUND})
    gamma: float = declared(1.0, GAMMA, within=Range(above=0))
    reads = frozenset({CONFIDENCE.name})

    def fit(self, shadows: Panel, target: TargetContext) -> RmiaAttack:
        """p(x) from the references, p(z) from the shadow models, both over the two sides evenly."""
        references = needed(target.references, "reference models on D")
        p = panel_values(shadows, CONFIDENCE)
        threshold, _, margins = calibrate(
            scores_left_out(one, online_probability(one.others, one.role), self.gamma)
            for one in leave_one_out(p, shadows, unseen_by_another=False)
        )
        elsewhere = online_probability(panel_values(references, CONFIDENCE), references.role)
        background = online_probability(p, shadows.role)
        usable = np.ones(len(background), dtype=bool)
        return RmiaAttack(elsewhere, background, usable, np.array(threshold), self.gamma, margins)

    def load(self, arrays: Arrays) -> RmiaAttack:
        """The attack again."""
        return load_rmia(arrays, self.gamma)


OFFLINE = OfflineRmia()
ONLINE = OnlineRmia()
