"""What each kind of job does. Torch is imported by the kinds that need it, so scoring saved signals never loads it."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from forgetgauge import plugins
from forgetgauge.attack.adversary import Adversary, Shadows, TargetContext
from forgetgauge.attack.signals import Signals
from forgetgauge.errors import DiskFull, UserError
from forgetgauge.game import sensitivity
from forgetgauge.game.splits import SwapPair
from forgetgauge.plan.draws import draw_halves, draw_shadow_members, draw_swap_pair
from forgetgauge.plan.jobs import Job, Kind
from forgetgauge.run.tasks import Failure, Outcome, Sources, Task
from forgetgauge.store.artefact import Artefact
from forgetgauge.store.objects import CorruptArtefact, ObjectStore
from forgetgauge.streams import Streams

if TYPE_CHECKING:
    from torch import nn

    from forgetgauge.data.dataset import Dataset, Points
    from forgetgauge.learn.learner import Learner

Made = tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]
"""(arrays, facts) of one artefact."""

USES_TORCH: frozenset[Kind] = frozenset({"initialise", "train", "unlearn", "signals"})


class Worker:
    """Does tasks: reads their inputs from the store, does the work, writes the artefacts."""

    def __init__(self, objects: Path, sources: Sources) -> None:
        self.store = ObjectStore(objects)
        self.sources = sources

    def perform(self, task: Task, digests: Mapping[str, str]) -> Outcome:
        """Do a task; `digests` are the SHA-256 of its inputs. A job that raises is a Failure, not an exception."""
        self._warm_up(task)
        start = time.perf_counter()
        try:
            inputs = {key: self.store.read(key, digests[key]) for key in sorted(task.inputs)}
        except CorruptArtefact as error:
            return Outcome(lost=error.key)
        receipts, failures = {}, {}
        units = [task.jobs] if task.jobs[0].coupled else [(job,) for job in task.jobs]
        for unit in units:
            try:
                with one_thread(unit[0].kind):
                    made = self._do(unit, inputs)
                for job, (arrays, facts) in zip(unit, made, strict=True):
                    if job.key in task.wanted:
                        receipts[job.key] = self.store.write(job.key, arrays, facts)
            except DiskFull as error:
                return Outcome(full_disk=str(error))
            except Exception as error:  # whatever the user's own code raises is that job's failure, never the run's
                failure = Failure(_one_line(error), traceback.format_exc())
                failures.update({job.key: failure for job in unit if job.key in task.wanted})
        return Outcome(receipts, failures, seconds=time.perf_counter() - start)

    def _warm_up(self, task: Task) -> None:
        """Import torch and read the data before the clock starts: they are no method's cost."""
        if task.jobs[0].kind in USES_TORCH:
            with suppress(Exception):  # what is wrong with the data is told by the job itself
                self._dataset(task.jobs[0])

    def _do(self, jobs: Sequence[Job], inputs: Mapping[str, Artefact]) -> list[Made]:
        given = [{role: inputs[key] for role, key in job.inputs.items()} for job in jobs]
        kinds: dict[str, Callable[[Job, dict[str, Artefact]], Made]] = {
            "initialise": self._initialise,
            "signals": self._signals,
            "fit": self._fit,
            "decide": self._decide,
        }
        match jobs[0].kind:
            case "train":
                return self._train(jobs)
            case "unlearn":
                return self._unlearn(jobs, given)
            case kind:
                return [kinds[kind](job, its) for job, its in zip(jobs, given, strict=True)]

    # -- Initialization phase ------------------------------------------------------------------------------------

    def _initialise(self, job: Job, _: dict[str, Artefact]) -> Made:
        dataset, where = self._dataset(job), job.params
        target, _shadow = self._halves(job)
        labels = dataset.points.labels.numpy()[target]
        weight = sensitivity_weights(where["sensitivity"], labels, target, self.sources)
        return {"target": target, "labels": labels, "weight": weight}, {}

    # -- Challenger phase ----------------------------------------------------------------------------------------

    def _train(self, jobs: Sequence[Job]) -> list[Made]:
        learner = make_learner(jobs[0])
        points = [self._training_points(job) for job in jobs]
        models = learner.fit_many(points, [Streams(job.key) for job in jobs])
        return [
            (weights_of(model), {"n_gradients": learner.n_gradients(len(p))})
            for model, p in zip(models, points, strict=True)
        ]

    def _unlearn(self, jobs: Sequence[Job], given: Sequence[dict[str, Artefact]]) -> list[Made]:
        from forgetgauge.unlearn.unlearner import Context, Request, StackedUnlearner

        learner, unlearner = make_learner(jobs[0]), make_unlearner(jobs[0])
        requests = []
        for job, inputs in zip(jobs, given, strict=True):
            retain, forget = self._challenge(job)
            model = learner.build(retain, 0)
            if "model" in inputs:
                pour_weights(model, inputs["model"])
            requests.append(Request(model, retain, forget, Context(learner, Streams(job.key))))
        if isinstance(unlearner, StackedUnlearner):
            models = unlearner.unlearn_many(requests)
        else:
            models = [unlearner.unlearn(r.model, r.retain, r.forget, r.context) for r in requests]
        return [
            (weights_of(model), {"n_gradients": request.context.n_gradients})
            for model, request in zip(models, requests, strict=True)
        ]

    def _signals(self, job: Job, inputs: dict[str, Artefact]) -> Made:
        from forgetgauge.learn.predict import accuracy_of, logits_of

        dataset, half = self._dataset(job), self._half(job)
        model = self._poured(inputs["model"], dataset, job)

        def look(index: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
            points = dataset.points.subset(half[index])
            return logits_of(model, points), points.y.numpy()

        if job.params["role"] == "shadow":
            member = self._shadow_members(job)
            logits, labels = look(np.arange(len(half)))
            return {"logits": logits, "labels": labels, "member": member}, {}
        pair = self._pair(job)
        side = pair.sides[job.params["side"]]
        accuracy = {
            "retain": accuracy_of(*look(side.retain)),
            "forget": accuracy_of(*look(side.forget)),
            "unseen": accuracy_of(*look(side.unseen)),
        }
        if dataset.test is not None:
            accuracy["test"] = accuracy_of(logits_of(model, dataset.test), dataset.test.y.numpy())
        logits, labels = look(pair.points)
        cost = inputs["model"].facts["n_gradients"]  # kept here, since the weights may be dropped
        return {"logits": logits, "labels": labels}, {"accuracy": accuracy, "n_gradients": cost}

    # -- Adversary phase -----------------------------------------------------------------------------------------

    def _fit(self, job: Job, inputs: dict[str, Artefact]) -> Made:
        shadows = [inputs[f"shadow-{i}"].arrays for i in range(len(inputs))]
        signals = Signals(
            np.concatenate([s["logits"] for s in shadows]), np.concatenate([s["labels"] for s in shadows])
        )
        member = np.concatenate([s["member"] for s in shadows])
        attack = make_adversary(job).fit(Shadows(signals, member), TargetContext(job.params["n_classes"]))
        return dict(attack.arrays()), {}

    def _decide(self, job: Job, inputs: dict[str, Artefact]) -> Made:
        attack = make_adversary(job).load(inputs["fit"].arrays)
        seen = inputs["signals"].arrays
        return {"says_forget": attack.decide(Signals(seen["logits"], seen["labels"]))}, {}

    # -- Which points --------------------------------------------------------------------------------------------

    def _dataset(self, job: Job) -> Dataset:
        from forgetgauge.data.loading import load_dataset

        name = self.sources.datasets[job.params["data"]]
        dataset = load_dataset(name)
        if dataset.digest != job.params["data"]:
            raise UserError(f"data '{name}' changed since the run was planned; run the same command again")
        return dataset

    def _halves(self, job: Job) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        where = job.params
        return draw_halves(where["data"], len(self._dataset(job).points), where["seed"], where["fraction"])

    def _half(self, job: Job) -> npt.NDArray[np.int64]:
        return self._halves(job)[1 if job.params["role"] == "shadow" else 0]

    def _pair(self, job: Job) -> SwapPair:
        where = job.params
        n = len(self._half(job))
        return draw_swap_pair(where["data"], n, where["seed"], where["fraction"], where["alpha"], where["pair"])

    def _shadow_members(self, job: Job) -> npt.NDArray[np.bool_]:
        where = job.params
        n = len(self._half(job))
        return draw_shadow_members(where["data"], n, where["seed"], where["fraction"], where["size"], where["shadow"])

    def _challenge(self, job: Job) -> tuple[Points, Points]:
        """(R, F) of the job's side."""
        points, half = self._dataset(job).points, self._half(job)
        side = self._pair(job).sides[job.params["side"]]
        return points.subset(half[side.retain]), points.subset(half[side.forget])

    def _training_points(self, job: Job) -> Points:
        """R ∪ F of a target, or a shadow model's members."""
        points, half = self._dataset(job).points, self._half(job)
        if job.params["role"] == "shadow":
            return points.subset(half[self._shadow_members(job)])
        side = self._pair(job).sides[job.params["side"]]
        return points.subset(half[np.concatenate([side.retain, side.forget])])

    def _poured(self, weights: Artefact, dataset: Dataset, job: Job) -> nn.Module:
        model = make_learner(job).build(dataset.points, 0)
        pour_weights(model, weights)
        return model


def sensitivity_weights(
    how: Mapping[str, Any], labels: npt.NDArray[np.int64], target: npt.NDArray[np.int64], sources: Sources
) -> npt.NDArray[np.float64]:
    """(|D|,) P_D, normalised over the target half."""
    if how["kind"] == "by-class":
        return sensitivity.by_class(labels, {int(label): weight for label, weight in how["weights"].items()})
    if how["kind"] == "file":
        return sensitivity.checked(np.asarray(sources.weights[how["digest"]])[target], len(target))
    return sensitivity.uniform(len(target))


def make_learner(job: Job) -> Learner:
    """The learner a job names."""
    learner: Learner = _make(plugins.learners, job.params["learner"])
    return learner


def make_unlearner(job: Job) -> Any:
    """The unlearner a job names; a plain function of the user's is wrapped."""
    from forgetgauge.unlearn.unlearner import FunctionUnlearner, Unlearner

    identity = job.params["unlearner"]
    thing = plugins.unlearners.load(identity["name"])
    if not isinstance(thing, type) and not isinstance(thing, Unlearner):
        return FunctionUnlearner(thing, dict(identity["params"]))
    return _make(plugins.unlearners, identity)


def make_adversary(job: Job) -> Adversary:
    """The adversary a job names."""
    adversary: Adversary = _make(plugins.adversaries, job.params["adversary"])
    return adversary


def _make(catalogue: plugins.Catalogue, identity: Mapping[str, Any]) -> Any:
    thing = catalogue.load(identity["name"])
    return thing(**identity["params"]) if isinstance(thing, type) else thing


def weights_of(model: nn.Module) -> dict[str, npt.NDArray[Any]]:
    """All of a model's state as arrays."""
    return {name: tensor.detach().cpu().numpy() for name, tensor in model.state_dict().items()}


def pour_weights(model: nn.Module, weights: Artefact) -> None:
    """Stored weights into a model of the same architecture."""
    import torch

    model.load_state_dict({name: torch.from_numpy(array) for name, array in weights.arrays.items()})
    model.eval()


def _one_line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__


@contextmanager
def one_thread(kind: Kind) -> Iterator[None]:
    """One torch thread while a task runs: a model's bits then depend neither on the cores nor on who else works."""
    if kind not in USES_TORCH:
        yield
        return
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
