"""The job graph of one game: which models are trained, unlearned, looked at and attacked.

    initialise ┐
    train(original: pair, side, seed) ─► unlearn(method) ─► signals on F ∪ T ─► decide(adversary)
    train(shadow k) ──────────────────────────────────────► signals ─► fit(adversary) ┘

Originals are shared by all methods, shadows and fits by all pairs. No key holds a count, so adding a method, an
adversary, a pair or a seed leaves every other key as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from forgetgauge.game.splits import split_sizes
from forgetgauge.plan.draws import half_sizes
from forgetgauge.plan.jobs import Job
from forgetgauge.streams import identity_key

SIDES = (0, 1)


@dataclass(frozen=True)
class Named:
    """Something chosen by name, with all its parameters and a digest of its code where it is the user's own."""

    name: str
    params: Mapping[str, Any] = field(default_factory=dict)
    code: str = ""


@dataclass(frozen=True)
class Method:
    """An unlearner as the plan sees it."""

    unlearner: Named
    uses_original: bool = True
    """Whether it starts from the trained model (Retrain does not)."""
    stacked: bool = False
    """Whether it treats many models at once."""


@dataclass(frozen=True)
class Game:
    """One game with every choice resolved: what `run.json` holds and all that workers are told."""

    data: Named
    data_digest: str
    n_points: int
    n_classes: int
    seed: int
    fraction: float
    alpha: float
    pairs: int
    seeds: int
    level: float
    share_retrain: bool
    sensitivity: Mapping[str, Any]
    """`{"kind": "uniform"}`, or `by-class` with weights, or `file` with its digest."""
    learner: Named
    n_shadows: int
    methods: Mapping[str, Method]
    adversaries: Mapping[str, Named]
    model_bytes: int
    """Size of one model's weights, for the estimate of disk use."""
    value: Any = None
    """The swept value, in a sweep."""

    @property
    def sizes(self) -> tuple[int, int]:
        """(|R|, |F|)."""
        return split_sizes(half_sizes(self.n_points, self.fraction)[0], self.alpha)


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


def build_graph(game: Game) -> Graph:
    """The jobs of a game."""
    return _Builder(game).build()


class _Builder:
    """Adds jobs in topological order; equal jobs become one."""

    def __init__(self, game: Game) -> None:
        self.game = game
        self.jobs: dict[str, Job] = {}
        self.where = {
            "data": game.data_digest,
            "seed": game.seed,
            "fraction": game.fraction,
        }
        self.learner = _identity(game.learner)
        n_retain, n_forget = game.sizes
        self.train_size = n_retain + n_forget

    def build(self) -> Graph:
        initialise = self._add(
            Job("initialise", {**self.where, "sensitivity": dict(self.game.sensitivity)}, label="initialise the game")
        )
        places = list(product(range(self.game.pairs), range(self.game.seeds), SIDES))
        if any(method.uses_original for method in self.game.methods.values()):
            for pair, seed, side in places:  # first in the plan, because most of the other jobs wait for them
                self._original(pair, side, seed)
        fits = self._fits()
        cells = {
            Cell(method, pair, side, seed): self._cell(method, pair, side, seed, fits)
            for pair, seed, side in places
            for method in self.game.methods
        }
        return Graph(self.game, self.jobs, initialise, cells)

    def _add(self, job: Job) -> str:
        self.jobs.setdefault(job.key, job)
        return job.key

    def _fits(self) -> dict[str, str]:
        shadows = {}
        for shadow in range(self.game.n_shadows):
            which = {**self.where, "role": "shadow", "size": self.train_size, "shadow": shadow}
            model = self._train(which, f"shadow {shadow}")
            looked_at = {**which, "learner": self.learner}
            shadows[f"shadow-{shadow}"] = self._add(
                Job("signals", looked_at, {"model": model}, f"signals of shadow {shadow}", group="signals")
            )
        classes = {"n_classes": self.game.n_classes}
        return {
            name: self._add(
                Job("fit", {"adversary": _identity(adversary), **classes}, shadows, f"fit {name}", group=f"fit {name}")
            )
            for name, adversary in self.game.adversaries.items()
        }

    def _train(self, which: Mapping[str, Any], label: str) -> str:
        params = {**which, "learner": self.learner}
        group = f"train {which['role']} {_short(self.learner)} {self.train_size}"
        return self._add(Job("train", params, {}, f"train {label}", group, coupled=True))

    def _target(self, pair: int) -> dict[str, Any]:
        return {**self.where, "role": "target", "alpha": self.game.alpha, "pair": pair}

    def _original(self, pair: int, side: int, seed: int) -> str:
        which = {**self._target(pair), "side": side, "replicate": seed}
        return self._train(which, f"original of pair {pair} side {side} seed {seed}")

    def _cell(self, method: str, pair: int, side: int, seed: int, fits: Mapping[str, str]) -> CellJobs:
        where = self._target(pair)
        place = f"pair {pair} side {side} seed {seed}"
        how = self.game.methods[method]
        inputs = {}
        if how.uses_original:
            inputs["model"] = self._original(pair, side, seed)
        shared = self.game.share_retrain and not how.uses_original
        params: dict[str, Any] = {
            **where,
            "side": 0 if shared else side,
            "replicate": seed,
            "unlearner": _identity(how.unlearner),
            "learner": self.learner,
        }
        group = f"unlearn {_short(params['unlearner'])} {_short(self.learner)} {self.game.sizes}"
        unlearn = self._add(Job("unlearn", params, inputs, f"{method} of {place}", group, coupled=how.stacked))
        looked_at = {**where, "side": side, "learner": self.learner}
        signals = self._add(
            Job("signals", looked_at, {"model": unlearn}, f"signals of {method}, {place}", group="signals")
        )
        decide = {
            name: self._add(
                Job(
                    "decide",
                    {"adversary": _identity(adversary)},
                    {"fit": fits[name], "signals": signals},
                    f"{name} on {method}, {place}",
                    group=f"decide {name}",
                )
            )
            for name, adversary in self.game.adversaries.items()
        }
        return CellJobs(unlearn, signals, decide)


def _identity(named: Named) -> dict[str, Any]:
    return {"name": named.name, "params": dict(named.params), "code": named.code}


def _short(identity: Mapping[str, Any]) -> str:
    return identity_key(identity)[:8]
