"""The modules that the user's code imports, transitively: their source, and the versions of installed packages.

Imports are found by reading source, so that those inside functions count too. A module is the user's own unless it is
part of the standard library or of a package installed in a site-packages folder; an editable install lies elsewhere and
so is the user's own. Of 300 modules this takes a few hundredths of a second; a file is read again only when it changed.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.machinery
import importlib.metadata
import importlib.util
import marshal
import os
import re
import site
import sys
import sysconfig
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from forgetgauge.errors import UserError

NOT_KEYED = frozenset({"torch", "numpy", "scipy", "sklearn", "forgetgauge"})
"""Recorded with every artefact, and in no key: a run may go on on a machine that has other versions of these."""

WEIGHTS = r"pt|pth|bin|ckpt|safetensors|npz|npy|pkl|pickle|joblib|h5|hdf5|onnx|gguf|tar|json|yaml|yml|toml"
"""Endings of files that code reads its weights, arrays and settings from."""

_STARTED = time.time_ns()
_LOADED: dict[str, tuple[Any, str]] = {}
"""Module -> how it was loaded, and the digest of its source when that was first seen."""
_STANDARD = os.path.join(os.path.dirname(os.path.abspath(os.__file__)), "")
_IMPORT = re.compile(
    r"(?:^|[;:])[ \t]*(?:from[ \t]+(?P<base>[.\w]+)[ \t]+import[ \t]*(?P<names>\([^)]*\)|[^\n;#]*)"
    r"|import[ \t]+(?P<plain>[^\n;#]+))",
    re.MULTILINE,
)
_FILE = re.compile(rf"""["']([^"'\n]{{1,200}}\.(?:{WEIGHTS}))["']""", re.IGNORECASE)
_READERS = frozenset({"load_file", "loadtxt", "genfromtxt", "from_pretrained", "read_csv"})
_CALLS = re.compile(
    r"import_module|__import__|spec_from_file_location|SourceFileLoader|run_path|run_module|(?<![.\w])(?:exec|eval)\(|getenv"
    r"|\bload|loadtxt|genfromtxt|from_pretrained|read_csv|read_text|read_bytes|\bopen\("
)
_BY_NAME = frozenset({"import_module", "__import__", "run_module"})
_BY_FILE = frozenset({"run_path", "spec_from_file_location", "SourceFileLoader"})
_LOADERS = frozenset({"torch", "np", "numpy", "pickle", "joblib"})


@dataclass(frozen=True)
class Source:
    """What one file of source says, besides what it does."""

    digest: str
    text: str
    imports: tuple[tuple[str, tuple[str, ...]], ...]
    """(module as written, names taken from it); a relative one begins with dots."""
    files: tuple[str, ...]
    """String literals that look like the name of a file of weights, and files of code that are run by name."""
    loose: tuple[str, ...]
    """What cannot be followed: `line 3: import_module(name)`."""
    wanted: tuple[tuple[str, str], ...]
    """(file, what reads it): not covered where the file is not found."""


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
        if not origin.endswith(".py"):
            if origin:  # empty for a folder without __init__.py, which runs nothing
                self.not_covered.add(f"{name}, whose source is not there")
            return parents
        source = read_source(origin)
        _refuse_stale(name, origin, source)
        self.sources[name] = source.digest
        self.not_covered.update(f"{name}, {loose}" for loose in source.loose)
        places = {"": Path(), "beside its module: ": Path(origin).parent}
        found = {(said, text) for said, place in places.items() for text in source.files if (place / text).is_file()}
        for said, text in found:
            self.add_file(f"{said}{text}", places[said] / text)
        missing = [call for text, call in source.wanted if not any(text == named for _, named in found)]
        self.not_covered.update(f"{name}, {call}" for call in missing)
        return [*parents, *_imported_by(name, origin, source)]


def kind_of(module: str) -> str:
    """`standard`, `package` (installed, not editable) or `own`; `none` where there is no such module."""
    top = module.partition(".")[0]
    if top == "__main__":
        return "own"
    origin = _origin(top)
    if top in sys.stdlib_module_names and (not origin or origin.startswith(_STANDARD)):
        return "standard"  # a file of the user's may have the name of a module of Python's
    if origin is None:
        return "own" if top in sys.modules else "none"
    inside = origin.startswith(_site_folders()) or (not origin and _is_namespace_of_package(top))
    return "package" if inside and (_version(top) is not None or top in NOT_KEYED) else "own"


def _is_namespace_of_package(top: str) -> bool:
    spec = getattr(sys.modules.get(top), "__spec__", None) or importlib.util.find_spec(top)
    places = list(getattr(spec, "submodule_search_locations", None) or ())
    return bool(places) and all(str(place).startswith(_site_folders()) for place in places)


def source_file(module: str) -> str | None:
    """The file of an own module's source."""
    origin = _origin(module) if kind_of(module) == "own" else None
    return origin if origin and origin.endswith(".py") else None


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


@functools.cache
def _version(top: str) -> str | None:
    """Of the distribution that a top-level module belongs to; None where no distribution has it."""
    try:
        return importlib.metadata.version(top)
    except importlib.metadata.PackageNotFoundError:
        owners = _distributions().get(top, [])
        return importlib.metadata.version(owners[0]) if owners else None


@functools.cache
def _distributions() -> Any:
    return importlib.metadata.packages_distributions()


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
    calls = _Calls(text) if _CALLS.search(text) else None
    files = dict.fromkeys(_FILE.findall(text))
    if calls is not None:
        imports += calls.imports
        files |= dict.fromkeys(file for file, _ in calls.files)
    digest = hashlib.sha256(content.replace(b"\r\n", b"\n")).hexdigest()
    loose, wanted = (tuple(calls.loose), tuple(calls.files)) if calls else ((), ())
    return Source(digest, text, tuple(imports), tuple(files), loose, wanted)


def file_digest(path: Path) -> str:
    """SHA-256 of a file, computed again only when it changed."""
    facts = path.stat()
    return _file_digest(str(path.resolve()), facts.st_mtime_ns, facts.st_size)


@functools.lru_cache(maxsize=256)
def _file_digest(path: str, _mtime: int, _size: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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


def _imported_by(name: str, origin: str, source: Source) -> Iterator[str]:
    is_package = Path(origin).name == "__init__.py"
    for base, names in source.imports:
        dots = len(base) - len(base.lstrip("."))
        if dots:
            parts = name.split(".")
            kept = parts[: len(parts) - dots + is_package]
            base = ".".join([*kept, *filter(None, [base[dots:]])])
        if not base or (kind_of(base) == "none" and not _really_imports(source, base)):
            continue
        yield base
        if kind_of(base) == "own":
            yield from (f"{base}.{one}" for one in names if _is_module(base, one))


def _really_imports(source: Source, name: str) -> bool:
    """Whether an import of what cannot be found is code, not a line of a string that looks like one."""
    try:
        nodes = list(ast.walk(ast.parse(source.text)))
    except (SyntaxError, ValueError):
        return False
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return name in plain or any(isinstance(node, ast.ImportFrom) and node.module == name for node in nodes)


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


class _Calls:
    """What a module imports and reads by calls: followed where the name is a literal, else named as loose."""

    def __init__(self, text: str) -> None:
        self.imports: list[tuple[str, tuple[str, ...]]] = []
        self.files: list[tuple[str, str]] = []
        self.loose: list[str] = []
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError):
            return
        nodes = list(ast.walk(tree))
        aliases = [
            (alias.asname or alias.name, alias.name) for n in nodes if isinstance(n, ast.Import) for alias in n.names
        ]
        self._modules = dict(aliases)
        self._taken = {
            alias.asname or alias.name
            for n in nodes
            if isinstance(n, ast.ImportFrom) and (n.module or "").partition(".")[0] in _LOADERS
            for alias in n.names
        }
        assigned = [n for n in tree.body if isinstance(n, ast.Assign | ast.AnnAssign)]
        self._globals = {part.id for n in assigned for part in ast.walk(n) if isinstance(part, ast.Name)}
        opened = [item for n in nodes if isinstance(n, ast.With) for item in n.items]  # with open("…") as file
        self._globals |= {item.optional_vars.id for item in opened if isinstance(item.optional_vars, ast.Name)}
        for node in nodes:
            if isinstance(node, ast.Call):
                self._look(node)

    def _look(self, call: ast.Call) -> None:
        function = call.func
        owner = function.value if isinstance(function, ast.Attribute) else None
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        here = f"line {call.lineno}: {name}(…)"
        if name in _BY_NAME:
            self._import(call, here)
        elif name in _BY_FILE:
            self._read(_argument(call, 0 if name == "run_path" else 1, "path", "location"), here, "runs code that")
        elif name in ("exec", "eval", "getenv") and (owner is None or self._root(owner) in ("os", "builtins")):
            if name == "getenv" or _text(_argument(call, 0)) is None:
                self.loose.append(f"{here}, whose outcome is known only when it runs")
        elif name in ("read_text", "read_bytes") and owner is not None:
            self._read(owner, here, "reads what")
        elif name == "open" and not _writes(call, owner):
            self._read(owner if owner is not None and not call.args else _argument(call, 0, "file"), here, "reads what")
        elif name in _READERS or name in self._taken & {"load"} or (name == "load" and self._root(owner) in _LOADERS):
            self._read(_argument(call, 0), here, "reads what")

    def _root(self, owner: ast.expr | None) -> str:
        """`torch` of `T.jit` after `import torch as T`."""
        while isinstance(owner, ast.Attribute):
            owner = owner.value
        return self._modules.get(owner.id, owner.id).partition(".")[0] if isinstance(owner, ast.Name) else ""

    def _import(self, call: ast.Call, here: str) -> None:
        name, package = _text(_argument(call, 0, "name")), _text(_argument(call, 1, "package"))
        if name and not name.startswith("."):
            self.imports.append((name, ()))
        elif name and package:
            self.imports.append((package + name, ()))
        elif name and isinstance(given := _argument(call, 1, "package"), ast.Name) and given.id == "__package__":
            self.imports.append((name, ()))
        else:
            self.loose.append(f"{here}, which runs code that is named only then")

    def _read(self, what: ast.expr | None, here: str, does: str) -> None:
        """A file whose name is a literal, or is put together of literals; a global counts by value."""
        parts = (
            [] if what is None else [node for node in ast.walk(what) if isinstance(node, ast.Constant) and _text(node)]
        )
        literals = [str(node.value) for node in sorted(parts, key=lambda node: (node.lineno, node.col_offset))]
        named = {part.id for part in ast.walk(what) if isinstance(part, ast.Name)} if what is not None else set()
        made_up = what is None or any(isinstance(part, ast.JoinedStr) for part in ast.walk(what))
        if literals and not made_up:
            self.files.append(("/".join(literals), f"{here} {does} a file holds that is not found from here"))
        elif made_up or not named or not named <= self._globals:
            self.loose.append(f"{here} {does} a file holds that is named only then (a parameter that names it counts)")


def _argument(call: ast.Call, place: int, *names: str) -> ast.expr | None:
    by_name = [keyword.value for keyword in call.keywords if keyword.arg in names]
    return call.args[place] if len(call.args) > place else by_name[0] if by_name else None


def _writes(call: ast.Call, owner: ast.expr | None) -> bool:
    """Whether a file is opened to be written."""
    mode = _text(_argument(call, 0 if owner is not None and not isinstance(owner, ast.Name) else 1, "mode"))
    return mode is not None and any(letter in mode for letter in "wax")


def _text(node: ast.AST | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _refuse_stale(name: str, origin: str, source: Source) -> None:
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
    try:
        whole = compile(source.text, origin, "exec", dont_inherit=True)
        on_disk = {(part.co_qualname, bytecode(part)) for part in _code_objects(whole)}
    except (SyntaxError, ValueError):
        whole, on_disk = None, set()
    compiled = _compiled(loaded)
    if compiled is not None and (whole is None or bytecode(compiled) != bytecode(whole)):
        raise UserError(_edited(origin, "what Python compiled"))
    for function in _functions_of(loaded, origin):
        if (function.__code__.co_qualname, bytecode(function.__code__)) not in on_disk:
            raise UserError(_edited(origin, f"{function.__qualname__} in memory"))


def _edited(origin: str, what: str) -> str:
    return (
        f"{origin} was edited after Python had loaded it: {what} is not what the file says; start again (in a "
        "notebook, importlib.reload; if that does not help, delete __pycache__)"
    )


def _compiled(loaded: ModuleType) -> CodeType | None:
    """The compiled file that Python took the module from, or wrote when it loaded it."""
    try:
        content = Path(str(loaded.__cached__)).read_bytes()
        code = marshal.loads(content[16:])
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
            found = getattr(part, "__func__", part)
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
