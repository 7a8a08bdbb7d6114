"""What passes between the scheduler and whoever does the work: an assignment goes in, an outcome comes back; and which
of the assignments that wait is the first whose inputs are all there.

Ten thousand may wait. Each that lacks an input is kept under one artefact that it lacks, and looked at again when that
is there.
"""

from __future__ import annotations

import heapq
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from forgetgauge.errors import UserError, line_of
from forgetgauge.plan.game import Game
from forgetgauge.plan.jobs import Job, Kind, Named
from forgetgauge.store.objects import Receipt

if TYPE_CHECKING:
    from forgetgauge.data.dataset import Dataset


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


def failure_of(error: BaseException, tries: int = 1) -> Failure:
    """The exception as a failure, without what its frames hold: a job that failed for want of memory would keep it from
    those that come after it."""
    failure = Failure(line_of(error), traceback.format_exc(), error=error, tries=tries)
    behind: BaseException | None = error
    seen = set[int]()
    while behind is not None and id(behind) not in seen:
        seen.add(id(behind))
        traceback.clear_frames(behind.__traceback__)
        behind = behind.__cause__ or behind.__context__
    return failure


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
    apart: Sequence[Sequence[str]] = ()
    """Keys of the stacks, one for each strength, that ran in place of the assignment's own, where that failed."""
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

    def dataset(self, digest: str) -> Dataset:
        """Read anew; refused where it is not as it was when the run was planned."""
        from forgetgauge.data.loading import load_dataset

        data = self.datasets[digest]
        dataset = load_dataset(data.name, data.params)
        if dataset.digest != digest:
            raise UserError(f"data '{data.name}' changed since the run was planned; run the same command again")
        return dataset


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


# -- waiting -----------------------------------------------------------------------------------------------------------


class Waiting:
    """In the order in which they should begin."""

    def __init__(self, assignments: Iterable[Assignment], is_available: Callable[[str], bool]) -> None:
        self._is_available = is_available
        self._all: dict[int, Assignment] = {}
        self._ready: dict[Kind, list[int]] = {}
        """Places of those that lacked nothing when they were last looked at, by their kind of job; each a heap."""
        self._lacking: dict[str, list[int]] = {}
        """Key of an artefact -> places of those that were found to lack it."""
        self._first = 0
        self.replace(assignments)

    def __len__(self) -> int:
        """How many."""
        return len(self._all)

    def __iter__(self) -> Iterator[Assignment]:
        """All of them, in their order."""
        return (self._all[place] for place in sorted(self._all))

    def replace(self, assignments: Iterable[Assignment]) -> None:
        """These, in place of all that waited."""
        waiting = list(assignments)
        self._all.clear()
        self._ready.clear()
        self._lacking.clear()
        self._first = 0
        for place, assignment in enumerate(waiting):
            self._all[place] = assignment
            self._look_at(place)

    def put_first(self, assignments: Iterable[Assignment]) -> None:
        """Before all others, as what is tried again is."""
        for assignment in reversed(list(assignments)):
            self._first -= 1
            self._all[self._first] = assignment
            self._look_at(self._first)

    def arrived(self, keys: Iterable[str]) -> None:
        """These artefacts are there now."""
        for key in keys:
            for place in self._lacking.pop(key, ()):
                self._look_at(place)

    def take(self, has_room: Callable[[Assignment], bool], fits: Callable[[Assignment], bool]) -> Assignment | None:
        """The first that lacks nothing, has room and fits; None where there is none.

        Whether somebody has room is asked once for each kind of job, whether it fits of one after another.
        """
        passed_over: list[tuple[Kind, int]] = []
        kinds = [kind for kind in self._ready if self._settle(kind) and has_room(self._all[self._ready[kind][0]])]
        taken = None
        while taken is None and (kinds := [kind for kind in kinds if self._settle(kind)]):
            kind = min(kinds, key=lambda one: self._ready[one][0])
            place = heapq.heappop(self._ready[kind])
            if fits(self._all[place]):
                taken = self._all.pop(place)
            else:
                passed_over.append((kind, place))
        for kind, place in passed_over:
            heapq.heappush(self._ready[kind], place)
        return taken

    def _look_at(self, place: int) -> None:
        """Put one where it belongs: with those that are ready, or under an artefact that it lacks."""
        assignment = self._all[place]
        lacks = next((key for key in assignment.inputs if not self._is_available(key)), None)
        if lacks is not None:
            self._lacking.setdefault(lacks, []).append(place)
        else:
            heapq.heappush(self._ready.setdefault(assignment.jobs[0].kind, []), place)

    def _settle(self, kind: Kind) -> bool:
        """Whether one is ready: an artefact may have been lost since the first of them was looked at."""
        ready = self._ready[kind]
        while ready and not all(map(self._is_available, self._all[ready[0]].inputs)):
            self._look_at(heapq.heappop(ready))
        return bool(ready)
