"""The numbers the paper printed, typed; the data are `paper_tables.json`, which names its source."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal

IDS = {
    "None": "none",
    "NegGrad": "neg-grad",
    "Retrfinal": "retrain-final",
    "Ftfinal": "ft-final",
    "Fisher": "fisher",
    "SalUn": "salun",
    "SSD": "ssd",
    "Retrain": "retrain",
    "Accuracy": "accuracy",
    "Advantage": "advantage",
}
"""The paper's name of a row -> ours."""

PRINTED = {
    **{ours: theirs for theirs, ours in IDS.items()},
    "retrain-final": "Retr-final",
    "ft-final": "Ft-final",
    "fisher-published": "Fisher, published",
    "salun-published": "SalUn, published",
    "ssd-published": "SSD, published",
}
"""Our name of a row -> the paper's, as it is printed; rows of our own last."""


def in_column(variable: str, label: str) -> str:
    """`η = 0.4`, `ε = ∞`; `Retrain` where a column is no value of the variable."""
    return label if label in PRINTED.values() else f"{variable} = {label.replace('inf', '∞')}"


def table_name(name: str) -> str:
    """A suite as the paper prints it: `Table 4a` of `table4a`; `Beside Table 8` of `table8-visible`, ours; `Table 1, 3
    trainings of each split` of the folder `table1-replicates-3`; `Table 3, published settings alone` of the folder
    `table3-published`."""
    plain = name.removesuffix("-published")
    base, _, trainings = plain.partition("-replicates-")
    printed = base.replace("table", "Table ")
    printed = printed if base in KEYS else f"Beside {printed.partition('-')[0]}"
    printed = f"{printed}, {trainings} trainings of each split" if trainings else printed
    return printed if plain == name else f"{printed}, published settings alone"


KEYS = {
    "table1": "table1_dataset_size",
    "table2": "table2_alpha",
    "table3": "table3_dp_quality",
    "table4a": "table4a_dp_ic_score",
    "table4b": "table4b_dp_mia_score",
    "table5a": "table5a_dp_accuracy_ic_runs",
    "table5b": "table5b_dp_accuracy_quality_mia_runs",
    "table6": "table6_architecture",
    "table7": "table7_dataset",
    "table8": "table8_linear_certified",
}


@dataclass(frozen=True)
class Value:
    """One number of the paper."""

    mean: float
    spread: float | None = None
    """Half the width of its ±: a standard deviation, or the bound on the standard error that a marker stands for."""


Spread = Literal["standard deviation", "standard error"]


@dataclass(frozen=True)
class PaperTable:
    """One table of the paper, its rows under our names and in its order."""

    columns: tuple[str, ...]
    rows: Mapping[str, Mapping[str, Value]]
    """Row -> column -> value."""
    spread: Spread | None = None
    """What its ± is; the paper does not say over what it is taken."""


SPREADS: dict[str, Spread] = {"std": "standard deviation", "sem_upper_bound": "standard error"}


def paper_table(name: str) -> PaperTable:
    """A table by its suite's name: `table1`, `table4b`."""
    if name not in KEYS:
        return PaperTable((), {})
    record = _record()[KEYS[name]]
    rows = {IDS[row]: {column: _value(cell) for column, cell in cells.items()} for row, cells in record["rows"].items()}
    keys = {key for cells in record["rows"].values() for cell in cells.values() for key in cell}
    return PaperTable(tuple(record["columns"]), rows, next((SPREADS[key] for key in SPREADS if key in keys), None))


def paper_source() -> str:
    """Where the numbers are from."""
    meta = _record()["_meta"]
    return f"{meta['paper']}, {meta['url']}"


def text_values() -> dict[str, Any]:
    """Numbers from the paper's text: the toy example, accuracies, days of computing."""
    values: dict[str, Any] = _record()["text_values"]
    return values


def _value(cell: Mapping[str, Any]) -> Value:
    return Value(cell["mean"], next((cell[key] for key in SPREADS if key in cell), None))


@cache
def _record() -> dict[str, Any]:
    record: dict[str, Any] = json.loads(resources.files(__package__).joinpath("paper_tables.json").read_text("utf-8"))
    return record
