"""What code names globally is followed here: each such global counts by value, and so does the code it leads to."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path, PurePath
from types import FunctionType, ModuleType
from typing import Any

from forgetgauge.code.files import name_from_here
from forgetgauge.code.functions import functions_in, module_of, names_in, source_of, texts_in
from forgetgauge.code.modules import kind_of
from forgetgauge.code.reading.calls import Calls, Read
from forgetgauge.code.reading.paths import value_of
from forgetgauge.code.reading.source import files_in
from forgetgauge.code.stale import refuse_held
from forgetgauge.code.walk import Walk
from forgetgauge.probing import attribute


def follow_globals(walk: Walk) -> None:
    """Look at the globals of all code met so far, and of the code these lead to."""
    _Globals(walk).follow()


class _Globals:
    def __init__(self, walk: Walk) -> None:
        self._walk = walk
        self._imports = walk.imports
        self._named: set[str] = set()
        """Those of modules that code names by an attribute of the module."""
        self._spaces: dict[str, Mapping[str, Any]] = {}
        """Module -> its globals, of those whose functions were met."""
        self._counted: dict[tuple[str, int], Any] = {}
        """Globals that count by value: by their name and which object they are."""

    def follow(self) -> None:
        while self._walk.waiting:
            thing = self._walk.waiting.pop()
            for function in filter(self._walk.is_own, functions_in(thing)):
                refuse_held(function.__code__)
                self._follow(function)
        for module, reads in self._imports.made_of_globals.items():
            for read in reads:
                if not self._is_known_by_value(read, self._spaces.get(module, {})) and read.complaint:
                    self._walk.not_covered(f"{module}, {read.complaint}")
        for module, asked in self._imports.at_import.items():
            space = vars(sys.modules[module]) if module in sys.modules else {}
            for one in asked:
                if not one.names or not all(name in space and self._counts(name, space[name]) for name in one.names):
                    self._walk.not_covered(f"{module}, {one.what}")

    def _counts(self, name: str, value: Any) -> bool:
        """Whether a global counts by value, or is a function or class whose defaults and attributes do."""
        return (name, id(value)) in self._counted or id(value) in self._walk.met

    def _is_known_by_value(self, read: Read, space: Mapping[str, Any]) -> bool:
        """Whether a file's name is known by the globals' values: its content counts then."""
        try:
            value = value_of(read.made_of, space) if read.made_of is not None else None
        except Exception:  # a name that is not there yet, a path that cannot be made
            return False
        if not isinstance(value, str | PurePath):
            return True  # an open file, an array: these count by themselves
        found = len(str(value)) < 1000 and os.path.isfile(value)
        if found:
            self._imports.add_file(name_from_here(Path(value)), value)
        return found

    def _follow(self, function: FunctionType) -> None:
        """Look at the globals that a function names."""
        names, space, module = names_in(function.__code__), function.__globals__, module_of(function)
        self._spaces[module] = space
        if self._walk.takes_source(module):
            written = self._imports.written.get(module, frozenset())
        else:  # what it imports itself stands in no file that is read
            for name in sorted(names - space.keys()):
                if kind_of(name) == "own":
                    self._imports.add(name)
            written = self._read_source_of(function)
        asked = names | texts_in(function.__code__)  # of a module, by getattr
        for name in sorted(names & space.keys()):
            value, where = space[name], f"{module}.{name}"
            if name in written and isinstance(value, str | PurePath):
                self._counted[name, id(value)] = value
                self._walk.lines.add(f"global {where} = {name_from_here(PurePath(value))!r}")
            else:
                self._take(value, where, asked)

    def _read_source_of(self, function: FunctionType) -> frozenset[str]:
        """What a function of a script, of a notebook or of no file reads, as far as its source is there; the globals,
        among other names, of files that it only writes."""
        source = source_of(function.__code__)
        if source is None:
            return frozenset()
        text, space = textwrap.dedent(source), function.__globals__
        aliases = {name: whole for name in names_in(function.__code__) & space.keys() if (whole := _alias(space[name]))}
        calls = Calls(text, aliases=aliases, names=space.keys(), first_line=function.__code__.co_firstlineno)
        for name, _ in calls.imports:
            self._imports.add(name)
        folder = Path(str(space.get("__file__") or "")).parent
        self._imports.add_reads(module_of(function), folder, files_in(text, calls), calls.reads, calls.loose)
        return calls.written

    def _take(self, value: Any, where: str, names: set[str]) -> None:
        """Describe a global; of a module of the user's, those of its globals that have one of the names."""
        if not isinstance(value, ModuleType):
            self._counted[where.rpartition(".")[2], id(value)] = value
            self._walk.lines.add(f"global {where} = {self._walk.describe(value, f'the global {where}')}")
            return
        self._imports.add(value.__name__)
        if kind_of(value.__name__) == "own":
            for name in sorted(names & vars(value).keys()):
                if (whole := f"{value.__name__}.{name}") not in self._named:
                    self._named.add(whole)
                    self._take(vars(value)[name], whole, names)


def _alias(value: Any) -> str:
    """What a global stands for, if that is a module or something of a library's: `numpy`, `io.open`, `os.environ`."""
    if isinstance(value, ModuleType):
        return value.__name__
    if value is os.environ:
        return "os.environ"
    if value is open:
        return "open"
    if type(value).__module__ == "configparser":
        return "configparser.parser"
    module, name = attribute(value, "__module__"), attribute(value, "__qualname__")
    known = isinstance(module, str) and isinstance(name, str) and kind_of(module) in ("standard", "package")
    return f"{module}.{name}" if known else ""
