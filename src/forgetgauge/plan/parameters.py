"""How a parameter of a run file is declared: once, with everything that checks it, hands it on and explains it.

The declarations are the fields of `plan.spec`. The checks of a run file, the arguments of `evaluate`, the values of a
`Game`, the lines of the report's settings and the table of docs/run-files.md are read from there.
"""

from __future__ import annotations

import copy
import dataclasses
import typing
from collections.abc import Iterator
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

from forgetgauge.errors import UserError

SAME: Any = object()
"""In place of a name or a default: the same as in the run file."""


@dataclass(frozen=True)
class Range:
    """The numbers that a parameter may be; `above` and `below` are not among them, `least` and `most` are."""

    least: float | None = None
    above: float | None = None
    most: float | None = None
    below: float | None = None

    def __contains__(self, value: float) -> bool:
        """Whether the value lies in the range; NaN lies in none that has an end."""
        return (
            (self.least is None or value >= self.least)
            and (self.above is None or value > self.above)
            and (self.most is None or value <= self.most)
            and (self.below is None or value < self.below)
        )

    def __str__(self) -> str:
        """`between 0 and 1`, `at least 0 and below 0.5`."""
        if self.above is not None and self.below is not None:
            return f"between {self.above:g} and {self.below:g}"
        ends = {"at least": self.least, "greater than": self.above, "at most": self.most, "below": self.below}
        return " and ".join(f"{words} {_spelled(end)}" for words, end in ends.items() if end is not None)


def _spelled(end: float) -> str:
    return f"{end:,}" if isinstance(end, int) and abs(end) >= 10_000 else f"{end:g}"


@dataclass(frozen=True)
class Parameter:
    """One key of a run file."""

    default: Any
    meaning: str
    """One sentence, as it stands in the documentation."""
    see: str = ""
    """Where the documentation leads from there, in Markdown."""
    within: Range | None = None
    """The numbers it may be, or each of which may be."""
    label: str = ""
    """Its name in the report's settings; the key's own words without one."""
    argument: str | None = SAME
    """The argument of `evaluate`; None where that takes it in another form, or not at all."""
    argument_default: Any = SAME
    in_game: str | None = SAME
    """The field of `Game`, which the report's settings show; None where it is not one of them."""
    written: str = ""
    """The default as the documentation writes it, where it is not one value in TOML."""
    key: str = ""
    """Its path in the run file, `game.alpha`: where it was declared."""

    def value_in(self, spec: Any) -> Any:
        """Its value; None where the table that it belongs to is left out."""
        for name in self.key.split("."):
            spec = None if spec is None else getattr(spec, name)
        return spec

    def number(self, value: object, key: str) -> Any:
        """What somebody gave in Python, as a plain number of the default's type; UserError where it is none."""
        kind, what = (Integral, "whole number") if isinstance(self.default, int) else (Real, "number")
        if isinstance(value, bool) or not isinstance(value, kind):
            raise UserError(f"{key} = {value!r} is not a {what}")
        if problem := self.refusal(value, key):
            raise UserError(problem)
        return type(self.default)(value)

    def refusal(self, value: Any, key: str | None = None) -> str | None:
        """What is wrong with a value of the right type, in words; None where nothing is."""
        if self.within is None or value is None:
            return None
        several = isinstance(value, list)
        for one in value if several else [value]:
            if one not in self.within:
                return f"{key or self.key} = {value}{f': {one}' if several else ''} is not {self.within}"
        return None


def declared(default: Any, meaning: str, **how: Any) -> Any:
    """A field of a table of the run file; `how` is what else a `Parameter` says. A class as the default is called."""
    about = {"parameter": Parameter(default, meaning, **how)}
    if isinstance(default, type):
        return dataclasses.field(default_factory=default, metadata=about)
    if isinstance(default, list | dict):
        return dataclasses.field(default_factory=lambda: copy.deepcopy(default), metadata=about)
    return dataclasses.field(default=default, metadata=about)


def parameters_of(table: type[Any], path: str = "") -> Iterator[Parameter]:
    """Every parameter that is declared in a table and in the tables inside it, in the order of the declarations."""
    hints = typing.get_type_hints(table)
    for field in dataclasses.fields(table):
        if "parameter" not in field.metadata:
            options = [hints[field.name], *typing.get_args(hints[field.name])]
            inside = next(option for option in options if dataclasses.is_dataclass(option))
            yield from parameters_of(typing.cast(type[Any], inside), f"{path}{field.name}.")
            continue
        found: Parameter = field.metadata["parameter"]
        yield replace(
            found,
            key=path + field.name,
            label=found.label or field.name.replace("_", " "),
            argument=field.name if found.argument is SAME else found.argument,
            argument_default=found.default if found.argument_default is SAME else found.argument_default,
            in_game=field.name if found.in_game is SAME else found.in_game,
        )
