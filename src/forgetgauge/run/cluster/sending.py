"""What travels to the machines of a cluster: the user's own code, artefacts, and the assignments that are under way.

The code goes as Ray's working directory, its files and nothing else: what the digest of the code is taken of, the
modules it imports that are no installed packages, and the files that these and the parameters name. Neither run folders
nor data sets are among them. Small artefacts go with a task, others are put into the object store once.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forgetgauge.code import files_named
from forgetgauge.code.imports import Imports
from forgetgauge.code.modules import kind_of, source_file
from forgetgauge.plan.jobs import Named
from forgetgauge.run.algorithms import CATALOGUES, code_of_choice
from forgetgauge.run.assignments import Assignment, Sources
from forgetgauge.run.cluster.demand import Demand
from forgetgauge.run.cluster.nodes import Node
from forgetgauge.store.objects import ObjectStore, Receipt

BESIDE = "beside its module: "
INLINE_BYTES = 2**15
"""An artefact up to this size travels with the task; a larger one is put into the object store, once."""
STORE_SHARE = 4
"""A quarter of the object store of this machine is kept filled with artefacts that may be read again."""
PAUSE_S, LONGEST_PAUSE_S = 0.1, 10.0
"""What a machine's trouble lost waits before it is sent out again, twice as long each time: a machine that is dying
takes tasks and loses them for as long as Ray thinks that it lives, half a minute perhaps."""


# -- code and artefacts ------------------------------------------------------------------------------------------------


def gathered(sources: Sources, folder: Path) -> bool:
    """Copy the user's code into a folder, by the names that it is imported by; False where there is none."""
    chosen = [*sources.own_code.values(), *sources.datasets.values()]
    imports = Imports()
    for module in sorted(set(_modules(chosen))):
        if kind_of(module) == "own" and module != "__main__":
            imports.add(module)
    files = {module: Path(path) for module in imports.sources if (path := source_file(module))}
    beside = [name.removeprefix(BESIDE) for name in imports.files if name.startswith(BESIDE)]
    for module, source in files.items():
        to = folder / (module.replace(".", "/") + ("/__init__.py" if source.name == "__init__.py" else ".py"))
        _copy(source, to)
        for name in beside:
            if (source.parent / name).is_file():
                _copy(source.parent / name, to.parent / name)
    named = [Path(name) for name in imports.files if not name.startswith(BESIDE)]
    for key, one in sources.own_code.items():
        named += files_named(one.params)
        if (catalogue := CATALOGUES.get(key.partition(" ")[0])) is not None:
            named += map(Path, code_of_choice(catalogue, one.name, one.params).files)
    for file in named:
        if not file.is_absolute() and ".." not in file.parts and file.is_file():
            _copy(file, folder / file)
    return any(folder.iterdir())


def _modules(chosen: Iterable[Named]) -> Iterable[str]:
    """The modules of everything that is named `module:attribute`."""
    for named in chosen:
        names = [named.name, named.model, str(named.params.get("task") or "")]
        yield from (name.partition(":")[0] for name in names if ":" in name)


def _copy(path: Path, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, to)


@dataclass
class References:
    """What of the run's store stands in Ray's; whoever was not used for longest is let go of first."""

    ray: Any
    store: ObjectStore
    room: float
    """Bytes of it."""
    _known: dict[str, tuple[str, list[Any], int]] = field(default_factory=dict)
    _held: int = 0

    def sent(self, key: str, digest: str) -> bytes | list[Any]:
        """An artefact as it travels: itself, or a reference to what every machine fetches once."""
        known = self._known.pop(key, None)
        if known is not None and known[0] == digest:
            self._known[key] = known  # the last in order is the latest used
            return known[1]
        content = self.store.read_bytes(key, digest)
        if len(content) <= INLINE_BYTES:
            return content
        reference = [self.ray.put(content)]
        self._known[key] = (digest, reference, len(content))
        self._held += len(content)
        while self._held > self.room and len(self._known) > 1:
            self.forget(next(iter(self._known)))
        return reference

    def forget(self, key: str) -> None:
        """Read it anew from the store of the run, should it be wanted again."""
        known = self._known.pop(key, None)
        self._held -= known[2] if known else 0


# -- assignments -------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Flight:
    """An assignment under way."""

    assignment: Assignment
    digests: Mapping[str, str]
    demand: Demand
    avoided: set[str] = field(default_factory=set)
    n_lost: int = 0
    due: float = 0.0
    """When it is to be sent out again, while it waits."""
    task: Any = None
    node: Node | None = None
    arrived: float | None = None
    begun: float | None = None
    made: dict[str, Receipt] = field(default_factory=dict)


class Paused:
    """Lost assignments that wait before they are sent out again."""

    def __init__(self) -> None:
        self.flights: list[Flight] = []

    def add(self, flight: Flight) -> None:
        """One that was lost once more."""
        flight.node = flight.arrived = flight.begun = None  # nobody is at work on it
        flight.due = time.monotonic() + min(LONGEST_PAUSE_S, PAUSE_S * 2 ** (flight.n_lost - 1))
        self.flights.append(flight)

    def drop(self, flight: Flight) -> None:
        """One that nobody wants any more, if it waits."""
        self.flights = [other for other in self.flights if other is not flight]

    def seconds(self, most: float) -> float:
        """Until the next is due, or `most`."""
        due = min((flight.due for flight in self.flights), default=float("inf"))
        return min(most, max(0.0, due - time.monotonic()))

    def take_due(self) -> list[Flight]:
        """Takes out the assignments whose time to wait is over."""
        now = time.monotonic()
        due = [flight for flight in self.flights if flight.due <= now]
        self.flights = [flight for flight in self.flights if flight.due > now]
        return due
