"""A column `person`: several records are of one person, who is the unit that asks to be forgotten.

Records of one person are trained on, forgotten and remembered together, so they are no independent evidence. Where F
was drawn by persons the draw says whose each record is, and the column is held to it. Elsewhere each person becomes one
point, whose score or loss is the mean of the records', as the adversary sees them who is shown all of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NoReturn

import numpy as np

from forgetgauge.auditing.draw import Draw
from forgetgauge.auditing.outputs import OWN_SCORES, Array, Raw
from forgetgauge.errors import UserError
from forgetgauge.game.arrays import Ints, group_means
from forgetgauge.wording import counted

_ROWS = {
    "": ("method", "pair", "side", "seed", "set", "weight"),
    "shadow_": ("shadow_method", "shadow_model", "shadow_member"),
    "reference_": ("reference_model", "reference_member"),
}
"""Beginning of a block's columns -> those that must be the same for all records of a person under one model."""
_MODEL = {"": ("method", "pair", "side", "seed"), "shadow_": _ROWS["shadow_"][:2], "reference_": ("reference_model",)}
"""The beginning of a block's columns -> the columns that tell its models apart."""


def as_drawn(raw: Raw, draw: Draw, source: str) -> Raw:
    """The columns without `person`, which must say what the draw says."""
    if "person" not in raw:
        return raw
    if draw.unit_of is None or draw.kind != "groups":
        raise UserError(
            f"{source}: it has the column person, but the draw is of {draw.kind}: records of one person may be in F "
            "and in T; draw whole persons (forgetgauge draw --by person), or leave the column out"
        )
    persons: dict[str, str] = {}
    for point, person in zip(raw["point"].astype(str).tolist(), raw["person"].astype(str).tolist(), strict=True):
        unit = draw.unit_of.get(point)
        if unit is not None and persons.setdefault(person, unit) != unit:
            raise UserError(f"{source}: person {person} has records of more than one {draw.by} of the draw")
    if len(set(persons.values())) < len(persons):
        raise UserError(f"{source}: the column person tells records apart that are of one {draw.by} of the draw")
    return {name: column for name, column in raw.items() if name != "person"}


def by_person(raw: Raw, source: str) -> tuple[Raw, list[str]]:
    """The columns with a row for each person in the place of their records, and what a reader must know of it."""
    if "person" not in raw or not len(raw["person"]):
        return {name: column for name, column in raw.items() if name != "person"}, []
    for name in ("logits", "decision", "label"):
        if name in raw:
            _refuse(
                source,
                f"with the column person each person is judged by the mean of a loss or a score: leave {name} out",
            )
    _check_columns(raw, source)
    person_of = dict(zip(raw["point"].astype(str).tolist(), raw["person"].astype(str).tolist(), strict=True))
    persons = {"": raw["person"].astype(str)}
    if "shadow_member" in raw:
        if "shadow_person" not in raw:
            _refuse(source, "shadow_person is missing: thresholds for persons are fitted on persons of shadow models")
        persons["shadow_"] = raw["shadow_person"].astype(str)
    if "reference_point" in raw:
        shown = raw["reference_point"].astype(str).tolist()
        unknown = next((point for point in shown if point not in person_of), None)
        if unknown is not None:
            _refuse(source, f"reference_point has '{unknown}', which is no point under audit")
        persons["reference_"] = np.array([person_of[point] for point in shown])
    found: dict[str, Array] = {name: raw[name] for name in ("share_retrain",) if name in raw}
    n_records = Counter(person_of.values())
    for block, of_block in persons.items():
        found |= _merged(raw, block, of_block, n_records, source)
    n_persons = len(set(persons[""].tolist()))
    note = (
        f"Each of the {counted(n_persons, 'point')} is a person, judged by the mean of what the model says of their "
        f"records ({len(person_of)} in all)."
    )
    return found, [note]


def _merged(raw: Raw, block: str, person: Array, n_records: Mapping[str, int], source: str) -> dict[str, Array]:
    """The rows of a block, one for each model and person, in the order in which they are first met."""
    models = [raw[name] for name in _MODEL[block] if name in raw]
    row, first = _numbered([*models, person])
    point = "point" if block == "" else "reference_point"
    if block != "shadow_":
        _check_records(source, [*models, raw[point].astype(str)])
        for one, n_shown in zip(person[first].tolist(), np.bincount(row).tolist(), strict=True):
            if n_shown != n_records[one]:
                of_all = f"{n_shown} of {counted(n_records[one], 'record')}"
                _refuse(source, f"a model shows {of_all} of person {one}; every model must show all of them")
    found: dict[str, Array] = {}
    for name in _ROWS[block]:
        if name not in raw:
            continue
        differs = np.flatnonzero(raw[name][first][row] != raw[name])
        if len(differs):
            _refuse(source, f"person {person[differs[0]]} has records with different values of {name}")
        found[name] = raw[name][first]
    for name in (*(f"{block}{own}" for own in OWN_SCORES), *(("features",) if block == "" else ())):
        if name in raw:
            found[name] = _means(raw[name], row, source, name)
    if block != "shadow_":
        found[point] = person[first]
    return found


def _numbered(columns: Sequence[Array]) -> tuple[Ints, Ints]:
    """(which of the distinct rows each row is, where each distinct one is first met)."""
    codes = np.stack([np.unique(column, return_inverse=True)[1].ravel() for column in columns], axis=1)
    _, first, row = np.unique(codes, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return place[row.ravel()], first[order].astype(np.int64)


def _check_records(source: str, columns: Sequence[Array]) -> None:
    row, first = _numbered(columns)
    if len(first) < len(row):
        again = np.flatnonzero(np.bincount(row) > 1)[0]
        _refuse(source, f"point {columns[-1][first[again]]} appears more than once")


def _means(values: Array, row: Ints, source: str, name: str) -> Array:
    if values.dtype.kind not in "fiu":
        _refuse(source, f"{name} must be numbers, not {values.dtype}")
    table = values.astype(np.float64).reshape(len(values), -1)
    return group_means(table, row).reshape(-1, *values.shape[1:])


def _check_columns(raw: Raw, source: str) -> None:
    if "point" not in raw:
        _refuse(source, "the column point is missing: it names the records")
    for name in ("point", "reference_point", "person", "shadow_person"):
        if name in raw and raw[name].dtype.kind not in "iuU":
            _refuse(source, f"{name} must be whole numbers or text, not {raw[name].dtype}")
    record, first = _numbered([raw["point"]])
    other = np.flatnonzero(raw["person"][first][record] != raw["person"])
    if len(other):
        _refuse(source, f"point {raw['point'][other[0]]} is of more than one person")


def _refuse(source: str, what: str) -> NoReturn:
    raise UserError(f"{source}: {what}")
