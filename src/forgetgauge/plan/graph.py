"""The job graph of one game: which models are trained, unlearned, looked at and attacked.

    [train(scorer k) ─► signals ─►] initialise ┐
    train(original: pair, side, seed) ─► unlearn(method) ─► signals on F ∪ T ─► decide(adversary)
    train(shadow k) ──────────────────[► unlearn(method)]─► signals ─► fit(adversary) ┘
    train(reference k, on a part of D) [► unlearn(method)]─► signals ─┘
    train(confused: pair, seed) ─► unlearn(method) ─► signals on what was taught wrongly, where the IC test is asked for
    train(shadow k) ─► unlearn(method at a strength) ─► utility, where a strength is chosen by what it costs

Where F is of the hardest points, which the scorers show, all jobs that must know F read what `initialise` found.
Originals are shared by all methods of a learner, shadows, references and fits by all pairs. References, background
signals and unlearned shadows are made only where an adversary asks for them. A method whose strength is still looked
for has no jobs yet but those of the search: a run that chooses one is planned again when it is known. No key holds a
count of pairs, seeds, methods or adversaries, so adding one of them leaves every other key as it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from forgetgauge.plan.draws import GROUP
from forgetgauge.plan.game import Game, Method, PlannedAdversary
from forgetgauge.plan.jobs import (
    DRAW,
    RECORDS,
    UTILITY,
    DecideJob,
    FitJob,
    InitialiseJob,
    Job,
    Named,
    SignalsJob,
    TrainJob,
    UnlearnJob,
)
from forgetgauge.plan.strength import Value
from forgetgauge.plan.subjects import Confused, Helper, Reference, Scorer, Shadow, Subject, Target
from forgetgauge.streams import identity_key

SIDES = (0, 1)
PAIR, TARGET_HALF, SHADOW_HALF, CONFUSED = "pair", "target half", "shadow half", "confused"
"""What signals are taken on: F ∪ T of a pair, all of D, all of the shadow half, or what the IC test taught wrongly; or
UTILITY."""
PLAINLY = "shadow half, plainly"
"""All of the shadow half, of a language model without the columns that take as many passes again: shipped adversaries
read the loss alone there."""
PANELS: dict[str, tuple[type[Helper], str]] = {
    "shadow": (Shadow, SHADOW_HALF),
    "outsider": (Shadow, TARGET_HALF),
    "reference": (Reference, TARGET_HALF),
}
"""Which models adversaries are shown, and on which points: outsiders are shadow models that look at D."""

SCORED = {"target": TARGET_HALF, "shadow": SHADOW_HALF}
"""What the models that score points are asked about."""

UNTREATED, RETRAINED = "untreated", "retrained"
"""Models that a method's cost is counted from."""


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
    costs: dict[tuple[str, int, Value | str], str] = field(default_factory=dict)
    """(method, shadow model, strength) -> key of its utility there; at UNTREATED and RETRAINED, of what that is held
    against."""


def build_graph(game: Game) -> Graph:
    """The jobs of a game."""
    return _Builder(game).build()


class _Builder:
    """Adds jobs in topological order; equal jobs become one."""

    def __init__(self, game: Game) -> None:
        self.game = game
        self.jobs: dict[str, Job] = {}
        self.halves = game.halves
        self.by_group, self.is_hard = game.oracle == GROUP, game.hardest < 1
        self.size, self.n_forget = sum(game.sizes), game.sizes[1]

    def build(self) -> Graph:
        self.initialise = self._initialise()
        places = list(product(range(self.game.pairs), range(self.game.seeds), SIDES))
        settled = self.game.settled
        for (pair, seed, side), method in product(places, settled):
            if self.game.methods[method].uses_original:  # first in the plan, because most other jobs wait for them
                self._original(self.game.learner_of(method), pair, side, seed)
        costs = {key: job for method in self.game.methods for key, job in self._costs(method)}
        fits = {(method, name): self._fit(method, name) for method in settled for name in self.game.adversaries}
        cells = {
            Cell(method, pair, side, seed): self._cell(method, pair, side, seed, fits)
            for pair, seed, side in places
            for method in settled
        }
        confused = {
            (method, pair, seed): self._confused_signals(method, pair, seed)
            for pair, seed, method in product(range(self.game.pairs), range(self.game.seeds), settled)
            if "ic" in self.game.metrics
        }
        return Graph(self.game, self.jobs, self.initialise, cells, fits, confused, costs)

    def _add(self, job: Job) -> str:
        self.jobs.setdefault(job.key, job)
        return job.key

    def _initialise(self) -> str:
        """The first job, on which all hang that must know the hardest points, where F is of these."""
        inputs, learner = dict[str, str](), self.game.learner
        for which in range(self.game.n_scorers if self.is_hard else 0):
            subject, label = Scorer(self.halves, self.size, which), f"scorer {which}"
            model = self._train(learner, subject, label)
            for half, look_at in SCORED.items():
                inputs[f"{half}-{which}"] = self._signals(model, subject, learner, look_at, f"{label} on the {look_at}")
        how = self.halves, self.game.sensitivity, self.game.hardest, self.game.columns
        return self._add(InitialiseJob(*how, inputs=inputs, label="initialise the game"))

    def _drawn(self, subject: Subject) -> dict[str, str]:
        """What a job must read to know its points."""
        return {DRAW: self.initialise} if self.is_hard and subject.hangs_on_hardest else {}

    # -- models --------------------------------------------------------------------------------------------------

    def _target(self, pair: int, side: int, seed: int) -> Target:
        return Target(self.halves, self.game.alpha, pair, side, seed)

    def _original(self, learner: Named, pair: int, side: int, seed: int) -> str:
        return self._train(learner, self._target(pair, side, seed), f"original of pair {pair} side {side} seed {seed}")

    def _train(self, learner: Named, subject: Subject, label: str) -> str:
        group = f"train {subject.role} {_short(learner.identity)} {self.size}"
        inputs = self._drawn(subject)
        return self._add(TrainJob(subject, learner, inputs=inputs, label=f"train {label}", group=group, coupled=True))

    def _unlearn(self, method: str, original: Subject, label: str, asked: Subject | None = None) -> str:
        """A method applied to an original; `asked` is the model with what it is to forget, where that is not known of
        the original."""
        how = self.game.methods[method]
        return self._made_to_forget(how, self.game.learner_of(method), original, f"{method} of {label}", label, asked)

    def _made_to_forget(
        self, how: Method, learner: Named, original: Subject, label: str, of: str, asked: Subject | None
    ) -> str:
        subject = asked or original
        inputs = {"model": self._train(learner, original, of)} if how.uses_original else {}
        inputs |= self._drawn(subject)
        short = f"{_short(how.unlearner.identity)} {_short(learner.identity)}"
        group = f"unlearn {subject.role} {short} {self.game.sizes}"
        return self._add(
            UnlearnJob(subject, learner, how.unlearner, inputs=inputs, label=label, group=group, coupled=how.stacked)
        )

    def _signals(
        self, model: str, subject: Subject, learner: Named, look_at: str, label: str, columns: tuple[str, ...] = ()
    ) -> str:
        label, group, inputs = f"signals of {label}", f"signals {look_at}", {"model": model, **self._drawn(subject)}
        how = subject, learner, look_at, columns, self.game.task
        return self._add(SignalsJob(*how, inputs=inputs, label=label, group=group))

    # -- adversaries ---------------------------------------------------------------------------------------------

    def _fit(self, method: str, name: str) -> str:
        adversary = self.game.adversaries[name]
        aware = "unlearned" in adversary.needs
        inputs = self._panel("shadow", method, adversary, self.game.n_shadows)
        if "outsiders" in adversary.needs:
            inputs |= self._panel("outsider", method, adversary, self.game.n_shadows)
        if "references" in adversary.needs:
            inputs |= self._panel("reference", method, adversary, self.game.n_references_of(name))
        inputs |= {DRAW: self.initialise} if self.is_hard else {}
        label = f"fit {name}" + (f" to {method}" if aware else "")
        return self._add(
            FitJob(
                adversary.adversary,
                self.game.n_classes,
                self.game.task,
                self.by_group,
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
                is_plain = self.game.task == RECORDS and not adversary.adversary.code
                look_at = PLAINLY if is_plain else SHADOW_HALF
                inputs["background"] = self._signals(unlearn, looked_at, learner, look_at, label, adversary.columns)
            how = (adversary.adversary, self.game.task, self.by_group)
            label = f"{name} on {method}, {place}"
            decide[name] = self._add(DecideJob(*how, inputs=inputs, label=label, group=f"decide {name}"))
        return CellJobs(unlearn, signals, decide)

    # -- strengths -----------------------------------------------------------------------------------------------

    def _costs(self, method: str) -> Iterator[tuple[tuple[str, int, Value | str], str]]:
        """What a method does to shadow models at each strength that is tried, and what that is held against."""
        how, learner, rule = self.game.methods[method], self.game.learner_of(method), self.game.price
        if how.tuning is None or rule is None:
            return
        for which in range(rule.shadows):
            trained = Shadow(self.halves, self.size, which)
            asked, of = replace(trained, forget=self.n_forget), f"shadow {which}"
            untreated = self._train(learner, trained, of)
            yield (method, which, UNTREATED), self._utility(untreated, asked, learner, of)
            label = f"retrained {of}"
            retrained = self._made_to_forget(rule.retrain, learner, trained, label, of, asked)
            yield (method, which, RETRAINED), self._utility(retrained, asked, learner, label)
            for value in how.tuning.tried:
                label = f"{method} at {how.tuning.strength.parameter} = {value:g} of {of}"
                variant = replace(how, unlearner=how.at(value))
                made = self._made_to_forget(variant, learner, trained, label, of, asked)
                yield (method, which, value), self._utility(made, asked, learner, label)

    def _utility(self, model: str, subject: Subject, learner: Named, label: str) -> str:
        inputs, label = {"model": model, **self._drawn(subject)}, f"utility of {label}"
        return self._add(SignalsJob(subject, learner, UTILITY, inputs=inputs, label=label, group=UTILITY))

    # -- rival metrics -------------------------------------------------------------------------------------------

    def _confused_signals(self, method: str, pair: int, seed: int) -> str:
        first, second = self.game.metrics["ic"]
        subject, place = Confused(self.halves, self.size, pair, (first, second), seed), f"confused {pair} seed {seed}"
        unlearn, looked_at = self._unlearn(method, subject, place), replace(subject, replicate=None)
        return self._signals(unlearn, looked_at, self.game.learner_of(method), CONFUSED, f"{method}, {place}")


def _short(identity: Mapping[str, Any]) -> str:
    return identity_key(identity)[:8]
