"""What is stored as JSON: declared as a dataclass, written and strictly read in one way."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from forgetgauge.errors import UserError
from forgetgauge.files import is_sealed, read_json, with_seal

if TYPE_CHECKING:
    import pydantic

RecordT = TypeVar("RecordT")


class Record:
    """A dataclass that is stored, or part of one; unknown fields, NaN and infinity are refused when it is read.

    What is a file of its own has a field `schema`, the version of its fields; with a field `sha256` it holds the digest
    of its own bytes, that field left empty, and is not read when they do not fit.
    """

    __pydantic_config__: ClassVar[Any] = {"extra": "forbid", "allow_inf_nan": False}

    def to_json(self) -> str:
        """The text of the file."""
        fields = dataclasses.asdict(self)  # type: ignore[call-overload]
        sealed = "sha256" in fields
        text = json.dumps(
            fields | {"sha256": ""} if sealed else fields,
            indent=1, sort_keys=sealed, allow_nan=False, ensure_ascii=False,
        )  # fmt: skip
        return with_seal(text + "\n") if sealed else text + "\n"


def as_stored(value: Any) -> Any:
    """A record with its tables in the order of their keys, as they are when it is read from its file: what is shown of
    it is then the same before and after."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: as_stored(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return dataclasses.replace(value, **fields)
    if isinstance(value, dict):
        return {key: as_stored(value[key]) for key in sorted(value)}
    return type(value)(map(as_stored, value)) if isinstance(value, list | tuple) else value


def read_record(path: Path, kind: type[RecordT], *, sealed: bool = True) -> RecordT:
    """A record of this kind, of the `schema` that this version writes, or one line on what is wrong with the file."""
    record, known = read_json(path), kind.schema  # type: ignore[attr-defined]
    schema = record.get("schema") if isinstance(record, dict) else None
    if schema != known:
        raise UserError(f"{path}: schema {schema!r}, but this version reads {known}")
    if sealed and hasattr(kind, "sha256") and not is_sealed(path.read_bytes()):
        raise UserError(f"{path}: was changed after it was written: its bytes do not fit the SHA-256 that it names")
    return validated(path, kind, record)


def validated(path: Path, kind: type[RecordT], value: Any, place: str = "") -> RecordT:
    """The value as this kind of thing, every field checked, or one line on what is wrong with the file, in which it
    stands at a place."""
    import pydantic

    try:
        if place:  # of JSON: as strict as the kind says
            return checker_of(kind).validate_json(json.dumps(value))
        return checker_of(kind).validate_python(value)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, (*([place] if place else []), *first["loc"])))
        raise UserError(f"{path}: {where}: {first['msg']}") from None


_CHECKERS: dict[Any, Any] = {}


def checker_of(kind: type[RecordT]) -> pydantic.TypeAdapter[RecordT]:
    """What checks values of a kind that is declared here: made once, as that takes longer than most checks."""
    import pydantic

    if kind not in _CHECKERS:
        _CHECKERS[kind] = pydantic.TypeAdapter(kind)
    checker: pydantic.TypeAdapter[RecordT] = _CHECKERS[kind]
    return checker
