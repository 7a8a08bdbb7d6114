"""What is stored as JSON: declared as a dataclass, written and strictly read in one way."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from forgetgauge.errors import UserError

RecordT = TypeVar("RecordT")


class Record:
    """A dataclass that is stored, or part of one; unknown fields, NaN and infinity are refused when it is read.

    What is a file of its own has a field `schema`, the version of its fields.
    """

    __pydantic_config__: ClassVar[Any] = {"extra": "forbid", "allow_inf_nan": False}

    def to_json(self) -> str:
        """The text of the file."""
        fields = dataclasses.asdict(self)  # type: ignore[call-overload]
        return json.dumps(fields, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def read_record(path: Path, kind: type[RecordT]) -> RecordT:
    """A record of this kind, of the `schema` that this version writes, or one line on what is wrong with the file."""
    record, known = read_json(path), kind.schema  # type: ignore[attr-defined]
    schema = record.get("schema") if isinstance(record, dict) else None
    if schema != known:
        raise UserError(f"{path}: schema {schema!r}, but this version reads {known}")
    return validated(path, kind, record)


def validated(path: Path, kind: type[RecordT], value: Any) -> RecordT:
    """The value as this kind of thing, every field checked, or one line on what is wrong with the file."""
    import pydantic

    try:
        return pydantic.TypeAdapter(kind).validate_python(value)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        raise UserError(f"{path}: {'.'.join(str(part) for part in first['loc'])}: {first['msg']}") from None


def read_json(path: Path) -> Any:
    """What the file holds."""
    try:
        return json.loads(path.read_text("utf-8"))
    except (ValueError, OSError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None
