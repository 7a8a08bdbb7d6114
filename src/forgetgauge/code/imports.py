"""The modules that the user's code imports, transitively: their source, and the versions of installed packages.

A module is the user's own unless it is part of the standard library or of a package installed in a site-packages
folder; an editable install lies elsewhere and so is the user's own. Of 300 modules this takes a few hundredths of a
second.

Code whose file was edited after Python had loaded it is refused: a key would name code that is not what runs.
"""

from __future__ import annotations

import functools
import importlib.machinery
import importlib.metadata
import importlib.util
import json
import marshal
import os
import site
import sys
import sysconfig
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from forgetgauge.code.calls import AtImport, Read
from forgetgauge.code.source import Source, file_digest, imported_how, read_source
from forgetgauge.errors import UserError
from forgetgauge.probing import attribute

NOT_KEYED = frozenset({"torch", "numpy", "scipy", "sklearn", "forgetgauge"})
"""Recorded with every artefact, and in no key: a run may go on on a machine that has other versions of these."""

_STANDARD = os.path.join(os.path.dirname(os.path.abspath(os.__file__)), "")


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
        found = {named: path for named, path in places.items() if _is_file(path)}
        for named, path in found.items():
            self.add_file(named, path)
        return bool(found)

    def _take(self, name: str) -> list[str]:
        top = name.partition(".")[0]
        if kind_of(name) == "standard" or top in NOT_KEYED:
            return []
        origin = _origin(name)
        if origin is None:
            if top not in sys.modules:
                self.packages[top] = "absent"
                self.not_covered.add(f"the module {name}, which is imported somewhere and not found from here")
            return []
        if kind_of(name) == "package":
            self.packages[top] = _version(top) or "unknown"
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


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a text that is no path
        return False


def kind_of(module: str) -> str:
    """`standard`, `package` (installed, not editable) or `own`; `none` where there is no such module."""
    top = module.partition(".")[0]
    if top == "__main__":
        return "own"
    origin = _origin(top)
    if top in sys.stdlib_module_names and (not origin or origin.startswith(_STANDARD)):
        return "standard"  # a file of the user's may have the name of a module of Python's
    if top.startswith("_cython_"):
        return "standard"  # where the types of functions are that any library compiled
    if origin is None:
        return "own" if top in sys.modules else "none"
    inside = origin.startswith(_site_folders()) or (not origin and _is_namespace_of_package(top))
    return "package" if inside and (top in NOT_KEYED or (_version(top) is not None and not _rebuilt(top))) else "own"


def _is_namespace_of_package(top: str) -> bool:
    spec = getattr(sys.modules.get(top), "__spec__", None) or importlib.util.find_spec(top)
    places = list(getattr(spec, "submodule_search_locations", None) or ())
    return bool(places) and all(str(place).startswith(_site_folders()) for place in places)


def source_file(module: str) -> str | None:
    """The file of an own module's source."""
    origin = _origin(module) if kind_of(module) == "own" else None
    return origin if origin and origin.endswith(".py") and os.path.isfile(origin) else None


@functools.cache
def _site_folders() -> tuple[str, ...]:
    folders = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), site.getusersitepackages()}
    folders |= set(site.getsitepackages())
    return tuple(os.path.join(os.path.realpath(folder), "") for folder in folders if folder) + tuple(
        os.path.join(folder, "") for folder in folders if folder
    )


def _origin(name: str) -> str | None:
    """The file of a module, loaded or not; empty for a namespace package; None where there is none."""
    loaded = sys.modules.get(name)
    if loaded is not None:
        file = getattr(loaded, "__file__", None)
        return os.path.abspath(file) if file else "" if hasattr(loaded, "__path__") else None
    parent = name.rpartition(".")[0]
    if parent and _origin(parent) is None:
        return None
    try:
        spec = importlib.util.find_spec(name)
    except Exception:  # a parent package that raises while it is imported: the code that asks for it will tell
        return None
    if spec is None:
        return None
    return os.path.abspath(spec.origin) if spec.origin and spec.has_location else ""


def _version(top: str) -> str | None:
    """Of the distribution that a top-level module belongs to, with its commit or hash where it is of no index; None
    where no distribution has it."""
    return _distribution(top)[0]


def _rebuilt(top: str) -> bool:
    """Whether a package was installed from a folder of the user's: its version stays while it is edited."""
    return _distribution(top)[1]


@functools.cache
def _distribution(top: str) -> tuple[str | None, bool]:
    try:
        found = importlib.metadata.distribution(top)
    except importlib.metadata.PackageNotFoundError:
        owners = _distributions().get(top, [])
        if not owners:
            return None, False
        found = importlib.metadata.distribution(owners[0])
    told = json.loads(found.read_text("direct_url.json") or "{}")  # PEP 610
    if not told or (found.read_text("INSTALLER") or "").strip() == "conda":  # which tells where it was built
        return found.version, False
    archive = told.get("archive_info", {})
    exactly = told.get("vcs_info", {}).get("commit_id") or archive.get("hash") or archive.get("hashes")
    return f"{found.version} {exactly}" if exactly else found.version, told["url"].startswith("file:") and not exactly


@functools.cache
def _distributions() -> Any:
    return importlib.metadata.packages_distributions()


def _imported_by(name: str, origin: str, source: Source, packages: dict[str, str]) -> Iterator[str]:
    """Modules that a file of source imports; a package that it goes without is noted as absent, and no more said."""
    is_package = Path(origin).name == "__init__.py"
    for base, names in source.imports:
        dots = len(base) - len(base.lstrip("."))
        if dots:
            parts = name.split(".")
            kept = parts[: len(parts) - dots + is_package]
            base = ".".join([*kept, *filter(None, [base[dots:]])])
        if not base:
            continue
        how = imported_how(source, base) if kind_of(base) == "none" else "needs"
        if how == "tries":
            packages[base.partition(".")[0]] = "absent"
        if how != "needs":
            continue
        yield base
        if kind_of(base) == "own":
            yield from (f"{base}.{one}" for one in names if _is_module(base, one))


def _is_module(base: str, name: str) -> bool:
    """Whether a name taken from a package is a module of it."""
    if f"{base}.{name}" in sys.modules:
        return True
    if name in vars(sys.modules.get(base, ModuleType("none"))):
        return False
    places = getattr(sys.modules.get(base), "__path__", None) or _places_of(base)
    return any(os.path.exists(os.path.join(place, name + end)) for place in places for end in ("", ".py"))


def _places_of(package: str) -> list[str]:
    """The folders of a package that is not loaded."""
    try:
        spec = importlib.util.find_spec(package)
    except Exception:  # a parent that raises while it is imported
        return []
    return list(spec.submodule_search_locations or ()) if spec else []


# -- edited after it was loaded ----------------------------------------------------------------------------------------

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
    compiled = _compiled(loaded)
    if compiled is not None and bytecode(compiled) != whole:
        raise UserError(_edited(origin, "what Python compiled"))
    for function in _functions_of(loaded, origin):
        if (function.__code__.co_qualname, bytecode(function.__code__)) not in on_disk:
            raise UserError(_edited(origin, f"{function.__qualname__} in memory"))


def refuse_held(code: CodeType) -> None:
    """UserError where a function is not the one that its file has now: it is held from before a reload, or its script
    was edited while it runs."""
    origin = os.path.abspath(code.co_filename)
    if not _is_file(Path(origin)) or os.stat(origin).st_mtime_ns <= _STARTED:
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
    return bytecode(whole), frozenset((part.co_qualname, bytecode(part)) for part in _code_objects(whole))


def _edited(origin: str, what: str) -> str:
    return (
        f"{origin} was edited after Python had loaded it: {what} is not what the file says; start again (in a "
        "notebook, importlib.reload, then import anew what was imported by name; if that does not help, delete "
        "__pycache__)"
    )


def _compiled(loaded: ModuleType) -> CodeType | None:
    """The compiled file that Python took the module from, or wrote when it loaded it."""
    try:
        content = Path(str(loaded.__cached__)).read_bytes()
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


def _code_objects(code: CodeType) -> Iterator[CodeType]:
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield part
            yield from _code_objects(part)


def bytecode(code: CodeType) -> str:
    """What a function does, without where it stands: lines, files and addresses do not count."""
    constants = [
        bytecode(part)
        if isinstance(part, CodeType)
        else repr(sorted(map(repr, part)) if isinstance(part, frozenset) else part)
        for part in code.co_consts
    ]
    return repr((code.co_code, code.co_names, code.co_varnames, code.co_freevars, constants))
