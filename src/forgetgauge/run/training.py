"""Models are trained, and made to forget; what comes out is their weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from forgetgauge.data.dataset import Points
from forgetgauge.learn.device import describe
from forgetgauge.learn.learner import Learner
from forgetgauge.plan.jobs import TrainJob, UnlearnJob
from forgetgauge.run.algorithms import is_own, make_learner, make_unlearner, makes_own_models
from forgetgauge.run.point_sets import SubjectPoints, WorkerData
from forgetgauge.run.weights import checked_weights, pour_weights, refuse_what_is_not_kept, untrained, weights_of
from forgetgauge.store.objects import Artefact
from forgetgauge.streams import Streams
from forgetgauge.unlearn.unlearner import Context, Request, StackedUnlearner

N_ASKED = 16
"""Points of each set on which a model of the user's is compared with what is kept of it."""


def train(jobs: Sequence[TrainJob], data: WorkerData) -> list[Artefact]:
    """One model for each job, all by the learner of the first."""
    learner = make_learner(jobs[0].learner)
    with data.points_for(jobs[0].halves, own=is_own(jobs[0])) as whole:
        points = [data.points_of(job.subject, whole).training for job in jobs]
        models = learner.fit_many(points, [Streams(job.key) for job in jobs])
        engine = learner.engine(points).name if hasattr(learner, "engine") else ""
        if makes_own_models(jobs[0]):
            _refuse_what_is_not_kept(models, [[own] for own in points], learner, whole)
    ran = _how_it_ran(data, len(jobs), engine)
    return [
        Artefact(
            weights_of(model),
            {"n_gradients": learner.n_gradients(len(p)), "ran": ran, "told": _facts_of(learner, model)},
        )
        for model, p in zip(models, points, strict=True)
    ]


def unlearn(jobs: Sequence[UnlearnJob], given: Sequence[Mapping[str, Artefact]], data: WorkerData) -> list[Artefact]:
    """One model for each job, all by the unlearner of the first: together where it can, else one after another."""
    learner, unlearner = make_learner(jobs[0].learner), make_unlearner(jobs[0].unlearner)
    with data.points_for(jobs[0].halves, own=is_own(jobs[0])) as whole:
        models = untrained(learner, whole, len(jobs))
        point_sets = [data.points_of(job.subject, whole) for job in jobs]
        requests = [_request(*one, learner) for one in zip(jobs, given, models, point_sets, strict=True)]
        if isinstance(unlearner, StackedUnlearner):
            models = unlearner.unlearn_many(requests)
            ran = _how_it_ran(data, len(jobs), requests[0].context.engine)
        else:
            models = [unlearner.unlearn(r.model, r.retain, r.forget, r.context) for r in requests]
            ran = _how_it_ran(data, 1)
        weights = [checked_weights(model, r.model) for model, r in zip(models, requests, strict=True)]
        if makes_own_models(jobs[0]):
            _refuse_what_is_not_kept(models, [[r.retain, r.forget] for r in requests], learner, whole)
    made = []
    for model, request, inputs, arrays in zip(models, requests, given, weights, strict=True):
        facts = {"n_gradients": request.context.n_gradients, "ran": ran}
        facts["told"] = {**_facts_of(learner, model), **request.context.facts}
        if "model" in inputs:
            facts["original_ran"] = inputs["model"].facts.get("ran")
        made.append(Artefact(arrays, facts))
    return made


def _refuse_what_is_not_kept(
    models: Sequence[nn.Module], sets: Sequence[Sequence[Points]], learner: Learner, whole: Points
) -> None:
    """Of every set some points are asked about: what is done to F alone would not show on R."""
    fresh = untrained(learner, whole, 1)[0]
    for model, own in zip(models, sets, strict=True):
        asked = np.concatenate([points.index[:N_ASKED] for points in own])
        refuse_what_is_not_kept(model, fresh, whole.inputs_at(torch.from_numpy(asked)))


def _request(
    job: UnlearnJob, inputs: Mapping[str, Artefact], model: nn.Module, point_sets: SubjectPoints, learner: Learner
) -> Request:
    if "model" in inputs:
        pour_weights(model, inputs["model"])
    context = Context(learner, Streams(job.key), validation=point_sets.elsewhere)
    return Request(model, point_sets.retain, point_sets.forget, context)


def _how_it_ran(data: WorkerData, width: int, engine: str = "") -> dict[str, Any]:
    """Which engine, in a stack how wide, where: a resumed run may have pieces of several sorts."""
    return {
        "device": describe(data.device),
        "engine": engine or ("solo" if width == 1 else "stack"),
        "width": width,
    }


def _facts_of(learner: Learner, model: Any) -> dict[str, float]:
    """What a learner has to say about a model, for the result."""
    return dict(learner.facts_of(model)) if hasattr(learner, "facts_of") else {}
