"""What every adversary promises: fitted without knowing which points are in F, one function for both sides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from forgetgauge.attack.signals import Floats, Signals
from forgetgauge.game.adversary import Access

Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Shadows:
    """Models of the same recipe on the shadow half, whose members are known: where attacks are fitted."""

    signals: Signals
    """All shadow models' signals on the whole shadow half, one model after another."""
    member: npt.NDArray[np.bool_]
    """(n,) whether the model of that row was trained on that point."""


@dataclass(frozen=True)
class TargetContext:
    """What fitting may know of the target half: nothing that tells F from T."""

    n_classes: int


class Attack(Protocol):
    """A fitted adversary: a fixed function of a model's signals."""

    def score(self, signals: Signals) -> Floats:
        """(n,) larger is more member-like."""
        ...

    def decide(self, signals: Signals) -> npt.NDArray[np.bool_]:
        """(n,) A(m, x) = 1: “x was in the forget set”."""
        ...

    def arrays(self) -> Arrays:
        """All it learned, to be stored."""
        ...


@runtime_checkable
class Adversary(Protocol):
    """A of the paper, before it has seen anything.

    A new one is a dataclass with these members, registered by name or named `module:Class`::

        @dataclass(frozen=True)
        class AlwaysForget:
            access = Access.BLACK_BOX
            def fit(self, shadows, target):
                return self.load({})
            def load(self, arrays):
                return MyAttack()
    """

    @property
    def access(self) -> Access:
        """What it must see of a model."""
        ...

    def fit(self, shadows: Shadows, target: TargetContext) -> Attack:
        """Learn from the shadow models."""
        ...

    def load(self, arrays: Arrays) -> Attack:
        """The attack again from what it stored."""
        ...
