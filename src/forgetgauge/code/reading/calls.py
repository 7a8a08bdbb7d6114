"""Calls are read here: which modules they import, which files they read, and what is known only when they run.

A file is known where its name is written in the source, or is made of globals, which have a value. Any call of a
library counts that is given the name of a file, unless it looks like one that writes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

from forgetgauge.code.reading.at_import import AtImport, asked_at_import
from forgetgauge.code.reading.known_calls import (
    BY_FILE,
    BY_NAME,
    HELD_OUTSIDE,
    LOADERS,
    LOOKS_READING,
    LOOKS_WRITING,
    OUTSIDE,
    OUTSIDE_OF_PATHS,
    READERS,
    READERS_OF_LIBRARIES,
    SURELY_READING,
)
from forgetgauge.code.reading.paths import (
    IN_MEMORY,
    MAY_NAME_A_FILE,
    PATH_MAKERS,
    PATH_METHODS,
    looks_like_a_path,
    makes_parser,
    mode_of,
    put_together,
)
from forgetgauge.code.reading.scopes import parsed
from forgetgauge.code.reading.syntax import (
    Names,
    Nodes,
    argument,
    arguments,
    known_names,
    last_name,
    literal,
    walk,
)
from forgetgauge.code.reading.writes import Writes


@dataclass(frozen=True)
class Read:
    """A file that is read."""

    text: str
    """Its name as far as it is written in the source; empty where nothing of it is."""
    made_of: ast.expr | None
    """An expression of globals that gives its name."""
    complaint: str
    """What is said where it is not found; empty where nothing need be said."""
    library: str = ""
    """Whose call it is, where that must be no module of the user's, which says itself what it reads."""


@dataclass(frozen=True)
class _Call:
    """A call, and where it stands."""

    node: ast.Call
    inside: ast.AST | None
    """The function by which it runs when that is called."""
    whole: str
    """`torch.jit.load`; empty where it begins with no name."""

    @cached_property
    def name(self) -> str:
        """`load`."""
        return self.whole.rpartition(".")[2] or getattr(self.node.func, "attr", "")

    @property
    def root(self) -> str:
        """`torch`; empty for a name alone."""
        return self.whole.partition(".")[0] if "." in self.whole else ""

    @property
    def owner(self) -> ast.expr | None:
        """What it is a method of, or the module it is from."""
        return self.node.func.value if isinstance(self.node.func, ast.Attribute) else None

    @property
    def here(self) -> str:
        """How people find it."""
        return f"line {self.node.lineno}: {self.name}(…)"

    def argument(self, place: int, *names: str) -> ast.expr | None:
        return argument(self.node, place, *names)


class Calls:
    """What source imports and reads by calls: followed where the name is known, else named as loose."""

    def __init__(
        self, text: str, *, aliases: Mapping[str, str] | None = None, names: Collection[str] = (), first_line: int = 1
    ) -> None:
        self.imports: list[tuple[str, tuple[str, ...]]] = []
        self.reads: list[Read] = []
        self.loose: list[str] = []
        self.at_import: list[AtImport] = []
        self.written: frozenset[str] = frozenset()
        """Texts and globals that name files, and stand nowhere but where these are written."""
        found = parsed(text, first_line)
        if found is None:
            return
        tree, stood_for = found
        nodes = list(walk(tree))
        self._names = Names(nodes, aliases or {})
        self._parsers = {name for name, whole in self._names.aliases.items() if whole.startswith("configparser.")}
        self._parsers |= _parsers_made(nodes)
        self._globals = {*names, *known_names(tree, nodes)}
        self._known = self._globals | self._names.aliases.keys()
        self._writes = Writes(nodes, stood_for)
        for node, inside in nodes:
            if isinstance(node, ast.Call):
                self._look(_Call(node, inside, self._names.whole(node.func)))
            elif inside and isinstance(node, ast.expr) and (whole := self._names.looked_at(node)) in HELD_OUTSIDE:
                self.loose.append(f"line {node.lineno}: {whole}, whose content is known only when it runs")
        self.at_import = list(asked_at_import(tree, self._names))
        self.written = self._writes.only(tree, nodes)

    def _look(self, call: _Call) -> None:
        name = call.name
        if name in BY_NAME:
            self._import(call)
        elif name in BY_FILE:
            place = 0 if name == "run_path" else 1
            self._read(call, call.argument(place, "path", "location"), "runs code that")
        elif name in ("exec", "eval", "getenv") and (call.owner is None or call.root in ("os", "builtins")):
            by_value = not call.inside if name == "getenv" else not _names_something(literal(call.argument(0)))
            if not by_value:
                self._known_when_it_runs(call)
        elif OUTSIDE.fullmatch(call.whole) or (call.owner is not None and name in OUTSIDE_OF_PATHS):
            if call.inside:  # else a global holds what came of it, by value
                self._known_when_it_runs(call)
        elif name in ("read_text", "read_bytes") and call.owner and not call.whole.startswith("pathlib."):
            self._read(call, call.owner)
        elif name == "open":
            if not self._opens_to_write(call, call.owner):
                self._read(call, call.owner if call.owner and not call.node.args else call.argument(0, "file"))
        elif _is_reader(call):
            if not self._opens_to_write(call, None):
                self._read(call, call.argument(0, "filename", "fname", "file", "name"))
        elif name == "read" and call.owner and self._is_parser(call.owner):
            given = call.argument(0, "filenames")
            for one in getattr(given, "elts", [given]):
                self._read(call, one)
        elif call.inside:
            self._may_read(call)

    def _known_when_it_runs(self, call: _Call) -> None:
        self.loose.append(f"{call.here}, whose outcome is known only when it runs")

    def _is_parser(self, owner: ast.expr) -> bool:
        """Whether it is a parser of `configparser`, whose `read` reads files."""
        return makes_parser(owner) or last_name(owner) in self._parsers

    def _opens_to_write(self, call: _Call, owner: ast.expr | None) -> bool:
        """Whether a file is opened to be written; one that is read as well does not count, and is named."""
        mode = mode_of(call.node, owner)
        if "+" in mode and not set("wx") & set(mode):
            self.loose.append(f"{call.here} reads what a file holds that it also writes")
        return any(c in mode for c in "wax+")

    def _import(self, call: _Call) -> None:
        given = call.argument(1, "package")
        name, package = literal(call.argument(0, "name")), literal(given)
        if name and not name.startswith("."):
            self.imports.append((name, ()))
        elif name and package:
            self.imports.append((package + name, ()))
        elif name and isinstance(given, ast.Name) and given.id == "__package__":
            self.imports.append((name, ()))
        else:
            self.loose.append(f"{call.here}, which runs code that is named only then")

    def _read(self, call: _Call, what: ast.expr | None, does: str = "reads what") -> None:
        """A file whose name is a literal, or is put together of literals and globals."""
        if isinstance(what, ast.Call) and last_name(what.func) in IN_MEMORY:
            return
        if what is not None and self._writes.are_read_by(call.node, what, call.inside):
            self.loose.append(f"{call.here} {does} a file holds that it also writes")
            return
        text, named, whole = ("", set[str](), False) if what is None else put_together(what)
        made_of = what if named and named <= self._known else None
        if text and whole:
            self.reads.append(Read(text, made_of, f"{call.here} {does} a file holds that is not found from here"))
            return
        complaint = f"{call.here} {does} a file holds that is named only then (a parameter that names it counts)"
        if made_of is None:
            self.loose.append(complaint)
        else:
            by_value = not call.inside and whole and named <= self._globals
            self.reads.append(Read("", made_of, "" if by_value else complaint))

    def _may_read(self, call: _Call) -> None:
        """Any other call that is given the name of a file: of a library, or of an object by a name of reading."""
        name = call.name
        if name in PATH_MAKERS or name in PATH_METHODS or any(c in mode_of(call.node, None) for c in "wax+"):
            return
        library = root if (root := call.whole.partition(".")[0]) in self._names.roots else ""
        of_an_object = call.owner is not None and LOOKS_READING.match(name)
        if not of_an_object and (not library or LOOKS_WRITING.search(name)):
            return
        for what in [one for part in arguments(call.node) for one in getattr(part, "elts", [part])]:
            if not isinstance(what, MAY_NAME_A_FILE):
                continue
            if isinstance(what, ast.Call) and SURELY_READING.match(last_name(what.func)):
                continue  # `load_state_dict(torch.load(…))`: the inner one tells
            text, named, complete = put_together(what)
            known = bool(named) and named <= self._known
            said = text if complete and re.search(r"[./]", text) and "\n" not in text and len(text) < 200 else ""
            does = "reads what a file holds that is not found from here" if looks_like_a_path(what) else ""
            complaint = f"{call.here} {does}" if does and SURELY_READING.match(name) else ""
            if said or known or complaint:
                self.reads.append(Read(said, what if known else None, complaint, library))


def _is_reader(call: _Call) -> bool:
    return (
        call.name in READERS
        or READERS_OF_LIBRARIES.fullmatch(call.whole) is not None
        or (call.name == "load" and call.root in LOADERS)
    )


def _parsers_made(nodes: Nodes) -> set[str]:
    """Names of what holds a parser of `configparser`."""
    made = [node for node, _ in nodes if isinstance(node, ast.Assign) and makes_parser(node.value)]
    return {last_name(to) for node in made for to in node.targets} - {""}


def _names_something(code: str | None) -> bool:
    """Whether code that is a text may depend on globals, which are not looked for in texts; None: it is not known."""
    if code is None:
        return True
    try:
        return any(isinstance(node, ast.Name) for node in ast.walk(ast.parse(code)))
    except SyntaxError:
        return False
