"""From a file to its checked columns: read in its own format, its shapes looked at, made a file of points, then taken
to pieces."""

from __future__ import annotations

import hashlib
from pathlib import Path

from forgetgauge.auditing.draw import Draw
from forgetgauge.auditing.formats import FORMATS
from forgetgauge.auditing.outputs import KNOWN, OPTIONAL, PERSON, REQUIRED, SHADOW, AuditFile, Raw, Reader
from forgetgauge.auditing.persons import as_drawn, by_person
from forgetgauge.auditing.references import REFERENCE
from forgetgauge.auditing.single import of_requests, of_the_draw
from forgetgauge.errors import UserError, unknown_name

_BLOCKS = (
    (*REQUIRED, *OPTIONAL, "features", "person"),
    ("shadow_member", *SHADOW, "shadow_person"),
    ("reference_point", *REFERENCE),
)
"""Columns that are of the same rows."""


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
        return Reader(source, as_drawn(of_the_draw(raw, draw, source), draw, source), needs_shadows=False).file(digest)
    if not requests:
        return Reader(source, *by_person(raw, source)).file(digest)
    raw, notes = by_person(of_requests(raw, source), source)
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
