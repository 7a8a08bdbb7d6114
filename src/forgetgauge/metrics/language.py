"""What is quoted of unlearned language models today. None of it is Q.

**Forget quality** (TOFU, Maini et al. 2024) is the p-value of the two-sample Kolmogorov–Smirnov test between the truth
ratios that an unlearned and a retrained model give to the same forgotten questions; 1 is quoted as forgotten. A truth
ratio needs paraphrased and wrong answers to each question. Where the data have none, ``ks_p_value`` is taken of the
losses of the two models, under a name of its own. Either way the two samples are of the *same* records, while the test
takes them for independent: it is blind to most of what changes from record to record.

**PrivLeak** (MUSE, Shi et al. 2025) sets the AUC by which an attack's score (Min-K %) tells F from a hold-out set
against that of a retrained model: below 0, F looks more like training data than it does there; above 0, less.

Extraction strength and verbatim match are means of a task's signals (``tasks.causal_lm``) and need no arithmetic here.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from forgetgauge.game.arrays import Floats, frozen_floats

# -- forget quality ----------------------------------------------------------------------------------------------------


def ks_p_value(first: ArrayLike, second: ArrayLike) -> float:
    """The exact two-sided p of the two-sample Kolmogorov–Smirnov test; samples that tie are taken as if they did not.

    Under the null hypothesis all orders in which m and n values may come are equally likely: each is a path from (0, 0)
    to (m, n), and p is the share of them that is somewhere as far from the diagonal as the samples are. A random path
    to (i, j) comes from (i − 1, j) with probability i/(i + j), so the share is found from the shares before it, one
    anti-diagonal after another. Nothing is subtracted: p is as exact where it is tiny.
    """
    one, other = _sample(first), _sample(second)
    m, n = len(one), len(other)
    farthest = _largest_gap(one, other)
    outside = np.zeros(m + 1)  # of each i on an anti-diagonal: the share of paths to (i, steps − i) that were outside
    for steps in range(1, m + n + 1):
        i = np.arange(max(0, steps - n), min(m, steps) + 1)
        j = steps - i
        came_along_i = np.where(i > 0, outside[np.maximum(i - 1, 0)], 0.0)
        shares = (i * came_along_i + j * np.where(j > 0, outside[i], 0.0)) / steps
        outside[i] = np.where(np.abs(i * n - j * m) >= farthest, 1.0, shares)
    return float(outside[m])


def _largest_gap(one: Floats, other: Floats) -> int:
    """m · n · max_t |F_1(t) − F_2(t)|, a whole number, so that equal distances are equal."""
    values = np.concatenate([one, other])
    counts = [np.searchsorted(np.sort(sample), values, side="right") for sample in (one, other)]
    return int(np.abs(counts[0] * len(other) - counts[1] * len(one)).max())


def _sample(values: ArrayLike) -> Floats:
    sample = frozen_floats(values, "a sample")
    if sample.ndim != 1 or len(sample) == 0:
        raise ValueError(f"a sample is one number for each of one record or more, not of shape {sample.shape}")
    return sample


# -- PrivLeak ----------------------------------------------------------------------------------------------------------


def privleak(auc: float, auc_of_retrain: float) -> float:
    """[(1 − AUC) − (1 − AUC of Retrain)] / (1 − AUC of Retrain); MUSE quotes it in percent, a hundred times this.

    AUC is P(score of F > score of the hold-out set) + ½P(equal), the score being larger for training data: −1 where the
    attack is never wrong. Not defined where it is never wrong about Retrain.
    """
    for value in (auc, auc_of_retrain):
        if not 0 <= value <= 1:
            raise ValueError(f"an AUC lies in [0, 1], not {value}")
    return (auc_of_retrain - auc) / (1 - auc_of_retrain) if auc_of_retrain < 1 else math.nan
