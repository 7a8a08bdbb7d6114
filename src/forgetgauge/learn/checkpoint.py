"""A training that takes long keeps its state now and then, so that one that was stopped goes on where it was.

Whoever does a job opens `keeping(checkpoints)` around it, and every descent in it asks `begin()` for a file of its own.
That goes by a context variable and not by an argument, because a learner or a method of the user's may stand between
the two. What a descent makes does not depend on whether, or how often, it was stopped: batches are drawn again up to
the step that was kept, and everything else that a step changes is in the file.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from forgetgauge.errors import UserError
from forgetgauge.files import written_whole

EVERY_S = 60.0
"""Seconds between two writes: a stack of 16 ResNet-110s is 220 MB with its velocities. Writes of more than 3 seconds
come less often, so that they take a twentieth of the time."""
_QUICK_S = EVERY_S / 20
_FACTS = "facts"


@dataclass(frozen=True)
class State:
    """What a step of a descent changes."""

    tensors: Mapping[str, Tensor]
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What is no tensor, as JSON."""

    @torch.no_grad()
    def take(self, other: State) -> None:
        """Copy another's numbers into these tensors."""
        for name, tensor in self.tensors.items():
            tensor.copy_(other.tensors[name])


@dataclass
class Checkpoints:
    """Where the descents of one piece of work keep their states: a file for each, in the order in which they begin."""

    folder: Path
    work: str
    """A digest of all that decides what is computed: another piece of work never finds these files."""
    n_begun: int = 0
    earlier_s: float = 0.0
    """Seconds that were spent on it before it was stopped, as far as it goes on from there."""
    _begun_at: float = field(default_factory=lambda: time.monotonic())

    def next_path(self) -> Path:
        """For the next descent that begins."""
        self.n_begun += 1
        return self.folder / f"{self.work}-{self.n_begun}.safetensors"

    @property
    def spent_s(self) -> float:
        """Seconds spent on it so far."""
        return self.earlier_s + time.monotonic() - self._begun_at

    def drop(self) -> None:
        """The work is done, and what it made is kept."""
        for path in self.folder.glob(f"{self.work}-*"):
            path.unlink(missing_ok=True)
        with suppress(OSError):  # others' files are there, or it never was
            self.folder.rmdir()


_CURRENT: ContextVar[Checkpoints | None] = ContextVar("checkpoints", default=None)


@contextmanager
def keeping(checkpoints: Checkpoints | None) -> Iterator[None]:
    """Within, descents keep their states here; with None they keep none."""
    token = _CURRENT.set(checkpoints)
    try:
        yield
    finally:
        _CURRENT.reset(token)


class Checkpoint:
    """The file of one descent; without a place for it nothing is kept."""

    def __init__(self, place: Checkpoints | None) -> None:
        self._place, self._written, self._took = place, time.monotonic(), 0.0
        self.path = None if place is None else place.next_path()

    def read(self, like: Mapping[str, Tensor]) -> tuple[int, State] | None:
        """(steps that were done, the state after them), which has tensors like these.

        None where there is none, or one that a crash or a disk damaged: then the descent begins anew.
        """
        if self._place is None or self.path is None:
            return None
        try:
            content = self.path.read_bytes()
            digest, body = content[:32], content[32:]
            if hashlib.sha256(body).digest() != digest:
                return None
            tensors = load(body)
            facts = json.loads(bytes(tensors.pop(_FACTS).numpy()))
        except (OSError, SafetensorError, ValueError, KeyError):
            return None
        if any(name not in tensors or tensors[name].shape != tensor.shape for name, tensor in like.items()):
            return None
        self._place.earlier_s = max(self._place.earlier_s, facts["spent_s"])
        return facts["n_done"], State(tensors, facts["state"])

    def keep(self, n_done: int, state: Callable[[], State]) -> None:
        """Write the state after so many steps, if the last write was long ago.

        A disk, or a memory, that refuses it costs nothing but the checkpoint: what a job makes has to be written in the
        end, and that says what is wrong.
        """
        pause, began = EVERY_S * max(1.0, self._took / _QUICK_S), time.monotonic()
        if self._place is None or self.path is None or began - self._written < pause:
            return
        now = state()
        facts = json.dumps({"n_done": n_done, "spent_s": self._place.spent_s, "state": now.facts}).encode()
        with suppress(OSError, UserError, MemoryError):
            tensors = {name: tensor.detach().to("cpu", copy=True).contiguous() for name, tensor in now.tensors.items()}
            body = save({**tensors, _FACTS: torch.frombuffer(bytearray(facts), dtype=torch.uint8)})
            del tensors  # a copy of the state less while it is written
            self.path.parent.mkdir(exist_ok=True)
            with written_whole(self.path) as file:
                file.write(hashlib.sha256(body).digest())
                file.write(body)
        self._written = time.monotonic()
        self._took = self._written - began


def begin() -> Checkpoint:
    """The file of the descent that begins now."""
    return Checkpoint(_CURRENT.get())


# -- a descent by an optimiser of torch's ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Moved:
    """What the steps of a descent move besides the optimiser."""

    tensors: Mapping[str, Tensor]
    """Parameters and buffers, by name, changed in place."""
    generators: Sequence[np.random.Generator] = ()
    """What a step draws from; batches are drawn outside of it."""
    sources: Sequence[torch.Generator] = ()
    """The same, of torch's."""
    draws_globally: bool = False
    """Whether a step may draw from torch's global generators too, as dropout does."""


class Resumed:
    """A descent that was put where its checkpoint has it, `n_done` steps from the beginning, and that keeps others."""

    def __init__(self, moved: Moved, optimiser: torch.optim.Optimizer) -> None:
        self._moved, self._optimiser, self._checkpoint = moved, optimiser, begin()
        self.n_done = 0
        if (kept := self._checkpoint.read(moved.tensors)) is not None:
            self.n_done = kept[0]
            self._put(kept[1])

    def keep(self, n_done: int) -> None:
        """After so many steps, if the last checkpoint was long ago."""
        self._checkpoint.keep(n_done, self._state)

    def _state(self) -> State:
        drawn = {f"source {k}": source.get_state() for k, source in enumerate(self._moved.sources)}
        if self._moved.draws_globally:
            drawn["random cpu"] = torch.get_rng_state()
        if self._moved.draws_globally and torch.cuda.is_available():
            drawn["random cuda"] = torch.cuda.get_rng_state()
        remembered = {
            f"optimiser {number} {name}": value
            for number, own in self._optimiser.state_dict()["state"].items()
            for name, value in own.items()
            if value is not None
        }
        generators = [generator.bit_generator.state for generator in self._moved.generators]
        return State({**self._moved.tensors, **remembered, **drawn}, {"generators": generators})

    def _put(self, state: State) -> None:
        State(self._moved.tensors).take(state)
        for k, source in enumerate(self._moved.sources):
            source.set_state(state.tensors[f"source {k}"])
        if "random cpu" in state.tensors:
            torch.set_rng_state(state.tensors["random cpu"])
        if "random cuda" in state.tensors:
            torch.cuda.set_rng_state(state.tensors["random cuda"])
        for generator, drawn in zip(self._moved.generators, state.facts["generators"], strict=True):
            generator.bit_generator.state = drawn
        remembered: dict[int, dict[str, Tensor]] = {}
        for name, tensor in state.tensors.items():
            if name.startswith("optimiser "):
                _, number, what = name.split(" ", 2)
                remembered.setdefault(int(number), {})[what] = tensor
        self._optimiser.load_state_dict({**self._optimiser.state_dict(), "state": remembered})
