"""What source does by calls: which modules it imports and which files it reads, and what is known only when it runs.

A file is known where its name is written in the source, or is made of globals, which have a value. Any call of a
library counts that is given the name of a file, unless it looks like one that writes: what a method writes must not
change its key.
"""

from __future__ import annotations

import ast
import copy
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from forgetgauge.probing import attribute

MAY_CALL = re.compile(
    r"import_module|__import__|spec_from_file_location|SourceFileLoader|run_path|run_module|(?<![.\w])(?:exec|eval|globals)\("
    r"|pkgutil|importlib\.(?:resources|metadata)|platform|gethostname|getuser|uname"
    r"|getenv|environ|argv|urlopen|sys\.modules|subprocess|popen|os\.system|listdir|scandir|os\.walk|glob|sqlite3|exists\(|is_?file\("
    r"|is_?dir\(|iterdir|getsize|getmtime|\.stat\(|\bload|loadtxt|genfromtxt|from_pretrained|fromfile|from_file|memmap|\bread"
    r"|ZipFile|TarFile|FileIO|h5py"
    r"|imread|\bopen\b|getlines?\(|get_data|\bET\b|etree|[\"'][\w./~ -]*\w[./]\w[\w./ -]*[\"']"
)
"""Source without any of these has nothing to be found here; most has not, and need not be parsed."""
_READERS = frozenset(
    {"load_file", "loadtxt", "genfromtxt", "fromfile", "from_file", "memmap", "loadmat", "imread"}
    | {"from_pretrained", "read_csv"}
)
_READERS_OF = re.compile(
    r"pandas\.read_\w+|xml\.etree\.\w+\.parse|linecache\.getlines?|fileinput\.input|zipfile\.ZipFile|tarfile\.TarFile"
    r"|_?io\.FileIO|h5py\.File|torchvision\.io\.read_\w+|pathlib\.\w+\.read_(?:text|bytes)"
)
_BY_NAME = frozenset({"import_module", "__import__", "run_module"})
_BY_FILE = frozenset({"run_path", "spec_from_file_location", "SourceFileLoader"})
_LOADERS = frozenset({"torch", "np", "numpy", "pickle", "joblib"})
_OUTSIDE = re.compile(
    r"subprocess\.\w+|glob\.\w+|sqlite3\.connect|pkgutil\.\w+|globals|urllib\.request\.urlopen"
    r"|importlib\.(?:resources|metadata)\.\w+|platform\.\w+|socket\.gethostname|getpass\.getuser|os\.uname"
    r"|os\.(?:popen|system|listdir|scandir|f?walk|stat|path\.(?:l?exists|isfile|isdir|getsize|getmtime))"
)
_OUTSIDE_OF_PATHS = frozenset({"exists", "is_file", "is_dir", "iterdir", "glob", "rglob"})
_HELD_OUTSIDE = frozenset({"os.environ", "os.environb", "sys.argv", "sys.orig_argv", "sys.modules"})
_LOOKS_READING = re.compile(r"_*(?:read|load|open|parse|get|from)", re.IGNORECASE)
_SURELY_READING = re.compile(r"_*(?:read|load|open)", re.IGNORECASE)
_SURELY_WRITING = re.compile(
    r"(?!\w*(?:load|read|open))(?:(?:np_)?save(?:z|z_compressed|txt|fig|mat|_\w+)?|dump|write_\w+|export(?:_\w+)?"
    r"|to_(?:csv|json|pickle|parquet|hdf|feather|excel)|FileHandler)"
)
_LOOKS_WRITING = re.compile(
    r"save|write|dump|export|log|lock|handler|config|make|mkd|remove|unlink|rmtree|touch|rename|replace|copy|move|print"
    r"|append|store|memory|cache|^to",
    re.IGNORECASE,
)
_MAKES_PATHS: dict[str, Callable[..., Any]] = {
    "Path": Path,
    "PurePath": PurePath,
    "str": str,
    "join": os.path.join,
    "fspath": os.fspath,
    "abspath": os.path.abspath,
    "dirname": os.path.dirname,
    "expanduser": os.path.expanduser,
}
_OF_PATHS = frozenset({"joinpath", "with_suffix", "with_name", "resolve", "absolute", "expanduser"})
_IN_MEMORY = frozenset({"BytesIO", "StringIO"})
_MAKE_NAMES = {*_MAKES_PATHS, *_OF_PATHS, *_IN_MEMORY}

_DEFINES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_MOST_PARTS = 60
"""Of an expression that a local name stands for."""
_NAMES_FILES = (ast.Constant, ast.Name, ast.Attribute, ast.Subscript, ast.BinOp, ast.JoinedStr, ast.Call)


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
class AtImport:
    """What a module asks of its surroundings while it is imported."""

    what: str
    names: frozenset[str]
    """The globals that hold what came of it: it counts where all of these do. Empty where it is held elsewhere."""


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
        scopes = _Scopes()
        try:
            tree = scopes.visit(_Plainer().visit(ast.parse(text)))
        except (SyntaxError, ValueError):
            return
        if first_line > 1:
            ast.increment_lineno(tree, first_line - 1)
        nodes = list(_walk(tree))
        self._set = {id(n.value) for n, _ in nodes if isinstance(n, ast.Subscript) and not isinstance(n.ctx, ast.Load)}
        self._aliases = dict(aliases or {}) | dict(_imported(nodes))
        self._aliases |= dict(self._renamed(nodes))
        self._roots = {whole.partition(".")[0] for whole in self._aliases.values()} - {""}
        self._parsers = {name for name, whole in self._aliases.items() if whole.startswith("configparser.")}
        for node, _ in nodes:
            if isinstance(node, ast.Assign) and _makes_parser(node.value):
                self._parsers |= {attribute(to, "id", attribute(to, "attr", "")) for to in node.targets} - {""}
        self._assigned = set(names) | _assigned(tree, nodes)
        self._paths_written: dict[tuple[int, str], tuple[int, int]] = {}
        self._at = 0, 0
        self._of_files: set[int] = scopes.stood_for
        for node, inside in nodes:
            if not isinstance(node, ast.Call):
                continue
            done = node.end_lineno or 0, node.end_col_offset or 0
            for path in self._written_by(node):
                self._of_files |= {id(part) for part in ast.walk(path)}
                if not any(isinstance(part, ast.Name) and not part.id for part in ast.walk(path)):
                    self._paths_written.setdefault((id(inside), ast.dump(path)), done)
        for node, inside in nodes:
            if isinstance(node, ast.Call):
                self._look(node, inside)
            elif inside and isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load):
                self._look_outside(node)
        for statement in tree.body:
            self._look_at_import(statement)
        self.written = self._only_written(tree, [node for node, _ in nodes])

    def _written_by(self, call: ast.Call) -> list[ast.expr]:
        """Paths of files that a call writes to, and does not read."""
        name, owner = _last(call.func), attribute(call.func, "value")
        if name in ("open", "memmap") and set("wxa") & set(_mode(call, owner)):
            given = [owner if owner is not None and not call.args else _argument(call, 0, "file", "filename")]
        elif name in ("write_text", "write_bytes"):
            given = [owner]
        elif _SURELY_WRITING.fullmatch(name):
            given = [*call.args, *(keyword.value for keyword in call.keywords)]
        else:
            given = []
        return [one for one in given if isinstance(one, ast.expr) and _may_be_a_path(one)]

    def _only_written(self, tree: ast.Module, nodes: list[ast.AST]) -> frozenset[str]:
        texts = [node for node in nodes if _text(node)]
        loads = [node for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id]
        names = {node.id for node in loads if id(node) in self._of_files}
        names -= {node.id for node in loads if id(node) not in self._of_files}
        for statement in tree.body:
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in names and _may_be_a_path(value):
                    self._of_files |= {id(part) for part in ast.walk(value)}
        found = {_text(node) or "" for node in texts if id(node) in self._of_files}
        return frozenset(names | (found - {_text(node) for node in texts if id(node) not in self._of_files}))

    def _renamed(self, nodes: list[tuple[ast.AST, ast.AST | None]]) -> Iterator[tuple[str, str]]:
        """`rd = open`, `ld = np.load`."""
        for node, _ in nodes:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute | ast.Name):
                whole = self._whole(node.value)
                if whole in ("open", "exec", "eval", "globals") or whole.partition(".")[0] in self._aliases.values():
                    yield from ((to.id, whole) for to in node.targets if isinstance(to, ast.Name))

    def _whole(self, function: ast.expr) -> str:
        """`torch.jit.load` of `T.jit.load` after `import torch as T`; empty where it begins with no name."""
        parts: list[str] = []
        while isinstance(function, ast.Attribute):
            parts.append(function.attr)
            function = function.value
        if not isinstance(function, ast.Name):
            return ""
        return ".".join([self._aliases.get(function.id, function.id), *reversed(parts)])

    def _look_outside(self, node: ast.Attribute | ast.Name) -> None:
        whole = self._whole(node)
        if whole in _HELD_OUTSIDE and id(node) not in self._set:
            self.loose.append(f"line {node.lineno}: {whole}, whose content is known only when it runs")

    def _look_at_import(self, statement: ast.stmt) -> None:
        """What a statement of a module asks of its surroundings: who knows the globals' values looks at these."""
        if isinstance(statement, ast.Assert) or _is_for_scripts(statement):
            return
        outside = [node for node, inside in _walk(statement) if not inside]
        asked = next((whole for node in outside if (whole := self._asked(node))), "")
        if not asked or (isinstance(statement, ast.Expr) and self._only_sets(statement.value)):
            return
        held = [node for node in outside if isinstance(node, ast.Attribute | ast.Subscript)]
        elsewhere = isinstance(statement, ast.Expr) or any(isinstance(node.ctx, ast.Store) for node in held)
        if isinstance(statement, _DEFINES):
            names = {statement.name}
        else:
            names = {node.id for node in outside if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
            names |= {node.name for node in outside if isinstance(node, _DEFINES)}
        if not (elsewhere or names) and asked.startswith("os.path."):
            return  # `if not os.path.exists(folder): os.makedirs(folder)`
        what = f"line {statement.lineno}: {asked}, asked while it is imported; what came of it does not count"
        self.at_import.append(AtImport(what, frozenset() if elsewhere else frozenset(names)))

    def _asked(self, node: ast.AST) -> str:
        """What of the surroundings an expression asks for; empty where nothing."""
        if isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in self._set:
            return whole if (whole := self._whole(node)) in _HELD_OUTSIDE else ""
        whole = self._whole(node.func) if isinstance(node, ast.Call) else ""
        return whole if whole == "os.getenv" or (_OUTSIDE.fullmatch(whole) and whole != "globals") else ""

    def _only_sets(self, value: ast.expr) -> bool:
        """Whether nothing depends on what a statement asks: it sets a variable, or prints."""
        whole = self._whole(value.func) if isinstance(value, ast.Call) else ""
        return (
            whole == "print"
            or re.fullmatch(r"os\.environ\.(?:setdefault|update|pop)|subprocess\.\w+", whole) is not None
        )

    def _look(self, call: ast.Call, inside: ast.AST | None) -> None:
        self._at = call.lineno, call.col_offset
        function, whole = call.func, self._whole(call.func)
        owner = function.value if isinstance(function, ast.Attribute) else None
        root, _, name = whole.rpartition(".") if whole else ("", "", getattr(function, "attr", ""))
        root = root.partition(".")[0]
        here = f"line {call.lineno}: {name}(…)"
        if name in _BY_NAME:
            self._import(call, here)
        elif name in _BY_FILE:
            self._read(
                _argument(call, 0 if name == "run_path" else 1, "path", "location"), here, inside, "runs code that"
            )
        elif name in ("exec", "eval", "getenv") and (owner is None or root in ("os", "builtins")):
            by_value = not inside if name == "getenv" else not _names_something(_text(_argument(call, 0)))
            if not by_value:
                self.loose.append(f"{here}, whose outcome is known only when it runs")
        elif _OUTSIDE.fullmatch(whole) or (owner is not None and name in _OUTSIDE_OF_PATHS):
            if inside:  # else a global holds what came of it, by value
                self.loose.append(f"{here}, whose outcome is known only when it runs")
        elif name in ("read_text", "read_bytes") and owner is not None and not whole.startswith("pathlib."):
            self._read(owner, here, inside)
        elif name == "open":
            of_path = owner is not None and not call.args
            if not self._writes(call, owner, here):
                self._read(owner if of_path else _argument(call, 0, "file"), here, inside)
        elif name in _READERS or _READERS_OF.fullmatch(whole) or (name == "load" and root in _LOADERS):
            if not self._writes(call, None, here):
                self._read(_argument(call, 0, "filename", "fname", "file", "name"), here, inside)
        elif name == "read" and owner is not None and (_makes_parser(owner) or _last(owner) in self._parsers):
            given = _argument(call, 0, "filenames")
            for one in getattr(given, "elts", [given]):
                self._read(one, here, inside)
        elif inside:
            self._may_read(call, whole, name, here)

    def _writes(self, call: ast.Call, owner: ast.expr | None, here: str) -> bool:
        """Whether a file is opened to be written; one that is read as well does not count, and is named."""
        mode = _mode(call, owner)
        if "+" in mode and not set("wx") & set(mode):
            self.loose.append(f"{here} reads what a file holds that it also writes")
        return any(c in mode for c in "wax+")

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

    def _read(self, what: ast.expr | None, here: str, inside: ast.AST | None, does: str = "reads what") -> None:
        """A file whose name is a literal, or is put together of literals and globals."""
        if isinstance(what, ast.Call) and _last(what.func) in _IN_MEMORY:
            return
        if what is not None and self._paths_written.get((id(inside), ast.dump(what)), self._at) < self._at:
            self._of_files |= {id(part) for part in ast.walk(what)}
            self.loose.append(f"{here} {does} a file holds that it also writes")
            return
        text, named, whole = ("", set[str](), False) if what is None else _put_together(what)
        known = named <= self._assigned | self._aliases.keys()
        made_of = what if named and known else None
        if text and whole:
            self.reads.append(Read(text, made_of, f"{here} {does} a file holds that is not found from here"))
            return
        complaint = f"{here} {does} a file holds that is named only then (a parameter that names it counts)"
        if made_of is None:
            self.loose.append(complaint)
        else:
            by_value = not inside and whole and named <= self._assigned
            self.reads.append(Read("", made_of, "" if by_value else complaint))

    def _may_read(self, call: ast.Call, whole: str, name: str, here: str) -> None:
        """Any other call that is given the name of a file: of a library, or of an object by a name of reading."""
        if name in _MAKES_PATHS or name in _OF_PATHS or any(c in _mode(call, None) for c in "wax+"):
            return
        library = root if (root := whole.partition(".")[0]) in self._roots else ""
        of_an_object = isinstance(call.func, ast.Attribute) and _LOOKS_READING.match(name)
        if not of_an_object and (not library or _LOOKS_WRITING.search(name)):
            return
        given = [*call.args, *(keyword.value for keyword in call.keywords)]
        for what in [one for part in given for one in getattr(part, "elts", [part])]:
            if not isinstance(what, _NAMES_FILES):
                continue
            if isinstance(what, ast.Call) and _SURELY_READING.match(_last(what.func)):
                continue  # `load_state_dict(torch.load(…))`: the inner one tells
            text, named, complete = _put_together(what)
            known = bool(named) and named <= self._assigned | self._aliases.keys()
            said = text if complete and re.search(r"[./]", text) and "\n" not in text and len(text) < 200 else ""
            does = "reads what a file holds that is not found from here" if _looks_like_a_path(what) else ""
            complaint = f"{here} {does}" if does and _SURELY_READING.match(name) else ""
            if said or known or complaint:
                self.reads.append(Read(said, what if known else None, complaint, library))


def value_of(made_of: ast.expr, space: Mapping[str, Any]) -> Any:
    """What an expression of globals gives, if it is a name or puts a path together; LookupError for any other."""
    match made_of:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return space[name]
        case ast.Attribute(value=of, attr=name):
            return _attribute(value_of(of, space), name)
        case ast.Subscript(value=of, slice=key):
            held = value_of(of, space)
            if isinstance(held, dict | Sequence):
                return held[value_of(key, space)]
        case ast.BinOp(left=left, op=ast.Div() | ast.Add(), right=right):
            one, two = value_of(left, space), value_of(right, space)
            if isinstance(one, str) and isinstance(two, str):
                return one + two
            if isinstance(one, str | PurePath) and isinstance(two, str | PurePath):
                return Path(one) / two
        case ast.JoinedStr(values=parts):
            return "".join(str(value_of(part, space)) for part in parts)
        case ast.FormattedValue(value=value, format_spec=None, conversion=-1):
            return value_of(value, space)
        case ast.Call(func=function, args=args, keywords=[]):
            return _path_made(function, [value_of(arg, space) for arg in args], space)
    raise LookupError


def _path_made(function: ast.expr, args: list[Any], space: Mapping[str, Any]) -> Any:
    name = getattr(function, "attr", getattr(function, "id", ""))
    if not all(isinstance(arg, str | PurePath) for arg in args):
        raise LookupError
    if isinstance(function, ast.Attribute) and name in _OF_PATHS:
        try:
            of = value_of(function.value, space)
        except LookupError:
            of = None
        if isinstance(of, PurePath):
            return getattr(of, name)(*args)
    if name in _MAKES_PATHS and args:
        return _MAKES_PATHS[name](*args)
    raise LookupError


def _attribute(of: Any, name: str) -> Any:
    if isinstance(of, PurePath) and name in ("parent", "parents", "name", "stem"):
        return getattr(of, name)
    held = attribute(of, "__dict__", {})
    if name in held:
        return held[name]
    if isinstance(of, dict) and name in of:  # a dictionary that shows its items as attributes
        return of[name]
    return vars(type(of))[name]


class _Plainer(ast.NodeTransformer):
    """`getattr(a, "b")`, `vars(a)["b"]` and `a.__dict__["b"]` as what they are, `a.b`."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "getattr" and len(node.args) in (2, 3):
            return _plain(node, node.args[0], _text(node.args[1]), ast.Load())
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        match node.value:
            case ast.Call(func=ast.Name(id="vars"), args=[of]) | ast.Attribute(value=of, attr="__dict__"):
                return _plain(node, of, _text(node.slice), node.ctx)
        return node


def _plain(node: ast.expr, of: ast.expr, name: str | None, ctx: ast.expr_context) -> ast.expr:
    if name is None or not name.isidentifier():
        return node
    return ast.copy_location(ast.Attribute(of, name, ctx), node)


class _Scopes(ast.NodeTransformer):
    """Inside functions, what a local name stands for in its place, if that may be a path; any other has no name, so
    that it is not taken for a global."""

    def __init__(self) -> None:
        self._local: dict[str, ast.expr | None] = {}
        self.stood_for: set[int] = set()
        """Parts of expressions that stand in the place of a local name, where these are set."""

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.AST:
        return self._within(node, _local_names(node))

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._within(node, _local_names(node))

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return self._within(node, dict.fromkeys(_parameters(node)))

    def _within(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, local: dict[str, ast.expr | None]
    ) -> ast.AST:
        node.args = self.visit(node.args)  # defaults, and decorators, are of the scope around it
        if not isinstance(node, ast.Lambda):
            node.decorator_list = [self.visit(part) for part in node.decorator_list]
        around, self._local = self._local, self._local | local
        self.stood_for |= {id(part) for value in local.values() if value is not None for part in ast.walk(value)}
        if isinstance(node, ast.Lambda):
            node.body = self.visit(node.body)
        else:
            node.body = [self.visit(statement) for statement in node.body]
        self._local = around
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if not isinstance(node.ctx, ast.Load) or node.id not in self._local:
            return node
        value, self._local[node.id] = self._local[node.id], None  # a name that stands for itself has no value
        if value is not None:
            value = self.visit(value)
            value = value if sum(1 for _ in ast.walk(value)) <= _MOST_PARTS else None
            self._local[node.id] = value
        return ast.copy_location(ast.Name("", ast.Load()), node) if value is None else copy.deepcopy(value)


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> set[str]:
    return {part.arg for part in ast.walk(function.args) if isinstance(part, ast.arg)}


def _local_names(function: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, ast.expr | None]:
    """Local name -> what it stands for, where it is set once and may be a path; without files that `with` opens."""
    inner = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
    waiting: list[ast.AST] = list(function.body)
    stored = Counter[str](_parameters(function))
    values: dict[str, ast.expr | None] = {}
    elsewhere: set[str] = set()
    while waiting:
        node = waiting.pop()
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) | ast.NamedExpr(ast.Name(id=name), value):
                values[name] = value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                values[name] = value
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                elsewhere |= set(names)
            case ast.withitem(optional_vars=ast.Name(id=name)):
                elsewhere.add(name)
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                stored[name] += 1
        waiting += [] if isinstance(node, inner) else ast.iter_child_nodes(node)
    may_be = {name: value for name, value in values.items() if stored[name] == 1 and value and _may_be_a_path(value)}
    return {name: may_be.get(name) for name in stored if name not in elsewhere}


def _may_be_a_path(value: ast.expr) -> bool:
    kinds = (*_NAMES_FILES, ast.FormattedValue, ast.operator, ast.expr_context)
    return all(
        isinstance(part, kinds)
        and (not isinstance(part, ast.operator) or isinstance(part, ast.Div | ast.Add))
        and (not isinstance(part, ast.Call) or _last(part.func) in _MAKE_NAMES or _makes_parser(part))
        for part in ast.walk(value)
    )


def _is_for_scripts(statement: ast.stmt) -> bool:
    """`if __name__ == "__main__"`, which is not done when a module is imported."""
    return isinstance(statement, ast.If) and any(
        isinstance(part, ast.Name) and part.id == "__name__" for part in ast.walk(statement.test)
    )


def _walk(tree: ast.AST) -> Iterator[tuple[ast.AST, ast.AST | None]]:
    """Every node, and the function by which it runs when that is called; None for what runs at once."""
    waiting: list[tuple[ast.AST, ast.AST | None]] = [(tree, None)]
    while waiting:
        node, inside = waiting.pop()
        yield node, inside
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        body = getattr(node, "body", []) if is_function else []
        later = {id(part) for part in (body if isinstance(body, list) else [body])}
        waiting += [(child, node if id(child) in later else inside) for child in ast.iter_child_nodes(node)]


def _imported(nodes: list[tuple[ast.AST, ast.AST | None]]) -> Iterator[tuple[str, str]]:
    """Name -> what it stands for: `np` for `numpy`, `o` for `io.open`."""
    for node, _ in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                yield (alias.asname, alias.name) if alias.asname else (top, top)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            yield from ((alias.asname or alias.name, f"{base}.{alias.name}") for alias in node.names)


def _assigned(tree: ast.Module, nodes: list[tuple[ast.AST, ast.AST | None]]) -> set[str]:
    """Names of globals, which count by value, and of files that are opened where they are named."""
    globals_ = [n for n in tree.body if isinstance(n, ast.Assign | ast.AnnAssign)]
    opened = [
        item.optional_vars for n, _ in nodes if isinstance(n, ast.With) for item in n.items
    ]  # with open("…") as file
    classes = {n.name for n in tree.body if isinstance(n, ast.ClassDef)}
    named = classes | {part.id for n in globals_ for part in ast.walk(n) if isinstance(part, ast.Name)}
    return named | {one.id for one in opened if isinstance(one, ast.Name)} | {"__file__"}


def _names_something(code: str | None) -> bool:
    """Whether code that is a text may depend on globals, which are not looked for in texts; None: it is not known."""
    if code is None:
        return True
    try:
        return any(isinstance(node, ast.Name) for node in ast.walk(ast.parse(code)))
    except SyntaxError:
        return False


def _put_together(what: ast.expr) -> tuple[str, set[str], bool]:
    """(literals in the order in which they are written, names, whether the literals are whole parts of a path)."""
    parts = list(ast.walk(what))
    texts = [node for node in parts if isinstance(node, ast.Constant) and _text(node)]
    literals = [str(node.value) for node in sorted(texts, key=lambda node: (node.lineno, node.col_offset))]
    return (
        "/".join(literals),
        {part.id for part in parts if isinstance(part, ast.Name)},
        not any(isinstance(part, ast.JoinedStr) for part in parts),
    )


def _argument(call: ast.Call, place: int, *names: str) -> ast.expr | None:
    by_name = [keyword.value for keyword in call.keywords if keyword.arg in names]
    return call.args[place] if len(call.args) > place else by_name[0] if by_name else None


def _last(of: ast.expr) -> str:
    return str(attribute(of, "attr", attribute(of, "id", "")))


def _makes_parser(value: ast.expr) -> bool:
    """`configparser.ConfigParser()`."""
    return isinstance(value, ast.Call) and _last(value.func).endswith("ConfigParser")


def _looks_like_a_path(what: ast.expr) -> bool:
    """Whether it is put together as a path is: of `__file__`, by `Path(…)` or `join(…)`, with `/` and a text."""
    parts = list(ast.walk(what))
    names = {_last(part.func if isinstance(part, ast.Call) else part) for part in parts if isinstance(part, ast.expr)}
    divided = any(isinstance(part, ast.BinOp) and isinstance(part.op, ast.Div) for part in parts)
    return bool(names & {"__file__", "Path", "join", "joinpath"}) or (divided and any(map(_text, parts)))


def _mode(call: ast.Call, owner: ast.expr | None) -> str:
    """How a file is opened; empty where that is not said."""
    mode = _text(_argument(call, 0 if owner is not None and not isinstance(owner, ast.Name) else 1, "mode"))
    return mode if mode is not None and re.fullmatch(r"[rwaxbtU+]{1,4}", mode) else ""


def _text(node: ast.AST | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
