"""Recipes by name: `preset = "cifar-resnet"` in the table `[learner]` stands for these keys; keys beside it win.

What is stored and hashed is the expanded table, so a preset and the same keys written out are the same jobs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forgetgauge.errors import UserError, unknown_name

PRESETS: dict[str, dict[str, Any]] = {
    # The paper's: the rate falls tenfold after epochs 100 and 150; no augmentation, the last epoch's weights. It names
    # no batch size; 128 is that of the code its other numbers are from.
    "cifar-resnet": {
        "model": "resnet20",
        "optimiser": "sgd",
        "lr": 0.1,
        "momentum": 0.9,
        "weight_decay": 1e-5,
        "schedule": "steps",
        "milestones": [0.5, 0.75],
        "epochs": 200,
        "batch_size": 128,
        "precision": "bfloat16",
        "augment": "none",
    },
    # A tenth of the epochs: up to a higher rate and down to 0 in straight lines (super-convergence), more decay.
    "fast": {
        "model": "resnet20",
        "optimiser": "sgd",
        "lr": 0.2,
        "momentum": 0.9,
        "weight_decay": 5e-4,
        "schedule": "linear",
        "warmup": 0.2,
        "epochs": 20,
        "batch_size": 128,
        "precision": "bfloat16",
        "augment": "none",
    },
    # Devlin et al.'s fine-tuning, but ten epochs in place of three or four: the paper's Q shows heavy memorisation.
    "bert": {
        "model": "bert",
        "optimiser": "adamw",
        "lr": 2e-5,
        "weight_decay": 0.01,
        "schedule": "linear",
        "warmup": 0.1,
        "epochs": 10,
        "batch_size": 32,
        "precision": "bfloat16",
    },
}


def expand_preset(learner: Mapping[str, Any]) -> dict[str, Any]:
    """The table with its preset's keys filled in; one without a preset as it is."""
    given = {key: value for key, value in learner.items() if key != "preset"}
    if "preset" not in learner:
        return given
    name = learner["preset"]
    if not isinstance(name, str) or name not in PRESETS:
        raise UserError("learner.preset: " + unknown_name("preset", str(name), PRESETS))
    return {**PRESETS[name], **given}
