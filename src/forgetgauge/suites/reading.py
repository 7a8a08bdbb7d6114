"""Reading a stored record: every field checked, and one line on what is wrong with the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

from forgetgauge.errors import UserError, unknown_name
from forgetgauge.suites.scales import SCALES

RecordT = TypeVar("RecordT")


def read_strictly(path: Path, kind: type[RecordT]) -> RecordT:
    """A record of this kind, of the `schema` that this version writes; its `scale`, if it has one, must be known."""
    import pydantic

    record, known = read_json(path), kind.schema  # type: ignore[attr-defined]
    if not isinstance(record, dict) or record.get("schema") != known:
        found = record.get("schema") if isinstance(record, dict) else None
        raise UserError(f"{path}: schema {found!r}, but this version reads {known}")
    try:
        found = pydantic.TypeAdapter(kind).validate_python(record)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        raise UserError(f"{path}: {'.'.join(str(part) for part in first['loc'])}: {first['msg']}") from None
    scale = getattr(found, "scale", None)
    if scale is not None and scale not in SCALES:
        raise UserError(f"{path}: {unknown_name('scale', scale, SCALES)}")
    return found


def read_json(path: Path) -> Any:
    """What the file holds."""
    try:
        return json.loads(path.read_text("utf-8"))
    except (ValueError, OSError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None
