"""What the artefact of each kind of job holds. A right digest says that the bytes are those that the ledger names, not
that a job made them: what came with somebody else's run is looked at before it is computed with."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from forgetgauge.store.objects import Artefact

_FLOATS, _WHOLE, _BOOLEAN = "f", "iu", "b"
_ARRAYS: Mapping[str, Mapping[str, str]] = {
    "initialise": {"weight": _FLOATS, "target": _WHOLE, "labels": _WHOLE + _FLOATS},
    "signals": {"outputs": _FLOATS, "labels": _WHOLE + _FLOATS},
    "decide": {"says_forget": _BOOLEAN, "margin": _FLOATS},
}
"""By kind of job: the arrays that it always makes, one row a point, and their kinds of number."""
_FINITE = ("weight", "margin", "shadow margin")
_OPTIONAL = {"points": _WHOLE, "role": _WHOLE}
_SHADOWS = {"shadow margin": _FLOATS, "shadow member": _BOOLEAN, "shadow model": _WHOLE}
"""What a fit holds of its shadow models: all of these or none."""


@dataclass(frozen=True)
class Expected:
    """What is known of an artefact before it is read."""

    kind: str
    """Of its job."""
    n_rows: int | None = None
    """Points that it is about."""
    is_judged: bool = False
    """Whether it says how good its model is, on the sets of points that can show it, and what the model cost."""


def is_content(expected: Expected, artefact: Artefact) -> bool:
    """Whether such a job can have made it."""
    arrays, facts, kind, n_rows = artefact.arrays, artefact.facts, expected.kind, expected.n_rows
    if kind == "fit":
        named: Mapping[str, str] = _SHADOWS if any(name in arrays for name in _SHADOWS) else {}
    else:
        named = _ARRAYS.get(kind, {})
        named = {**named, **{name: of for name, of in _OPTIONAL.items() if named and name in arrays}}
    if not all(name in arrays and _is_column(arrays[name], numbers) for name, numbers in named.items()):
        return False
    lengths = {len(arrays[name]) for name in named}
    if len(lengths) > 1 or (n_rows is not None and lengths not in ({n_rows}, set())):
        return False
    if any(arrays[name].ndim != 1 for name in named if name != "outputs"):
        return False
    if kind == "initialise" and not (arrays["weight"] >= 0).all():
        return False
    if not all(np.isfinite(arrays[name]).all() for name in _FINITE if name in named):
        return False
    return _are_facts(facts) and (not expected.is_judged or {"utility", "n_gradients"} <= facts.keys())


def _is_column(array: npt.NDArray[Any], numbers: str) -> bool:
    """(rows, …) of this kind of number, at least one of them, and none that is no number."""
    if array.dtype.kind not in numbers or array.ndim == 0 or not array.size:
        return False
    return array.dtype.kind != "f" or not bool(np.isnan(array).any())


def _are_facts(facts: Mapping[str, Any]) -> bool:
    tables = [facts[name] for name in ("utility", "stated") if name in facts]
    ways = [facts[name] for name in ("ran", "original_ran") if facts.get(name)]
    return (
        all(isinstance(table, dict) and all(map(_is_number, table.values())) for table in tables)
        and _is_number(facts.get("n_gradients", 0))
        and all(_is_way(way) for way in ways)
        and isinstance(doubts := facts.get("doubts", []), list)
        and all(isinstance(doubt, str) for doubt in doubts)
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and abs(value) < 1e300 and math.isfinite(value)


def _is_way(way: Any) -> bool:
    """How a model was made: engine, width of the stack, device."""
    if not isinstance(way, dict):
        return False
    texts = [way.get(name) for name in ("engine", "device")]
    return all(isinstance(text, str) for text in texts) and isinstance(way.get("width"), int)
