"""What passes between the scheduler and whoever does the work: an assignment goes in, an outcome comes back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from forgetgauge.plan.game import Game
from forgetgauge.plan.jobs import Job, Named
from forgetgauge.store.objects import Receipt


@dataclass(frozen=True)
class Assignment:
    """Jobs that are done together, by one worker."""

    jobs: tuple[Job, ...]
    """All of them: of a stack, every member, even where one artefact alone was lost."""
    wanted: frozenset[str]
    """Keys of those whose artefacts are to be written."""

    @property
    def inputs(self) -> set[str]:
        """Keys of all artefacts the assignment reads."""
        return {key for job in self.jobs for key in job.inputs.values()}


@dataclass(frozen=True)
class Failure:
    """How a job failed."""

    line: str
    traceback: str
    job: str = ""
    """Which, in words."""
    error: BaseException | None = field(default=None, compare=False)
    """The exception itself, where the job was done in this process."""
    tries: int = 1
    """How often a job that ends like this is tried: an exception comes again, a process may die of something else."""
    harmful: bool = False
    """Whether it damaged what others made: then nothing more of the same method is done."""


N_LIVES = 3
"""So often a job is tried whose process dies, or whose GPU: of something else, it may be, such as another program's
memory."""


@dataclass(frozen=True)
class Outcome:
    """What became of an assignment."""

    receipts: Mapping[str, Receipt] = field(default_factory=dict)
    failures: Mapping[str, Failure] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    """What a trial found that is no failure, a line on each."""
    lost: str | None = None
    """An input that turned out missing or damaged: nothing was done."""
    stacks: Sequence[Sequence[str]] = ()
    """Keys of the narrower stacks that ran in place of the assignment's own, where memory was too small for that."""
    full_disk: str | None = None
    """The disk filled up: nothing more can be done."""
    seconds: float = 0.0
    device_lost: bool = False
    """The GPU answers that process no more: whatever it did next would fail, and be no fault of its own."""


@dataclass(frozen=True)
class Sources:
    """Where workers find what jobs name by digest only."""

    datasets: Mapping[str, Named]
    """Data digest -> name and parameters of the data set."""
    weights: Mapping[str, Any] = field(default_factory=dict)
    """Digest of a file of sensitivity weights -> the weights, one per point of the data set."""
    own_code: Mapping[str, Named] = field(default_factory=dict)
    """The user's own code as the run was planned with it, for worker processes to compare with theirs."""
    model_bytes: int = 0
    """Bytes of the run's largest model."""


@dataclass(frozen=True)
class Resolved:
    """A run, ready to be planned."""

    games: list[Game]
    sweep_key: str | None
    keep_weights: bool
    sources: Sources
    environment: dict[str, str]
    source: str = ""
    """Name of the run file, or `evaluate`; empty where a folder is shared by several on purpose."""
    scored: tuple[str, ...] = ()
    """Adversaries that `score` added."""
    job_seconds: float | None = None
    """After so many seconds a job is given up."""
