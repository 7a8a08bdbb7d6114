"""Is “Newton steps, or retrain where the bound exceeds the budget” (ε, δ)-close to Retrain? One split of the digits.

The event: the mean loss on F is above the 70 % quantile of retrained models. ε is where half of the models exceed the
budget. Prints the event's share among retrained models, after Newton steps alone, and after the whole procedure.
The argument is the split: 0 is the one on which the event was found, any other a fresh one.
"""

from __future__ import annotations

import math
import sys

import numpy as np
import torch

from forgetgauge.data.digits import load_digits_three_eight
from forgetgauge.learn.certified_linear import LOSSES, CertifiedLinear, signed_rows
from forgetgauge.streams import Streams
from forgetgauge.unlearn.certified_removal import removal_budget, walk

N_MODELS, SIGMA, DELTA = 600, 3.0, 1e-4
SPLIT = int(sys.argv[1]) if len(sys.argv) > 1 else 0

torch.set_num_threads(1)
points = load_digits_three_eight().points
order = np.random.default_rng(SPLIT).permutation(len(points))
training, retain, forget = (points.subset(order[part]) for part in (slice(162), slice(146), slice(146, 162)))
learner, rows = CertifiedLinear(lam=0.03, sigma=SIGMA), (signed_rows(retain), signed_rows(forget))


def loss_on_forget(weight: torch.Tensor) -> float:
    """Mean over F."""
    return float(LOSSES["logistic"].value(rows[1] @ weight).mean())


def retrained(streams: Streams) -> float:
    """The loss of a model that never saw F."""
    return loss_on_forget(learner.fit(retain, streams).weight.detach())


def streams(which: str, i: int) -> Streams:
    """Of model i: an original (o), or one of two lots of retrained ones (r, f)."""
    return Streams(f"{which}{i}" if SPLIT == 0 else f"{SPLIT} {which}{i}")


paths = [
    walk(learner.fit(training, streams("o", i)), *rows, learner, order="one-by-one", bound="data")
    for i in range(N_MODELS)
]
bounds = np.array([path.bounds[-1] for path in paths])
newton = np.array([loss_on_forget(path.weight) for path in paths])
reference, fresh = (np.array([retrained(streams(which, i)) for i in range(N_MODELS)]) for which in "rf")
epsilon = float(np.median(bounds)) / removal_budget(1.0, DELTA, SIGMA)
answered = np.where(bounds <= removal_budget(epsilon, DELTA, SIGMA), newton, fresh)
threshold = np.quantile(np.concatenate([reference, fresh]), 0.7)
shares = [float((losses > threshold).mean()) for losses in (newton, answered)]
print(f"split {SPLIT}, ε = {epsilon:.3f}, correlation of bound and loss {np.corrcoef(bounds, newton)[0, 1]:.2f}")
print(f"retrained 0.300, Newton steps alone {shares[0]:.3f}, the whole procedure {shares[1]:.3f}", end="; ")
print(f"ln ratio {math.log(0.3 / shares[1]):.3f}")
