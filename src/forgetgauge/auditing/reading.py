"""From a file to its checked columns: read in its own format, its shapes looked at, made a file of points, then taken
to pieces. Of a file about one model, which points are F and T is what a draw says, or what the requests were."""

from __future__ import annotations

import hashlib
from collections.abc import Container
from pathlib import Path

import numpy as np

from forgetgauge.auditing.draw import Draw, plain_name
from forgetgauge.auditing.formats import FORMATS
from forgetgauge.auditing.outputs import (
    DEFAULT_METHOD,
    KNOWN,
    OPTIONAL,
    PERSON,
    REQUIRED,
    SHADOW,
    Array,
    AuditFile,
    Raw,
    Reader,
)
from forgetgauge.auditing.persons import as_drawn, by_person
from forgetgauge.auditing.references import REFERENCE
from forgetgauge.errors import UserError, unknown_name

_BLOCKS = (
    (*REQUIRED, *OPTIONAL, "features", "person"),
    ("shadow_member", *SHADOW, "shadow_person"),
    ("reference_point", *REFERENCE),
)
"""Columns that are of the same rows."""
_OTHER_ROWS = ("shadow_", "reference_")
"""How the names of columns begin whose rows are not those of the model under audit."""


def read_audit_file(path: Path, draw: Draw | None = None, *, requests: bool = False) -> AuditFile:
    """Read `.npz` or `.csv`; what is wrong with it is one line. With a draw, or of requests, it is of one model."""
    read = FORMATS.get(path.suffix.lower())
    if read is None:
        raise UserError(f"{path}: an audit file is one of {', '.join(sorted(FORMATS))}")
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    raw, source = read(path), str(path)
    _check_shapes(raw, source)
    if "features" in raw and not requests:
        raise UserError(f"{source}: features are read with --requests alone: leave them out")
    if draw is not None:
        return Reader(source, as_drawn(_of_the_draw(raw, draw, source), draw, source), needs_shadows=False).file(digest)
    if not requests:
        return Reader(source, *by_person(raw, source)).file(digest)
    raw, notes = by_person(_of_requests(raw, source), source)
    return Reader(source, raw, notes, needs_shadows=False).file(digest)


def _check_shapes(raw: Raw, source: str) -> None:
    """UserError of a column that nobody knows, or that has not one row for each output."""
    for name in raw:
        if name not in KNOWN:
            raise UserError(f"{source}: {unknown_name('column', name, KNOWN - set(PERSON))}")
    for names in _BLOCKS:
        of_rows = [name for name in names if name in raw and not (name == "share_retrain" and raw[name].ndim == 0)]
        for name in of_rows:
            n_dimensions = (2,) if name.endswith("logits") else (1, 2) if name == "features" else (1,)
            if raw[name].ndim not in n_dimensions:
                raise UserError(
                    f"{source}: {name} has the shape {raw[name].shape}, but it must be one row for each output"
                )
            if len(raw[name]) != len(raw[of_rows[0]]):
                first = of_rows[0]
                raise UserError(f"{source}: {name} has {len(raw[name])} rows, but {first} has {len(raw[first])}")


# -- files about one model ---------------------------------------------------------------------------------------------


def _of_the_draw(raw: Raw, draw: Draw, source: str) -> Raw:
    """The columns of a file about one model, with those that the draw says; rows of other points are left out."""
    if "point" not in raw:
        raise UserError(f"{source}: the column point is missing: it names the points as the draw does")
    for name in ("pair", "side", "set"):
        if name in raw:
            raise UserError(f"{source}: {name} is what the draw says: leave the column out, or --draw")
    _refuse_columns_of_pairs(raw, source)
    names = raw["point"].astype(str)
    sets = {**dict.fromkeys(draw.forget or (), "forget"), **dict.fromkeys(draw.unseen or (), "unseen")}
    kept = np.array([name in sets for name in names.tolist()])
    if len(names) == 0:
        raise UserError(f"{source}: it has no rows of the model under audit")
    _refuse_other_spelling(set(sets) - set(names.tolist()), names[~kept].tolist(), source)
    if not kept.any():
        raise UserError(f"{source}: none of its points is in the draw; it has '{names[0]}'")
    of_points = {name: column[kept] for name, column in raw.items() if not name.startswith(_OTHER_ROWS) and column.ndim}
    return _with_a_split(
        {**raw, **of_points, **_references_of(raw, sets)}, np.array([sets[name] for name in names[kept].tolist()])
    )


def _refuse_other_spelling(missing: set[str], others: list[str], source: str) -> None:
    """UserError where a point of the draw is missing that the file has in another spelling."""
    given = {plain_name(name): name for name in others}
    for name in sorted(missing):
        if plain_name(name) in given:
            other = given[plain_name(name)]
            raise UserError(f"{source}: point '{name}' of the draw is missing, but there is '{other}': write ids alike")


def _of_requests(raw: Raw, source: str) -> Raw:
    """The columns of a file about one model, or several, whose deletion requests came by themselves."""
    for name, what in {
        "point": "it names the points",
        "set": "it says forget of the points that were to be deleted, and unseen of those that no training saw",
    }.items():
        if name not in raw:
            raise UserError(f"{source}: the column {name} is missing: {what}")
    for name in ("pair", "side"):
        if name in raw:
            raise UserError(f"{source}: {name} is of swap pairs, which --requests has not: leave the column out")
    _refuse_columns_of_pairs(raw, source)
    if "features" in raw:
        features = raw["features"].astype(np.int64) if raw["features"].dtype == np.bool_ else raw["features"]
        raw = {**raw, "features": features[:, None] if features.ndim == 1 else features}
    return _with_a_split(raw, raw["set"])


def _refuse_columns_of_pairs(raw: Raw, source: str) -> None:
    """UserError of what an audit of swap pairs reads and the test of one model would leave out without a word."""
    for name, why in {
        "weight": "every point counts alike in the test of one model: leave the column out",
        "share_retrain": "it is said of swap pairs, and the test of one model has none: leave the column out",
    }.items():
        if name in raw:
            raise UserError(f"{source}: {name} has no use here: {why}")
    if "seed" not in raw:
        return
    methods = raw.get("method", np.full(len(raw["seed"]), DEFAULT_METHOD))
    for method in dict.fromkeys(methods.tolist()):
        seeds = np.unique(raw["seed"][methods == method])
        if len(seeds) > 1:
            raise UserError(
                f"{source}: {method} has rows of {len(seeds)} seeds, which are models of their own: name each training "
                "in the column method, and leave seed out"
            )


def _with_a_split(raw: Raw, sets: Array) -> Raw:
    none = np.zeros(len(sets), dtype=np.int64)
    return {**raw, "pair": none, "side": none, "set": sets}


def _references_of(raw: Raw, known: Container[str]) -> Raw:
    """Rows of reference models about points that were not drawn are left out, as those of the model are."""
    if "reference_point" not in raw:
        return {}
    kept = np.array([name in known for name in raw["reference_point"].astype(str).tolist()], dtype=np.bool_)
    return {name: raw[name][kept] for name in REFERENCE if name in raw}
