"""The work of jobs about models: to train them, to make them forget, to ask them about points.

Between jobs a model is an artefact: all of its state as arrays, which go back into a model of the same architecture.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from forgetgauge.data.dataset import Points
from forgetgauge.errors import UserError, WrongOutput
from forgetgauge.learn.columns import COLUMNS
from forgetgauge.learn.device import describe, products_in
from forgetgauge.learn.learner import Learner, fitted_many, is_ours
from forgetgauge.learn.predict import outputs_of_many, utility_of
from forgetgauge.models.building import few_of, torch_seeded
from forgetgauge.models.causal_lm import RecordModel
from forgetgauge.models.outputs import answering_like, with_plain_outputs
from forgetgauge.models.transfer import pour_weights, weights_of
from forgetgauge.plan.draws import GROUP
from forgetgauge.plan.graph import CONFUSED, PAIR, PLAINLY
from forgetgauge.plan.jobs import UTILITY, ModelJob, SignalsJob, TrainJob, UnlearnJob
from forgetgauge.plan.subjects import Helper, Shadow, Target
from forgetgauge.probing import attribute
from forgetgauge.run.algorithms import is_own, make_learner, make_unlearner, makes_own_models, strength_in_stack
from forgetgauge.run.point_sets import SubjectPoints, WorkerData
from forgetgauge.run.surroundings import settings_kept
from forgetgauge.store.objects import Artefact
from forgetgauge.streams import Streams, identity_key
from forgetgauge.unlearn.stacked import products_of
from forgetgauge.unlearn.unlearner import Context, Request, StackedUnlearner, one_by_one


def untrained(learner: Learner, points: Points, n_models: int) -> list[nn.Module]:
    """Models to pour weights into: drawn once and copied, for 11 million random numbers take a tenth of a second."""
    first = mould(learner, points)
    return [first, *(copy.deepcopy(first) for _ in range(n_models - 1))]


def _to_pour_into(job: ModelJob, learner: Learner, points: Points, n_models: int, data: WorkerData) -> list[nn.Module]:
    """Models to pour weights into: on a GPU copies of one that the worker keeps, unless the user's code has a hand in
    it."""
    if makes_own_models(job) or not data.is_on_gpu:
        return untrained(learner, points, n_models)
    kept = data.mould(identity_key({"learner": job.learner.identity, "data": job.halves.data}), learner, points)
    return [copy.deepcopy(kept) for _ in range(n_models)]


def mould(learner: Learner, points: Points) -> nn.Module:
    """A model to pour weights into, which gives plain outputs whoever wrote the learner."""
    model = learner.build(points, 0)
    if not isinstance(model, nn.Module):
        raise UserError(f"learner '{type(learner).__name__}' built a {type(model).__name__}, not a torch module")
    model = model.to(points.device)
    if type(learner).__module__.startswith("forgetgauge."):
        return model
    with torch_seeded(0):
        return with_plain_outputs(type(model).__name__, model, few_of(points), points.task, points.n_outputs)


def checked_weights(model: Any, original: nn.Module) -> dict[str, npt.NDArray[Any]]:
    """The weights of what an unlearner gave back, which must be a model of the same architecture."""
    if not isinstance(model, nn.Module):
        raise WrongOutput(f"the unlearner gave back a {type(model).__name__}, not a model")
    if "forward" in vars(model):
        raise WrongOutput("the unlearner replaced the model's forward: only its weights and buffers are kept")
    if _shapes(model.state_dict()) != _shapes(original.state_dict()):
        raise WrongOutput("the unlearner gave back a model of another architecture")
    return weights_of(model)


def _shapes(state: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
    """What a model writes of its own accord, beside weights and buffers, may be of any length (a tree may grow)."""
    return {name: () if name.endswith("_extra_state") else tuple(tensor.shape) for name, tensor in state.items()}


@torch.no_grad()
def refuse_what_is_not_kept(model: nn.Module, fresh: nn.Module, x: Tensor) -> None:
    """WrongOutput where a model answers otherwise than one of its architecture with its weights and buffers.

    These alone are stored: a hook, an exchanged layer or an attribute that forward reads would be lost without a word,
    and the model that is attacked would not be the one that was made.
    """
    fresh.load_state_dict(model.state_dict())
    model = answering_like(model, fresh)
    first = next(model.parameters(), None)
    here = x if first is None else x.to(first.device)
    answers, again, kept = model.eval()(here).cpu(), model(here).cpu(), fresh.eval()(x).cpu()
    n_alone = max(1, len(x) // 2)
    alone, size = model(here[:n_alone]).cpu(), float(kept.nan_to_num().abs().max()) + 1e-6

    def agree(one: Tensor, other: Tensor, rtol: float) -> bool:
        return one.shape == other.shape and torch.allclose(one, other, rtol=rtol, atol=rtol * size, equal_nan=True)

    if not agree(answers, again, 1e-3):
        raise WrongOutput(
            "the model answers the same points differently when it is asked again in eval mode: dropout and noise are "
            "for training alone (F.dropout(h, p, training=self.training))"
        )
    if not agree(answers[:n_alone], alone, 5e-2):  # in less than float32 another batch is rounded otherwise
        raise WrongOutput(
            "what the model answers of a point in eval mode depends on which others it is asked about with it: batch "
            "norm, say, needs its running statistics (track_running_stats=True)"
        )
    if not agree(answers, kept, 1e-3):
        raise WrongOutput(
            "the model answers otherwise than its weights and buffers say, and these alone are kept: put what hooks, "
            "exchanged layers, attributes or buffers with persistent=False do into parameters or persistent buffers"
        )


N_ASKED = 16
"""Points of each set on which a model of the user's is compared with what is kept of it."""


def train(jobs: Sequence[TrainJob], given: Sequence[Mapping[str, Artefact]], data: WorkerData) -> list[Artefact]:
    """One model for each job, all by the learner of the first."""
    learner = make_learner(jobs[0].learner)
    with data.points_for(jobs[0].halves, own=is_own(jobs[0])) as whole:
        points = [data.points_of(job.subject, whole, its).training for job, its in zip(jobs, given, strict=True)]
        if not is_ours(learner):  # it may set the last tenth aside, and F is last
            points = [_in_any_order(one, job) for one, job in zip(points, jobs, strict=True)]
        models = fitted_many(learner, points, [Streams(job.key) for job in jobs])
        asked = attribute(learner, "engine")
        engine = asked(points).name if asked is not None else ""
        if makes_own_models(jobs[0]):
            _refuse_what_is_not_kept(models, [[own] for own in points], learner, whole)
    ran = _how_it_ran(data, len(jobs), engine)
    return [
        Artefact(
            weights_of(model),
            {"n_gradients": learner.n_gradients(len(p)), "ran": ran, "stated": _facts_of(learner, model)},
        )
        for model, p in zip(models, points, strict=True)
    ]


def _in_any_order(points: Points, job: TrainJob) -> Points:
    """The same points in a random order, so that F lies anywhere among R."""
    return points.subset(np.random.default_rng(Streams(job.key).seed("points")).permutation(points.index))


def unlearn(jobs: Sequence[UnlearnJob], given: Sequence[Mapping[str, Artefact]], data: WorkerData) -> list[Artefact]:
    """One model for each job, all by the unlearner of the first: together where it can, else one after another."""
    learner, unlearner = make_learner(jobs[0].learner), make_unlearner(jobs[0].unlearner)
    with data.points_for(jobs[0].halves, own=is_own(jobs[0])) as whole:
        originals = _originals(jobs, given, learner, whole, data)
        point_sets = [data.points_of(job.subject, whole, its) for job, its in zip(jobs, given, strict=True)]
        each = zip(jobs, originals, point_sets, strict=True)
        requests = [_request(*one, learner, data) for one in each]
        try:
            if isinstance(unlearner, StackedUnlearner):
                models = unlearner.unlearn_many(requests)
                ran = _how_it_ran(data, len(jobs), requests[0].context.engine)
            else:
                # or a default dtype of its own would hold while its model is looked at
                with settings_kept("unlearn"), nullcontext() if is_own(jobs[0]) else products_of(requests):
                    models = one_by_one(unlearner, requests)
                ran = _how_it_ran(data, 1)
        except BaseException:  # for want of memory, perhaps: then it is tried again with less
            data.let_go()
            raise
        weights = [checked_weights(model, r.model) for model, r in zip(models, requests, strict=True)]
        if makes_own_models(jobs[0]):
            _refuse_what_is_not_kept(models, [[r.retain, r.forget] for r in requests], learner, whole)
    made = []
    for model, request, inputs, arrays in zip(models, requests, given, weights, strict=True):
        facts = {"n_gradients": request.context.n_gradients, "ran": ran}
        facts["stated"] = {**_facts_of(learner, model), **_plain(request.context.facts)}
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


def _originals(
    jobs: Sequence[UnlearnJob],
    given: Sequence[Mapping[str, Artefact]],
    learner: Learner,
    whole: Points,
    data: WorkerData,
) -> list[nn.Module]:
    """The model that each job is about, untrained where it reads none; one that is unlearned at several strengths is
    there once."""
    about = [
        (job.subject, job.inputs["model"]) if strength_in_stack(job.unlearner) and "model" in job.inputs else job.key
        for job in jobs
    ]
    weights = dict(zip(about, given, strict=True))
    models = _to_pour_into(jobs[0], learner, whole, len(weights), data)
    found = dict(zip(weights, models, strict=True))
    for which, model in found.items():
        if "model" in weights[which]:
            pour_weights(model, weights[which]["model"].arrays)
    return [found[which] for which in about]


def _request(
    job: UnlearnJob, model: nn.Module, point_sets: SubjectPoints, learner: Learner, data: WorkerData
) -> Request:
    context = Context(learner, Streams(job.key), point_sets.elsewhere)
    if isinstance(job.subject, Shadow) and not is_own(job):  # of a target the seconds shown would be too few
        context.memory = data.memory
    strength = job.unlearner.params.get(strength_in_stack(job.unlearner))
    return Request(model, point_sets.retain, point_sets.forget, context, strength)


def _how_it_ran(data: WorkerData, width: int, engine: str = "") -> dict[str, Any]:
    """Which engine, in a stack how wide, where: a resumed run may have pieces of several sorts."""
    return {
        "device": describe(data.device),
        "engine": engine or ("solo" if width == 1 else "stack"),
        "width": width,
    }


def _facts_of(learner: Learner, model: Any) -> dict[str, float]:
    """What a learner has to say about a model, for the result."""
    facts_of = attribute(learner, "facts_of")
    return _plain(facts_of(model)) if facts_of is not None else {}


def _plain(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers of NumPy's as Python's, which can be written."""
    return {name: value.item() if isinstance(value, np.generic) else value for name, value in facts.items()}


def take_signals(
    jobs: Sequence[SignalsJob], given: Sequence[Mapping[str, Artefact]], data: WorkerData
) -> list[Artefact | ValueError]:
    """What models say, all of them in one pass where they are alike; an error in the place of one that diverged."""
    learner = make_learner(jobs[0].learner)
    with data.points_for(jobs[0].halves, own=is_own(jobs[0])) as whole:
        models = _to_pour_into(jobs[0], learner, whole, len(jobs), data)
    for model, inputs in zip(models, given, strict=True):
        pour_weights(model, inputs["model"].arrays)
    asked = [_asked(job, its, data) for job, its in zip(jobs, given, strict=True)]
    said: list[dict[str, npt.NDArray[np.float32]]] = [{} for _ in jobs]
    for name in asked[0]:
        plainly = name != "seen" or jobs[0].look_at == PLAINLY
        with _products_of(learner, models[0]):
            answers = outputs_of_many(models, [sets[name] for sets in asked], plainly=plainly)
        for own, outputs in zip(said, answers, strict=True):
            own[name] = outputs
    return [_signals(data, *one) for one in zip(jobs, given, models, asked, said, strict=True)]


def _products_of(learner: Learner, model: nn.Module) -> AbstractContextManager[None]:
    """A language model that was trained in less than float32 is asked in float32 with TF32's products on a GPU, which
    round less than its training did; all others in plain float32."""
    if not isinstance(model, RecordModel):
        return nullcontext()
    return products_in(tf32=attribute(learner, "precision", "float32") != "float32")


def _asked(job: SignalsJob, inputs: Mapping[str, Artefact], data: WorkerData) -> dict[str, Points]:
    """The sets a model is asked about: those that adversaries see, and those that show the utility of a target or
    of a model of the IC test."""
    point_sets, dataset = data.points_of(job.subject, inputs=inputs), data.on_device(job.halves)
    if job.look_at == UTILITY:  # as `results.utility.unseen_part` has it
        alike = dataset.test if dataset.task.test_part == "test" else None
        return {"unseen": point_sets.unseen} if alike is None else {"test": alike}
    sets = {"seen": point_sets.look_at(job.look_at)}
    if _shows_utility(job):
        sets |= {"retain": point_sets.retain, "forget": point_sets.forget, "unseen": point_sets.unseen}
        if dataset.test is not None:
            sets[dataset.task.test_part] = dataset.test
    return sets


def _shows_utility(job: SignalsJob) -> bool:
    return job.look_at in (PAIR, CONFUSED)


def _signals(
    data: WorkerData,
    job: SignalsJob,
    inputs: Mapping[str, Artefact],
    model: nn.Module,
    asked: Mapping[str, Points],
    said: Mapping[str, npt.NDArray[np.float32]],
) -> Artefact | ValueError:
    if job.look_at == UTILITY:
        return _utility(inputs["model"], asked, said)
    point_sets, points = data.points_of(job.subject, inputs=inputs), asked["seen"]
    arrays: dict[str, npt.NDArray[Any]] = {"outputs": said["seen"], "labels": points.y.cpu().numpy()}
    if not np.isfinite(arrays["outputs"]).all():
        return ValueError("the model's outputs hold NaN or infinite values")
    if job.halves.by == GROUP and points.groups is not None:
        arrays["group"] = points.groups
    for column in job.columns:
        arrays[f"column {column}"] = COLUMNS[column](model, points, point_sets.elsewhere)
    known = inputs["model"].facts  # kept here, since the weights may be dropped
    facts: dict[str, Any] = {name: known[name] for name in ("ran", "original_ran") if name in known}
    if isinstance(job.subject, Helper):
        role = point_sets.role_of_each(points, unlearned=job.subject.forget is not None)
        return Artefact({**arrays, "role": role}, facts)
    if not _shows_utility(job):
        return Artefact(arrays, facts)
    measured = {name: utility_of(outputs, asked[name]) for name, outputs in said.items() if name != "seen"}
    utility = {name: found for name, found in measured.items() if found is not None}
    stated = {**known.get("stated", {}), **_figures(asked, said)}
    facts |= {"utility": utility, "n_gradients": known["n_gradients"], "stated": stated}
    return Artefact(
        {**arrays, **({"points": point_sets.pair.points} if isinstance(job.subject, Target) else {})}, facts
    )


def _figures(asked: Mapping[str, Points], said: Mapping[str, npt.NDArray[np.float32]]) -> dict[str, float]:
    """Further figures of the task on each set that shows utility: `perplexity, unseen`."""
    found = {}
    for name, outputs in said.items():
        if name != "seen":
            points = asked[name]
            for what, value in points.task.figures(outputs, points.host_labels[points.index]).items():
                found[f"{what}, {name}"] = value
    return found


def _utility(model: Artefact, asked: Mapping[str, Points], said: Mapping[str, npt.NDArray[np.float32]]) -> Artefact:
    """Of a model that shows what a strength costs; of one that diverged none: that is no failure, it costs too much."""
    known: dict[str, Any] = {name: model.facts[name] for name in ("ran", "original_ran") if name in model.facts}
    finite = {name: outputs for name, outputs in said.items() if np.isfinite(outputs).all()}
    return Artefact({}, {**known, "utility": {name: utility_of(own, asked[name]) for name, own in finite.items()}})
