"""What the artefact of each kind of job holds. A right digest says that the bytes are those that the ledger names, not
that a job made them: what came with somebody else's run is looked at before it is computed with, and what a job has
made with code of the user's before it is written."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from forgetgauge.errors import WrongOutput
from forgetgauge.store.objects import Artefact

_FLOATS, _WHOLE, _BOOLEAN = "f", "iu", "b"
_STORED = "biufc"
"""Kinds of number that a file of arrays can hold."""
_ARRAYS: Mapping[str, Mapping[str, str]] = {
    "initialise": {"weight": _FLOATS, "target": _WHOLE, "labels": _WHOLE + _FLOATS},
    "signals": {"outputs": _FLOATS, "labels": _WHOLE + _FLOATS},
    "decide": {"says_forget": _BOOLEAN, "margin": _FLOATS},
}
"""By kind of job: the arrays that it always makes, one row a point, and their kinds of number."""
_FINITE = ("weight", "margin", "shadow margin")
_OPTIONAL = {"points": _WHOLE, "role": _WHOLE, "group": _WHOLE, "hardest": _BOOLEAN}
_SHADOWS = {"shadow margin": _FLOATS, "shadow member": _BOOLEAN, "shadow model": _WHOLE}
"""What a fit holds of its shadow models: all of these or none."""


@dataclass(frozen=True)
class Expected:
    """What is known of an artefact before it is read."""

    kind: str
    """The kind of the job that makes it."""
    n_rows: int | None = None
    """Points that it is about."""
    is_judged: bool = False
    """Whether it says how good its model is, on the sets of points that can show it, and what the model cost."""


def is_content(expected: Expected, artefact: Artefact) -> bool:
    """Whether such a job can have made it."""
    return next(_faults(expected, artefact), None) is None


def refuse_wrong_output(kind: str, made: Artefact) -> None:
    """WrongOutput, which names the array or fact, where code of the user's made a job of this kind make what nobody
    could read again."""
    fault = next(_faults(Expected(kind), made), None)
    if fault is not None:
        raise WrongOutput(fault)


def _faults(expected: Expected, artefact: Artefact) -> Iterator[str]:
    """What is wrong with it, each in a clause; what comes later takes for granted that nothing came before."""
    arrays, kind, n_rows = artefact.arrays, expected.kind, expected.n_rows
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):
            yield f"the array {name!r} is a {type(array).__name__}"
        elif array.dtype.kind not in _STORED:
            yield f"the array {name!r} is of type {array.dtype}"
    if kind == "fit":
        named: Mapping[str, str] = _SHADOWS if any(name in arrays for name in _SHADOWS) else {}
    else:
        named = _ARRAYS.get(kind, {})
        named = {**named, **{name: of for name, of in _OPTIONAL.items() if named and name in arrays}}
    for name, numbers in named.items():
        yield from _faults_of_column(name, arrays, numbers)
    lengths = {len(arrays[name]) for name in named}
    if len(lengths) > 1 or (n_rows is not None and lengths not in ({n_rows}, set())):
        yield f"its arrays have {' and '.join(map(str, sorted(lengths)))} rows" + (f", not {n_rows}" if n_rows else "")
    if kind == "initialise" and not (arrays["weight"] >= 0).all():
        yield "the array 'weight' holds negative values"
    yield from _faults_of_facts(artefact.facts)
    if kind == "initialise":
        yield from _faults_of_named(artefact)
    missing = {"utility", "n_gradients"} - artefact.facts.keys() if expected.is_judged else set()
    yield from (f"it does not say its {name}" for name in sorted(missing))


def _faults_of_column(name: str, arrays: Mapping[str, npt.NDArray[Any]], numbers: str) -> Iterator[str]:
    """(rows, …) of this kind of number, at least one of them, and none that is no number."""
    if name not in arrays:
        yield f"the array {name!r} is missing"
        return
    array = arrays[name]
    if array.dtype.kind not in numbers:
        yield f"the array {name!r} is of type {array.dtype}"
    elif array.ndim == 0 or (array.ndim != 1 and name != "outputs"):
        yield f"the array {name!r} is of shape {array.shape}"
    elif not array.size:
        yield f"the array {name!r} is empty"
    elif array.dtype.kind == "f" and np.isnan(array).any():
        yield f"the array {name!r} holds NaN"
    elif name in _FINITE and not np.isfinite(array).all():
        yield f"the array {name!r} holds infinite values"


def _faults_of_named(artefact: Artefact) -> Iterator[str]:
    """Columns that the data brings: of each the names of its values, and of each point the place of its own."""
    named = artefact.facts.get("columns", {})
    if not isinstance(named, dict) or not all(isinstance(names, list) for names in named.values()):
        yield f"columns is {_short(named)}, not a table of names"
        return
    for column, names in named.items():
        codes = artefact.arrays.get(f"column {column}")
        if not all(isinstance(name, str) for name in names):
            yield f"the values of the column {column!r} are not texts"
        elif codes is None or codes.dtype != np.uint8 or codes.shape != artefact.arrays["labels"].shape:
            yield f"the column {column!r} is not a byte for each point"
        elif int(codes.max()) >= len(names):
            yield f"the column {column!r} holds a value that it does not name"


def _faults_of_facts(facts: Mapping[str, Any]) -> Iterator[str]:
    for table, called in (("utility", "the utility on"), ("stated", "the fact")):
        stated = facts.get(table, {})
        if not isinstance(stated, dict):
            yield f"{table} is {_short(stated)}, not a table of numbers"
        else:
            for name, value in stated.items():
                if not _is_number(value):
                    yield f"{called} {name!r} is {_short(value)}, not a finite number"
    if not _is_number(cost := facts.get("n_gradients", 0)):
        yield f"n_gradients is {_short(cost)}, not a finite number"
    for name in ("ran", "original_ran"):
        if facts.get(name) and not _is_way(facts[name]):
            yield f"{name} is {_short(facts[name])}, which is no engine, width and device"
    doubts = facts.get("doubts", [])
    if not isinstance(doubts, list) or not all(isinstance(doubt, str) for doubt in doubts):
        yield f"doubts is {_short(doubts)}, not a list of texts"


def _short(value: Any) -> str:
    """It may be anything: a whole tensor, say."""
    return reprlib.repr(value).partition("\n")[0]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and abs(value) < 1e300 and math.isfinite(value)


def _is_way(way: Any) -> bool:
    """How a model was made: engine, width of the stack, device."""
    if not isinstance(way, dict):
        return False
    texts = [way.get(name) for name in ("engine", "device")]
    return all(isinstance(text, str) for text in texts) and isinstance(way.get("width"), int)
