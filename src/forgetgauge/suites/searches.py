"""How knobs were searched for: `tuning.json`, as `benchmarks/tune.py` writes it, one folder `tuning-*` a search."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from forgetgauge.errors import UserError
from forgetgauge.suites.reading import read_json

FILE = "tuning.json"
RULE = (
    "The strongest value at which no model of the shadow half loses more than a point of accuracy on shadow points "
    "that it was not trained on. Neither F and T of the game nor Q were looked at."
)


@dataclass(frozen=True)
class Tried:
    """One value."""

    __pydantic_config__: ClassVar[Any] = {"extra": "ignore", "allow_inf_nan": False}
    value: float
    mean_loss: float
    """Accuracy lost, averaged over the models."""
    worst_loss: float
    """The largest loss of any model."""


@dataclass(frozen=True)
class Searched:
    """One method's knob."""

    __pydantic_config__: ClassVar[Any] = {"extra": "ignore", "allow_inf_nan": False}
    knob: str
    params: dict[str, Any]
    """What else the method was given."""
    chosen: float | None
    """None: every value cost more than a point."""
    trials: list[Tried]
    """Weakest first."""


@dataclass(frozen=True)
class Search:
    """All methods, on the same shadow models."""

    name: str
    """Of its folder, less `tuning-`."""
    before: list[float]
    """Accuracy of each model on its unseen points, before anything is unlearned."""
    methods: dict[str, Searched]


def read_search(path: Path) -> Search:
    """A validated search, or one line on what is wrong with the file."""
    import pydantic

    record = read_json(path)
    if not isinstance(record, dict) or not isinstance(record.get("before"), list):
        raise UserError(f"{path}: no search: it has no list 'before'")
    told = {name: found for name, found in record.items() if name != "before"}
    try:
        methods = pydantic.TypeAdapter(dict[str, Searched]).validate_python(told)
        before = pydantic.TypeAdapter(list[float]).validate_python(record["before"])
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        raise UserError(f"{path}: {'.'.join(str(part) for part in first['loc'])}: {first['msg']}") from None
    return Search(path.parent.name.removeprefix("tuning-"), before, methods)


def search_rows(search: Search) -> list[list[str]]:
    """Head, and one row a method: each value with the largest loss in points, and what the rule chose."""
    rows = [["method", "knob", "value: largest loss in points", "chosen"]]
    for name, found in search.methods.items():
        also = "".join(f", {key} = {value}" for key, value in found.params.items())
        tried = ", ".join(f"{trial.value:g}: {_points(trial.worst_loss)}" for trial in found.trials)
        rows.append([name, found.knob + also, tried, "none" if found.chosen is None else f"{found.chosen:g}"])
    return rows


def _points(loss: float) -> str:
    return f"{100 * loss:+.2f}".replace("-", "−")
