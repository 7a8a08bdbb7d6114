"""The job graph of one game: which models are trained, unlearned, looked at and attacked.

    initialise ┐
    train(original: pair, side, seed) ─► unlearn(method) ─► signals on F ∪ T ─► decide(adversary)
    train(shadow k) ──────────────────[► unlearn(method)]─► signals ─► fit(adversary) ┘
    train(reference k, on a part of D) [► unlearn(method)]─► signals ─┘
    train(confused: pair, seed) ─► unlearn(method) ─► signals on what was taught wrongly, where the IC test is asked for

Originals are shared by all methods of a learner, shadows, references and fits by all pairs. References, background
signals and unlearned shadows are made only where an adversary asks for them. No key holds a count of pairs, seeds,
methods or adversaries, so adding one of them leaves every other key as it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Literal

from forgetgauge.game.splits import split_sizes
from forgetgauge.plan.draws import half_sizes
from forgetgauge.plan.jobs import Job
from forgetgauge.streams import identity_key

SIDES = (0, 1)
PAIR, TARGET_HALF, SHADOW_HALF, CONFUSED = "pair", "target half", "shadow half", "confused"
"""What signals are taken on: F ∪ T of a pair, all of D, all of the shadow half, or what the IC test taught wrongly."""


@dataclass(frozen=True)
class Named:
    """Something chosen by name, with all its parameters and a digest of its code where it is the user's own."""

    name: str
    params: Mapping[str, Any] = field(default_factory=dict)
    code: str = ""
    version: str = ""
    """What the run file states, for code that the digest does not cover."""
    not_covered: tuple[str, ...] = ()
    """What may change without changing the digest; in no key."""

    @property
    def identity(self) -> dict[str, Any]:
        """As it stands in keys."""
        stated = {"version": self.version} if self.version else {}
        return {"name": self.name, "params": dict(self.params), "code": self.code, **stated}


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
class Opponent:
    """An adversary as the plan sees it."""

    adversary: Named
    needs: tuple[str, ...] = ()
    """What it asks for besides shadow models: the plan knows these words, not the adversaries."""
    columns: tuple[str, ...] = ()
    """White-box columns it reads."""


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
    delta: float
    share_retrain: bool
    sensitivity: Mapping[str, Any]
    """`{"kind": "uniform"}`, or `by-class` with weights, or `file` with its digest."""
    learner: Named
    n_shadows: int
    n_references: int
    methods: Mapping[str, Method]
    adversaries: Mapping[str, Opponent]
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

    @property
    def sizes(self) -> tuple[int, int]:
        """(|R|, |F|)."""
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


def build_graph(game: Game) -> Graph:
    """The jobs of a game."""
    return _Builder(game).build()


class _Builder:
    """Adds jobs in topological order; equal jobs become one."""

    def __init__(self, game: Game) -> None:
        self.game = game
        self.jobs: dict[str, Job] = {}
        self.where = {"data": game.data_digest, "seed": game.seed, "fraction": game.fraction}
        self.n_retain, self.n_forget = game.sizes

    def build(self) -> Graph:
        initialise = self._add(
            Job("initialise", {**self.where, "sensitivity": dict(self.game.sensitivity)}, label="initialise the game")
        )
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

    def _target(self, pair: int, side: int, seed: int) -> dict[str, Any]:
        return {
            **self.where, "role": "target", "alpha": self.game.alpha, "pair": pair, "side": side, "replicate": seed
        }  # fmt: skip

    def _helper(self, role: str, which: int) -> dict[str, Any]:
        """A shadow or reference model: trained on as many points as a target, and perhaps told to forget some."""
        return {**self.where, "role": role, "size": self.n_retain + self.n_forget, "which": which}

    def _confused(self, pair: int, seed: int) -> dict[str, Any]:
        """A model of the IC test, trained on as many points as a target; `labels` names the version it was taught."""
        labels = {"exchanged": list(self.game.metrics["ic"]), "which": pair}
        return {**self._helper("confused", pair), "labels": labels, "replicate": seed}

    def _original(self, learner: Named, pair: int, side: int, seed: int) -> str:
        return self._train(learner, self._target(pair, side, seed), f"original of pair {pair} side {side} seed {seed}")

    def _train(self, learner: Named, which: Mapping[str, Any], label: str) -> str:
        params = {**which, "learner": learner.identity}
        group = f"train {which['role']} {_short(learner.identity)} {self.n_retain + self.n_forget}"
        return self._add(Job("train", params, {}, f"train {label}", group, coupled=True))

    def _unlearn(self, method: str, which: Mapping[str, Any], label: str) -> str:
        """A method applied to the model of `which`."""
        how, learner = self.game.methods[method], self.game.learner_of(method)
        inputs = {"model": self._train(learner, which, label)} if how.uses_original else {}
        params: dict[str, Any] = {
            **which,
            "unlearner": how.unlearner.identity,
            "learner": learner.identity,
        }
        if which["role"] == "target":
            if self.game.share_retrain and not how.uses_original:
                params["side"] = 0
        elif which["role"] != "confused":  # where the labels say what is forgotten
            params["forget"] = self.n_forget
        group = f"unlearn {which['role']} {_short(how.unlearner.identity)} {_short(learner.identity)} {self.game.sizes}"
        return self._add(Job("unlearn", params, inputs, f"{method} of {label}", group, coupled=how.stacked))

    def _signals(
        self,
        model: str,
        which: Mapping[str, Any],
        learner: Named,
        look_at: str,
        label: str,
        columns: tuple[str, ...] = (),
    ) -> str:
        """White-box columns make another job, so that asking for them leaves the plain signals as they are."""
        params = {**which, "learner": learner.identity, "look_at": look_at}
        if columns:
            params["columns"] = list(columns)
        return self._add(Job("signals", params, {"model": model}, f"signals of {label}", group=f"signals {look_at}"))

    # -- adversaries ---------------------------------------------------------------------------------------------

    def _fit(self, method: str, name: str) -> str:
        opponent = self.game.adversaries[name]
        aware = "unlearned" in opponent.needs
        inputs = self._panel("shadow", method, opponent, self.game.n_shadows)
        if "outsiders" in opponent.needs:
            inputs |= self._panel("outsider", method, opponent, self.game.n_shadows)
        if "references" in opponent.needs:
            inputs |= self._panel("reference", method, opponent, self.game.n_references)
        params = {"adversary": opponent.adversary.identity, "n_classes": self.game.n_classes}
        label = f"fit {name}" + (f" to {method}" if aware else "")
        return self._add(Job("fit", params, inputs, label, group=f"fit {name}"))

    def _panel(self, panel: str, method: str, opponent: Opponent, n_models: int) -> dict[str, str]:
        """`shadow`s on the shadow half, `reference`s on D, or `outsider`s: shadow models that look at D."""
        role = "reference" if panel == "reference" else "shadow"
        look_at = SHADOW_HALF if panel == "shadow" else TARGET_HALF
        learner = self.game.learner_of(method)
        keys = {}
        for which in range(n_models):
            identity, label = self._helper(role, which), f"{role} {which}"
            if "unlearned" in opponent.needs:
                model = self._unlearn(method, identity, label)
                identity, label = {**identity, "forget": self.n_forget}, f"{method}, {label}"
            else:
                model = self._train(learner, identity, label)
            keys[f"{panel}-{which}"] = self._signals(model, identity, learner, look_at, label, opponent.columns)
        return keys

    def _cell(self, method: str, pair: int, side: int, seed: int, fits: Mapping[tuple[str, str], str]) -> CellJobs:
        place, learner = f"pair {pair} side {side} seed {seed}", self.game.learner_of(method)
        which = self._target(pair, side, seed)
        unlearn = self._unlearn(method, which, place)
        looked_at = {key: value for key, value in which.items() if key != "replicate"}
        signals = self._signals(unlearn, looked_at, learner, PAIR, f"{method}, {place}")
        decide = {}
        for name, opponent in self.game.adversaries.items():
            seen = self._signals(unlearn, looked_at, learner, PAIR, f"{method}, {place}", opponent.columns)
            inputs = {"fit": fits[method, name], "signals": seen}
            if "background" in opponent.needs:
                label = f"{method}, {place}, on the shadow half"
                inputs["background"] = self._signals(unlearn, looked_at, learner, SHADOW_HALF, label, opponent.columns)
            params = {"adversary": opponent.adversary.identity}
            decide[name] = self._add(Job("decide", params, inputs, f"{name} on {method}, {place}", f"decide {name}"))
        return CellJobs(unlearn, signals, decide)

    # -- rival metrics -------------------------------------------------------------------------------------------

    def _confused_signals(self, method: str, pair: int, seed: int) -> str:
        which, place = self._confused(pair, seed), f"confused {pair} seed {seed}"
        unlearn = self._unlearn(method, which, place)
        looked_at = {key: value for key, value in which.items() if key != "replicate"}
        return self._signals(unlearn, looked_at, self.game.learner_of(method), CONFUSED, f"{method}, {place}")


def _short(identity: Mapping[str, Any]) -> str:
    return identity_key(identity)[:8]
