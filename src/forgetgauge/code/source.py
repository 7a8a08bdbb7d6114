"""What one file of source says: what it imports, which files it reads, and what of that is known only when it runs.

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

WEIGHTS = r"pt|pth|bin|ckpt|safetensors|npz|npy|pkl|pickle|joblib|h5|hdf5|onnx|gguf|tar|json|yaml|yml|toml"
"""Endings of files that code reads its weights, arrays and settings from."""

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


def really_imports(source: Source, name: str) -> bool:
    """Whether an import of what cannot be found is code, not a line of a string that looks like one."""
    try:
        nodes = list(ast.walk(ast.parse(source.text)))
    except (SyntaxError, ValueError):
        return False
    plain = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return name in plain or any(isinstance(node, ast.ImportFrom) and node.module == name for node in nodes)


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
