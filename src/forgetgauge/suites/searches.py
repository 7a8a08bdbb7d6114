"""What was tried in loops of their own, before the tables: `tuning.json` and `without_dp.json`, each in its folder.

`benchmarks/tune.py` searched for strengths, before runs chose them. `benchmarks/without_dp.py` tried recipes for Table
3's column without privacy; the notes under it say what came of that, and its record here says what it took.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from forgetgauge.errors import UserError
from forgetgauge.files import read_json
from forgetgauge.records import validated
from forgetgauge.suites.device_time import Spent

FILE, RECIPES_FILE = "tuning.json", "without_dp.json"
SEARCHES = "searches for strengths, before a run did them"
RECIPES = "recipes without privacy, one training each"
"""What the page's table of times calls them."""

_LENIENT = {"extra": "ignore", "allow_inf_nan": False}  # a search knows more than is shown
RULE = (
    "The strongest value at which no model of the shadow half loses more than a point of accuracy on shadow points "
    "that it was not trained on. Neither F and T of the game nor Q were looked at."
)


@dataclass(frozen=True)
class Tried:
    """One value of a strength that was tried."""

    __pydantic_config__: ClassVar[Any] = _LENIENT
    value: float
    worst_loss: float
    """The largest loss of any model."""


@dataclass(frozen=True)
class Searched:
    """The search for one method's strength."""

    __pydantic_config__: ClassVar[Any] = _LENIENT
    strength: str
    """The name of the strength parameter, as the file calls it."""
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
    """The name of its folder, without `tuning-`."""
    before: list[float]
    """Accuracy of each model on its unseen points, before anything is unlearned."""
    methods: dict[str, Searched]
    seconds: float | None = None
    """What it took, the training of models that were made for it alone included; None where nobody wrote it down."""
    device: str = "unknown"


def read_search(path: Path) -> Search:
    """A validated search, or one line on what is wrong with the file."""
    record = read_json(path)
    if not isinstance(record, dict) or not isinstance(record.get("before"), list):
        raise UserError(f"{path}: no search: it has no list 'before'")
    before = validated(path, list[float], record.pop("before"))
    seconds, device = (record.pop(key, usual) for key, usual in (("seconds", None), ("device", "unknown")))
    methods = validated(path, dict[str, Searched], record)
    took = None if seconds is None else validated(path, float, seconds), validated(path, str, device)
    return Search(path.parent.name.removeprefix("tuning-"), before, methods, *took)


def search_rows(search: Search) -> list[list[str]]:
    """Head, and one row a method: each value with the largest loss in points, and what the rule chose."""
    rows = [["method", "strength", "value: largest loss in points", "chosen"]]
    for name, found in search.methods.items():
        also = "".join(f", {key} = {value}" for key, value in found.params.items())
        tried = ", ".join(f"{trial.value:g}: {_percentage_points(trial.worst_loss)}" for trial in found.trials)
        rows.append([name, found.strength + also, tried, "none" if found.chosen is None else f"{found.chosen:g}"])
    return rows


def _percentage_points(loss: float) -> str:
    return f"{100 * loss:+.2f}".replace("-", "−")


def spent_on_recipes(path: Path) -> Spent | None:
    """What they took; None where nobody wrote it down."""
    record = read_json(path)
    if not isinstance(record, dict):
        raise UserError(f"{path}: no record of recipes: it is no table")
    if "seconds" not in record:
        return None
    device, seconds = record.get("device", "unknown"), record["seconds"]
    return Spent(RECIPES, "", validated(path, str, device), validated(path, float, seconds))
