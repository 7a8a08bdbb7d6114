"""The two spellings of an audit file: `.npz` with named arrays, `.csv` in long form with a header. No pickles."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from forgetgauge.audit.outputs import IN_GAME, KNOWN, OPTIONAL, REQUIRED, Array, Raw, meant_set
from forgetgauge.errors import UserError, unknown_name
from forgetgauge.files import written_whole
from forgetgauge.npz import UNREADABLE, read_arrays

_IDS = ("pair", "point", "seed", "model")
_WHOLE = ("side", "label")
_TRUTH = {"true": True, "false": False, "1": True, "0": False}
_SHADOW_SETS = {"shadow-in": True, "shadow-out": False}
_REFERENCE_SETS = {"reference-in": True, "reference-out": False}
_PLAIN = tuple(name for name in (*REQUIRED, *OPTIONAL, "model") if name != "logits")
_LOGIT = re.compile(r"logit_(\d+)")
_OF_SHADOWS = ("label", "model", "method", "score", "loss")
"""Columns that a shadow row may fill; the others are blank there."""
_OF_REFERENCES = ("point", "model", "score", "loss")
"""Columns that the row of a reference model may fill."""
_FEATURE = "feature_"
"""How the columns of the raw points begin."""
_BOOLEAN = ("decision", "share_retrain")


def read_npz(path: Path) -> Raw:
    """The arrays of a `.npz` file."""
    try:
        return read_arrays(path, KNOWN)
    except UNREADABLE as error:
        why = "it is another kind of file" if isinstance(error, zipfile.BadZipFile) else str(error)
        if "pickle" in why or "Object arrays" in why:  # numpy advises to load them all the same
            why = "pickled objects are never loaded; save numbers and text"
        raise UserError(f"{path}: not a .npz file of plain arrays: {why}") from None


def write_npz(path: Path, raw: Raw) -> None:
    """The file that `read_npz` reads."""
    arrays: dict[str, Any] = dict(raw)
    with written_whole(path) as file:
        np.savez(file, **arrays)


def read_csv(path: Path) -> Raw:
    """The same arrays from one table: rows whose set is shadow-in or shadow-out are the shadow block, those whose
    set is reference-in or reference-out are of reference models."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = [line for line in csv.reader(file) if line]
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path}: not a .csv file: {error}") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    if not lines:
        raise UserError(f"{path}: it is empty, but it needs a header")
    header, *body = [[cell.strip() for cell in line] for line in lines]
    table = _Table(str(path), header, body)
    return table.raw()


class _Table:
    """The cells of a `.csv` file; a message names the row, counted from 1 after the header."""

    def __init__(self, source: str, header: Sequence[str], body: Sequence[Sequence[str]]) -> None:
        self.source = source
        for separator, name in ((";", "semicolons"), ("\t", "tabs")):
            if len(header) == 1 and separator in header[0]:
                raise UserError(f"{source}: its cells are separated by {name}; separate them by commas")
        for name in header:
            if name not in _PLAIN and not _LOGIT.fullmatch(name) and not name.startswith(_FEATURE):
                raise UserError(f"{source}: {unknown_name('column', name, (*_PLAIN, 'logit_0'))}")
            if list(header).count(name) > 1:
                raise UserError(f"{source}: the column {name} stands twice")
        for number, cells in enumerate(body, 1):
            if len(cells) != len(header):
                raise UserError(f"{source}: row {number} has {len(cells)} cells, but the header has {len(header)}")
        self.columns = {name: [cells[i] for cells in body] for i, name in enumerate(header)}
        self.logits = sorted((name for name in header if _LOGIT.fullmatch(name)), key=lambda name: int(name[6:]))
        if self.logits != [f"logit_{i}" for i in range(len(self.logits))]:
            raise UserError(f"{source}: the logit columns must be logit_0, logit_1, … without a gap")

    def raw(self) -> Raw:
        n_rows = len(next(iter(self.columns.values()), []))
        sets, valid = self.columns.get("set", [""] * n_rows), (*IN_GAME, *_SHADOW_SETS, *_REFERENCE_SETS)
        for number, given in enumerate(sets, 1):
            if given not in valid and (hint := meant_set(given, valid)):
                raise UserError(f"{self.source}: row {number}: unknown set {given!r}{hint}")
        shadow = [row for row, name in enumerate(sets) if name in _SHADOW_SETS]
        reference = [row for row, name in enumerate(sets) if name in _REFERENCE_SETS]
        played = [row for row, name in enumerate(sets) if name not in (*_SHADOW_SETS, *_REFERENCE_SETS)]
        unsaid: set[str] = {"set"} if played and not any(sets[row] for row in played) else set()  # the draw says it
        columns = [name for name in self.columns if name in (*REQUIRED, *OPTIONAL) and name not in unsaid]
        raw = {name: self._column(name, played) for name in columns}
        if self.logits:
            raw["logits"] = self._logits(played)
        features = [name for name in self.columns if name.startswith(_FEATURE)]
        if features:
            raw["features"] = np.stack([self._column(name, played) for name in features], axis=1)
        raw |= self._block("shadow", shadow, _OF_SHADOWS, _SHADOW_SETS)
        return raw | self._block("reference", reference, _OF_REFERENCES, _REFERENCE_SETS)

    def _block(
        self, kind: str, rows: Sequence[int], names: Sequence[str], member: Mapping[str, bool]
    ) -> dict[str, Array]:
        """The columns of other models' rows."""
        if not rows:
            return {}
        filled = {name: [self.columns[name][row] for row in rows] for name in names if name in self.columns}
        given = [name for name, cells in filled.items() if any(cells)]
        raw = {f"{kind}_{name}": self._column(name, rows) for name in given}
        raw[f"{kind}_member"] = np.array([member[self.columns["set"][row]] for row in rows])
        if self.logits:
            raw[f"{kind}_logits"] = self._logits(rows)
        return raw

    def _logits(self, rows: Sequence[int]) -> Array:
        return np.stack([self._column(name, rows) for name in self.logits], axis=1)

    def _column(self, name: str, rows: Sequence[int]) -> Array:
        cells = [self.columns[name][row] for row in rows]
        if "" in cells:
            raise UserError(f"{self.source}: row {rows[cells.index('')] + 1}: {name} is blank")
        if name in ("set", "method"):
            return np.array(cells, dtype=np.str_)
        if name in _IDS:
            whole = all(re.fullmatch(r"-?\d{1,18}", cell) for cell in cells)
            return np.array(cells, dtype=np.int64) if whole else np.array(cells, dtype=np.str_)
        convert: Callable[[str], Any] = _truth if name in _BOOLEAN else int if name in _WHOLE else float
        kind: type[Any] = bool if name in _BOOLEAN else np.int64 if name in _WHOLE else np.float64
        values = []
        for row, cell in zip(rows, cells, strict=True):
            try:
                values.append(convert(cell))
            except (ValueError, KeyError):
                what = {_truth: "true or false", int: "a whole number", float: "a number"}[convert]
                raise UserError(f"{self.source}: row {row + 1}: {name} = {cell!r} is not {what}") from None
        return np.array(values, dtype=kind)


def _truth(cell: str) -> bool:
    return _TRUTH[cell.lower()]


def write_csv(path: Path, raw: Raw) -> None:
    """The file that `read_csv` reads; numbers are spelled in full, so that the same bits come back."""
    names = [name for name in (*REQUIRED, *OPTIONAL) if name in raw and name != "logits"]
    has_model = ["model"] if "shadow_model" in raw else []
    n_classes = raw["logits"].shape[1] if "logits" in raw else 0
    method = [] if "method" in names or "shadow_method" not in raw else ["method"]
    header = [*names, *method, *has_model, *(f"logit_{i}" for i in range(n_classes))]
    with written_whole(path) as binary, io.TextIOWrapper(binary, "utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(_lines(header, {name: raw[name] for name in raw if not name.startswith("shadow_")}))
        if "shadow_member" in raw:
            shadow = {name[7:]: raw[name] for name in raw if name.startswith("shadow_") and name != "shadow_member"}
            shadow["set"] = np.where(raw["shadow_member"], "shadow-in", "shadow-out")
            writer.writerows(_lines(header, shadow))


def _lines(header: Sequence[str], columns: Mapping[str, Array]) -> list[tuple[Any, ...]]:
    n = len(columns["set"])
    columns = {name: np.broadcast_to(column, n) if column.ndim == 0 else column for name, column in columns.items()}
    spread = {**columns, **{f"logit_{i}": column for i, column in enumerate(columns.get("logits", np.empty((0, 0))).T)}}
    cells = [spread[name].tolist() if name in spread else [""] * n for name in header]
    return list(zip(*cells, strict=True))


FORMATS: dict[str, Callable[[Path], Raw]] = {".npz": read_npz, ".csv": read_csv}
WRITERS: dict[str, Callable[[Path, Raw], None]] = {".npz": write_npz, ".csv": write_csv}
