"""A job is a pure description of one piece of work; its key is a digest of everything that decides the outcome.

There is one class for each kind; what it is about are its fields.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal

from forgetgauge.plan.subjects import Halves, Subject
from forgetgauge.streams import identity_key

Kind = Literal["initialise", "train", "unlearn", "signals", "fit", "decide", "try-model", "try-adversary"]
"""The last two are trials of the user's own code, before a run: they are in no plan and leave no artefact."""

CODE_VERSION: dict[Kind, int] = {
    "initialise": 2,
    "train": 1,
    "unlearn": 1,
    "signals": 1,
    "fit": 2,
    "decide": 2,
    "try-model": 1,
    "try-adversary": 1,
}
"""Raised when the code of a kind changes its outcome, so that old artefacts are not taken for new ones."""

RECORDS = "causal-lm"
"""The task of language models."""
OUTPUTS_VERSION = {RECORDS: 2}
"""The same for signals, of the models of one task: raised when what these say of a point is computed otherwise."""

HEAVY: frozenset[Kind] = frozenset({"train", "unlearn"})
"""Kinds whose artefacts are weights: they may be dropped once nothing open needs them."""

USES_TORCH: frozenset[Kind] = frozenset({"initialise", "train", "unlearn", "signals", "try-model"})
"""Kinds that are done with torch, on a device."""


UTILITY = "utility"
"""What models that show the cost of a strength are looked at for: how good they are on points that they never saw, the
official test set where there is one, is all that is kept of them."""

DRAW = "draw"
"""The role of the first job's artefact among the inputs of jobs that must know the hardest points."""

TRIALS: frozenset[Kind] = frozenset({"try-model", "try-adversary"})
"""Kinds that are done before a run; their outcome is whether the user's code works."""


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
        """What stands for it in keys."""
        stated = {"version": self.version} if self.version else {}
        return {"name": self.name, "params": dict(self.params), "code": self.code, **stated}

    @property
    def model(self) -> str:
        """The model that a learner is to train; empty where it names none."""
        return str(self.params.get("model", ""))


def code_key(what: str, named: Named) -> str:
    """Names the code of a choice, whatever its parameters are."""
    return f"{what} {named.name} {named.code}"


@dataclass(frozen=True, kw_only=True)
class Job(ABC):
    """One piece of work. Equal keys mean equal outcomes."""

    kind: ClassVar[Kind]
    inputs: Mapping[str, str] = field(default_factory=dict)
    """Role -> key of the job that makes it."""
    label: str = ""
    """For people; not part of the key."""
    group: str = ""
    """Jobs of one group can be done together."""
    coupled: bool = False
    """Whether doing jobs together can change their bits (a stack): then the members of its stack are fixed for good."""

    @property
    @abstractmethod
    def params(self) -> dict[str, Any]:
        """All that decides the outcome apart from the inputs, as it stands in the key; plain JSON."""

    @property
    @abstractmethod
    def choices(self) -> list[tuple[str, Named]]:
        """What the job runs that was chosen by name: (`learner`, `unlearner` or `adversary`, choice)."""

    @property
    def code(self) -> list[str]:
        """What it runs, whatever its parameters are."""
        return [code_key(*choice) for choice in self.choices]

    @property
    def makes(self) -> str:
        """What its artefact holds, by a name that `store.content` knows."""
        return self.kind

    @cached_property
    def key(self) -> str:
        """SHA-256 over kind, code version, parameters and inputs."""
        version = CODE_VERSION[self.kind]
        return identity_key({"kind": self.kind, "version": version, "params": self.params, "inputs": dict(self.inputs)})


@dataclass(frozen=True)
class InitialiseJob(Job):
    """The halves of the data set, the sensitivity P_D over the first, and its hardest points where F is of these."""

    kind = "initialise"
    halves: Halves
    sensitivity: Mapping[str, Any]
    hardest: float = 1.0
    """The share that F and T are drawn from: it takes signals of models that score the points."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """What the data brings beside labels, by digest."""

    @property
    def params(self) -> dict[str, Any]:
        hardest = {"hardest": self.hardest} if self.hardest < 1 else {}
        columns = {"columns": dict(self.columns)} if self.columns else {}
        return {**self.halves.identity, "sensitivity": dict(self.sensitivity), **hardest, **columns}

    @property
    def choices(self) -> list[tuple[str, Named]]:
        return []


@dataclass(frozen=True)
class ModelJob(Job):
    """A job about a model, which its learner builds."""

    subject: Subject
    learner: Named

    @property
    def halves(self) -> Halves:
        """The halves that the model's points belong to."""
        return self.subject.halves


@dataclass(frozen=True)
class TrainJob(ModelJob):
    """A model is trained on R ∪ F."""

    kind = "train"

    @property
    def params(self) -> dict[str, Any]:
        order = {"order": "drawn"} if self.learner.code else {}  # for the user's own; before, F was always last
        return {**self.subject.identity, "learner": self.learner.identity, **order}

    @property
    def choices(self) -> list[tuple[str, Named]]:
        return [("learner", self.learner)]


@dataclass(frozen=True)
class UnlearnJob(ModelJob):
    """A model is made to forget F."""

    kind = "unlearn"
    unlearner: Named

    @property
    def params(self) -> dict[str, Any]:
        return {**self.subject.identity, "learner": self.learner.identity, "unlearner": self.unlearner.identity}

    @property
    def choices(self) -> list[tuple[str, Named]]:
        return [("learner", self.learner), ("unlearner", self.unlearner)]


@dataclass(frozen=True)
class SignalsJob(ModelJob):
    """A model is asked about points."""

    kind = "signals"
    look_at: str
    columns: tuple[str, ...] = ()
    """Columns besides the outputs. They make another job, so that the plain signals stay as they are."""
    task: str = ""

    @property
    def makes(self) -> str:
        return UTILITY if self.look_at == UTILITY else self.kind

    @property
    def params(self) -> dict[str, Any]:
        extra: dict[str, Any] = {"columns": list(self.columns)} if self.columns else {}
        if self.look_at != UTILITY and self.task in OUTPUTS_VERSION:
            extra["outputs"] = OUTPUTS_VERSION[self.task]
        looked_at = f"{UTILITY}, test" if self.look_at == UTILITY else self.look_at  # before, test sets were not asked
        return {**self.subject.identity, "learner": self.learner.identity, "look_at": looked_at, **extra}

    @property
    def choices(self) -> list[tuple[str, Named]]:
        return [("learner", self.learner)]


@dataclass(frozen=True)
class FitJob(Job):
    """An adversary is fitted to the signals of shadow models."""

    kind = "fit"
    adversary: Named
    n_classes: int
    task: str
    by_group: bool = False
    """Whether it is to decide about whole groups."""

    @property
    def params(self) -> dict[str, Any]:
        return {"adversary": self.adversary.identity, "n_classes": self.n_classes, **_by_group(self.by_group)}

    @property
    def choices(self) -> list[tuple[str, Named]]:
        return [("adversary", self.adversary)]


@dataclass(frozen=True)
class DecideJob(Job):
    """A fitted adversary decides about the points of a pair."""

    kind = "decide"
    adversary: Named
    task: str
    by_group: bool = False
    """Whether it decides about whole groups."""

    @property
    def params(self) -> dict[str, Any]:
        return {"adversary": self.adversary.identity, **_by_group(self.by_group)}

    @property
    def choices(self) -> list[tuple[str, Named]]:
        return [("adversary", self.adversary)]


def _by_group(by_group: bool) -> dict[str, bool]:
    return {"by_group": True} if by_group else {}


@dataclass(frozen=True)
class TryModelJob(Job):
    """A trial of a learner, and of methods that unlearn its models."""

    kind = "try-model"
    unlearn: UnlearnJob
    """An unlearning job of the run, for its subject and its learner."""
    what: str
    """The name to blame where no model can be trained."""
    fits: bool
    """Whether a model is trained, or one with untrained weights serves."""
    unlearners: Mapping[str, Named]
    """The methods that are tried."""
    from_original: tuple[str, ...]
    """Those of the methods that start from the trained model."""
    columns: tuple[str, ...]
    """Columns that are taken of every model."""

    @property
    def params(self) -> dict[str, Any]:
        return {
            **self.unlearn.params,
            "what": self.what,
            "fits": self.fits,
            "unlearners": {name: unlearner.identity for name, unlearner in self.unlearners.items()},
            "from_original": list(self.from_original),
            "columns": list(self.columns),
        }

    @property
    def choices(self) -> list[tuple[str, Named]]:
        return [*self.unlearn.choices, *(("unlearner", named) for named in self.unlearners.values())]


@dataclass(frozen=True)
class TryAdversaryJob(Job):
    """A trial of an adversary on made-up signals."""

    kind = "try-adversary"
    fit: FitJob
    """The fit of the run, except for its inputs."""
    id: str
    """The adversary's name in the run."""
    needs: tuple[str, ...]
    columns: tuple[str, ...]
    n_shadows: int
    n_references: int
    n_points: int
    """Number of points that each shadow model is asked about."""

    @property
    def params(self) -> dict[str, Any]:
        return {
            **self.fit.params,
            "id": self.id,
            "needs": list(self.needs),
            "columns": list(self.columns),
            "n_shadows": self.n_shadows,
            "n_references": self.n_references,
            "n_points": self.n_points,
        }

    @property
    def choices(self) -> list[tuple[str, Named]]:
        return self.fit.choices
