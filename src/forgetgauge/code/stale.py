"""Code that was edited after Python had loaded it is refused here: a key would name code that is not what runs."""

from __future__ import annotations

import functools
import marshal
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from forgetgauge.code.functions import bytecode, code_objects
from forgetgauge.code.reading.source import Source, read_source
from forgetgauge.errors import UserError
from forgetgauge.probing import attribute

_STARTED = time.time_ns()
_LOADED: dict[str, tuple[Any, str]] = {}
"""Module -> how it was loaded, and the digest of its source when that was first seen."""


def refuse_stale(name: str, origin: str, source: Source) -> None:
    """UserError where the module in memory is not the one on disk: a key would name code that is not what runs."""
    loaded = sys.modules.get(name)
    if loaded is None:
        return
    spec, before = _LOADED.setdefault(name, (loaded.__spec__, source.digest))
    if spec is not loaded.__spec__:  # imported or reloaded anew
        _LOADED[name] = (loaded.__spec__, source.digest)
    elif before != source.digest:
        raise UserError(_edited(origin, "what is in memory"))
    if not _may_be_stale(loaded, origin):
        return
    whole, on_disk = _code_in(source.text, origin)
    compiled = _compiled(loaded, origin)
    if compiled is not None and bytecode(compiled) != whole:
        raise UserError(_edited(origin, "what Python compiled"))
    for function in _functions_of(loaded, origin):
        if (function.__code__.co_qualname, bytecode(function.__code__)) not in on_disk:
            raise UserError(_edited(origin, f"{function.__qualname__} in memory"))


def refuse_held(code: CodeType) -> None:
    """UserError where a function is not the one that its file has now: it is held from before a reload, or its script
    was edited while it runs."""
    origin = os.path.abspath(code.co_filename)
    if not os.path.isfile(origin) or os.stat(origin).st_mtime_ns <= _STARTED:
        return
    if (code.co_qualname, bytecode(code)) not in _code_in(read_source(origin).text, origin)[1]:
        raise UserError(_edited(origin, f"{code.co_qualname} in memory"))


@functools.lru_cache(maxsize=64)
def _code_in(text: str, origin: str) -> tuple[str, frozenset[tuple[str, str]]]:
    """What a file of source does, and (name, what it does) of every function in it; nothing where it is no Python."""
    try:
        whole = compile(text, origin, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return "", frozenset()
    return bytecode(whole), frozenset((part.co_qualname, bytecode(part)) for part in code_objects(whole))


def _edited(origin: str, what: str) -> str:
    return (
        f"{origin} was edited after Python had loaded it: {what} is not what the file says; start again (in a "
        "notebook, importlib.reload, then import anew what was imported by name; if that does not help, delete "
        "__pycache__)"
    )


def _compiled(loaded: ModuleType, origin: str) -> CodeType | None:
    """The compiled file that Python took the module from, or wrote when it loaded it; where it writes none, one that is
    not of this very source was left alone."""
    facts = os.stat(origin)
    of_this_source = b"".join((int(n) & 0xFFFFFFFF).to_bytes(4, "little") for n in (0, facts.st_mtime, facts.st_size))
    try:
        content = Path(str(loaded.__cached__)).read_bytes()
        if sys.dont_write_bytecode and content[4:16] != of_this_source:
            return None
        code = marshal.loads(content[16:])  # noqa: S302 - Python has loaded this very file already
    except (OSError, AttributeError, ValueError, EOFError, TypeError):
        return None
    return code if isinstance(code, CodeType) else None


def _may_be_stale(loaded: ModuleType, origin: str) -> bool:
    """Whether the file changed while this program ran, or after Python compiled it within the same second."""
    changed = os.stat(origin).st_mtime_ns
    compiled = getattr(loaded, "__cached__", None)
    try:
        return changed > _STARTED or (bool(compiled) and changed > os.stat(str(compiled)).st_mtime_ns)
    except FileNotFoundError:
        return False


def _functions_of(module: ModuleType, origin: str) -> Iterator[FunctionType]:
    for thing in list(vars(module).values()):
        parts = vars(thing).values() if isinstance(thing, type) else (thing,)
        for part in parts:
            found = attribute(part, "__func__", part)
            if not isinstance(found, FunctionType) or found.__module__ != module.__name__:
                continue
            code = found.__code__
            if os.path.abspath(code.co_filename) == origin and "<locals>" not in code.co_qualname:
                yield found
