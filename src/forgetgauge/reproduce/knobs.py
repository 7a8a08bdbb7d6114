"""The knobs of the paper's eight methods, in one place; the paper gives none of them.

A knob may be chosen by accuracy on the shadow half alone (`forgetgauge.tuning`), never by Q. `TUNED` says of each
family whether that was done. Two knobs cannot stay at their published values:

- SSD's selection weight w (where I_F > w I_D). With per-sample importances I_D ≥ (|F| / |R ∪ F|) I_F = α I_F, so a
  weight of 1/α or more selects nothing and SSD is the identity: 10, as published, is just that at α = 0.1, and 5 is at
  0.25. So the weight given here is for α = 0.1, and at another α it is w^(ln α / ln 0.1): always between 1 and 1/α.
- Fisher's labels: one sampled label a point is unbiased and as many times cheaper as there are classes.
"""

from __future__ import annotations

import math
from typing import Any

Knobs = dict[str, dict[str, Any]]

METHODS = ("retrain", "none", "neg-grad", "retrain-final", "ft-final", "fisher", "salun", "ssd")

KNOBS: dict[str, Knobs] = {
    # CIFAR and MNIST ResNets
    "resnet": {"fisher": {"labels": "sampled"}, "ssd": {"alpha": 5.0}},
    "bert": {"fisher": {"labels": "sampled"}, "ssd": {"alpha": 5.0}},
    # ResNet-18 with group norm, DP-SGD
    "dp": {"fisher": {"labels": "sampled"}, "ssd": {"alpha": 5.0}},
    # The embedded run's (plan/digits.toml), with few epochs: smoke is about the machinery.
    "digits": {
        "neg-grad": {"lr": 0.005, "epochs": 1},
        "retrain-final": {"epochs": 2},
        "ft-final": {"epochs": 2},
        "fisher": {"alpha": 5e-7, "labels": "sampled"},
        "salun": {"lr": 2e-4, "epochs": 1},
        "ssd": {"alpha": 5.0},
    },
}

TUNED = {"resnet": False, "bert": False, "dp": False, "digits": True}
"""Whether a family's knobs were chosen on the shadow half; the others are defaults, and tables say so."""


def unlearners(family: str, alpha: float) -> Knobs:
    """The eight methods with their knobs, as the run file's `[unlearners]`, at an unlearning portion α."""
    chosen = {name: dict(KNOBS[family].get(name, {})) for name in METHODS}
    chosen["ssd"]["alpha"] = ssd_weight(chosen["ssd"]["alpha"], alpha)
    return chosen


def ssd_weight(at_one_tenth: float, alpha: float) -> float:
    """The selection weight at α, as far between 1 and 1/α on a logarithmic scale as it is at α = 0.1."""
    return at_one_tenth if alpha == 0.1 else round(at_one_tenth ** (math.log(alpha) / math.log(0.1)), 4)


def remark(family: str) -> str:
    """What a table must say of its knobs."""
    return "" if TUNED[family] else "Knobs of the methods are defaults, untuned."
