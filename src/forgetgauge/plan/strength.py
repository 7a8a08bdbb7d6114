"""A method's strength: the one parameter by which it forgets more and costs more; and how far its choice in a run is.

A method of one's own has a strength with one line, in its class or in the run file::

    strength = Strength("lr", weakest=1e-5, strongest=0.1)      # in the class
    strength = { lr = [1e-5, 0.1] }                             # in its table of the run file
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

Value = int | float
AT = "@"
"""Between the name of a method and a strength that it is played at."""
AUTO, PUBLISHED = "auto", "published"
"""What a run file may say of a strength: chosen in the run by what it costs, or as the method's authors set it."""
ROUNDS = 2
"""Values all over the range first, then between the best of them and the next stronger one. Once in a while a third, of
one value."""


@dataclass(frozen=True)
class Strength:
    """The parameter that decides how much a method forgets and what that costs.

    Whole ends mean a whole number. Values are tried at equal ratios: both ends are greater than 0.
    """

    parameter: str
    """Its name among the method's parameters."""
    weakest: Value
    """Where the method hardly changes a model."""
    strongest: Value
    """Where it ruins most models; below `weakest` for a parameter that is stronger the smaller it is."""

    def __post_init__(self) -> None:
        ends = (self.weakest, self.strongest)
        if not all(math.isfinite(end) and end > 0 for end in ends) or self.weakest == self.strongest:
            raise ValueError(f"the strength {self.parameter} needs two different ends above 0, not {list(ends)}")

    def values(self, n_points: int) -> tuple[Value, ...]:
        """So many from the weakest to the strongest at equal ratios; fewer where whole numbers fall together."""
        return between(self.weakest, self.strongest, n_points)

    def in_order(self, values: Sequence[Value]) -> tuple[Value, ...]:
        """Each once, the weakest first."""
        return tuple(sorted(set(values), reverse=self.weakest > self.strongest))


@dataclass(frozen=True)
class Published:
    """What the authors of a method set, and where they say so."""

    params: Mapping[str, Any]
    source: str


@dataclass(frozen=True)
class Variant:
    """Which method a point of the frontier is of, and at which strength."""

    method: str
    """Its name in the run."""
    parameter: str
    value: Value | None
    """None while it is looked for."""


@dataclass(frozen=True)
class Tuning:
    """Where a strength is looked for, which values are tried, and which was chosen."""

    strength: Strength
    points: int
    """Values of the first round."""
    tried: tuple[Value, ...] = ()
    """The weakest first."""
    round: int = 1
    chosen: Value | None = None
    """None while it is looked for."""

    @staticmethod
    def begin(strength: Strength, points: int) -> Tuning:
        """With the values of the first round."""
        return Tuning(strength, points, strength.values(points))

    def after(self, best: Value | None, *, is_cliff: bool = False) -> Tuning:
        """What comes next, where `best` is the strongest value up to which the price is kept; None where none is.

        A further round, between it and the next stronger value; or the choice: without any that holds, the weakest.
        `is_cliff`: at that next value a model diverged. Then the value before the best is chosen, a step of the second
        round below it, which is tried first where there is none.
        """
        at = -1 if best is None else self.tried.index(best)
        n_more = max(1, self.points // 2)
        if best is not None and self.round < ROUNDS and at + 1 < len(self.tried):
            more = between(best, self.tried[at + 1], n_more, ends=False)
            if more:
                return replace(self, tried=self.strength.in_order([*self.tried, *more]), round=ROUNDS)
        if best is not None and is_cliff and at > 0:
            before = self.tried[at - 1]
            is_wide = {before, best} <= set(self.strength.values(self.points))
            step = between(before, best, n_more, ends=False)[-1:] if is_wide and self.round <= ROUNDS else ()
            if step:
                return replace(self, tried=self.strength.in_order([*self.tried, *step]), round=ROUNDS + 1)
            at -= 1
        return replace(self, chosen=self.tried[max(at, 0)])


def between(first: Value, last: Value, n_values: int, *, ends: bool = True) -> tuple[Value, ...]:
    """So many values at equal ratios, the ends among them or not; three digits say enough, whole numbers stay whole."""
    if first == last:
        return (first,) if ends else ()
    n_steps = n_values - 1 if ends else n_values + 1
    inside = [first * (last / first) ** (step / n_steps) for step in range(1, n_steps)]
    rounded: list[Value] = [float(f"{value:.3g}") for value in inside]
    if isinstance(first, int) and isinstance(last, int):
        rounded = [round(value) for value in inside]
    low, high = sorted((first, last))
    within = [value for value in rounded if low < value < high]  # of ends close to each other, some are not
    apart = [a for a, b in pairwise([first, *within, last]) if a != b] + [last]
    return tuple(apart if ends else apart[1:-1])


def between_each(ranges: Sequence[tuple[Value, Value]], n_values: int) -> tuple[Value, ...]:
    """About so many values in several ranges of a strength, the ends of each among them: the wider, the more."""
    wide = [abs(math.log(last / first)) for first, last in ranges]
    counts = [1 if width == 0 else 2 for width in wide]
    while sum(counts) < n_values and any(wide):
        at = max(range(len(wide)), key=lambda i: wide[i] / max(1, counts[i] - 1))
        counts[at] += 1
    each = [between(first, last, n) for (first, last), n in zip(ranges, counts, strict=True)]
    return tuple(value for values in each for value in values)
