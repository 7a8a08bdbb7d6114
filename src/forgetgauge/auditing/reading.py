"""From a file to its checked columns: read in its own format, made a file of points, then taken to pieces."""

from __future__ import annotations

import hashlib
from pathlib import Path

from forgetgauge.auditing.draw import Draw
from forgetgauge.auditing.formats import FORMATS
from forgetgauge.auditing.outputs import AuditFile, Reader
from forgetgauge.auditing.persons import as_drawn, by_person
from forgetgauge.auditing.single import of_requests, of_the_draw
from forgetgauge.errors import UserError


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
    if "features" in raw and not requests:
        raise UserError(f"{source}: features are read with --requests alone: leave them out")
    if draw is not None:
        return Reader(source, as_drawn(of_the_draw(raw, draw, source), draw, source), needs_shadows=False).file(digest)
    if not requests:
        return Reader(source, *by_person(raw, source)).file(digest)
    raw, notes = by_person(of_requests(raw, source), source)
    return Reader(source, raw, notes, needs_shadows=False).file(digest)
