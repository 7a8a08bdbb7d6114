"""One file of source is read here: what it imports, which files it reads, and what of that is known only when it runs.

It is found by reading, so that imports and calls inside functions count too; a file is read again only when it changed.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from forgetgauge.code.files import WEIGHTS
from forgetgauge.code.reading.at_import import AtImport
from forgetgauge.code.reading.calls import Calls, Read
from forgetgauge.code.reading.known_calls import MAY_CALL

_IMPORT = re.compile(
    r"(?:^|[;:])[ \t]*(?:from[ \t]+(?P<base>[.\w]+)[ \t]+import[ \t]*(?P<names>\([^)]*\)|[^\n;#]*)"
    r"|import[ \t]+(?P<plain>[^\n;#]+))",
    re.MULTILINE,
)
_FILE = re.compile(rf"""["']([^"'\n]{{1,200}}\.(?:{WEIGHTS}))["']""", re.IGNORECASE)


@dataclass(frozen=True)
class Source:
    """What one file of source says, besides what it does."""

    digest: str
    text: str
    imports: tuple[tuple[str, tuple[str, ...]], ...]
    """(module as written, names taken from it); a relative one begins with dots."""
    files: tuple[str, ...]
    """String literals that look like the name of a file of weights."""
    loose: tuple[str, ...]
    """What cannot be followed: `line 3: import_module(name)`."""
    reads: tuple[Read, ...]
    """Files that calls read."""
    at_import: tuple[AtImport, ...] = ()
    """What it asks of its surroundings while it is imported."""
    written: frozenset[str] = frozenset()
    """Texts and globals that name files which it writes, and does not read."""


def read_source(path: str) -> Source:
    """A file of source, read again only when it changed."""
    facts = os.stat(path)
    return _read_source(path, facts.st_mtime_ns, facts.st_size)


@functools.lru_cache(maxsize=4096)
def _read_source(path: str, _mtime: int, _size: int) -> Source:
    content = Path(path).read_bytes()
    text = content.decode("utf-8", errors="replace")
    joined = re.sub(r"#[^\n]*", "", text).replace("\\\n", " ")
    imports = [(base, tuple(names)) for base, names in _imports(joined)]
    calls = Calls(text) if MAY_CALL.search(text) else Calls("")
    digest = hashlib.sha256(content.replace(b"\r\n", b"\n")).hexdigest()
    said = (tuple(calls.loose), tuple(calls.reads), tuple(calls.at_import), calls.written)
    return Source(digest, text, (*imports, *calls.imports), files_in(text, calls), *said)


def files_in(text: str, calls: Calls) -> tuple[str, ...]:
    """String literals that look like the name of a file of weights, unless that is only written."""
    return tuple(name for name in dict.fromkeys(_FILE.findall(text)) if name not in calls.written)


def _imports(text: str) -> Iterator[tuple[str, list[str]]]:
    """What looks like an import: a line of a string that does is taken too, which costs nothing but a look."""
    for found in _IMPORT.finditer(text):
        if found["base"]:
            yield found["base"], _names(found["names"].strip("()"))
        else:
            yield from ((name, []) for name in _names(found["plain"]))


def _names(listed: str) -> list[str]:
    parts = (part.split("#")[0].split() for line in listed.replace("\\", " ").split("\n") for part in line.split(","))
    return [words[0] for words in parts if words and re.fullmatch(r"[\w.]+", words[0])]


def imported_how(source: Source, name: str) -> str:
    """How code imports what cannot be found: it `needs` it, or `tries` it and goes without; empty where a line of a
    string alone looks like that."""
    try:
        nodes = list(ast.walk(ast.parse(source.text)))
    except (SyntaxError, ValueError):
        return ""
    bodies = [node.body for node in nodes if isinstance(node, ast.Try) and _goes_without(node)]
    tried = {id(part) for body in bodies for one in body for part in ast.walk(one)}
    found = [id(node) in tried for node in nodes if _imports_it(node, name)]
    return "" if not found else "tries" if all(found) else "needs"


def _goes_without(node: ast.Try) -> bool:
    """`try: import …` and `except ImportError`."""
    caught = [handler.type for handler in node.handlers]
    named = {getattr(part, "id", "") for one in caught if one is not None for part in ast.walk(one)}
    return None in caught or bool(named & {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})


def _imports_it(node: ast.AST, name: str) -> bool:
    return (isinstance(node, ast.Import) and any(alias.name == name for alias in node.names)) or (
        isinstance(node, ast.ImportFrom) and node.module == name
    )
