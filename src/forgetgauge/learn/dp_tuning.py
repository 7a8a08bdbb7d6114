"""Choosing the clip norm by utility alone, on the shadow half; F and T of the game are never looked at.

As for strengths (`results.tuning`), models are trained on points of the shadow half, as many as a target model has, and
only their accuracy on shadow points that they were not trained on counts::

    from forgetgauge.learn.dp_sgd import DpSgd
    from forgetgauge.learn.dp_tuning import tune_clip_norm
    print(tune_clip_norm(DpSgd(target_epsilon=50.0), [0.1, 0.3, 1.0, 3.0, 10.0], data="cifar10").chosen)

What the trials themselves cost in ε is in no book: as in the paper, ε is that of the chosen training alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from forgetgauge.data.loading import load_dataset
from forgetgauge.game.splits import split_sizes
from forgetgauge.learn.device import choose_device
from forgetgauge.learn.dp_sgd import DpSgd
from forgetgauge.learn.predict import known_utility_of, outputs_of_many
from forgetgauge.plan.draws import draw_halves, draw_shadow, half_sizes
from forgetgauge.streams import Streams, identity_key


@dataclass(frozen=True)
class ClipTrial:
    """One clip norm."""

    clip_norm: float
    accuracy: float
    """On unseen shadow points, averaged over the models."""
    worst: float
    """The lowest of any model."""


@dataclass(frozen=True)
class ClipTuning:
    """What was tried, and what the rule chose."""

    chosen: float
    """The clip norm of highest mean accuracy; the smaller of two that are equal."""
    trials: list[ClipTrial]


def tune_clip_norm(
    recipe: DpSgd,
    values: Sequence[float],
    *,
    data: str = "digits",
    data_params: Mapping[str, Any] | None = None,
    fraction: float = 1.0,
    alpha: float = 0.1,
    n_models: int = 4,
    seed: int = 0,
    device: str = "auto",
) -> ClipTuning:
    """Train `n_models` shadow models at each clip norm, at the recipe's ε, on the same points with the same draws."""
    dataset = load_dataset(data, data_params or {})
    points = dataset.points.on(choose_device(device))
    n_target, n_shadow = half_sizes(len(points), fraction)
    n_train = sum(split_sizes(n_target, alpha))
    _, half = draw_halves(dataset.digest, len(points), seed, fraction)
    drawn = [draw_shadow(dataset.digest, n_shadow, seed, fraction, n_train, i, 0)[0] for i in range(n_models)]
    members = [points.subset(half[member]) for member in drawn]
    unseen = [points.subset(half[~member]) for member in drawn]
    streams = [Streams(identity_key({"tune": "clip norm", "seed": seed, "which": i})) for i in range(n_models)]
    trials = []
    for value in sorted(values):
        models = replace(recipe, clip_norm=value).fit_many(members, streams)
        outputs = outputs_of_many(models, unseen)
        found = [known_utility_of(one, p) for one, p in zip(outputs, unseen, strict=True)]
        trials.append(ClipTrial(value, float(np.mean(found)), min(found)))
    return ClipTuning(max(trials, key=lambda trial: trial.accuracy).clip_norm, trials)
