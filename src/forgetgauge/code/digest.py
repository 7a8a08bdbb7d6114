"""The digest is put together here: of objects, of all source that they lead to, and of the files that are named.

It makes a stored result that of this very function, and of no earlier version of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import Any

from forgetgauge.code.descriptions import Descriptions
from forgetgauge.code.functions import folder_of
from forgetgauge.code.named_globals import follow_globals
from forgetgauge.probing import attribute


@dataclass(frozen=True)
class Code:
    """What stands for the user's own code in a key; both empty for what we ship."""

    digest: str = ""
    not_covered: tuple[str, ...] = ()
    """What may change without changing the digest."""
    files: tuple[str, ...] = ()
    """Those that parameters and defaults name, as a path that leads there from here."""


def code_of(*things: Any, files: Iterable[Path] = (), params: Any = None) -> Code:
    """The digest of objects with all that their code depends on, and of the content of files; empty for nothing.

    `params` are given to these objects: every file that they name counts, too.
    """
    walk = Descriptions()
    folders = [folder for thing in things if (folder := folder_of(thing))]
    roots = [walk.describe(thing, "what was given") for thing in things]
    for thing in things:
        if not isinstance(thing, type | FunctionType):
            walk.parameter_files.take(attribute(thing, "__dict__", {}), folders)
    walk.parameter_files.take(params, folders)
    follow_globals(walk)
    found = walk.imports
    for number, file in enumerate(files):
        found.add_file(f"{number} {file.name}", file)
    if not things and not found.files:
        return Code()
    contents = [sorted(part.items()) for part in (found.sources, found.packages, found.files)]
    digest = hashlib.sha256(repr([roots, sorted(walk.lines), *contents]).encode()).hexdigest()
    return Code(digest, tuple(sorted(found.not_covered)), tuple(sorted(walk.parameter_files.names)))


def code_digest(thing: Any) -> str:
    """The digest of one object with all that its code depends on."""
    return code_of(thing).digest
