"""How a file of JSON is read, whoever wrote it, and how any file is written: whole, or not at all; and
the seal of one, by which a change of any of its bytes is seen."""

from __future__ import annotations

import errno
import hashlib
import itertools
import json
import math
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from numbers import Integral, Real
from pathlib import Path
from typing import IO, Any, TypeVar

from forgetgauge.errors import DiskFull, UserError

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
TWICE = "the key "
DEEPEST = 100
"""Lists and tables inside one another in a JSON file."""
NestedT = TypeVar("NestedT")


# -- reading -----------------------------------------------------------------------------------------------------------


def read_json(path: Path) -> Any:
    """What the file holds, or one line on why it cannot be read."""
    try:
        return parse_json(path.read_bytes())
    except ValueError as error:
        raise UserError(f"{path}: cannot be read: not valid JSON: {error}") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None


def parse_json(text: str | bytes) -> Any:
    """What a text of JSON holds; ValueError also of what no file of ours holds and what no reader could cope with:
    NaN, infinity, whole numbers beyond 64 bits, a key that stands twice in one table, and tables without end."""
    odd: list[str] = []

    def whole(digits: str) -> Any:
        if len(digits) <= 20 and -(2**63) <= (value := int(digits)) < 2**64:
            return value
        odd.append(f"a whole number of {len(digits)} digits is beyond 64 bits")
        return _ODD

    def finite(digits: str) -> Any:
        if math.isfinite(value := float(digits)):
            return value
        odd.append(f"{digits[:40]} is no finite number")
        return _ODD

    def table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):  # the last would win without a word
            twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
            odd.append(f"{TWICE}'{twice[:40]}' stands twice in one table")
        return found

    try:
        text = text if isinstance(text, str) else text.decode("utf-8-sig")
        read = json.loads(text, parse_constant=finite, parse_int=whole, parse_float=finite, object_pairs_hook=table)
        value = shallow(read, DEEPEST)
    except RecursionError:
        raise ValueError(f"tables in more than {DEEPEST} tables") from None
    if r"\ud" in text.lower():
        try:
            json.dumps(value, ensure_ascii=False, default=str).encode()
        except UnicodeEncodeError:
            raise ValueError("a text in it holds half of a character, which cannot be written down") from None
    if odd:
        place = "" if odd[0].startswith(TWICE) else _place_of_odd(value) or ""
        raise ValueError(f"{place}: {odd[0]}" if place else odd[0])
    return value


_ODD = object()


def _place_of_odd(value: Any) -> str | None:
    """`games.0.methods.x.quality`: where the first thing that is no number of ours stands."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inside:
        if part is _ODD:
            return str(key)
        below = _place_of_odd(part)
        if below is not None:
            return f"{key}.{below}"
    return None


def shallow(value: NestedT, deepest: int) -> NestedT:
    """`value` unchanged; ValueError if it is nested deeper than `deepest`."""
    level: list[Any] = [value]
    for _ in range(deepest + 1):
        inside = [part.values() if isinstance(part, dict) else part for part in level if isinstance(part, dict | list)]
        level = [part for parts in inside for part in parts]
        if not level:
            return value
    raise ValueError(f"tables in more than {deepest} tables")


def unreadable_number(value: Any, place: str = "") -> str | None:
    """`game.level = nan is not a finite number`: the first number in it that `parse_json` would refuse."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list | tuple) else ()
    for key, part in inside:
        if wrong := unreadable_number(part, f"{place}.{key}" if place else str(key)):
            return wrong
    if isinstance(value, Integral) and not -(2**63) <= int(value) < 2**64:
        return f"{place} = {str(value)[:40]} is beyond 64 bits"
    if isinstance(value, Real) and not isinstance(value, Integral) and not math.isfinite(value):
        return f"{place} = {value} is not a finite number"
    return None


def refuse_deleted_folder() -> None:
    """UserError where the current folder is gone: paths mean nothing there, and libraries that are loaded may abort."""
    try:
        os.getcwd()
    except FileNotFoundError:
        raise UserError("the current folder was deleted: change into one that is there") from None


def refuse_no_folder(out: object) -> None:
    """UserError where a folder is asked for by what names none; an empty name would mean the current folder."""
    if out is not None and not (isinstance(out, str | os.PathLike) and str(out)):
        raise UserError(f"out must name a folder or a file, not {out!r}")


# -- writing -----------------------------------------------------------------------------------------------------------


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Within, what the operating system refuses is one line that a user can act on."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise DiskFull(f"{path}: the disk is full; free some space, then the same command continues") from None
        raise UserError(f"{path}: cannot be written: {error.strerror or error}") from None


@contextmanager
def written_whole(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to, beside the one that it is renamed to at the end; on failure that one stays as it was, and
    nothing else is left behind.

    A link is followed. What is no plain file, such as /dev/stdout, is written to.
    """
    with writing(path):
        target = Path(os.path.realpath(path))
        if target.exists() and not target.is_file():
            with target.open("wb") as file:
                yield file
            return
        part = target.with_name(f"{target.name}.{os.getpid()}.part")
        try:
            with part.open("wb") as file:
                yield file
            os.replace(part, target)
        except BaseException:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            raise


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file, whole or not at all."""
    with written_whole(path) as file:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)


def write_into(path: Path, content: str | bytes) -> None:
    """Write a file, whole or not at all, into a folder that is made where it is missing."""
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content)


def refuse_other_kind(path: Path | None, *suffixes: str) -> None:
    """UserError where a file is there already and its name is of another kind: it is somebody's, and no earlier one."""
    if path is not None and path.is_file() and path.suffix.lower() not in suffixes:
        raise UserError(
            f"{path}: there is such a file already, and its name does not end in {suffixes[0]}: name another"
        )


def set_aside(path: Path, content: str, *beside: Path) -> Path | None:
    """Rename a record that says something else than the one that is to be written there, and what belongs to it; where
    it is now, or None. `evidence.json` becomes `evidence-1.json`, or the first number that is free."""
    with writing(path):
        if not path.is_file() or _said(path.read_bytes()) == _said(content.encode("utf-8")):
            return None
        kept = free_name(path)
        ending = kept.stem.removeprefix(path.stem)
        for each in (path, *beside):
            if each.is_file():
                os.replace(each, each.with_stem(each.stem + ending))
        return kept


def _said(text: bytes) -> Any:
    """A record without when and where it was made; what is none, as it is."""
    try:
        record = parse_json(text)
    except ValueError:
        return text
    if not isinstance(record, dict):
        return text
    return {key: value for key, value in record.items() if key not in ("environment", "sha256")}


def free_name(path: Path) -> Path:
    """`evidence.json` -> `evidence-1.json`, or the first number of which there is no such file or folder."""
    return next(free for n in itertools.count(1) if not (free := path.with_stem(f"{path.stem}-{n}")).exists())


# -- a file that names the SHA-256 of its own bytes --------------------------------------------------------------------

_SEAL = '\n "sha256": "'
"""Nowhere but at the top of a file: what is further inside is indented by more."""


def with_seal(text: str) -> str:
    """The text of a file with the digest of its bytes put in where it is empty."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    before, _, after = text.partition(f'{_SEAL}"')
    return f'{before}{_SEAL}{digest}"{after}'


def is_sealed(raw: bytes) -> bool:
    """Whether the digest in a file is that of its bytes."""
    before, seal, after = raw.partition(_SEAL.encode())
    return hashlib.sha256(before + seal + after[64:]).hexdigest().encode() == after[:64]
