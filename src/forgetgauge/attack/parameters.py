"""What a run file may set of an adversary: `[adversaries.NAME]` with keys that the adversary declares.

Of an adversary that is a dataclass object, these are the fields that are `declared`, each with its default, its range
and a sentence; of a score function, its own arguments. One that is a class is made with what the table holds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from forgetgauge.attack.score_function import ScoreFunction
from forgetgauge.errors import UserError, unknown_name
from forgetgauge.plan.parameters import Parameter


def parameters_of(adversary: Any) -> dict[str, Parameter]:
    """Name -> what is declared of it, its default being what this very adversary has."""
    if isinstance(adversary, ScoreFunction):
        return {name: Parameter(default, "") for name, default in adversary.settings.items()}
    if isinstance(adversary, type) or not dataclasses.is_dataclass(adversary):
        return {}
    return {
        field.name: dataclasses.replace(field.metadata["parameter"], default=getattr(adversary, field.name))
        for field in dataclasses.fields(adversary)
        if "parameter" in field.metadata
    }


def completed(what: str, adversary: Any, given: Mapping[str, Any], others: tuple[str, ...]) -> dict[str, Any]:
    """All parameters of an adversary with what a table gives them; UserError where that does not fit.

    `others` are keys that every table of an adversary may have.
    """
    known = parameters_of(adversary)
    for key, value in given.items():
        if key not in known:
            raise UserError(f"{what}: " + unknown_name("key", key, [*known, *others]))
        wanted = _wanted(value, known[key].default)
        if wanted:
            raise UserError(f"{what}.{key} = {value!r} is not {wanted}")
        if refused := known[key].refusal(value, f"{what}.{key}"):
            raise UserError(refused)
    made = {name: _plain(given.get(name, one.default)) for name, one in known.items()}
    try:
        adjusted(adversary, made)
    except ValueError as error:
        raise UserError(f"{what}: {error}") from None
    return made


def adjusted(adversary: Any, params: Mapping[str, Any]) -> Any:
    """The adversary with these parameters; itself without any."""
    if not params:
        return adversary
    if isinstance(adversary, ScoreFunction):
        return dataclasses.replace(adversary, settings={**adversary.settings, **params})
    return dataclasses.replace(adversary, **params)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _wanted(value: Any, default: Any) -> str:
    """What a value should be, by the default; empty where it is that."""
    if isinstance(default, bool):
        return "" if isinstance(value, bool) else "true or false"
    if isinstance(default, int):
        return "" if isinstance(value, int) and not isinstance(value, bool) else "a whole number"
    if isinstance(default, float):
        return "" if isinstance(value, int | float) and not isinstance(value, bool) else "a number"
    if isinstance(default, str):
        return "" if isinstance(value, str) else "a string"
    if isinstance(default, tuple | list):
        fits = isinstance(value, list) and not any(_wanted(one, first) for one in value for first in default[:1])
        return "" if fits else f"a list like {_plain(default)}"
    return ""
