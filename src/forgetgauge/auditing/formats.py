"""The two spellings of an audit file: `.npz` with named arrays, `.csv` in long form with a header. No pickles."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import compress, islice
from pathlib import Path
from typing import Any

import numpy as np

from forgetgauge.auditing.outputs import IN_GAME, KNOWN, OPTIONAL, REQUIRED, Array, Raw, meant_set
from forgetgauge.errors import UserError, unknown_name
from forgetgauge.files import written_whole
from forgetgauge.game.arrays import Bools, Ints
from forgetgauge.npz import UNREADABLE, read_arrays

_IDS = ("pair", "point", "seed", "model", "person")
_WHOLE = ("side", "label")
_TRUTH = {"true": True, "false": False, "1": True, "0": False}
_SHADOW_SETS = {"shadow-in": True, "shadow-out": False}
_REFERENCE_SETS = {"reference-in": True, "reference-out": False}
_PLAIN = tuple(name for name in (*REQUIRED, *OPTIONAL, "model", "person") if name != "logits")
_WHOLE_NAME = re.compile(r"0|-?[1-9][0-9]{0,17}")
_LOGIT = re.compile(r"logit_(\d+)")
_OF_SHADOWS = ("label", "model", "method", "person", "score", "loss")
"""Columns that a shadow row may fill; the others are blank there."""
_OF_REFERENCES = ("point", "model", "score", "loss")
"""Columns that the row of a reference model may fill."""
_FEATURE = "feature_"
"""How the columns of the raw points begin."""
_BOOLEAN = ("decision", "share_retrain")
MOST_COLUMNS = 100_000
ROOM = 2**24
"""A column of names may take this many bytes, however long its longest name is; beyond it, the length counts."""


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
            lines = ([cell.strip() for cell in line] for line in csv.reader(file) if line)
            header = next(lines, None)
            if header is None:
                raise UserError(f"{path}: it is empty, but it needs a header")
            table = _Table(str(path), header, lines)
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path}: not a .csv file: {error}") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    return table.raw()


def refuse_other_separators(source: str, header: Sequence[str]) -> None:
    """UserError of a header in one cell that was meant to be several."""
    for separator, name in ((";", "semicolons"), ("\t", "tabs")):
        if len(header) == 1 and separator in header[0]:
            raise UserError(f"{source}: its cells are separated by {name}; separate them by commas")


class _Cells:
    """Texts in rows and columns, which take little more room than in their file: each by itself would take ten times
    that."""

    def __init__(self, n_columns: int) -> None:
        self.n_columns, self.n_rows = n_columns, 0
        self._blocks: list[tuple[str, Ints]] = []
        """Of some rows each: (all texts one after another, where each begins and at last where all end)."""

    def add(self, rows: Iterator[Sequence[str]]) -> None:
        """More rows, each of `n_columns` texts."""
        while some := list(islice(rows, max(1, 2**16 // self.n_columns))):
            texts = [text for row in some for text in row]
            self._blocks.append(("".join(texts), np.cumsum([0, *map(len, texts)], dtype=np.int64)))
            self.n_rows += len(some)

    def column(self, which: int) -> Iterator[str]:
        """The texts of a column, one row after another."""
        for text, ends in self._blocks:
            starts = ends[which : -1 : self.n_columns].tolist()
            for start, end in zip(starts, ends[which + 1 :: self.n_columns].tolist(), strict=True):
                yield text[start:end]


class _Table:
    """The cells of a `.csv` file; a message names the row, counted from 1 after the header."""

    def __init__(self, source: str, header: Sequence[str], body: Iterator[Sequence[str]]) -> None:
        self.source = source
        refuse_other_separators(source, header)
        for name in header:
            if name not in _PLAIN and not _LOGIT.fullmatch(name) and not name.startswith(_FEATURE):
                if name and name == header[0] and "point" not in header:
                    raise UserError(f"{source}: the column that names the points is called point, not {name}")
                if not name:
                    raise UserError(
                        f"{source}: a column has no name, as an index has that pandas or R writes: leave it out with "
                        "index=False, or row.names=FALSE"
                    )
                if name.lower().startswith("prob"):
                    raise UserError(
                        f"{source}: unknown column {name!r}; of probabilities give their logarithms in logit_0, "
                        "logit_1, …"
                    )
                raise UserError(f"{source}: {unknown_name('column', name, (*_PLAIN, 'logit_0'))}")
        if len(header) > MOST_COLUMNS:
            raise UserError(f"{source}: the header has {len(header):,} columns, more than {MOST_COLUMNS:,}")
        self.columns = {name: number for number, name in enumerate(header)}
        if len(self.columns) < len(header):
            twice = next(name for number, name in enumerate(header) if self.columns[name] != number)
            raise UserError(f"{source}: the column {twice} stands twice")
        self.logits = sorted((name for name in header if _LOGIT.fullmatch(name)), key=lambda name: int(name[6:]))
        if self.logits != [f"logit_{i}" for i in range(len(self.logits))]:
            raise UserError(f"{source}: the logit columns must be logit_0, logit_1, … without a gap")
        self.cells = _Cells(len(header))
        self.cells.add(self._whole_rows(body))

    def _whole_rows(self, body: Iterator[Sequence[str]]) -> Iterator[Sequence[str]]:
        n_columns = self.cells.n_columns
        for number, cells in enumerate(body, 1):
            if len(cells) != n_columns:
                raise UserError(f"{self.source}: row {number} has {len(cells)} cells, but the header has {n_columns}")
            yield cells

    def raw(self) -> Raw:
        valid = (*IN_GAME, *_SHADOW_SETS, *_REFERENCE_SETS)
        everywhere = np.ones(self.cells.n_rows, dtype=bool)
        for number, given in self._numbered("set", everywhere):
            if given not in valid and (hint := meant_set(given, valid)):
                raise UserError(f"{self.source}: row {number}: unknown set {given!r}{hint}")
        shadow, reference = (self._rows_of(names) for names in (_SHADOW_SETS, _REFERENCE_SETS))
        played = ~(shadow | reference)
        is_said = not played.any() or any(cell for _, cell in self._numbered("set", played))
        unsaid: set[str] = set() if is_said else {"set"}  # the draw says it
        columns = [name for name in self.columns if name in (*REQUIRED, *OPTIONAL, "person") and name not in unsaid]
        raw = {name: self._column(name, played) for name in columns}
        if self.logits:
            raw["logits"] = self._logits(played)
        features = [name for name in self.columns if name.startswith(_FEATURE)]
        if features:
            raw["features"] = np.stack([self._column(name, played) for name in features], axis=1)
        raw |= self._block("shadow", shadow, _OF_SHADOWS, _SHADOW_SETS)
        return raw | self._block("reference", reference, _OF_REFERENCES, _REFERENCE_SETS)

    def _block(self, kind: str, rows: Bools, names: Sequence[str], member: Mapping[str, bool]) -> dict[str, Array]:
        """The columns of other models' rows."""
        if not rows.any():
            return {}
        given = [name for name in names if any(cell for _, cell in self._numbered(name, rows))]
        raw = {f"{kind}_{name}": self._column(name, rows) for name in given}
        raw[f"{kind}_member"] = self._rows_of([name for name, is_in in member.items() if is_in])[rows]
        if self.logits:
            raw[f"{kind}_logits"] = self._logits(rows)
        return raw

    def _rows_of(self, names: Collection[str]) -> Bools:
        """Which rows have one of these names as their set."""
        if "set" not in self.columns:
            return np.zeros(self.cells.n_rows, dtype=bool)
        return np.fromiter((cell in names for cell in self.cells.column(self.columns["set"])), dtype=bool)

    def _numbered(self, name: str, rows: Bools) -> Iterator[tuple[int, str]]:
        """(number, cell) of the rows; nothing of a column that is not there."""
        if name not in self.columns:
            return iter(())
        return compress(enumerate(self.cells.column(self.columns[name]), 1), rows.tolist())

    def _logits(self, rows: Bools) -> Array:
        return np.stack([self._column(name, rows) for name in self.logits], axis=1)

    def _column(self, name: str, rows: Bools) -> Array:
        n_rows = int(rows.sum())
        if name in (*_IDS, "set", "method"):
            return self._names(name, rows, n_rows)
        convert: Callable[[str], Any] = _truth if name in _BOOLEAN else _whole if name in _WHOLE else _number
        kind: type[Any] = bool if name in _BOOLEAN else np.int64 if name in _WHOLE else np.float64
        return np.fromiter(self._converted(name, rows, convert), dtype=kind, count=n_rows)

    def _names(self, name: str, rows: Bools, n_rows: int) -> Array:
        """Whole numbers where all are spelled like such, else texts: 007 is another name than 7."""
        are_whole, longest, total = name in _IDS, 1, 0
        for cell in self._converted(name, rows, str):
            are_whole = are_whole and bool(_WHOLE_NAME.fullmatch(cell))
            longest, total = max(longest, len(cell)), total + len(cell)
        if are_whole:
            return np.fromiter(self._converted(name, rows, int), dtype=np.int64, count=n_rows)
        if 4 * longest * n_rows > ROOM + 32 * total:  # numpy gives each text the room of the longest, at 4 bytes each
            raise UserError(
                f"{self.source}: {name} has a name of {longest:,} characters in {n_rows:,} rows: shorten it"
            )
        return np.fromiter(self._converted(name, rows, str), dtype=f"U{longest}", count=n_rows)

    def _converted(self, name: str, rows: Bools, convert: Callable[[str], Any]) -> Iterator[Any]:
        for number, cell in self._numbered(name, rows):
            if not cell:
                raise UserError(f"{self.source}: row {number}: {name} is blank")
            try:
                yield convert(cell)
            except (ValueError, KeyError):
                kinds: dict[Callable[[str], Any], str] = {
                    _truth: "true or false", _whole: "a whole number of 64 bits", _number: "a number",
                }  # fmt: skip
                what = kinds[convert]
                if name == "label":
                    what += ": give 0 for the class of logit_0, 1 for that of logit_1, …"
                shown = repr(cell if len(cell) <= 40 else f"{cell[:40]}…")
                raise UserError(f"{self.source}: row {number}: {name} = {shown} is not {what}") from None


def _truth(cell: str) -> bool:
    return _TRUTH[cell.lower()]


def _number(cell: str) -> float:
    return float(_plain_digits(cell))


def _plain_digits(cell: str) -> str:
    """The cell; ValueError of 636_000 and of the digits of other alphabets, which Python would read as well."""
    if "_" in cell or not cell.isascii():
        raise ValueError(cell)
    return cell


def _whole(cell: str) -> int:
    value = int(_plain_digits(cell).removesuffix(".0"))  # which pandas writes where another cell is blank
    if not -(2**63) <= value < 2**63:
        raise ValueError(cell)
    return value


def write_csv(path: Path, raw: Raw) -> None:
    """The file that `read_csv` reads; numbers are spelled in full, so that the same bits come back."""
    names = [name for name in (*REQUIRED, *OPTIONAL, "person") if name in raw and name != "logits"]
    has_model = ["model"] if {"shadow_model", "reference_model"} & set(raw) else []
    n_classes = raw["logits"].shape[1] if "logits" in raw else 0
    method = [] if "method" in names or "shadow_method" not in raw else ["method"]
    header = [*names, *method, *has_model, *(f"logit_{i}" for i in range(n_classes))]
    others = {"shadow_": _SHADOW_SETS, "reference_": _REFERENCE_SETS}
    with written_whole(path) as binary, io.TextIOWrapper(binary, "utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(_lines(header, {name: raw[name] for name in raw if not name.startswith(tuple(others))}))
        for block, sets in others.items():
            columns = {name.removeprefix(block): raw[name] for name in raw if name.startswith(block)}
            if columns:
                member = columns.pop("member", np.zeros(len(next(iter(columns.values()))), dtype=bool))
                seen, unseen = sets
                columns["set"] = np.where(member, seen, unseen)
                writer.writerows(_lines(header, columns))


def _lines(header: Sequence[str], columns: Mapping[str, Array]) -> list[tuple[Any, ...]]:
    n = len(columns["set"])
    columns = {name: np.broadcast_to(column, n) if column.ndim == 0 else column for name, column in columns.items()}
    spread = {**columns, **{f"logit_{i}": column for i, column in enumerate(columns.get("logits", np.empty((0, 0))).T)}}
    cells = [spread[name].tolist() if name in spread else [""] * n for name in header]
    return list(zip(*cells, strict=True))


FORMATS: dict[str, Callable[[Path], Raw]] = {".npz": read_npz, ".csv": read_csv}
WRITERS: dict[str, Callable[[Path, Raw], None]] = {".npz": write_npz, ".csv": write_csv}
