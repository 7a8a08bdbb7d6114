"""What each kind of job does. Torch is imported by the kinds that need it, so scoring saved signals never loads it."""

from __future__ import annotations

import random
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from forgetgauge import plugins
from forgetgauge.attack.adversary import Adversary, Calibration, Panel, TargetContext, calibration_of, margin_of
from forgetgauge.attack.signals import Signals
from forgetgauge.errors import DiskFull, UserError
from forgetgauge.game import sensitivity
from forgetgauge.plan.draws import draw_halves
from forgetgauge.plan.graph import CONFUSED, PAIR
from forgetgauge.plan.jobs import Job, Kind
from forgetgauge.run.narrowing import in_parts
from forgetgauge.run.places import Places
from forgetgauge.run.tasks import Failure, Outcome, Sources, Task
from forgetgauge.store.artefact import Artefact
from forgetgauge.store.objects import CorruptArtefact, ObjectStore
from forgetgauge.streams import Streams, identity_key

if TYPE_CHECKING:
    import torch
    from torch import nn

    from forgetgauge.data.dataset import Dataset, Points
    from forgetgauge.learn.learner import Learner

Made = tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]
"""(arrays, facts) of one artefact."""

USES_TORCH: frozenset[Kind] = frozenset({"initialise", "train", "unlearn", "signals"})

N_DATASETS_ON_DEVICE = 2
"""As many as are kept in memory, for sweeps over data sets."""


class Worker:
    """Does tasks: reads their inputs from the store, does the work on a device, writes the artefacts."""

    def __init__(self, objects: Path, sources: Sources, device: str = "cpu") -> None:
        self.store = ObjectStore(objects)
        self.sources = sources
        self._device_name = device
        self._on_device: dict[str, Dataset] = {}

    @cached_property
    def device(self) -> torch.device:
        """Where models and data are; looked for when the first task needs torch."""
        from forgetgauge.learn.device import choose_device

        return choose_device(self._device_name)

    def perform(self, task: Task, digests: Mapping[str, str]) -> Outcome:
        """Do a task; `digests` are the SHA-256 of its inputs. A job that raises is a Failure, not an exception."""
        self._warm_up(task)
        start = time.perf_counter()
        try:
            inputs = {key: self.store.read(key, digests[key]) for key in sorted(task.inputs)}
        except CorruptArtefact as error:
            return Outcome(lost=error.key)
        receipts, failures, narrower = {}, {}, []
        units = [task.jobs] if task.jobs[0].coupled else self._units(task.jobs)
        while units:
            unit = units.pop(0)
            try:
                parts = in_parts(unit, lambda part: self._do(part, inputs))
                if len(parts) > 1:
                    narrower += [[job.key for job in part] for part, _ in parts]
                for part, made in parts:
                    for job, (arrays, facts) in zip(part, made, strict=True):
                        if job.key in task.wanted:
                            receipts[job.key] = self.store.write(job.key, arrays, facts)
            except DiskFull as error:
                seconds = time.perf_counter() - start
                return Outcome(receipts, stacks=narrower, full_disk=str(error), seconds=seconds)
            except Exception as error:  # whatever the user's own code raises is that job's failure, never the run's
                if not unit[0].coupled and len(unit) > 1:  # find out whose fault it is
                    units = [(job,) for job in unit] + units
                    continue
                failure = Failure(_one_line(error), traceback.format_exc())
                failures.update({job.key: failure for job in unit if job.key in task.wanted})
        return Outcome(receipts, failures, stacks=narrower, seconds=time.perf_counter() - start)

    def _units(self, jobs: Sequence[Job]) -> list[tuple[Job, ...]]:
        """Jobs that are done as one: on a GPU the signals of models that are alike, else each alone."""
        if jobs[0].kind != "signals" or self.device.type != "cuda":
            return [(job,) for job in jobs]
        alike: dict[str, list[Job]] = {}
        for job in jobs:
            what = {name: job.params.get(name) for name in ("data", "learner", "role", "look_at", "columns")}
            alike.setdefault(identity_key(what), []).append(job)
        return [tuple(unit) for unit in alike.values()]

    def _warm_up(self, task: Task) -> None:
        """Import torch and read the data before the clock starts: they are no method's cost."""
        if task.jobs[0].kind in USES_TORCH:
            with suppress(Exception):  # what is wrong with the data is told by the job itself
                self._here(task.jobs[0])

    def _do(self, jobs: Sequence[Job], inputs: Mapping[str, Artefact]) -> list[Made]:
        with one_thread(jobs[0].kind), seeded(jobs[0]):
            return self._made(jobs, inputs)

    def _made(self, jobs: Sequence[Job], inputs: Mapping[str, Artefact]) -> list[Made]:
        given = [{role: inputs[key] for role, key in job.inputs.items()} for job in jobs]
        kinds: dict[str, Callable[[Job, dict[str, Artefact]], Made]] = {
            "initialise": self._initialise,
            "fit": self._fit,
            "decide": self._decide,
        }
        match jobs[0].kind:
            case "train":
                return self._train(jobs)
            case "unlearn":
                return self._unlearn(jobs, given)
            case "signals":
                return self._signals(jobs, given)
            case kind:
                return [kinds[kind](job, its) for job, its in zip(jobs, given, strict=True)]

    # -- Initialization phase ------------------------------------------------------------------------------------

    def _initialise(self, job: Job, _: dict[str, Artefact]) -> Made:
        dataset, where = self._dataset(job), job.params
        target, _shadow = self._halves(job)
        labels = dataset.points.whole_labels.cpu().numpy()[target]
        weight = sensitivity_weights(where["sensitivity"], labels, target, self.sources)
        return {"target": target, "labels": labels, "weight": weight}, {}

    # -- Challenger phase ----------------------------------------------------------------------------------------

    def _train(self, jobs: Sequence[Job]) -> list[Made]:
        learner = make_learner(jobs[0])
        points = [self._places(job).training for job in jobs]
        models = learner.fit_many(points, [Streams(job.key) for job in jobs])
        engine = learner.engine(points).name if hasattr(learner, "engine") else ""
        ran = self._how_it_ran(len(jobs), engine)
        return [
            (
                weights_of(model),
                {"n_gradients": learner.n_gradients(len(p)), "ran": ran, "told": told_of(learner, model)},
            )
            for model, p in zip(models, points, strict=True)
        ]

    def _how_it_ran(self, width: int, engine: str = "") -> dict[str, Any]:
        """Which engine, in a stack how wide, where: a resumed run may have pieces of several sorts."""
        from forgetgauge.learn.device import describe

        return {
            "device": describe(self.device),
            "engine": engine or ("solo" if width == 1 else "stack"),
            "width": width,
        }

    def _unlearn(self, jobs: Sequence[Job], given: Sequence[dict[str, Artefact]]) -> list[Made]:
        from forgetgauge.unlearn.unlearner import Context, Request, StackedUnlearner

        learner, unlearner = make_learner(jobs[0]), make_unlearner(jobs[0])
        requests = []
        for job, inputs in zip(jobs, given, strict=True):
            places = self._places(job)
            model = learner.build(places.retain, 0).to(self.device)
            if "model" in inputs:
                pour_weights(model, inputs["model"])
            context = Context(learner, Streams(job.key), validation=places.elsewhere)
            requests.append(Request(model, places.retain, places.forget, context))
        if isinstance(unlearner, StackedUnlearner):
            models = unlearner.unlearn_many(requests)
            ran = self._how_it_ran(len(jobs), requests[0].context.engine)
        else:
            models = [unlearner.unlearn(r.model, r.retain, r.forget, r.context) for r in requests]
            ran = self._how_it_ran(1)
        made = []
        for model, request, inputs in zip(models, requests, given, strict=True):
            facts = {"n_gradients": request.context.n_gradients, "ran": ran}
            facts["told"] = {**told_of(learner, model), **request.context.facts}
            if "model" in inputs:
                facts["original_ran"] = inputs["model"].facts.get("ran")
            made.append((checked_weights(model, request.model), facts))
        return made

    def _signals(self, jobs: Sequence[Job], given: Sequence[dict[str, Artefact]]) -> list[Made]:
        """What models say, all of them in one pass where they are alike."""
        from forgetgauge.learn.predict import logits_of_many

        models = []
        for job, inputs in zip(jobs, given, strict=True):
            models.append(make_learner(job).build(self._here(job).points, 0).to(self.device))
            pour_weights(models[-1], inputs["model"])
        asked = [self._asked(job) for job in jobs]
        said: list[dict[str, npt.NDArray[np.float32]]] = [{} for _ in jobs]
        for name in asked[0]:
            for told, logits in zip(said, logits_of_many(models, [sets[name] for sets in asked]), strict=True):
                told[name] = logits
        return [self._signals_of(*one) for one in zip(jobs, given, models, asked, said, strict=True)]

    def _asked(self, job: Job) -> dict[str, Points]:
        """The sets a model is asked about: those that adversaries see, and those that tell the utility of a target or
        of a model of the IC test."""
        places, dataset = self._places(job), self._here(job)
        sets = {"seen": places.look_at(job.params["look_at"])}
        if _tells_utility(job):
            sets |= {"retain": places.retain, "forget": places.forget, "unseen": places.unseen}
            if dataset.test is not None:
                sets["test"] = dataset.test
        return sets

    def _signals_of(
        self,
        job: Job,
        inputs: dict[str, Artefact],
        model: nn.Module,
        asked: Mapping[str, Points],
        said: Mapping[str, npt.NDArray[np.float32]],
    ) -> Made:
        from forgetgauge.learn.predict import accuracy_of

        places, points = self._places(job), asked["seen"]
        arrays: dict[str, npt.NDArray[Any]] = {"logits": said["seen"], "labels": points.y.cpu().numpy()}
        if not np.isfinite(arrays["logits"]).all():
            raise ValueError("the model's logits hold NaN or infinite values")
        for column in job.params.get("columns", ()):
            arrays[f"column {column}"] = white_box_column(column, model, points)
        told = inputs["model"].facts  # what it says is kept here, since the weights may be dropped
        facts: dict[str, Any] = {name: told[name] for name in ("ran", "original_ran") if name in told}
        if job.params["role"] not in ("target", "confused"):
            return {**arrays, "role": places.role_of_each(points)}, facts
        if not _tells_utility(job):
            return arrays, facts
        utility = {
            name: accuracy_of(logits, asked[name].y.cpu().numpy()) for name, logits in said.items() if name != "seen"
        }
        facts |= {"accuracy": utility, "n_gradients": told["n_gradients"], "told": told.get("told", {})}
        return {**arrays, **({"points": places.pair.points} if job.params["role"] == "target" else {})}, facts

    # -- Adversary phase -----------------------------------------------------------------------------------------

    def _fit(self, job: Job, inputs: dict[str, Artefact]) -> Made:
        panels = {name: _panel(name, inputs) for name in ("shadow", "reference", "outsider")}
        shadows = panels["shadow"]
        assert shadows is not None
        adversary = make_adversary(job)
        attack = adversary.fit(shadows, TargetContext(job.params["n_classes"], panels["reference"], panels["outsider"]))
        return {**attack.arrays(), **_calibration_arrays(calibration_of(adversary, attack, shadows))}, {}

    def _decide(self, job: Job, inputs: dict[str, Artefact]) -> Made:
        attack = make_adversary(job).load(inputs["fit"].arrays)
        background = _signals_of(inputs["background"]) if "background" in inputs else None
        signals = _signals_of(inputs["signals"], background)
        return {"says_forget": attack.decide(signals), "margin": margin_of(attack, signals)}, {}

    # -- Which points --------------------------------------------------------------------------------------------

    def _dataset(self, job: Job) -> Dataset:
        from forgetgauge.data.loading import load_dataset

        data = self.sources.datasets[job.params["data"]]
        dataset = load_dataset(data.name, data.params)
        if dataset.digest != job.params["data"]:
            raise UserError(f"data '{data.name}' changed since the run was planned; run the same command again")
        return dataset

    def _here(self, job: Job) -> Dataset:
        """The data set on the worker's device, moved there once."""
        digest = job.params["data"]
        if digest not in self._on_device:
            dataset = self._dataset(job)
            test = dataset.test.on(self.device) if dataset.test is not None else None
            while len(self._on_device) >= N_DATASETS_ON_DEVICE:
                del self._on_device[next(iter(self._on_device))]
            self._on_device[digest] = replace(dataset, points=dataset.points.on(self.device), test=test)
        return self._on_device[digest]

    def _halves(self, job: Job) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        where = job.params
        return draw_halves(where["data"], len(self._dataset(job).points), where["seed"], where["fraction"])

    def _places(self, job: Job) -> Places:
        return Places(job.params, self._here(job).points, *self._halves(job))


def _tells_utility(job: Job) -> bool:
    return (job.params["role"], job.params["look_at"]) in (("target", PAIR), ("confused", CONFUSED))


def _panel(name: str, inputs: Mapping[str, Artefact]) -> Panel | None:
    """The panel of the artefacts `name-0`, `name-1`, …"""
    models = [inputs[f"{name}-{i}"].arrays for i in range(len(inputs)) if f"{name}-{i}" in inputs]
    if not models:
        return None
    columns = [key for key in models[0] if key.startswith("column ")]
    return Panel(
        np.stack([arrays["logits"] for arrays in models]),
        models[0]["labels"],
        np.stack([arrays["role"] for arrays in models]),
        {key.removeprefix("column "): np.stack([arrays[key] for arrays in models]) for key in columns},
    )


def _calibration_arrays(calibration: Calibration) -> dict[str, npt.NDArray[Any]]:
    """Margins of all shadow models one after another, with whose they are; empty where there are none."""
    if not calibration:
        return {}
    sides = [
        (margins, member, which)
        for which, both in enumerate(calibration)
        for margins, member in zip(both, (1, 0), strict=True)
    ]
    return {
        "shadow margin": np.concatenate([margins for margins, _, _ in sides]),
        "shadow member": np.concatenate([np.full(len(margins), bool(member)) for margins, member, _ in sides]),
        "shadow model": np.concatenate([np.full(len(margins), which) for margins, _, which in sides]),
    }


def _signals_of(artefact: Artefact, background: Signals | None = None) -> Signals:
    arrays = artefact.arrays
    columns = {key.removeprefix("column "): arrays[key] for key in arrays if key.startswith("column ")}
    return Signals(arrays["logits"], arrays["labels"], arrays.get("points"), background, columns)


def white_box_column(name: str, model: nn.Module, points: Points) -> npt.NDArray[np.float32]:
    """(n,) one white-box signal."""
    from forgetgauge.learn import white_box

    return white_box.COLUMNS[name](model, points)


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


def told_of(learner: Learner, model: Any) -> dict[str, float]:
    """What a learner has to say about a model, for the result."""
    return dict(learner.facts_of(model)) if hasattr(learner, "facts_of") else {}


def make_unlearner(job: Job) -> Any:
    """The unlearner a job names; a plain function of the user's is wrapped."""
    from forgetgauge.unlearn.competition import CompetitionUnlearner, is_competition_function
    from forgetgauge.unlearn.unlearner import FunctionUnlearner, Unlearner

    identity = job.params["unlearner"]
    thing = plugins.unlearners.load(identity["name"])
    if is_competition_function(thing):
        return CompetitionUnlearner.of(thing, identity["params"])
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


def checked_weights(model: Any, original: nn.Module) -> dict[str, npt.NDArray[Any]]:
    """The weights of what an unlearner gave back, which must be a model of the same architecture."""
    from torch import nn

    if not isinstance(model, nn.Module):
        raise TypeError(f"the unlearner gave back a {type(model).__name__}, not a model")
    if "forward" in vars(model):
        raise TypeError("the unlearner replaced the model's forward: only its weights and buffers are kept")
    shapes = {name: tensor.shape for name, tensor in original.state_dict().items()}
    if {name: tensor.shape for name, tensor in model.state_dict().items()} != shapes:
        raise TypeError("the unlearner gave back a model of another architecture")
    return weights_of(model)


def pour_weights(model: nn.Module, weights: Artefact) -> None:
    """Stored weights into a model of the same architecture."""
    import torch

    model.load_state_dict({name: torch.from_numpy(array) for name, array in weights.arrays.items()})
    model.eval()


def _one_line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__


@contextmanager
def seeded(job: Job) -> Iterator[None]:
    """Whatever the user's code draws from the global generators is the job's own, and they are left as they were."""
    if job.kind not in ("train", "unlearn"):
        yield
        return
    from forgetgauge.learn.descent import own_randomness

    python, arrays = random.getstate(), np.random.get_state()  # noqa: NPY002
    random.seed(Streams(job.key).seed("random"))
    np.random.seed(Streams(job.key).seed("numpy") % 2**32)  # noqa: NPY002
    try:
        with own_randomness(Streams(job.key)):
            yield
    finally:
        random.setstate(python)
        np.random.set_state(arrays)  # noqa: NPY002


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
