"""Scores by which others measure unlearning. None of them is Q.

**Interclass confusion** (Goel et al.): S is a random half of class A and of class B of a training set, with labels A
and B exchanged. A model is trained on the changed set and asked to forget S, with the labels it was taught. γ is the
share of S that the unlearned model still takes for the *other of the two*, by the true labels; the IC score is 1 − γ.
Errors into third classes do not count: a ruined model scores well. γ asks for the model's opinion of S, not for what an
attacker could tell from it, and it needs models of its own, whose labels are wrong.

**MIA score** (the paper's Table 4) = 1 − AUC of an attack's score on one split, F positive and T negative, ties ½. Its
ideal is ½, not 1: below, forgotten points look like members; above, they look *less* like members than unseen ones,
which is as telling. On one split it is not grounded: F and T differ before any training. Averaged over a swap it is,
since AUC_s' = 1 − AUC_s for one model.

**Offset MIA accuracy** = accuracy of the attack's decisions − its accuracy against Retrain on the same split (the
paper's appendix adds ½). Grounded by construction, and still a matter of the split: there is a six-point example where
it is 0 for three different methods.

**Distance to Retrain** = KL(p_Retrain ‖ p_method), averaged over a set, with p the softmax of the logits. It is judged
against another *draw* of training: two retrained models are apart as well, and that distance, not 0, is the floor.

``over_pairs`` gives the mean of a score over swap pairs (or confused training sets) and Student's t over these
repetitions. As for advantages (``game.intervals``) the target is the expectation over new splits and trainings, given
the data. Below ``MIN_PAIRS`` repetitions there is no interval, nor where they agree exactly: a ruined model has an IC
score of 1 every time, and a spread of 0 would claim that for certain of new ones.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from forgetgauge.game.advantage import signed_advantage
from forgetgauge.game.arrays import Bools, Floats, Ints, frozen_floats
from forgetgauge.game.diagnostics import auc, swap_auc
from forgetgauge.game.intervals import MIN_PAIRS, agree, check_level
from forgetgauge.game.quality import first_largest

# -- interclass confusion ----------------------------------------------------------------------------------------------


def confused_half(labels: Ints, members: Bools, classes: tuple[int, int], rng: np.random.Generator) -> Bools:
    """(n,) S: a random half (rounded down) of the members of each of the two classes."""
    chosen = np.zeros(len(labels), dtype=bool)
    for label in classes:
        of_class = np.flatnonzero(members & (labels == label))
        chosen[rng.permutation(of_class)[: len(of_class) // 2]] = True
    return chosen


def exchanged(labels: Ints, confused: Bools, classes: tuple[int, int]) -> Ints:
    """The labels with A and B exchanged on S; a copy."""
    first, second = classes
    if not np.isin(labels[confused], classes).all():
        raise ValueError(f"only points of the classes {first} and {second} can be confused")
    changed = labels.copy()
    changed[confused] = first + second - labels[confused]
    return changed


def interclass_error(predicted: ArrayLike, true: ArrayLike, classes: tuple[int, int]) -> float:
    """γ = [#(true A, predicted B) + #(true B, predicted A)] / |S|, all of it on S."""
    said, label = _whole_numbers(predicted), _whole_numbers(true)
    first, second = classes
    if said.shape != label.shape or said.ndim != 1 or len(said) == 0:
        raise ValueError(f"predictions {said.shape} and labels {label.shape} must be of the same points, at least one")
    if not np.isin(label, classes).all():
        raise ValueError(f"the confused points must be of the classes {first} and {second}")
    return float(np.mean(said == first + second - label))


def ic_score(predicted: ArrayLike, true: ArrayLike, classes: tuple[int, int]) -> float:
    """1 − γ: 1 where nothing of the confusion is left."""
    return 1 - interclass_error(predicted, true, classes)


def _whole_numbers(values: ArrayLike) -> NDArray[np.int64]:
    array = np.asarray(values)
    if not np.issubdtype(array.dtype, np.integer):
        raise ValueError(f"classes must be whole numbers, not {array.dtype}")
    return array.astype(np.int64)


# -- membership inference ----------------------------------------------------------------------------------------------


def mia_score(scores: ArrayLike, in_forget: ArrayLike, weight: ArrayLike) -> float:
    """1 − AUC on one split; scores are larger where the attack is surer of “forgotten”."""
    return 1 - auc(scores, in_forget, weight)


def swap_mia_score(scores: ArrayLike, scores_swapped: ArrayLike, in_forget: ArrayLike, weight: ArrayLike) -> float:
    """1 − the mean AUC of the two sides, whose scores are over the same points; ½ for one model shared by both."""
    return 1 - swap_auc(scores, scores_swapped, in_forget, weight)


def mia_accuracy(says_forget: ArrayLike, in_forget: ArrayLike, weight: ArrayLike) -> float:
    """½P(A=1 | F) + ½P(A=0 | T): the share of right answers on one split, since |F| = |T|."""
    return (1 + signed_advantage(says_forget, in_forget, weight)) / 2


def offset_mia_accuracy(
    says_forget: ArrayLike, says_forget_of_retrain: ArrayLike, in_forget: ArrayLike, weight: ArrayLike
) -> float:
    """Accuracy minus the same attack's accuracy against Retrain, on the same split; 0 is “like Retrain”."""
    accuracies = [mia_accuracy(said, in_forget, weight) for said in (says_forget, says_forget_of_retrain)]
    return accuracies[0] - accuracies[1]


def best_attack(scores: ArrayLike) -> int:
    """Which attack has the lowest mean score, of (n_pairs, n_attacks): the largest AUC, as the paper's “best”.

    Chosen on what it is scored on, hence biased low: below ½ even for Retrain. Q's own search is corrected for that.
    """
    return first_largest(-np.asarray(scores, dtype=np.float64).mean(axis=0))


# -- distance to a retrained model -------------------------------------------------------------------------------------


def log_softmax(logits: ArrayLike) -> Floats:
    """(n, K) in float64; the largest logit of each row is taken out first, so that nothing overflows."""
    values = frozen_floats(logits, "logits")
    shifted = values - values.max(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)), dtype=np.float64)


def mean_kl(logits_of_retrain: ArrayLike, logits: ArrayLike, weight: ArrayLike) -> float:
    """Σ_x w_x Σ_y p(y|x) log(p(y|x)/q(y|x)) / Σ_x w_x in nats, p of Retrain, q of the method; (n, K) logits each."""
    log_p, log_q = log_softmax(logits_of_retrain), log_softmax(logits)
    mass = frozen_floats(weight, "weight")
    if log_p.shape != log_q.shape or mass.shape != log_p.shape[:1]:
        raise ValueError(
            f"logits {log_p.shape} and {log_q.shape} and weight {mass.shape} must be of the same points and classes"
        )
    if not ((mass >= 0).all() and mass.sum() > 0):
        raise ValueError("the points have no mass, so their mean is undefined")
    each = (np.exp(log_p) * (log_p - log_q)).sum(axis=1)
    return max(0.0, float(mass @ each / mass.sum()))  # rounding can leave −1e-17


# -- a mean over pairs -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Estimate:
    """A mean and its interval."""

    value: float
    interval: tuple[float, float] | None
    """None below ``MIN_PAIRS`` repetitions, and where all agree."""


def over_pairs(
    by_pair: Sequence[float], level: float = 0.95, *, least: float = -math.inf, most: float = math.inf
) -> Estimate:
    """The mean over at least one repetition; its interval is cut to the values that the score can have."""
    check_level(level)
    values = frozen_floats(by_pair, "scores by pair")
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(f"a mean over pairs needs at least one of them, but the shape is {values.shape}")
    mean = float(values.mean())
    if len(values) < MIN_PAIRS or agree(values):
        return Estimate(mean, None)
    standard_error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    half = float(special.stdtrit(len(values) - 1, (1 + level) / 2)) * standard_error
    return Estimate(mean, (max(least, mean - half), min(most, mean + half)))
