"""A job is a pure description of one piece of work; its key is a digest of everything that decides the outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

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

HEAVY: frozenset[Kind] = frozenset({"train", "unlearn"})
"""Kinds whose artefacts are weights: they may be dropped once nothing open needs them."""

USES_TORCH: frozenset[Kind] = frozenset({"initialise", "train", "unlearn", "signals", "try-model"})
"""Kinds that are done with torch, on a device."""


TRIALS: frozenset[Kind] = frozenset({"try-model", "try-adversary"})
"""Kinds that are done before a run; their outcome is whether the user's code works."""


@dataclass(frozen=True)
class Job:
    """One piece of work. Equal keys mean equal outcomes."""

    kind: Kind
    params: Mapping[str, Any]
    """All that decides the outcome apart from the inputs; plain JSON."""
    inputs: Mapping[str, str] = field(default_factory=dict)
    """Role -> key of the job that makes it."""
    label: str = ""
    """For people; not part of the key."""
    group: str = ""
    """Jobs of one group can be done together."""
    coupled: bool = False
    """Whether doing jobs together can change their bits (a stack): then the company a job keeps is fixed for good."""

    @cached_property
    def key(self) -> str:
        """SHA-256 over kind, code version, parameters and inputs."""
        version = CODE_VERSION[self.kind]
        return identity_key(
            {"kind": self.kind, "version": version, "params": dict(self.params), "inputs": dict(self.inputs)}
        )
