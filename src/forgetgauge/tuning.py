"""Choosing a method's strength by utility alone, on the shadow half: it never sees F against T, so Q stays honest.

Tuning on Q, or on accuracy over F and T, would choose the setting that happens to fool the adversaries on these very
points. Here only accuracy on points that no model of the tuning was trained on is looked at::

    from forgetgauge.tuning import Tuner, tune
    print(tune("neg-grad", "lr", [0.001, 0.002, 0.005, 0.01, 0.02], alpha=0.5).chosen)

    tuner = Tuner.from_run("runs/cifar10-resnet20")  # the shadow models of a run that kept its weights
    print(tuner.tune("fisher", "alpha", [1e-8, 1e-7, 1e-6]).chosen)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from forgetgauge import plugins
from forgetgauge.data.dataset import Points
from forgetgauge.data.loading import load_dataset
from forgetgauge.errors import UserError
from forgetgauge.game.splits import split_sizes
from forgetgauge.learn.device import choose_device
from forgetgauge.learn.learner import Learner
from forgetgauge.learn.minibatch import Minibatch
from forgetgauge.learn.predict import known_utility_of, outputs_of_many
from forgetgauge.plan.draws import half_sizes
from forgetgauge.plan.graph import Graph
from forgetgauge.plan.jobs import TrainJob
from forgetgauge.plan.runfile import complete_params, expand_preset
from forgetgauge.plan.subjects import Halves, Shadow
from forgetgauge.run.algorithms import make_learner
from forgetgauge.run.campaign import Campaign
from forgetgauge.run.model_jobs import pour_weights
from forgetgauge.store.runfolder import RunFolder
from forgetgauge.streams import Streams, identity_key
from forgetgauge.unlearn.unlearner import Context, Request, StackedUnlearner

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class Trial:
    """One value of the strength."""

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


@dataclass(frozen=True)
class _Set:
    """The point sets of one shadow model."""

    retain: Points
    forget: Points
    unseen: Points


class Tuner:
    """Models of the shadow half, each trained on as many points as a target, with what it is asked to forget."""

    def __init__(
        self, learners: Sequence[Learner], models: Sequence[nn.Module], sets: Sequence[_Set], seed: int
    ) -> None:
        self.learners, self.models, self.sets, self.seed = list(learners), list(models), list(sets), seed
        self.before = self._accuracy(self.models)

    @staticmethod
    def train(
        *,
        learner: Mapping[str, Any] | None = None,
        data: str = "digits",
        data_params: Mapping[str, Any] | None = None,
        fraction: float = 1.0,
        alpha: float = 0.1,
        n_models: int = 8,
        seed: int = 0,
        device: str = "auto",
    ) -> Tuner:
        """Train the models now."""
        recipe = Minibatch(**complete_params("learner", Minibatch, expand_preset(learner or {})))
        dataset = load_dataset(data, data_params or {})
        points = dataset.points.on(choose_device(device))
        n_retain, n_forget = split_sizes(half_sizes(len(points), fraction)[0], alpha)
        shadow = Shadow(Halves(dataset.digest, seed, fraction), n_retain + n_forget, 0, n_forget)
        sets = [_set_of(replace(shadow, which=which), points) for which in range(n_models)]
        streams = [Streams(identity_key({"tune": "model", "seed": seed, "which": i})) for i in range(n_models)]
        members = [points.subset(np.concatenate([s.retain.index, s.forget.index])) for s in sets]
        models = recipe.fit_many([p.subset(np.sort(p.index)) for p in members], streams)
        return Tuner([recipe] * n_models, models, sets, seed)

    @staticmethod
    def from_run(folder: str | Path, *, device: str = "auto") -> Tuner:
        """The shadow models of a run that kept its weights; of a sweep those of all games: one strength is to suit
        them."""
        opened = RunFolder(Path(folder))
        state, games = opened.open_ledger().state, Campaign.read(opened).graphs
        first = games[0].game
        there = {job.key: (job, shadow) for graph in games for job, shadow in _shadows(graph)}
        kept = [(job, shadow) for key, (job, shadow) in there.items() if state.is_available(key)]
        if any(shadow.halves.data != first.data_digest for _, shadow in kept):
            raise UserError(f"{folder}: its games have different data; tune on a run of one data set")
        if not kept:
            raise UserError(f'{folder}: no shadow model\'s weights are there; run it with keep = "weights"')
        points = load_dataset(first.data.name, first.data.params).points.on(choose_device(device))
        learners, models, sets = [], [], []
        for job, shadow in kept:
            learners.append(make_learner(job.learner))
            models.append(learners[-1].build(points, 0).to(points.device))
            pour_weights(models[-1], opened.objects.read(job.key, state.done[job.key].receipt.sha256))
            sets.append(_set_of(shadow, points))
        return Tuner(learners, models, sets, first.seed)

    def tune(
        self,
        unlearner: str,
        strength: str,
        values: Sequence[Any],
        *,
        params: Mapping[str, Any] | None = None,
        max_loss: float = 0.01,
    ) -> Tuning:
        """Try the values, weakest first; keep the strongest harmless one.

        The rule: the strongest value at which no model loses more than `max_loss` of its accuracy on the shadow points
        that it was not trained on.
        """
        factory = plugins.unlearners.load(unlearner)
        trials = []
        for value in values:
            method = factory(**complete_params(unlearner, factory, {**(params or {}), strength: value}))
            after = self._accuracy(self._unlearned(method, f"{unlearner} {strength} {value}"))
            losses = self.before - after
            trials.append(Trial(value, float(losses.mean()), float(losses.max())))
        harmless = [trial.value for trial in trials if trial.worst_loss <= max_loss + 1e-9]
        return Tuning(harmless[-1] if harmless else None, trials)

    def _unlearned(self, method: Any, name: str) -> list[nn.Module]:
        requests = []
        for i, (learner, model, points) in enumerate(zip(self.learners, self.models, self.sets, strict=True)):
            streams = Streams(identity_key({"tune": "model", "seed": self.seed, "which": i})).child(name)
            requests.append(Request(model, points.retain, points.forget, Context(learner, streams)))
        if isinstance(method, StackedUnlearner):
            return method.unlearn_many(requests)
        return [method.unlearn(r.model, r.retain, r.forget, r.context) for r in requests]

    def _accuracy(self, models: Sequence[nn.Module]) -> npt.NDArray[np.float64]:
        """(n_models,) on the points each has never seen."""
        outputs = outputs_of_many(models, [s.unseen for s in self.sets])
        return np.array([known_utility_of(own, s.unseen) for own, s in zip(outputs, self.sets, strict=True)])


def _shadows(graph: Graph) -> list[tuple[TrainJob, Shadow]]:
    """Trainings of a game's own shadow models, and what each of them is asked to forget."""
    game = graph.game
    trainings = [job for job in graph.jobs.values() if isinstance(job, TrainJob)]
    return [
        (job, replace(job.subject, forget=game.sizes[1]))
        for job in trainings
        if isinstance(job.subject, Shadow) and job.learner.identity == game.learner.identity
    ]


def _set_of(shadow: Shadow, points: Points) -> _Set:
    """What a shadow model is trained on, and asked to forget: the draws of a run."""
    sets = shadow.point_sets(*shadow.halves.draw(len(points)), points.host_labels)
    return _Set(*(points.subset(part) for part in (sets.retain, sets.forget, sets.unseen)))


def tune(
    unlearner: str,
    strength: str,
    values: Sequence[Any],
    *,
    params: Mapping[str, Any] | None = None,
    max_loss: float = 0.01,
    **how: Any,
) -> Tuning:
    """Train models of the shadow half (`how` is what `Tuner.train` takes) and tune one strength on them."""
    return Tuner.train(**how).tune(unlearner, strength, values, params=params, max_loss=max_loss)
