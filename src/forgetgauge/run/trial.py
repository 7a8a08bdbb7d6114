"""Tried before trained: code that is not ours is run once on a handful of points before the first training starts.

A wrong keyword, a wrong signature or a wrong output then costs a second. What is run is the work of a real job, on
copies of some tens of points of every class, by a model that saw one epoch at most; nothing of it is kept, what the
code prints is dropped, and the global random generators are left as they were.

Some code needs more points than a handful (a loader that drops the last batch, say). So what fails on a handful is
tried once more on as many points as its first job will have (a learner of the user's own trains as long as that), and
refused only if that fails too. A lack of memory is no reason to refuse, for the run has its own answer to that. What
works on well-trained models alone can be run without a trial.

A learner and a method of the user's own are called again on a handful, with the same seeds and with something else in
between: what gives two models keeps something from one call to the next, which a line says. So does what has other
attributes or globals after its calls than before; the attributes are put back.
"""

from __future__ import annotations

import functools
import io
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from forgetgauge import plugins
from forgetgauge.attack.adversary import Need, Role
from forgetgauge.errors import UserError, WrongOutput, placed_line_of
from forgetgauge.plan.graph import PAIR, Graph
from forgetgauge.plan.jobs import (
    DecideJob,
    FitJob,
    Job,
    Kind,
    ModelJob,
    Named,
    SignalsJob,
    TrainJob,
    TryAdversaryJob,
    TryModelJob,
    UnlearnJob,
)
from forgetgauge.plan.subjects import Halves, PointSets, Subject
from forgetgauge.run.adversary import decide, fit
from forgetgauge.run.algorithms import make_learner, make_unlearner, trains_own_models
from forgetgauge.run.assignments import Failure, Sources, failure_of
from forgetgauge.run.packing import is_out_of_memory
from forgetgauge.run.point_sets import NOTHING, SubjectPoints, WorkerData
from forgetgauge.run.side_effects import OwnState, functions_kept, replaced_at_import
from forgetgauge.run.surroundings import interruption, seeded
from forgetgauge.store.content import refuse_wrong_output
from forgetgauge.store.objects import Artefact, decode, encode
from forgetgauge.streams import Streams, identity_key

if TYPE_CHECKING:
    from forgetgauge.data.dataset import Dataset, Points

N_POINTS = 64
"""Of R in a trial, and of F as many in proportion, but 16 at least; every class among them where there are no more."""
N_PER_CLASS = 6
"""Points of each class on which an adversary is tried."""

DIFFERS = (
    "called again with the same model, sets and seeds, it gave two different models: it keeps something from one call "
    "to the next, or draws from a generator that it seeds itself, so that its numbers may change from run to run"
)

KEEPS = (
    "an attribute, a global or a closed-over value of it changed while it was called; unless that is only a record "
    "of the calls, its numbers may depend on what it was asked before, and on the order of jobs"
)

Made = TypeVar("Made")


# -- which trials a run needs ----------------------------------------------------------------------------------------


def trials_of(graphs: list[Graph], to_do: list[str], sources: Sources) -> list[Job]:
    """One for each learner and each adversary that is the user's own, or meets what is; only where jobs are open."""
    jobs = {key: job for graph in graphs for key, job in graph.jobs.items()}
    open_jobs = [jobs[key] for key in to_do]
    found: dict[str, Job] = {}
    for graph in graphs:
        for trial in [*_trials_of_learners(graph, open_jobs, sources), *_trials_of_adversaries(graph, open_jobs)]:
            found.setdefault(trial.key, trial)
    return list(found.values())


def _trials_of_learners(graph: Graph, open_jobs: list[Job], sources: Sources) -> Iterator[Job]:
    """A learner with the methods that unlearn its models."""
    game = graph.game
    own_data = sources.datasets[game.data_digest].name not in plugins.data.entries
    models: dict[str, UnlearnJob] = {}
    for cell, keys in graph.cells.items():
        unlearn = graph.jobs[keys.unlearn]
        assert isinstance(unlearn, UnlearnJob)
        models.setdefault(identity_key(game.learner_of(cell.method).identity), unlearn)
    for unlearn in models.values():
        learner = unlearn.learner
        own = trains_own_models(learner)
        mine = [job for job in open_jobs if isinstance(job, ModelJob) and job.learner.identity == learner.identity]
        unlearned = [job.unlearner.identity for job in mine if isinstance(job, UnlearnJob)]
        methods = {
            name: method
            for name, method in game.methods.items()
            if game.learner_of(name).identity == learner.identity
            and method.unlearner.identity in unlearned
            and (own or method.unlearner.name not in plugins.unlearners.entries)
        }
        fits = (own or own_data) and any(job.kind == "train" for job in mine)
        if fits or methods:
            columns = {column for adversary in game.adversaries.values() for column in adversary.columns}
            yield TryModelJob(
                unlearn,
                _to_blame(learner, sources.datasets[game.data_digest].name),
                fits,
                {name: method.unlearner for name, method in methods.items()},
                tuple(name for name, method in methods.items() if method.uses_original),
                tuple(sorted(columns)) if own else (),
                label=f"try learner '{learner.name}'",
            )


def _to_blame(learner: Named, data: str) -> str:
    """What is to blame where a model cannot be trained: the user's own part, as the run file has it."""
    if learner.name not in plugins.learners.entries:
        return f"learner '{_shown(learner.name)}'"
    if trains_own_models(learner):
        return f"learner.model '{_shown(learner.model)}'"
    return f"data '{_shown(data)}' with learner '{learner.name}'"


def _shown(name: str) -> str:
    """An object of the running program without the digest of its code."""
    bound = any(catalogue.is_bound(name) for catalogue in (plugins.learners, plugins.models, plugins.data))
    return name.partition("@")[0] if bound else name


def _trials_of_adversaries(graph: Graph, open_jobs: list[Job]) -> Iterator[Job]:
    game = graph.game
    n_retain, n_forget = game.sizes
    for name, adversary in game.adversaries.items():
        asked = ("adversary", adversary.adversary.identity)
        is_open = any(asked == (what, named.identity) for job in open_jobs for what, named in job.choices)
        if is_open and adversary.adversary.name not in plugins.adversaries.entries:
            yield TryAdversaryJob(
                FitJob(adversary.adversary, game.n_classes, game.task),
                name,
                adversary.needs,
                adversary.columns,
                game.n_shadows,
                game.n_references_of(name),
                n_points=n_retain + 2 * n_forget,
                label=f"try adversary '{name}'",
            )


# -- doing one -------------------------------------------------------------------------------------------------------


def try_out(
    job: Job, data: WorkerData, is_device_lost: Callable[[], bool]
) -> tuple[dict[str, Failure], tuple[str, ...], bool]:
    """(what of a trial failed: entry of the run file -> how, a line on each that is warned of, whether the device is
    lost with the last of it)."""
    trial = _Trial(is_device_lost)
    trial.warnings += replaced_at_import()
    with _quietly():
        if isinstance(job, TryAdversaryJob):
            trial.attempt(f"adversaries.{job.id}", lambda few: _try_adversary(job, few))
        elif isinstance(job, TryModelJob):
            _try_models(job, data, trial)
    return trial.failures, tuple(trial.warnings), trial.device_lost


class _Trial:
    """Attempts one after another, and what came of them."""

    def __init__(self, is_device_lost: Callable[[], bool]) -> None:
        self._is_device_lost = is_device_lost
        self.failures: dict[str, Failure] = {}
        self.warnings: list[str] = []
        self.device_lost = False
        """Then nothing more can be tried in this process, and nothing more is to blame."""

    def attempt(self, what: str, do: Callable[[bool], Made]) -> Made | None:
        """What `do(few)` makes of a handful of points or, where that fails, of as many as a job has."""
        for few in () if self.device_lost else (True, False):
            try:
                with functions_kept():  # what is put back here is put to nobody else's account
                    return do(few)
            except BaseException as error:
                if interruption.is_behind(error):
                    raise
                if is_out_of_memory(error):
                    return None
                self.device_lost = self._is_device_lost()
                if not few or self.device_lost or isinstance(error, UserError | WrongOutput):
                    self.failures[what] = replace(failure_of(error), line=placed_line_of(error))
                    return None
        return None


def refusal(failures: Mapping[str, Failure]) -> UserError:
    """One line on all that failed in trials, and nothing was trained."""
    each = "; ".join(f"{what}: {failure.line}" for what, failure in failures.items())
    error = UserError(
        f"{each}. This was found by trying it on a few points, and nothing was trained; "
        "run --no-trial, or on_failure='record' in Python, goes without"
    )
    error.__cause__ = next(iter(failures.values())).error
    return error


@contextmanager
def _quietly() -> Iterator[None]:
    """What is printed or warned of on a handful of points concerns nobody."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _stored(kind: Kind, made: Artefact) -> Artefact:
    """What is read again of an artefact that a job of this kind would write."""
    refuse_wrong_output(kind, made)
    return decode(encode(made.arrays, made.facts))


# -- models ----------------------------------------------------------------------------------------------------------


def _try_models(job: TryModelJob, data: WorkerData, tried: _Trial) -> None:
    """A learner trains a model, which is looked at; every method unlearns it, and what comes out is looked at."""
    trial = _Models(job, data, tried.warnings)
    model = tried.attempt(job.what, trial.fitted if job.fits else trial.untrained)
    if model is not None:
        for name in job.unlearners:
            tried.attempt(f"unlearners.{name}", functools.partial(trial.unlearned, name, model))


class _Models:
    """The work of the real jobs, on some points."""

    def __init__(self, job: TryModelJob, data: WorkerData, warnings: list[str]) -> None:
        self.job, self.subject, self._warnings, self._on_gpu = job, job.unlearn.subject, warnings, data.is_on_gpu
        self._some = functools.cache(lambda few: _Some(data, job.unlearn.subject, few))

    def untrained(self, few: bool) -> Artefact:
        from forgetgauge.models.transfer import weights_of
        from forgetgauge.run.model_jobs import untrained

        points = self._some(few).on_device(self.subject.halves).points
        return Artefact(weights_of(untrained(make_learner(self.job.unlearn.learner), points, 1)[0]), {})

    def fitted(self, few: bool) -> Artefact:
        from forgetgauge.run.model_jobs import train

        chosen = self._learner(few)
        if self.job.unlearn.learner.name in plugins.learners.entries:
            return self._looked_at(few, train([TrainJob(self.subject, chosen)], [{}], self._some(few))[0])
        with OwnState("learner", chosen) as kept:
            made = train([TrainJob(self.subject, chosen)], [{}], self._some(few))[0]
            self._fit_two(few)
            self._warn_of_state(f"learner '{_shown(chosen.name)}'", kept, few)
        return self._looked_at(few, made)

    def _fit_two(self, few: bool) -> None:
        """A learner of the user's own trains two models at once, as jobs do; where points are few, and one again with
        another one in between."""
        from forgetgauge.learn.learner import fitted_many, refuse_mixed_up, same_again

        chosen, some = self._learner(few), self._some(few)
        learner, part = make_learner(chosen), TrainJob(self.subject, chosen)
        with some.points_for(self.subject.halves, own=True) as whole:
            sets = some.points_of(self.subject, whole)
            two, streams = (sets.training, sets.retain), (Streams("one"), Streams("another"))
            (refuse_mixed_up if few else fitted_many)(learner, two, streams)
            if few:  # the smaller set first, too: one of the two is in the order of their sizes
                refuse_mixed_up(learner, two[::-1], streams[::-1])
            if few and not same_again(learner, two, streams, lambda: seeded(part), to_the_bit=not self._on_gpu):
                self._warnings.append(f"learner '{_shown(chosen.name)}': {DIFFERS}")

    def _warn_of_state(self, what: str, kept: OwnState, few: bool) -> None:
        """Say that a call changed what is kept, unless two models that differ have said it."""
        said = any(line.startswith(f"{what}:") for line in self._warnings)
        if few and not said and kept.has_changed():
            self._warnings.append(f"{what}: {KEEPS}")

    def unlearned(self, name: str, model: Artefact, few: bool) -> Artefact:
        from forgetgauge.run.model_jobs import unlearn

        part = UnlearnJob(self.subject, self._learner(few), self.job.unlearners[name])
        given = {"model": model} if name in self.job.from_original else {}
        if part.unlearner.name in plugins.unlearners.entries:
            with seeded(part):
                return self._looked_at(few, unlearn([part], [given], self._some(few))[0])
        with OwnState("unlearner", part.unlearner) as kept:
            with seeded(part):
                first = self._looked_at(few, unlearn([part], [given], self._some(few))[0])
            if few:
                self._unlearn_again(name, part, given, first)
            self._warn_of_state(f"unlearners.{name}", kept, few)
        return first

    def _unlearn_again(self, name: str, part: UnlearnJob, given: dict[str, Artefact], first: Artefact) -> None:
        """Twice more, and in between on another model; what takes many models at once, on both in one call."""
        from forgetgauge.run.model_jobs import unlearn
        from forgetgauge.unlearn.own import MIXED_UP
        from forgetgauge.unlearn.unlearner import StackedUnlearner

        some, changed = self._some(True), {role: _another(one) for role, one in given.items()}
        with seeded(part):
            again = [unlearn([part], [given], some)[0]]
        if isinstance(make_unlearner(part.unlearner), StackedUnlearner):
            halves = self.subject.halves
            other = replace(part, subject=replace(self.subject, halves=replace(halves, seed=halves.seed + 1)))
            with seeded(part):
                one, two = unlearn([part, other], [given, changed], some)
            if _are_equal(first, two, to_the_bit=False) and not _are_equal(first, one, to_the_bit=False):
                raise WrongOutput(MIXED_UP)
        else:
            with suppress(Exception), seeded(part):  # what it makes of another model is nobody's concern
                unlearn([part], [changed], some)
        with seeded(part):
            again += unlearn([part], [given], some)
        if not all(_are_equal(first, one, to_the_bit=not self._on_gpu) for one in again):
            self._warnings.append(f"unlearners.{name}: {DIFFERS}")

    def _looked_at(self, few: bool, made: Artefact) -> Artefact:
        """The model as it is stored, once it has answered for some points."""
        from forgetgauge.run.model_jobs import take_signals

        stored = _stored("train", made)
        part = SignalsJob(self.subject, self._learner(few), PAIR, self.job.columns)
        signals = take_signals([part], [{"model": stored}], self._some(few))[0]
        if isinstance(signals, ValueError):
            raise signals
        n_outputs = self._some(few).on_device(self.subject.halves).points.n_outputs
        shape = signals.arrays["outputs"].shape
        if shape != (len(signals.arrays["labels"]), n_outputs):
            raise WrongOutput(f"the model gives outputs of shape {shape[1:]} for each point, not {n_outputs} numbers")
        own = {name: array for name, array in signals.arrays.items() if name != "points"}  # these are of a whole pair
        _stored("signals", Artefact(own, signals.facts))
        return stored

    def _learner(self, few: bool) -> Named:
        """The run's; on a handful of points, and for learners of ours, one epoch of training is enough."""
        learner = self.job.unlearn.learner
        if (few or learner.name in plugins.learners.entries) and isinstance(learner.params.get("epochs"), int):
            return replace(learner, params={**learner.params, "epochs": 1})
        return learner


def _another(model: Artefact) -> Artefact:
    """With smaller weights."""
    halved = {
        name: array * array.dtype.type(0.5) if array.dtype.kind == "f" else array
        for name, array in model.arrays.items()
    }
    return Artefact(halved, model.facts)


def _are_equal(one: Artefact, other: Artefact, *, to_the_bit: bool) -> bool:
    """Whether two models have the same weights; sums on a GPU may be rounded in another order."""
    pairs = [(one.arrays[name], other.arrays[name]) for name in one.arrays]
    if to_the_bit:
        return all(a.tobytes() == b.tobytes() for a, b in pairs)
    return all(np.allclose(a, b, rtol=1e-2, atol=1e-4, equal_nan=True) for a, b in pairs)


class _Some(WorkerData):
    """A copy of some points of each set of a subject, or of all; whatever is done to it, the data stay whole."""

    def __init__(self, data: WorkerData, subject: Subject, few: bool) -> None:
        super().__init__(data.sources, str(data.device))
        point_sets, dataset = data.points_of(subject), data.on_device(subject.halves)
        n_forget = max(16, round(N_POINTS * len(point_sets.forget) / len(point_sets.retain)))
        sizes = {"retain": N_POINTS, "forget": n_forget, "unseen": n_forget, "elsewhere": N_POINTS}
        index = {name: _chosen(getattr(point_sets, name), size if few else None) for name, size in sizes.items()}
        largest = np.flatnonzero(point_sets.points.host_classes == point_sets.points.n_classes - 1)[:1]
        points = _copied(point_sets.points, np.concatenate([*index.values(), largest]))  # so that no class is lost
        ends = np.cumsum([len(part) for part in index.values()])
        sets = PointSets(
            **{name: np.arange(end - len(index[name]), end) for name, end in zip(index, ends, strict=True)}
        )
        halves = (point_sets.target_index, point_sets.shadow_index)
        self._point_sets = _SomePoints(subject, points, *halves, sets, point_sets.target_groups)
        test = None if dataset.test is None else _copied(dataset.test, _chosen(dataset.test, N_POINTS))
        self._dataset = replace(dataset, points=points, test=test)

    def on_device(self, halves: Halves) -> Dataset:
        return self._dataset

    def points_of(
        self, subject: Subject, points: Points | None = None, inputs: Mapping[str, Artefact] = NOTHING
    ) -> SubjectPoints:
        return self._point_sets if points is None else replace(self._point_sets, points=points)


@dataclass(frozen=True)
class _SomePoints(SubjectPoints):
    """Where signals are taken on F ∪ T of these points, whatever is asked for."""

    def look_at(self, what: str) -> Points:
        return self.points.subset(np.concatenate([self.sets.forget, self.sets.unseen]))


def _chosen(points: Points, n: int | None) -> npt.NDArray[np.int64]:
    """Positions of n of these points in the whole data set, alike many of each class where that can be."""
    labels = points.host_classes[points.index]
    by_class = np.argsort(labels, kind="stable")
    rank = np.empty(len(labels), dtype=np.int64)
    starts = np.searchsorted(labels[by_class], labels[by_class])
    rank[by_class] = np.arange(len(labels)) - starts
    return points.index[np.sort(np.lexsort((labels, rank))[:n])]


def _copied(points: Points, index: npt.NDArray[np.int64]) -> Points:
    import torch

    at = torch.from_numpy(index)
    return replace(
        points,
        whole_inputs=points.whole_inputs[at],
        whole_labels=points.whole_labels[at],
        index=np.arange(len(index)),
        whole_groups=None if points.whole_groups is None else points.whole_groups[index],
    )


# -- adversaries -----------------------------------------------------------------------------------------------------


def _try_adversary(job: TryAdversaryJob, few: bool) -> None:
    """It is fitted to made-up signals, in which members are called with more confidence, stored, read and asked."""
    rng, n_classes, needs = Streams(job.key).generator("signals"), job.fit.n_classes, job.needs
    n = min(job.n_points, max(N_POINTS, N_PER_CLASS * n_classes), 10 * N_POINTS) if few else job.n_points
    task = plugins.tasks.load(job.fit.task)

    def signals(role: npt.NDArray[np.int8] | None = None) -> dict[str, npt.NDArray[Any]]:
        member = np.zeros(n, dtype=np.bool_) if role is None else role == Role.IN
        outputs, labels = task.made_up(n, n_classes, member, rng)
        columns = {f"column {name}": rng.exponential(size=n).astype(np.float32) for name in job.columns}
        return {"outputs": outputs, "labels": labels, **columns, **({} if role is None else {"role": role})}

    def panel(name: str, n_models: int, roles: Sequence[Role]) -> dict[str, Artefact]:
        known = np.array(roles, dtype=np.int8)
        # every class has points of every role, and two models have every pair of roles
        turns = np.arange(n) // n_classes
        return {
            f"{name}-{which}": Artefact(signals(known[(turns + which * (1 + turns // len(known))) % len(known)]), {})
            for which in range(n_models)
        }

    roles = [Role.OUT, Role.IN, Role.NEITHER] if Need.UNLEARNED in needs else [Role.OUT, Role.IN]
    inputs = panel("shadow", job.n_shadows, roles)
    if Need.OUTSIDERS in needs:
        inputs |= panel("outsider", job.n_shadows, [Role.OUT])
    if Need.REFERENCES in needs:
        inputs |= panel("reference", job.n_references, roles)
    fitted = fit(job.fit, inputs)
    shown = {**signals(), "points": np.arange(n)}
    asked = {"fit": _stored("fit", fitted), "signals": Artefact(shown, {})}
    if Need.BACKGROUND in needs:
        asked["background"] = Artefact(signals(), {})
    _stored("decide", decide(DecideJob(job.fit.adversary, job.fit.task), asked))
