"""Choosing a method's knob by utility alone, on the shadow half: it never sees F against T, so Q stays honest.

Tuning on Q, or on accuracy over F and T, would choose the setting that happens to fool the adversaries on these very
points. Here only accuracy on points that no model of the tuning was trained on is looked at::

    from forgetgauge.tuning import tune
    print(tune("neg-grad", "lr", [0.001, 0.002, 0.005, 0.01, 0.02], alpha=0.5).chosen)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from forgetgauge import plugins
from forgetgauge.data.loading import load_dataset
from forgetgauge.game.splits import split_sizes
from forgetgauge.learn.minibatch import Minibatch
from forgetgauge.learn.predict import accuracy_of, logits_of
from forgetgauge.plan.draws import draw_halves, draw_shadow, half_sizes
from forgetgauge.plan.runfile import complete_params
from forgetgauge.streams import Streams, identity_key
from forgetgauge.unlearn.unlearner import Context


@dataclass(frozen=True)
class Trial:
    """One value of the knob."""

    value: Any
    mean_loss: float
    """Accuracy on unseen shadow points lost to the method, averaged over the models."""
    worst_loss: float
    """The largest loss of any model."""


@dataclass(frozen=True)
class Tuning:
    """What was tried, and what the rule chose."""

    chosen: Any
    """The last value, weakest first, at which no model loses more than `max_loss`; None where all do."""
    trials: list[Trial]


def tune(
    unlearner: str,
    knob: str,
    values: Sequence[Any],
    *,
    params: Mapping[str, Any] | None = None,
    learner: Mapping[str, Any] | None = None,
    data: str = "digits",
    fraction: float = 1.0,
    alpha: float = 0.1,
    n_models: int = 8,
    max_loss: float = 0.01,
    seed: int = 0,
) -> Tuning:
    """Try the values of a knob, weakest first, on models of the shadow half; keep the strongest harmless one.

    Each model is trained on as many shadow points as a target of the game, and unlearns as many as a target does. The
    rule: the strongest value at which no model loses more than `max_loss` of its accuracy on the shadow points that it
    was not trained on.
    """
    points = load_dataset(data).points
    recipe = Minibatch(**complete_params("learner", Minibatch, learner or {}))
    n_target, n_shadow = half_sizes(len(points), fraction)
    n_retain, n_forget = split_sizes(n_target, alpha)
    digest = load_dataset(data).digest
    _, half = draw_halves(digest, len(points), seed, fraction)
    sets = [draw_shadow(digest, n_shadow, seed, fraction, n_retain + n_forget, i, n_forget) for i in range(n_models)]
    members = [points.subset(half[member]) for member, _ in sets]
    streams = [Streams(identity_key({"tune": "model", "seed": seed, "which": i})) for i in range(n_models)]
    models = recipe.fit_many(members, streams)
    unseen = [points.subset(half[~member]) for member, _ in sets]
    before = [accuracy_of(logits_of(m, p), p.y.numpy()) for m, p in zip(models, unseen, strict=True)]
    factory = plugins.unlearners.load(unlearner)
    trials = []
    for value in values:
        method = factory(**complete_params(unlearner, factory, {**(params or {}), knob: value}))
        losses = []
        for i, (member, forgotten) in enumerate(sets):
            retain, forget = points.subset(half[member & ~forgotten]), points.subset(half[forgotten])
            context = Context(recipe, streams[i].child(f"{unlearner} {knob} {value}"))
            model = method.unlearn(models[i], retain, forget, context)
            losses.append(before[i] - accuracy_of(logits_of(model, unseen[i]), unseen[i].y.numpy()))
        trials.append(Trial(value, float(np.mean(losses)), float(np.max(losses))))
    harmless = [trial.value for trial in trials if trial.worst_loss <= max_loss + 1e-9]
    return Tuning(harmless[-1] if harmless else None, trials)
