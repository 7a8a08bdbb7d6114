"""The job graph of one game: which models are trained, unlearned, looked at and attacked.

    initialise ┐
    train(original: pair, side, seed) ─► unlearn(method) ─► signals on F ∪ T ─► decide(adversary)
    train(shadow k) ──────────────────[► unlearn(method)]─► signals ─► fit(adversary) ┘
    train(reference k, on a part of D) [► unlearn(method)]─► signals ─┘
    train(confused: pair, seed) ─► unlearn(method) ─► signals on what was taught wrongly, where the IC test is asked for

Originals are shared by all methods of a learner, shadows, references and fits by all pairs. References, background
signals and unlearned shadows are made only where an adversary asks for them. No key holds a count of pairs, seeds,
methods or adversaries, so adding one of them leaves every other key as it was.

`run.json` holds a game as plain JSON, so that a run can be scored and reported without its sources.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, Literal

from forgetgauge.game.splits import split_sizes
from forgetgauge.plan.draws import half_sizes
from forgetgauge.plan.jobs import (
    DecideJob,
    FitJob,
    InitialiseJob,
    Job,
    Named,
    SignalsJob,
    TrainJob,
    UnlearnJob,
)
from forgetgauge.plan.subjects import Confused, Halves, Helper, Reference, Shadow, Subject, Target
from forgetgauge.streams import identity_key

SIDES = (0, 1)
PAIR, TARGET_HALF, SHADOW_HALF, CONFUSED = "pair", "target half", "shadow half", "confused"
"""What signals are taken on: F ∪ T of a pair, all of D, all of the shadow half, or what the IC test taught wrongly."""
PANELS: dict[str, tuple[type[Helper], str]] = {
    "shadow": (Shadow, SHADOW_HALF),
    "outsider": (Shadow, TARGET_HALF),
    "reference": (Reference, TARGET_HALF),
}
"""Which models adversaries are shown, and on which points: outsiders are shadow models that look at D."""


@dataclass(frozen=True)
class Method:
    """An unlearner as the plan sees it."""

    unlearner: Named
    uses_original: bool = True
    """Whether it starts from the trained model (Retrain does not)."""
    stacked: bool = False
    """Whether it treats many models at once."""
    learner: Named | None = None
    """The learner it brings along, where the game's own would not do."""


@dataclass(frozen=True)
class PlannedAdversary:
    """An adversary as the plan sees it."""

    adversary: Named
    needs: tuple[str, ...] = ()
    """What it asks for besides shadow models: the plan knows these words, not the adversaries."""
    columns: tuple[str, ...] = ()
    """White-box columns it reads."""


@dataclass(frozen=True)
class Game:
    """One game with every choice resolved: what `run.json` holds and all that workers are given."""

    data: Named
    data_digest: str
    n_points: int
    n_classes: int
    """1 where labels are no classes."""
    seed: int
    fraction: float
    alpha: float
    pairs: int
    seeds: int
    level: float
    delta: float
    share_retrain: bool
    sensitivity: Mapping[str, Any]
    """`{"kind": "uniform"}`, or `by-class` with weights, or `file` with its digest."""
    learner: Named
    n_shadows: int
    n_references: int
    methods: Mapping[str, Method]
    adversaries: Mapping[str, PlannedAdversary]
    model_bytes: int
    """Size of one model's weights, for the estimate of disk use."""
    queries: tuple[int, ...] = ()
    """Numbers of oracle queries of the strong adversaries."""
    oracle_draws: int = 2000
    until: Mapping[str, float] | None = None
    """`half_width` and `max_pairs` of an adaptive run; `pilot_pairs` once it has begun."""
    value: Any = None
    """The swept value, in a sweep."""
    metrics: Mapping[str, Any] = field(default_factory=dict)
    """Rival metrics: `ic` with the two classes it confuses, `mia`, `distances`; those that are asked for."""
    interval: Literal["student", "bounded"] = "student"
    """Which interval of Q is shown; no job depends on it."""
    task: str = "classification"
    """What labels and outputs mean; the data's digest stands for it in keys."""
    utility_name: str = "accuracy"
    """What the task calls its utility: written down, so that a report of a stranger's run loads no code of theirs."""

    @property
    def sizes(self) -> tuple[int, int]:
        """The numbers of retained and of forgotten points, (|R|, |F|)."""
        return split_sizes(half_sizes(self.n_points, self.fraction)[0], self.alpha)

    @property
    def choices(self) -> list[tuple[str, str, Named]]:
        """What is chosen by name: (`learner`, `unlearner` or `adversary`, place in the run file, choice)."""
        methods = self.methods.items()
        return [
            ("learner", "learner", self.learner),
            *(("unlearner", f"unlearners.{name}", one.unlearner) for name, one in methods),
            *(("learner", f"unlearners.{name}.learner", one.learner) for name, one in methods if one.learner),
            *(("adversary", f"adversaries.{name}", one.adversary) for name, one in self.adversaries.items()),
        ]

    def learner_of(self, method: str) -> Named:
        """The learner whose models a method unlearns."""
        return self.methods[method].learner or self.learner


@dataclass(frozen=True, order=True)
class Cell:
    """Which unlearned model: one side of one pair, one seed."""

    method: str
    pair: int
    side: int
    seed: int


@dataclass(frozen=True)
class CellJobs:
    """The keys of one unlearned model's jobs."""

    unlearn: str
    signals: str
    decide: Mapping[str, str]
    """Adversary -> key."""


@dataclass(frozen=True)
class Graph:
    """All jobs of a game, inputs before the jobs that read them."""

    game: Game
    jobs: dict[str, Job]
    initialise: str
    cells: dict[Cell, CellJobs]
    fits: dict[tuple[str, str], str]
    """(method, adversary) -> key of the fit that attacks it; methods share it unless it is unlearning-aware."""
    confused: dict[tuple[str, int, int], str] = field(default_factory=dict)
    """(method, pair, seed) -> key of the signals of the IC test."""


MOST_JOBS = 2_000_000
"""Of a game: the plan of more takes minutes before anything is done."""


def too_many_jobs(pairs: int, seeds: int, n_methods: int, n_adversaries: int) -> str:
    """Why a game of such a size is not planned; empty where it is."""
    n_jobs = 2 * pairs * seeds * n_methods * (2 + n_adversaries)
    if n_jobs <= MOST_JOBS:
        return ""
    return (
        f"{pairs} pairs, {seeds} seeds, {n_methods} methods and {n_adversaries} adversaries are {n_jobs:,} jobs, more "
        f"than {MOST_JOBS:,}: make several runs of it"
    )


def build_graph(game: Game) -> Graph:
    """The jobs of a game."""
    return _Builder(game).build()


class _Builder:
    """Adds jobs in topological order; equal jobs become one."""

    def __init__(self, game: Game) -> None:
        self.game = game
        self.jobs: dict[str, Job] = {}
        self.halves = Halves(game.data_digest, game.seed, game.fraction)
        self.size, self.n_forget = sum(game.sizes), game.sizes[1]

    def build(self) -> Graph:
        initialise = self._add(InitialiseJob(self.halves, self.game.sensitivity, label="initialise the game"))
        places = list(product(range(self.game.pairs), range(self.game.seeds), SIDES))
        for (pair, seed, side), method in product(places, self.game.methods):
            if self.game.methods[method].uses_original:  # first in the plan, because most other jobs wait for them
                self._original(self.game.learner_of(method), pair, side, seed)
        fits = {
            (method, name): self._fit(method, name) for method in self.game.methods for name in self.game.adversaries
        }
        cells = {
            Cell(method, pair, side, seed): self._cell(method, pair, side, seed, fits)
            for pair, seed, side in places
            for method in self.game.methods
        }
        confused = {
            (method, pair, seed): self._confused_signals(method, pair, seed)
            for pair, seed, method in product(range(self.game.pairs), range(self.game.seeds), self.game.methods)
            if "ic" in self.game.metrics
        }
        return Graph(self.game, self.jobs, initialise, cells, fits, confused)

    def _add(self, job: Job) -> str:
        self.jobs.setdefault(job.key, job)
        return job.key

    # -- models --------------------------------------------------------------------------------------------------

    def _target(self, pair: int, side: int, seed: int) -> Target:
        return Target(self.halves, self.game.alpha, pair, side, seed)

    def _original(self, learner: Named, pair: int, side: int, seed: int) -> str:
        return self._train(learner, self._target(pair, side, seed), f"original of pair {pair} side {side} seed {seed}")

    def _train(self, learner: Named, subject: Subject, label: str) -> str:
        group = f"train {subject.role} {_short(learner.identity)} {self.size}"
        return self._add(TrainJob(subject, learner, label=f"train {label}", group=group, coupled=True))

    def _unlearn(self, method: str, original: Subject, label: str, asked: Subject | None = None) -> str:
        """A method applied to an original; `asked` is the model with what it is to forget, where that is not known of
        the original."""
        how, learner, subject = self.game.methods[method], self.game.learner_of(method), asked or original
        inputs = {"model": self._train(learner, original, label)} if how.uses_original else {}
        short = f"{_short(how.unlearner.identity)} {_short(learner.identity)}"
        group = f"unlearn {subject.role} {short} {self.game.sizes}"
        label = f"{method} of {label}"
        return self._add(
            UnlearnJob(subject, learner, how.unlearner, inputs=inputs, label=label, group=group, coupled=how.stacked)
        )

    def _signals(
        self, model: str, subject: Subject, learner: Named, look_at: str, label: str, columns: tuple[str, ...] = ()
    ) -> str:
        label, group = f"signals of {label}", f"signals {look_at}"
        return self._add(
            SignalsJob(subject, learner, look_at, columns, inputs={"model": model}, label=label, group=group)
        )

    # -- adversaries ---------------------------------------------------------------------------------------------

    def _fit(self, method: str, name: str) -> str:
        adversary = self.game.adversaries[name]
        aware = "unlearned" in adversary.needs
        inputs = self._panel("shadow", method, adversary, self.game.n_shadows)
        if "outsiders" in adversary.needs:
            inputs |= self._panel("outsider", method, adversary, self.game.n_shadows)
        if "references" in adversary.needs:
            inputs |= self._panel("reference", method, adversary, self.game.n_references)
        label = f"fit {name}" + (f" to {method}" if aware else "")
        return self._add(
            FitJob(
                adversary.adversary,
                self.game.n_classes,
                self.game.task,
                inputs=inputs,
                label=label,
                group=f"fit {name}",
            )
        )

    def _panel(self, panel: str, method: str, adversary: PlannedAdversary, n_models: int) -> dict[str, str]:
        """The signals of helpers that an adversary is fitted to."""
        (make, look_at), learner = PANELS[panel], self.game.learner_of(method)
        keys = {}
        for which in range(n_models):
            trained = subject = make(self.halves, self.size, which)
            label = f"{make.role} {which}"
            if "unlearned" in adversary.needs:
                subject = replace(trained, forget=self.n_forget)
                model = self._unlearn(method, trained, label, subject)
                label = f"{method}, {label}"
            else:
                model = self._train(learner, trained, label)
            keys[f"{panel}-{which}"] = self._signals(model, subject, learner, look_at, label, adversary.columns)
        return keys

    def _cell(self, method: str, pair: int, side: int, seed: int, fits: Mapping[tuple[str, str], str]) -> CellJobs:
        place, learner = f"pair {pair} side {side} seed {seed}", self.game.learner_of(method)
        shared = self.game.share_retrain and not self.game.methods[method].uses_original
        unlearn = self._unlearn(method, self._target(pair, 0 if shared else side, seed), place)
        looked_at = replace(self._target(pair, side, seed), replicate=None)
        signals = self._signals(unlearn, looked_at, learner, PAIR, f"{method}, {place}")
        decide = {}
        for name, adversary in self.game.adversaries.items():
            seen = self._signals(unlearn, looked_at, learner, PAIR, f"{method}, {place}", adversary.columns)
            inputs = {"fit": fits[method, name], "signals": seen}
            if "background" in adversary.needs:
                label = f"{method}, {place}, on the shadow half"
                inputs["background"] = self._signals(unlearn, looked_at, learner, SHADOW_HALF, label, adversary.columns)
            label = f"{name} on {method}, {place}"
            decide[name] = self._add(
                DecideJob(adversary.adversary, self.game.task, inputs=inputs, label=label, group=f"decide {name}")
            )
        return CellJobs(unlearn, signals, decide)

    # -- rival metrics -------------------------------------------------------------------------------------------

    def _confused_signals(self, method: str, pair: int, seed: int) -> str:
        first, second = self.game.metrics["ic"]
        subject, place = Confused(self.halves, self.size, pair, (first, second), seed), f"confused {pair} seed {seed}"
        unlearn, looked_at = self._unlearn(method, subject, place), replace(subject, replicate=None)
        return self._signals(unlearn, looked_at, self.game.learner_of(method), CONFUSED, f"{method}, {place}")


def _short(identity: Mapping[str, Any]) -> str:
    return identity_key(identity)[:8]


# -- as JSON -----------------------------------------------------------------------------------------------------------


def game_to_json(game: Game) -> dict[str, Any]:
    """The game as plain JSON, as `run.json` keeps it."""
    plain: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(game)))
    return plain


def game_from_json(record: dict[str, Any]) -> Game:
    """The game that `game_to_json` wrote."""
    nested = {
        "data": _named(record["data"]),
        "learner": _named(record["learner"]),
        "methods": {name: _method(method) for name, method in record["methods"].items()},
        "adversaries": {name: _adversary(adversary) for name, adversary in record["adversaries"].items()},
        "queries": tuple(record["queries"]),
    }
    return Game(**{**record, **nested})


def _named(record: dict[str, Any]) -> Named:
    return Named(**{**record, "not_covered": tuple(record.get("not_covered", ()))})


def _method(record: dict[str, Any]) -> Method:
    learner = _named(record["learner"]) if record["learner"] else None
    return Method(**{**record, "unlearner": _named(record["unlearner"]), "learner": learner})


def _adversary(record: dict[str, Any]) -> PlannedAdversary:
    return PlannedAdversary(_named(record["adversary"]), tuple(record["needs"]), tuple(record["columns"]))
