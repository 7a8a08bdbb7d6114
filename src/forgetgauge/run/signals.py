"""What models say: signals for the adversaries, and a target's utility."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import nn

from forgetgauge.data.dataset import Points
from forgetgauge.learn.predict import outputs_of_many, utility_of
from forgetgauge.learn.white_box import COLUMNS
from forgetgauge.plan.graph import CONFUSED, PAIR
from forgetgauge.plan.jobs import SignalsJob
from forgetgauge.plan.subjects import Helper, Target
from forgetgauge.run.algorithms import is_own, make_learner
from forgetgauge.run.point_sets import WorkerData
from forgetgauge.run.weights import pour_weights, untrained
from forgetgauge.store.objects import Artefact


def take_signals(
    jobs: Sequence[SignalsJob], given: Sequence[Mapping[str, Artefact]], data: WorkerData
) -> list[Artefact | ValueError]:
    """What models say, all of them in one pass where they are alike; an error in the place of one that diverged."""
    with data.points_for(jobs[0].halves, own=is_own(jobs[0])) as whole:
        models = untrained(make_learner(jobs[0].learner), whole, len(jobs))
    for model, inputs in zip(models, given, strict=True):
        pour_weights(model, inputs["model"])
    asked = [_asked(job, data) for job in jobs]
    said: list[dict[str, npt.NDArray[np.float32]]] = [{} for _ in jobs]
    for name in asked[0]:
        for own, outputs in zip(said, outputs_of_many(models, [sets[name] for sets in asked]), strict=True):
            own[name] = outputs
    return [_signals(data, *one) for one in zip(jobs, given, models, asked, said, strict=True)]


def _asked(job: SignalsJob, data: WorkerData) -> dict[str, Points]:
    """The sets a model is asked about: those that adversaries see, and those that tell the utility of a target or
    of a model of the IC test."""
    point_sets, dataset = data.points_of(job.subject), data.on_device(job.halves)
    sets = {"seen": point_sets.look_at(job.look_at)}
    if _tells_utility(job):
        sets |= {"retain": point_sets.retain, "forget": point_sets.forget, "unseen": point_sets.unseen}
        if dataset.test is not None:
            sets["test"] = dataset.test
    return sets


def _tells_utility(job: SignalsJob) -> bool:
    return job.look_at in (PAIR, CONFUSED)


def _signals(
    data: WorkerData,
    job: SignalsJob,
    inputs: Mapping[str, Artefact],
    model: nn.Module,
    asked: Mapping[str, Points],
    said: Mapping[str, npt.NDArray[np.float32]],
) -> Artefact | ValueError:
    point_sets, points = data.points_of(job.subject), asked["seen"]
    arrays: dict[str, npt.NDArray[Any]] = {"outputs": said["seen"], "labels": points.y.cpu().numpy()}
    if not np.isfinite(arrays["outputs"]).all():
        return ValueError("the model's outputs hold NaN or infinite values")
    for column in job.columns:
        arrays[f"column {column}"] = COLUMNS[column](model, points)
    told = inputs["model"].facts  # what it says is kept here, since the weights may be dropped
    facts: dict[str, Any] = {name: told[name] for name in ("ran", "original_ran") if name in told}
    if isinstance(job.subject, Helper):
        role = point_sets.role_of_each(points, unlearned=job.subject.forget is not None)
        return Artefact({**arrays, "role": role}, facts)
    if not _tells_utility(job):
        return Artefact(arrays, facts)
    utility = {name: utility_of(outputs, asked[name]) for name, outputs in said.items() if name != "seen"}
    facts |= {"utility": utility, "n_gradients": told["n_gradients"], "told": told.get("told", {})}
    return Artefact(
        {**arrays, **({"points": point_sets.pair.points} if isinstance(job.subject, Target) else {})}, facts
    )
