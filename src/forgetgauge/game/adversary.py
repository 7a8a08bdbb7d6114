"""What an adversary is: something that sees a model and points from the oracle, and says how surely it accepts.

A(m) = 1 means "these points were forgotten" throughout. Adversaries answer with the probability of saying so, not
with a coin, so that their advantage can be computed without sampling noise.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

from forgetgauge.game.oracle import Oracle

ModelT = TypeVar("ModelT", contravariant=True)


class Access(StrEnum):
    """What an adversary may touch of the model: only its answers, or its weights too."""

    BLACK_BOX = "black-box"
    WHITE_BOX = "white-box"


class WeakAdversary(Protocol[ModelT]):
    """One query: a rule on (model, point).

    Example::

        class Confident:
            access = Access.BLACK_BOX

            def accepts(self, model, point):
                return 1.0 if model.confidence(point) >= 0.9 else 0.0
    """

    @property
    def access(self) -> Access:
        """What it needs of the model."""
        ...

    def accepts(self, model: ModelT, point: int) -> float:
        """The probability that it says "forgotten" of this point."""
        ...


class StrongAdversary(Protocol[ModelT]):
    """Up to ``n_queries`` queries, all answered under one secret bit."""

    @property
    def access(self) -> Access:
        """What it needs of the model."""
        ...

    @property
    def n_queries(self) -> int:
        """The most points it will draw in one play."""
        ...

    def accepts(self, model: ModelT, oracle: Oracle) -> float:
        """The probability that it says "forgotten", after the points it drew."""
        ...


@dataclass(frozen=True)
class OneQuery(Generic[ModelT]):
    """A weak adversary as a strong one that asks once."""

    weak: WeakAdversary[ModelT]

    @property
    def access(self) -> Access:
        """That of the weak adversary."""
        return self.weak.access

    @property
    def n_queries(self) -> int:
        """Always 1."""
        return 1

    def accepts(self, model: ModelT, oracle: Oracle) -> float:
        """The weak adversary's answer on the one point drawn."""
        return self.weak.accepts(model, oracle.draw())
