"""How the models of a result were made: in which stacks, how long it took, what failed on the way."""

from __future__ import annotations

from dataclasses import dataclass, field

from forgetgauge.records import Record


@dataclass(frozen=True)
class StackResult(Record):
    """How models were made: which engine, how many together, where."""

    kind: str
    """`train` or `unlearn`."""
    engine: str
    """`solo` (one model after another), `stack`, or the name the learner gives its engine."""
    width: int
    """Models in one stack, as it ran: narrower than planned where memory was too small."""
    device: str
    """`cpu`, `cuda: NVIDIA H200`."""
    models: int
    """How many were made that way."""


@dataclass(frozen=True)
class FailureResult(Record):
    """A job that failed for good."""

    job: str
    """Which, in words."""
    error: str
    """Its error in one line; the traceback is in the run folder."""
    traceback: str
    """File name of the traceback, inside the run folder; empty where the folder is gone."""
    text: str = ""
    """The traceback itself, where there is no run folder to keep it in (`evaluate` without `out`)."""


@dataclass(frozen=True)
class MadeResult(Record):
    """How one game was made: what a result says of all its games, of this one. Jobs that games share are in each."""

    digests: dict[str, str]
    failures: list[FailureResult]
    stacks: list[StackResult]
    total_seconds: float
    environment: dict[str, str] = field(default_factory=dict)
    """Empty where it is that of the result."""
    taken_from: str = ""
    """Of a column that was played for another table of the paper: which, as its folder is called."""
