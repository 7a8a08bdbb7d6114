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
import os
import re
import site
import sys
import sysconfig
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from forgetgauge.errors import UserError

NOT_KEYED = frozenset({"torch", "numpy", "scipy", "sklearn", "forgetgauge"})
"""Recorded with every artefact, and in no key: a run may go on on a machine that has other versions of these."""

WEIGHTS = r"pt|pth|bin|ckpt|safetensors|npz|npy|pkl|pickle|joblib|h5|hdf5|onnx|gguf|json|yaml|yml|toml"
"""Endings of files that code reads its weights, arrays and settings from."""

_STARTED = time.time_ns()
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<base>[.\w]+)[ \t]+import[ \t]*(?P<names>\([^)]*\)|[^\n;#]*)"
    r"|import[ \t]+(?P<plain>[^\n;#]+))",
    re.MULTILINE,
)
_FILE = re.compile(rf"""["']([^"'\n]{{1,200}}\.(?:{WEIGHTS}))["']""")
_LOOSE = re.compile(
    r"import_module|__import__|spec_from_file_location|run_path|run_module|(?<![.\w])(?:exec|eval)\(|\bload"
)
_DYNAMIC = frozenset(
    {"import_module", "__import__", "spec_from_file_location", "run_path", "run_module", "exec", "eval"}
)
_LOADERS = frozenset({"torch", "np", "numpy", "pickle", "joblib"})


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

    def add_file(self, path: str | os.PathLike[str]) -> None:
        """Take in the content of a file, or of all files of a folder."""
        place = Path(path)
        for file in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if file.is_file():
                self.files[file.name if file == place else str(file.relative_to(place))] = file_digest(file)

    def _take(self, name: str) -> list[str]:
        top = name.partition(".")[0]
        if kind_of(name) == "standard" or top in NOT_KEYED:
            return []
        origin = _origin(name)
        if origin is None:
            self.packages.update({} if top in sys.modules else {top: "absent"})
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
        for literal in source.files:
            for place in (Path(literal), Path(origin).parent / literal):
                if place.is_file():
                    self.add_file(place)
        return [*parents, *_imported_by(name, origin, source)]


def kind_of(module: str) -> str:
    """`standard`, `package` (installed, not editable) or `own`; `none` where there is no such module."""
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names and top != "__main__":
        return "standard"
    if top == "__main__":
        return "own"
    origin = _origin(top)
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
    imports = tuple((base, tuple(names)) for base, names in _imports(text))
    loose = tuple(_loose_ends(text)) if _LOOSE.search(text) else ()
    digest = hashlib.sha256(content.replace(b"\r\n", b"\n")).hexdigest()
    return Source(digest, text, imports, tuple(dict.fromkeys(_FILE.findall(text))), loose)


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
        if not base:
            continue
        yield base
        if kind_of(base) == "own":
            yield from (f"{base}.{one}" for one in names if _is_module(base, one))
    yield from (constant for constant in _constant_imports(source) if _origin(constant) is not None)


def _is_module(base: str, name: str) -> bool:
    """Whether a name taken from a package is a module of it."""
    if f"{base}.{name}" in sys.modules:
        return True
    if name in vars(sys.modules.get(base, ModuleType("none"))):
        return False
    places = getattr(sys.modules.get(base), "__path__", None) or [os.path.dirname(_origin(base) or "")]
    return any(os.path.exists(os.path.join(place, name + end)) for place in places for end in ("", ".py"))


def _constant_imports(source: Source) -> Iterable[str]:
    return re.findall(r"""import_module\(\s*["']([\w.]+)["']\s*\)""", source.text)


def _loose_ends(text: str) -> Iterator[str]:
    """Imports and files whose names are known only when the code runs."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and node.args):
            continue
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        constant = isinstance(node.args[0], ast.Constant)
        if name in ("exec", "eval") and isinstance(function, ast.Attribute):
            continue  # model.eval()
        if name in _DYNAMIC and not constant:
            yield f"line {node.lineno}: {name}(…), which runs code that is named only then"
        made_up = isinstance(node.args[0], ast.JoinedStr | ast.BinOp | ast.Call)
        named = _FILE.search(ast.get_source_segment(text, node.args[0]) or "") if made_up else None
        if name.startswith("load") and _module_of(function) in _LOADERS and made_up and named is None:
            yield f"line {node.lineno}: {name}(…) of a file that is named only when it runs"


def _module_of(function: ast.expr) -> str:
    """`torch` of `torch.load`."""
    owner = function.value if isinstance(function, ast.Attribute) else None
    return owner.id if isinstance(owner, ast.Name) else ""


def _refuse_stale(name: str, origin: str, source: Source) -> None:
    """UserError where the module in memory is not the one on disk: a key would name code that is not what runs."""
    loaded = sys.modules.get(name)
    if loaded is None or not _may_be_stale(loaded, origin):
        return
    try:
        whole = compile(source.text, origin, "exec", dont_inherit=True)
        on_disk = {(part.co_qualname, bytecode(part)) for part in _code_objects(whole)}
    except (SyntaxError, ValueError):
        on_disk = set()
    for function in _functions_of(loaded, origin):
        if (function.__code__.co_qualname, bytecode(function.__code__)) not in on_disk:
            raise UserError(
                f"{origin} was edited after Python had loaded it: {function.__qualname__} in memory is not the one in "
                "the file; start again (in a notebook, importlib.reload; if that does not help, delete __pycache__)"
            )


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
