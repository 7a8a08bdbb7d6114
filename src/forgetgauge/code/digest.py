"""A digest of code: what makes a stored result the result of this very function, and of no earlier version of it.

It covers the source of the user's modules that the code imports, transitively (`imports`); the versions of installed
packages among these; globals, closures, defaults and attributes by value; and files of weights that are named. What it
cannot cover it lists. A function of a script, of a notebook or of no file counts by itself, with what it names, so that
the rest of a script may change.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import inspect
import io
import logging
import os
import random
import re
import sys
import textwrap
import threading
import types
import weakref
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path, PurePath
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from forgetgauge.code.calls import Calls, Read, value_of
from forgetgauge.code.imports import NOT_KEYED, Imports, bytecode, kind_of, refuse_held, source_file
from forgetgauge.code.source import WEIGHTS, files_in
from forgetgauge.probing import attribute, has

_WEIGHTS = re.compile(rf".+\.(?:{WEIGHTS})", re.IGNORECASE)
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...), range, slice)
_BOUND_TO = (dict, list, tuple, set, frozenset, str, random.Random)
"""Objects that count with a method of theirs that is written in C, as arrays do."""
_HOOKS = re.compile(r"_\w*hooks(?:_\w+)?")
"""Attributes in which torch keeps hooks, by a number that is another one whenever they are registered again."""
_OF_REPR = ("dataclasses", "reprlib")
"""Modules whose decorators stand before `__repr__` alone."""
_HARMLESS = ("_thread", "threading")
"""Modules whose objects (locks) decide nothing."""
_WRITTEN = re.compile(r"(?:^|_)(?:out|outputs?|logs?|save|saved|write|dump|export|record|store|cache|to)(?:_|$)", re.I)
"""Parameters that name a file to be written: what a method writes must not change its key."""
_RESTORED = re.compile("_?prev|gen$|record$")
"""Attributes in which a context manager of a library keeps what it found, or made, when it was entered."""
_HEAP_TYPE = 1 << 9
"""Py_TPFLAGS_HEAPTYPE: a class that was made by a statement; what other classes hold is in no `__dict__`."""
LARGEST_FILE = 512 * 2**20
"""Bytes of a file that parameters name and whose content counts: to read these takes a second. Weights always do."""
_MOST_PARTS = 200_000
"""Most parts that one digest covers; what is larger is listed as not covered."""


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
    looked = _Look()
    folders = [folder for thing in things if (folder := _folder_of(thing))]
    roots = [looked.describe(thing, "what was given") for thing in things]
    for thing in things:
        looked.given(attribute(thing, "__dict__", {}) if not isinstance(thing, type | FunctionType) else {}, folders)
    looked.given(params, folders)
    looked.finish()
    found = looked.imports
    for number, file in enumerate(files):
        found.add_file(f"{number} {file.name}", file)
    if not things and not found.files:
        return Code()
    parts = [
        roots,
        sorted(looked.lines),
        *(sorted(part.items()) for part in (found.sources, found.packages, found.files)),
    ]
    digest = hashlib.sha256(repr(parts).encode()).hexdigest()
    return Code(digest, tuple(sorted(found.not_covered)), tuple(sorted(looked.named_files)))


def code_digest(thing: Any) -> str:
    """The digest of one object with all that its code depends on."""
    return code_of(thing).digest


def folders_named(params: Any) -> list[str]:
    """Folders that parameters name, at any depth; a checkpoint's are looked into elsewhere."""
    if isinstance(params, Mapping):
        return [folder for key, value in params.items() if key != "checkpoint" for folder in folders_named(value)]
    if isinstance(params, list | tuple):
        return [folder for value in params for folder in folders_named(value)]
    return [str(params)] if isinstance(params, str | PurePath) and str(params) and os.path.isdir(params) else []


def files_named(params: Any) -> list[Path]:
    """Files of weights and settings that parameters name, at any depth."""
    if isinstance(params, Mapping):
        return [file for value in params.values() for file in files_named(value)]
    if isinstance(params, list | tuple):
        return [file for value in params for file in files_named(value)]
    named = isinstance(params, str | PurePath) and _WEIGHTS.fullmatch(str(params)) and os.path.isfile(params)
    return [Path(params)] if named else []


class _Look:
    """Walks through objects; what code names globally is noted once, by its name."""

    def __init__(self) -> None:
        self.imports = Imports()
        self.lines: set[str] = set()
        self._waiting: list[FunctionType | type] = []
        self._visited: dict[int, object] = {}
        self._open: set[int] = set()
        self._n_parts = 0
        self._named: set[str] = set()
        self._spaces: dict[str, Mapping[str, Any]] = {}
        """Module -> its globals, of those whose functions were met."""
        self.named_files: set[str] = set()
        self._counted: dict[tuple[str, int], Any] = {}
        """Globals that count by value: by their name and which object they are."""

    def given(self, params: Any, folders: Sequence[str], name: str = "", depth: int = 4) -> None:
        """Take in every file that parameters name, in containers too: from the current folder or from the code's."""
        if isinstance(params, dict | list | tuple):
            for key, value in params.items() if isinstance(params, dict) else zip(repeat(name), params, strict=False):
                if depth and key != "checkpoint":
                    self.given(value, folders, str(key), depth - 1)
        elif isinstance(params, str | PurePath) and 0 < len(str(params)) < 1000:
            for place in ("", *folders):
                path = os.path.join(place, os.path.expanduser(params))
                if os.path.isfile(path):
                    self._given_file(_as_seen_from_here(Path(path)), str(params), name, beside=bool(place))

    def _given_file(self, path: str, written: str, parameter: str, *, beside: bool) -> None:
        if _WEIGHTS.fullmatch(written) and not beside:  # their content counts, whatever their size
            return
        self.named_files.add(path)
        named, size = f"beside its module: {written}" if beside else path, os.path.getsize(path)
        if _WRITTEN.search(parameter):
            what = f"which the parameter {parameter} names: by that name it is written, not read"
            self.imports.not_covered.add(f"the file {written}, {what}")
        elif size > LARGEST_FILE and not _WEIGHTS.fullmatch(written):
            self.imports.files[named] = f"{size} bytes"
            what = f"which a parameter names, beyond its size: only up to {LARGEST_FILE >> 20} MiB are read"
            self.imports.not_covered.add(f"the file {written}, {what}")
        else:
            self.imports.add_file(named, path)

    def finish(self) -> None:
        """Look at the globals of all code met so far, and of the code these lead to."""
        while self._waiting:
            thing = self._waiting.pop()
            for function in filter(self._is_own, _functions_in(thing)):
                refuse_held(function.__code__)
                self._globals_of(function)
        for module, reads in self.imports.made_of_globals.items():
            for read in reads:
                if not self._read_by_value(read, self._spaces.get(module, {})) and read.complaint:
                    self.imports.not_covered.add(f"{module}, {read.complaint}")
        for module, asked in self.imports.at_import.items():
            space = vars(sys.modules[module]) if module in sys.modules else {}
            for one in asked:
                if not one.names or not all(name in space and self._counts(name, space[name]) for name in one.names):
                    self.imports.not_covered.add(f"{module}, {one.what}")

    def _counts(self, name: str, value: Any) -> bool:
        """Whether a global counts by value, or is a function or class whose defaults and attributes do."""
        return (name, id(value)) in self._counted or id(value) in self._visited

    def _read_by_value(self, read: Read, space: Mapping[str, Any]) -> bool:
        """Whether a file's name is known by the globals' values: its content counts then."""
        try:
            value = value_of(read.made_of, space) if read.made_of is not None else None
        except Exception:  # a name that is not there yet, a path that cannot be made
            return False
        if not isinstance(value, str | PurePath):
            return True  # an open file, an array: these count by themselves
        found = 0 < len(str(value)) < 1000 and os.path.isfile(value)
        if found:
            self.imports.add_file(_as_seen_from_here(Path(value)), value)
        return found

    def describe(self, thing: Any, where: str) -> str:
        """A text that is equal for equal values."""
        self._n_parts += 1
        if self._n_parts > _MOST_PARTS:
            self.imports.not_covered.add(f"{where}, which is too large to be looked through")
            return "(too large)"
        if isinstance(thing, enum.Enum):
            self._own_type(thing, where)
            return f"{type(thing).__qualname__}.{thing.name} = {self.describe(thing.value, where)}"
        if type(thing) in _PLAIN:
            return self._plain(thing)
        if id(thing) in self._open:
            return "(again)"
        self._open.add(id(thing))
        try:
            return self._compound(thing, where)
        finally:
            self._open.discard(id(thing))

    def _plain(self, thing: Any) -> str:
        if isinstance(thing, str) and len(thing) < 1000 and _WEIGHTS.fullmatch(thing) and os.path.isfile(thing):
            self.imports.add_file(thing, thing)
        return repr(thing)

    def _compound(self, thing: Any, where: str) -> str:
        if isinstance(thing, PurePath):
            named = _as_seen_from_here(thing)
            if _WEIGHTS.fullmatch(named) and os.path.isfile(thing):
                self.imports.add_file(named, thing)
            return repr(named)  # of a folder the name alone: what is read from it is named elsewhere
        if isinstance(thing, ModuleType):
            self.imports.add(thing.__name__)
            return f"module {thing.__name__}"
        if isinstance(thing, functools.partial):
            folder = _folder_of(thing)
            if folder:
                names = attribute(attribute(_unwrapped(thing.func), "__code__"), "co_varnames", ())
                self.given(dict(zip(names, thing.args, strict=False)), [folder])
                self.given(thing.keywords, [folder])
            self._own_type(thing, where)
            parts = [thing.func, thing.args, thing.keywords, *([held] if (held := _set_on(thing)) else [])]
            return f"partial({self._each(parts, where)})"
        if inspect.ismethod(thing):
            return f"method({self._each((thing.__func__, thing.__self__), where)})"
        if isinstance(thing, FunctionType):
            return self._function(thing, where)
        if isinstance(thing, type):
            return self._class(thing, where)
        if isinstance(thing, property | staticmethod | classmethod):
            return self._each([getattr(thing, name, None) for name in ("fget", "fset", "fdel", "__func__")], where)
        return self._value(thing, where)

    def _value(self, thing: Any, where: str) -> str:
        kind = f"{type(thing).__module__}.{type(thing).__qualname__}"
        self._own_type(thing, where)
        try:
            array = _as_array(thing)
        except Exception:  # tensors that are sparse, nested, without data or without a shape yet
            return self._without_value(thing, where)
        if array is not None:
            shown = "".join(f" {key}={self.describe(one, where)}" for key, one in _set_on(thing, "_").items())
            if array.dtype.hasobject:
                return f"{kind}({self._each(array.ravel().tolist(), where)}){shown}"
            return f"{kind}{array.dtype}{array.shape}{hashlib.sha256(array.tobytes()).hexdigest()}{shown}"
        if thing is os.environ:
            self.imports.not_covered.add(f"{where}, which is os.environ")
            return kind  # not by value: it is another one in every window
        if isinstance(thing, Mapping):
            items = [f"{self.describe(key, where)}: {self.describe(value, where)}" for key, value in thing.items()]
            made_by = self.describe(thing.default_factory if isinstance(thing, defaultdict) else None, where)
            return f"{kind}{{{', '.join(items)}}}{made_by}{self._attributes(thing, where)}"
        if isinstance(thing, list | tuple | set | frozenset):
            each = [self.describe(item, where) for item in thing]
            ordered = sorted(each) if isinstance(thing, set | frozenset) else each
            return f"{kind}({', '.join(ordered)}){self._attributes(thing, where)}"
        if isinstance(thing, logging.Logger):
            held = _set_on(thing, *(f"{name}$" for name in ("manager", *vars(logging.Logger("any")))))
            return f"logger {thing.name}{self._each([held] if held else [], where)}"
        if type(thing).__module__ in _HARMLESS and not isinstance(thing, threading.local):
            return kind
        if _is_everyones(thing):
            return f"{kind} of the process"
        if not isinstance(thing, BuiltinFunctionType) and (state := _random_state(thing)) is not None:
            return f"{kind}({self.describe(state, where)})"
        if kind == "numpy.ufunc" and str(thing.__name__).isidentifier():  # not of `frompyfunc`
            return f"{kind} {thing.__name__}"
        named = attribute(thing, "__qualname__")
        if callable(thing) and isinstance(named, str) and self._library(type(thing).__module__):
            # written in C, or made by a library's decorator
            module = str(attribute(thing, "__module__") or "")
            inside = [attribute(thing, "__wrapped__"), attribute(thing, "code")]  # of lru_cache, of torch.jit
            if not self._library(module) and not self._has_source(module) and inside == [None, None]:
                self.imports.not_covered.add(f"{where}: {named}, whose code cannot be looked into")
            inside += [held] if type(thing).__module__ == "functools" and (held := _set_on(thing)) else []
            of = attribute(thing, "__self__")  # `TABLE.get`
            inside += [of] if isinstance(of, _BOUND_TO) or hasattr(type(of), "__array__") else []
            return f"{module}.{named}({self._each(inside, where)})"
        return self._instance(thing, kind, where)

    def _instance(self, thing: Any, kind: str, where: str) -> str:
        if isinstance(thing, re.Pattern):
            return repr((thing.pattern, thing.flags))
        if isinstance(thing, weakref.ref):
            return f"{kind}({self.describe(thing(), where)})"
        if kind == "torch._dynamo.eval_frame.OptimizedModule":  # what the compiler keeps beside it changes with calls
            return f"{kind}({self.describe(thing._orig_mod, where)})"
        if kind.partition(".")[0] == "torch" and not has(thing, "__dict__") and " at 0x" not in repr(thing):
            return repr(thing)  # dtypes, devices, layouts
        try:
            reduced = None if isinstance(thing, io.IOBase) else thing.__reduce_ex__(4)
        except Exception:  # whatever refuses to be taken apart
            reduced = None
        if reduced is None:
            return self._without_value(thing, where)
        if has(thing, "__dict__") or getattr(type(thing), "__slots__", None):
            built_in = next(base for base in type(thing).__mro__ if not base.__flags__ & _HEAP_TYPE)
            items = f"({self._reduced(tuple(reduced)[1:], where)})" if built_in is not object else ""
            return f"{self.describe(type(thing), where)}{items}{self._attributes(thing, where)}"
        return f"{kind}({self.describe(reduced, where) if isinstance(reduced, str) else self._reduced(reduced, where)})"

    def _reduced(self, reduced: tuple[Any, ...], where: str) -> str:
        parts = [list(part) if isinstance(part, Iterator) else part for part in reduced]
        return self._each(parts, where)

    def _without_value(self, thing: Any, where: str) -> str:
        if type(thing).__module__ != "_abc":  # what an abstract class remembers of its subclasses
            self.imports.not_covered.add(f"{where}, an object without a value of its own ({type(thing).__qualname__})")
        return type(thing).__qualname__

    def _attributes(self, thing: Any, where: str) -> str:
        slots = [name for base in type(thing).__mro__ for name in _as_names(base.__dict__.get("__slots__", ()))]
        held = {name: attribute(thing, name) for name in slots if not name.startswith("__") and has(thing, name)}
        held |= attribute(thing, "__dict__", {})
        if hasattr(type(thing), "__enter__") and self._library(type(thing).__module__):
            held = {name: value for name, value in held.items() if not _RESTORED.match(str(name))}
        for name, value in held.items():
            if _HOOKS.fullmatch(str(name)) and isinstance(value, dict) and all(isinstance(key, int) for key in value):
                held[name] = [*value.values()]
        return "".join(f" {name}={self.describe(held[name], where)}" for name in sorted(map(str, held)) if name in held)

    def _each(self, parts: Any, where: str) -> str:
        return ", ".join(self.describe(part, where) for part in parts)

    # -- code ------------------------------------------------------------------------------------------------------

    def _function(self, thing: FunctionType, where: str) -> str:
        thing = _unhooked(thing)
        cells = [_content(cell) for cell in thing.__closure__ or ()]
        if _module_of(thing) in _OF_REPR:
            return f"{thing.__module__}.{thing.__qualname__}"
        if not self._is_own(thing):
            return self._function_of_library(thing, cells, where)
        self._later(thing)
        self.given(_defaults(thing), [folder] if (folder := _folder_of(thing)) else [])
        self.given(dict(zip(thing.__code__.co_freevars, cells, strict=True)), [])
        settings = [thing.__defaults__, thing.__kwdefaults__, cells]
        wrapped = vars(thing).get("__wrapped__")
        settings += [held] if (held := _set_on(thing)) else []
        settings += [wrapped] if wrapped is not None and not any(wrapped is cell for cell in cells) else []
        return f"{self._own_code(thing)}({self._each(settings, f'{where}: {thing.__qualname__}')})"

    def _function_of_library(self, thing: FunctionType, cells: list[Any], where: str) -> str:
        """Its name; of what a library's decorator or factory made from something of the user's, that, too."""
        name, held = f"{thing.__module__}.{thing.__qualname__}", vars(thing)
        if not (cells or "__wrapped__" in held) or (self._library(thing.__module__) and _is_found_by_name(thing)):
            return name
        self._visited[id(thing)] = thing
        if "_torchdynamo_orig_callable" in held:  # what the compiler keeps beside it changes with every call
            settings = [held["_torchdynamo_orig_callable"]]
        elif "registry" in held and "dispatch" in held:  # functools.singledispatch, and so do its caches
            settings = [held["__wrapped__"], dict(held["registry"])]
        else:
            settings = [
                thing.__defaults__,
                thing.__kwdefaults__,
                cells,
                held.get("__wrapped__"),
                _set_on(thing),
            ]
        return f"{name}({self._each(settings, f'{where}: {thing.__qualname__}')})"

    def _own_code(self, thing: FunctionType) -> str:
        """Its place where the source of its module is taken in whole, else what it says or does itself."""
        inside = thing.__code__.co_qualname  # functools.wraps gives a function another name
        name = f"{_module_of(thing)}:{inside}"
        if self._has_source(_module_of(thing)) and "<" not in inside:
            return name
        if "<lambda>" not in inside:
            try:
                return f"{name} {inspect.getsource(thing.__code__).strip()!r}"
            except (OSError, TypeError):
                pass
        return f"{name} {bytecode(thing.__code__)}"

    def _class(self, thing: type, where: str) -> str:
        name = f"{thing.__module__}.{thing.__qualname__}"
        made = thing.__module__ == "types" and getattr(types, thing.__name__, None) is not thing  # make_dataclass
        if self._library(thing.__module__) and not made:
            return name
        first = self._later(thing)
        if not first:
            return name
        members = {
            key: part
            for key, part in vars(thing).items()
            if not key.startswith("__") or _is_code(part)
            if not (type(part).__name__ == "getset_descriptor" or type(part).__name__ == "member_descriptor")
        }
        inside = (
            ""
            if self._has_source(thing.__module__) and "<locals>" not in thing.__qualname__
            else self._source_of(thing)
        )
        said = "".join(f" {key}={self.describe(part, f'{where}: {name}')}" for key, part in sorted(members.items()))
        self._own_type(thing, where)
        bases = self._each([base for base in thing.__bases__ if base is not object], where)
        self.lines.add(f"class {name}({bases}){inside}{said}")
        return name

    def _own_type(self, thing: Any, where: str) -> None:
        """Take in the class of an object, or the metaclass of a class, where that is the user's own."""
        module = str(type(thing).__module__)
        if module != "builtins" and kind_of(module) in ("own", "none") and module.partition(".")[0] not in NOT_KEYED:
            self.describe(type(thing), where)

    def _source_of(self, thing: type) -> str:
        return "".join(self._own_code(function) for function in _functions_in(thing) if self._is_own(function))

    def _has_source(self, module: str) -> bool:
        """Whether a module's source is taken in whole: it has a file, and is not the script that runs."""
        if module == "__main__" or source_file(module) is None:
            return False
        self.imports.add(module)
        return True

    def _library(self, module: str | None) -> bool:
        """Whether code is not the user's own; an installed package is noted."""
        if not module:
            return True
        kind = kind_of(module)
        if kind == "package":
            self.imports.add(module)
        return kind in ("standard", "package") or module.partition(".")[0] in NOT_KEYED

    def _is_own(self, function: FunctionType) -> bool:
        module = _module_of(function)
        return not module or module in _OF_REPR or not self._library(module)

    def _later(self, thing: FunctionType | type) -> bool:
        if id(thing) in self._visited:
            return False
        self._visited[id(thing)] = thing
        self._waiting.append(thing)
        return True

    def _globals_of(self, function: FunctionType) -> None:
        names = _names(function.__code__)
        self._spaces[_module_of(function)] = function.__globals__
        if not self._has_source(_module_of(function)):  # what it imports itself stands in no file that is read
            for name in sorted(names - function.__globals__.keys()):
                if kind_of(name) == "own":
                    self.imports.add(name)
            written = self._reads_of(function)
        else:
            written = self.imports.written.get(_module_of(function), frozenset())
        asked = names | _texts(function.__code__)  # of a module, by getattr
        for name in sorted(names & function.__globals__.keys()):
            value, where = function.__globals__[name], f"{_module_of(function)}.{name}"
            if name in written and isinstance(value, str | PurePath):
                self._counted[name, id(value)] = value
                self.lines.add(f"global {where} = {_as_seen_from_here(PurePath(value))!r}")
            else:
                self._global(value, where, asked)

    def _reads_of(self, function: FunctionType) -> frozenset[str]:
        """What a function of a script, of a notebook or of no file reads, as far as its source is there; the globals,
        among other names, of files that it only writes."""
        try:
            text = textwrap.dedent(inspect.getsource(function.__code__))
        except (OSError, TypeError):
            return frozenset()
        space = function.__globals__
        aliases = {name: whole for name in _names(function.__code__) & space.keys() if (whole := _alias(space[name]))}
        calls = Calls(text, aliases=aliases, names=space.keys(), first_line=function.__code__.co_firstlineno)
        for name, _ in calls.imports:
            self.imports.add(name)
        folder = Path(str(space.get("__file__") or "")).parent
        self.imports.add_reads(_module_of(function), folder, files_in(text, calls), calls.reads, calls.loose)
        return calls.written

    def _global(self, value: Any, where: str, names: set[str]) -> None:
        if isinstance(value, ModuleType):
            self.imports.add(value.__name__)
            if kind_of(value.__name__) != "own":
                return
            for name in sorted(names & vars(value).keys()):
                if (whole := f"{value.__name__}.{name}") not in self._named:
                    self._named.add(whole)
                    self._global(vars(value)[name], whole, names)
            return
        self._counted[where.rpartition(".")[2], id(value)] = value
        self.lines.add(f"global {where} = {self.describe(value, f'the global {where}')}")


def _module_of(function: FunctionType) -> str:
    """Where it was written, whatever functools.wraps says."""
    return str(function.__globals__.get("__name__") or "")


def _folder_of(thing: Any) -> str:
    """Where the module lies that an object's code is in; empty for what is not the user's own."""
    thing = _unwrapped(thing)
    code = thing if isinstance(thing, type | FunctionType) else _unwrapped(attribute(thing, "__func__", type(thing)))
    module = _module_of(code) if isinstance(code, FunctionType) else str(attribute(code, "__module__") or "")
    if module and kind_of(module) == "own":
        file = attribute(sys.modules.get(module), "__file__")
        return os.path.dirname(os.path.abspath(file)) if isinstance(file, str) else ""
    return ""


def _unwrapped(thing: Any) -> Any:
    """What lies behind partial arguments and decorators."""
    for _ in range(100):
        held = attribute(thing, "__dict__")
        wrapped = held.get("__wrapped__") if isinstance(held, dict) else None
        inner = thing.func if isinstance(thing, functools.partial) else wrapped
        if inner is None:
            break
        thing = inner
    return thing


def _unhooked(part: Any) -> Any:
    """The `step` of an optimiser without the hook that torch puts before it when the first one is made."""
    if isinstance(part, FunctionType) and "hooked" in vars(part) and _module_of(part) == "torch.optim.optimizer":
        return vars(part)["__wrapped__"]
    return part


def _is_found_by_name(thing: FunctionType) -> bool:
    """Whether a library has it under its name, decorated or not: the user made nothing of it."""
    found: Any = sys.modules.get(thing.__module__)
    for part in thing.__qualname__.split("."):
        found = attribute(found, part)
    return found is thing


def _set_on(thing: Any, *without: str) -> dict[str, Any]:
    """Attributes that the user set on an object of a library's, by name; `cache_parameters` are of `lru_cache`."""
    no = re.compile("|".join(["__", "cache_parameters$", *without]))
    held = attribute(thing, "__dict__", {})
    return {str(name): value for name, value in dict(held).items() if not no.match(str(name))}


def _is_code(part: Any) -> bool:
    """Whether a special name of a class holds code that is not looked at anyway: a function, or what wraps one."""
    code = attribute(part, "__func__", part)
    if part is not code and isinstance(code, FunctionType):
        return code.__closure__ is not None
    return callable(code) and not isinstance(code, type)


def _defaults(function: FunctionType) -> dict[str, Any]:
    """Parameter -> its default."""
    code, values = function.__code__, function.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount]
    return {**dict(zip(names[len(names) - len(values) :], values, strict=False)), **(function.__kwdefaults__ or {})}


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


def _as_seen_from_here(path: PurePath) -> str:
    """Relative where it lies in the current folder: another machine has that elsewhere."""
    here = os.getcwd()
    return os.path.relpath(path, here) if path.is_absolute() and path.is_relative_to(here) else str(path)


def _functions_in(thing: FunctionType | type) -> Iterator[FunctionType]:
    """A function, or all of a class."""
    if isinstance(thing, FunctionType):
        yield thing
        return
    for part in map(_unhooked, vars(thing).values()):
        wrapped = [attribute(part, name) for name in ("fget", "fset", "fdel", "__func__", "func")]
        yield from (one for one in (part, *wrapped) if isinstance(one, FunctionType))


def _names(code: CodeType) -> set[str]:
    inner = (_names(part) for part in code.co_consts if isinstance(part, CodeType))
    return set(code.co_names).union(*inner)


def _texts(code: CodeType) -> set[str]:
    """Texts in it that may be names."""
    inner = (_texts(part) for part in code.co_consts if isinstance(part, CodeType))
    return {part for part in code.co_consts if isinstance(part, str) and part.isidentifier()}.union(*inner)


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def _as_names(slots: Any) -> list[str]:
    return [slots] if isinstance(slots, str) else list(slots)


def _as_array(thing: Any) -> Any:
    """A numpy array or scalar, or a tensor, as an array of the host; None for anything else."""
    if isinstance(thing, type) or not hasattr(type(thing), "__array__"):
        return None
    if not hasattr(type(thing), "detach"):
        return thing.__array__()
    held = thing.detach().cpu().contiguous()
    if hasattr(held, "resolve_conj"):  # views of a tensor that is conjugated, or negated, when it is read
        held = held.resolve_conj().resolve_neg()
    try:
        return held.numpy()
    except (TypeError, RuntimeError):  # bfloat16 and other types that numpy does not have
        return held.flatten().view(sys.modules["torch"].uint8).numpy()


def _is_everyones(thing: Any) -> bool:
    """Whether it is a generator that all code of a process draws from; every job seeds these."""
    held = [("random", "_inst"), ("numpy.random.mtrand", "_rand"), ("torch", "default_generator")]
    return any(thing is attribute(sys.modules[module], name) for module, name in held if module in sys.modules)


def _random_state(thing: Any) -> Any:
    """Of a generator of random numbers: numpy's two kinds, Python's and torch's."""
    if hasattr(type(thing), "bit_generator") and hasattr(thing.bit_generator, "state"):
        return thing.bit_generator.state
    for method in ("getstate", "get_state"):
        if type(thing).__module__ in ("random", "torch._C", "numpy.random.mtrand") and hasattr(thing, method):
            return getattr(thing, method)()
    return None
