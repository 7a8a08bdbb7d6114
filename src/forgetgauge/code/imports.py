"""The modules that the user's code imports are collected here, transitively, by their source; installed packages by
their versions.

Of 300 modules this takes a few hundredths of a second.
"""

from __future__ import annotations

import importlib.machinery
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from forgetgauge.code.files import file_digest
from forgetgauge.code.modules import NOT_KEYED, is_module, kind_of, origin_of, version_of
from forgetgauge.code.reading.at_import import AtImport
from forgetgauge.code.reading.calls import Read
from forgetgauge.code.reading.source import Source, imported_how, read_source
from forgetgauge.code.stale import refuse_stale


class Imports:
    """Collects modules, packages and files, beginning with those it is given; nothing is imported that is not needed
    to find a module inside a package."""

    def __init__(self) -> None:
        self.sources: dict[str, str] = {}
        """Own module -> digest of its source."""
        self.packages: dict[str, str] = {}
        """Installed package -> version; `absent` where code asks for one that is not there."""
        self.files: dict[str, str] = {}
        """File of weights -> digest of its content."""
        self.not_covered: set[str] = set()
        self.made_of_globals: dict[str, list[Read]] = {}
        """Module -> files whose names its globals make; who knows their values adds these."""
        self.at_import: dict[str, tuple[AtImport, ...]] = {}
        """Module -> what it asks of its surroundings while it is imported."""
        self.written: dict[str, frozenset[str]] = {}
        """Module -> its globals, among other names, of files that it writes and does not read."""
        self._seen: set[str] = set()

    def add(self, name: str) -> None:
        """Take a module in, with all that it imports."""
        waiting = [name]
        while waiting:
            found = waiting.pop()
            if found not in self._seen:
                self._seen.add(found)
                waiting += self._take(found)

    def add_file(self, named: str, path: str | os.PathLike[str]) -> None:
        """Take in the content of a file, by the name that code or parameters have for it."""
        self.files[named] = file_digest(Path(path))

    def add_reads(
        self, name: str, folder: Path, files: Iterable[str], reads: Iterable[Read], loose: Iterable[str]
    ) -> None:
        """Take in the files that a module's source names, from the current folder and from its own."""
        self.not_covered.update(f"{name}, {one}" for one in loose)
        for text in files:
            self._found(text, folder)
        for read in reads:
            if read.library and kind_of(read.library) in ("own", "none"):
                continue
            found = bool(read.text) and self._found(read.text, folder)
            if read.made_of is not None:
                self.made_of_globals.setdefault(name, []).append(replace(read, complaint="") if found else read)
            elif read.complaint and not found:
                self.not_covered.add(f"{name}, {read.complaint}")

    def _found(self, text: str, folder: Path) -> bool:
        places = {text: Path(text), f"beside its module: {text}": folder / text}
        found = {named: path for named, path in places.items() if os.path.isfile(path)}
        for named, path in found.items():
            self.add_file(named, path)
        return bool(found)

    def _take(self, name: str) -> list[str]:
        top = name.partition(".")[0]
        if kind_of(name) == "standard" or top in NOT_KEYED:
            return []
        origin = origin_of(name)
        if origin is None:
            if top not in sys.modules:
                self.packages[top] = "absent"
                self.not_covered.add(f"the module {name}, which is imported somewhere and not found from here")
            return []
        if kind_of(name) == "package":
            self.packages[top] = version_of(top) or "unknown"
            return []
        parents = [name.rsplit(".", n)[0] for n in range(1, name.count(".") + 1)]
        if origin.endswith(tuple(importlib.machinery.EXTENSION_SUFFIXES)):
            self.not_covered.add(f"{name}, a compiled module")
            return parents
        if not (origin.endswith(".py") and os.path.isfile(origin)):  # inside an archive it is no file
            if origin:  # empty for a folder without __init__.py, which runs nothing
                self.not_covered.add(f"{name}, whose source is not there")
            return parents
        source = read_source(origin)
        refuse_stale(name, origin, source)
        self.sources[name] = source.digest
        self.written[name] = source.written
        if source.at_import:
            self.at_import[name] = source.at_import
        self.add_reads(name, Path(origin).parent, source.files, source.reads, source.loose)
        return [*parents, *_imported_by(name, origin, source, self.packages)]


def _imported_by(name: str, origin: str, source: Source, packages: dict[str, str]) -> Iterator[str]:
    """Modules that a file of source imports; a package that it goes without is noted as absent, and no more said."""
    is_package = Path(origin).name == "__init__.py"
    for written, names in source.imports:
        base = _absolute(written, name, is_package)
        if not base:
            continue
        kind = kind_of(base)
        how = imported_how(source, base) if kind == "none" else "needs"
        if how == "tries":
            packages[base.partition(".")[0]] = "absent"
        if how == "needs":
            yield base
        if kind == "own":
            yield from (f"{base}.{one}" for one in names if is_module(base, one))


def _absolute(written: str, name: str, is_package: bool) -> str:
    """The module that `from ..part import` in the module `name` means."""
    rest = written.lstrip(".")
    dots = len(written) - len(rest)
    if not dots:
        return written
    parts = name.split(".")
    return ".".join([*parts[: len(parts) - dots + is_package], *filter(None, [rest])])
