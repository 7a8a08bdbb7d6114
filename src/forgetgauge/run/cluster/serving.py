"""What a Ray worker process does with an assignment: the same `Worker` as everywhere, with artefacts in memory.

Nothing is written to the node's disk: inputs come out of Ray's object store, which is the cache that all processes of a
node share, and what was made goes back through it. Every artefact is compared with its digest at both ends. A machine
serves if it has our very source, and the versions that numbers may depend on.
"""

from __future__ import annotations

import functools
import hashlib
import os
import pickle
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy.typing as npt

from forgetgauge.data.folders import read_only
from forgetgauge.errors import UserError
from forgetgauge.files import FULL
from forgetgauge.plan.subjects import Halves
from forgetgauge.run.algorithms import CodeCheck
from forgetgauge.run.assignments import Assignment, Outcome, Sources
from forgetgauge.run.cluster.errand import REFUSED
from forgetgauge.run.executors import without_errors
from forgetgauge.run.worker import Worker
from forgetgauge.store.objects import Artefact, CorruptArtefact, Receipt, decode, encode
from forgetgauge.version import versions

PATIENCE_S = 600.0
"""Seconds within which an input must have come."""
LAST_WORD_S = 2.0
"""Seconds that the outcome has to get away before its process ends."""
SOURCE = "forgetgauge's source"


@dataclass(frozen=True)
class Context:
    """What all assignments of a run have in common; sent to each process once."""

    sources: Sources
    device: str
    """`cpu`, or `cuda`: which GPU it is, Ray says with each assignment."""
    objects: Path | None
    """The store, where all machines share its disk."""
    mark: str
    """A file in it that only who shares the disk can see."""
    path: tuple[str, ...]
    """Where modules are looked for, on the machine of the run itself."""


@dataclass(frozen=True)
class Arrived:
    """A process was found, on this node; it may still have to import what it needs."""

    node: tuple[str, str]


@dataclass(frozen=True)
class Begun:
    """It has all that it needs, and begins."""

    node: tuple[str, str]


@dataclass(frozen=True)
class Made:
    """One artefact, as its file would be."""

    key: str
    sha256: str
    content: bytes


@dataclass(frozen=True)
class Lacks:
    """The node cannot read a data set: it is to be sent."""

    digest: str


@dataclass(frozen=True)
class Ended:
    """The outcome; what was made came before."""

    outcome: Outcome
    full_disk: str = ""
    """What the user's code said of the node's disk, where that was full."""


@dataclass
class Received:
    """Artefacts of one assignment, in memory: those it reads are fetched when they are read."""

    inputs: Mapping[str, Any] = field(default_factory=dict)
    """Key -> bytes, or a list of one reference to them."""
    made: dict[str, bytes] = field(default_factory=dict)
    fetch: Callable[[Any], Any] = lambda sent: sent

    def read(self, key: str, digest: str) -> Artefact:
        """An input; CorruptArtefact where it did not arrive as it was sent."""
        try:
            sent = self.inputs[key]
            content = sent if isinstance(sent, bytes) else self.fetch(sent[0])
            if sha256(content).hexdigest() == digest:
                return decode(content)
        except Exception as error:
            raise CorruptArtefact(key) from error
        raise CorruptArtefact(key)

    def write(self, key: str, arrays: Mapping[str, npt.NDArray[Any]], facts: Mapping[str, Any]) -> Receipt:
        """Keep an artefact until it is sent."""
        self.made[key] = content = encode(arrays, facts)
        return Receipt(sha256(content).hexdigest(), len(content))

    def stamps(self, keys: Iterable[str]) -> dict[str, tuple[int, int, int]]:
        """None: no code of the user's finds what is only here."""
        return {}


_HIRED: dict[tuple[str, str], Worker] = {}
"""The worker of this process, by run and device; at most one, with the data that it has read."""


def serve(
    node: tuple[str, str],
    run: str,
    expected: Mapping[str, str],
    context: list[Any],
    assignment: bytes,
    digests: Mapping[str, str],
    inputs: Mapping[str, Any],
    data: Mapping[str, list[Any]],
) -> Iterator[Any]:
    """Do one assignment and say how it goes; what is in lists are references, fetched where they are needed."""
    if unlike := differences(environment(), expected):
        yield REFUSED, node, unlike
        return
    worker, is_new, why = _hired(run, context[0])
    if why:
        yield REFUSED, node, why
        return
    if is_new:
        yield Arrived(node)
    todo: Assignment = pickle.loads(assignment)  # noqa: S301 - Ray itself pickles all that it carries
    lacking = _lacking(worker, todo, data)
    if lacking:
        yield Lacks(lacking)
        return
    worker.warm_up(todo)
    yield Begun(node)
    received = worker.store if isinstance(worker.store, Received) else None
    if received is not None:
        received.inputs, received.made, received.fetch = inputs, {}, _get
    outcome = worker.perform(todo, digests)
    for key, receipt in outcome.receipts.items() if received is not None else ():
        yield Made(key, receipt.sha256, received.made.pop(key))  # type: ignore[union-attr]
    if received is not None:
        received.inputs, received.made = {}, {}
    yield Ended(without_errors(outcome), _full_disk(outcome))
    if outcome.device_lost:  # another process has to go on, and Ray keeps this one for as long as it lives
        time.sleep(LAST_WORD_S)
        os._exit(1)


def _get(reference: Any) -> Any:
    import ray

    return ray.get(reference, timeout=PATIENCE_S)


def _full_disk(outcome: Outcome) -> str:
    """The line of a failure which says that this machine's disk is full."""
    full = [one for one in outcome.failures.values() if isinstance(one.error, OSError) and one.error.errno in FULL]
    return full[0].line if full else ""


def _hired(run: str, context: Any) -> tuple[Worker, bool, str]:
    """(the worker of this process for a run, whether it is new, why this machine cannot work for the run)."""
    device = _device()
    if (run, device) in _HIRED:
        return _HIRED[run, device], False, ""
    given: Context = _get(context)
    sys.path.extend(place for place in given.path if place not in sys.path and os.path.isdir(place))
    with suppress(ValueError):  # not in the main thread: then it is nobody's to ignore
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the driver's to handle
    _HIRED.clear()
    where = device if given.device.startswith("cuda") else "cpu"
    worker = Worker(given.objects or Received(), given.sources, where, CodeCheck(given.sources.own_code))
    why = ""
    if given.objects is not None and not (given.objects / given.mark).exists():
        why = f"it does not see the run's {given.objects}, which --shared-store needs"
    else:
        _HIRED[run, device] = worker
    return worker, True, why


def _device() -> str:
    """`cpu`, or the GPU that Ray set aside for this assignment.

    A process serves many assignments, each perhaps with another GPU, but torch looks only once at which it may see,
    when it first uses one: it is shown all, and given the number of the right one.
    """
    import ray

    ids = ray.get_gpu_ids()
    if not ids:
        return "cpu"
    if not str(ids[0]).isdecimal():  # a part of a GPU with a name of its own: torch sees that alone
        return "cuda:0"
    if "torch" not in sys.modules or not sys.modules["torch"].cuda.is_initialized():
        os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    return f"cuda:{ids[0]}"


def _lacking(worker: Worker, assignment: Assignment, data: Mapping[str, list[Any]]) -> str:
    """The digest of a data set that is neither here nor was sent; empty where all are there."""
    for halves in _halves(assignment):
        try:
            with read_only():
                worker.data.dataset(halves)
        except Exception as error:
            if halves.data not in data:
                return halves.data
            dataset = _get(data[halves.data][0]).copied()  # which computes its digest anew
            if dataset.digest != halves.data:
                raise UserError("a data set did not arrive as it was sent") from error
            worker.data.hold(dataset)
    return ""


def _halves(assignment: Assignment) -> list[Halves]:
    """The halves of data sets that its jobs are about; nothing of those that need no data."""
    found: dict[str, Halves] = {}
    for job in assignment.jobs:
        halves = getattr(getattr(job, "unlearn", job), "halves", None)
        if isinstance(halves, Halves):
            found.setdefault(halves.data, halves)
    return list(found.values())


# -- what must be the same on every machine of a run -------------------------------------------------------------------


@functools.cache
def environment() -> dict[str, str]:
    """Of this process: versions without what says how a library was built (`+cpu`), Python's without its last part."""
    found = {name: version.partition("+")[0] for name, version in versions().items()}
    return {**found, "python": ".".join(found["python"].split(".")[:2]), SOURCE: source_digest()}


def source_digest() -> str:
    """SHA-256 over every file of the installed package that is code, with its name."""
    root, digest = Path(__file__).parents[2], hashlib.sha256()
    files = {path.relative_to(root).as_posix(): path for kind in ("*.py", "*.cu", "*.cuh") for path in root.rglob(kind)}
    for name in sorted(files):
        content = files[name].read_bytes()
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]


def differences(ours: Mapping[str, str], theirs: Mapping[str, str]) -> str:
    """`torch 2.12.0 instead of 2.13.0`, for all that differs; empty where nothing does."""
    names = [name for name in {**theirs, **ours} if ours.get(name) != theirs.get(name)]
    return ", ".join(f"{name} {ours.get(name, 'missing')} instead of {theirs.get(name, 'none')}" for name in names)
