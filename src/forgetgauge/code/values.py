"""Values and objects are described here: arrays by their content, containers and instances by their parts."""

from __future__ import annotations

import hashlib
import io
import logging
import os
import random
import re
import threading
import weakref
from collections import defaultdict
from collections.abc import Iterator, Mapping
from types import BuiltinFunctionType
from typing import Any

from forgetgauge.code.arrays import as_array, is_everyones, random_state
from forgetgauge.code.functions import set_on
from forgetgauge.code.walk import Walk
from forgetgauge.probing import attribute, has

_BOUND_TO = (dict, list, tuple, set, frozenset, str, random.Random)
"""Objects that count with a method of theirs that is written in C, as arrays do."""
_HOOKS = re.compile(r"_\w*hooks(?:_\w+)?")
"""Attributes in which torch keeps hooks, by a number that is another one whenever they are registered again."""
_HARMLESS = ("_thread", "threading")
"""Modules whose objects (locks) decide nothing."""
_RESTORED = re.compile("_?prev|gen$|record$")
"""Attributes in which a context manager of a library keeps what it found, or made, when it was entered."""
_HEAP_TYPE = 1 << 9
"""Py_TPFLAGS_HEAPTYPE: a class that was made by a statement; what other classes hold is in no `__dict__`."""


def value(walk: Walk, thing: Any, where: str) -> str:
    """Any object that is not a function, a class or a module."""
    kind = f"{type(thing).__module__}.{type(thing).__qualname__}"
    walk.take_class_of(thing, where)
    try:
        array = as_array(thing)
    except Exception:  # tensors that are sparse, nested, without data or without a shape yet
        return _without_value(walk, thing, where)
    if array is not None:
        return _array(walk, thing, array, kind, where)
    if isinstance(thing, Mapping):
        return _mapping(walk, thing, kind, where)
    if isinstance(thing, list | tuple | set | frozenset):
        is_set = isinstance(thing, set | frozenset)  # its own order is another one in every process
        each = [walk.describe(item, where) for item in (sorted(thing, key=_shown) if is_set else thing)]
        ordered = sorted(each) if is_set else each
        return f"{kind}({', '.join(ordered)}){_attributes(walk, thing, where)}"
    if (known := _known_kind(walk, thing, kind, where)) is not None:
        return known
    named = attribute(thing, "__qualname__")
    if callable(thing) and isinstance(named, str) and walk.is_library(type(thing).__module__):
        return _callable_of_library(walk, thing, named, where)
    return _instance(walk, thing, kind, where)


def _shown(item: Any) -> str:
    """A key of order that is the same in every process, for most of what can be in a set."""
    of_kind = next((kind for kind in (str, bytes, int, float, complex, tuple) if isinstance(item, kind)), None)
    return type(item).__qualname__ if of_kind is None else of_kind.__repr__(item)


def _array(walk: Walk, thing: Any, array: Any, kind: str, where: str) -> str:
    shown = walk.describe_named(set_on(thing, "_").items(), where)
    if array.dtype.hasobject:
        return f"{kind}({walk.describe_all(array.ravel().tolist(), where)}){shown}"
    return f"{kind}{array.dtype}{array.shape}{hashlib.sha256(array.tobytes()).hexdigest()}{shown}"


def _mapping(walk: Walk, thing: Mapping[Any, Any], kind: str, where: str) -> str:
    if thing is os.environ:
        walk.not_covered(f"{where}, which is os.environ")
        return kind  # not by value: it is another one in every window
    items = [f"{walk.describe(key, where)}: {walk.describe(value, where)}" for key, value in thing.items()]
    made_by = walk.describe(thing.default_factory if isinstance(thing, defaultdict) else None, where)
    return f"{kind}{{{', '.join(items)}}}{made_by}{_attributes(walk, thing, where)}"


def _known_kind(walk: Walk, thing: Any, kind: str, where: str) -> str | None:
    """Loggers, locks, generators of random numbers and numpy's functions; None for anything else."""
    if isinstance(thing, logging.Logger):
        held = set_on(thing, *(f"{name}$" for name in ("manager", *vars(logging.Logger("any")))))
        return f"logger {thing.name}{walk.describe_all([held] if held else [], where)}"
    if type(thing).__module__ in _HARMLESS and not isinstance(thing, threading.local):
        return kind
    if is_everyones(thing):
        return f"{kind} of the process"
    if not isinstance(thing, BuiltinFunctionType) and (state := random_state(thing)) is not None:
        return f"{kind}({walk.describe(state, where)})"
    if kind == "numpy.ufunc" and str(thing.__name__).isidentifier():  # not of `frompyfunc`
        return f"{kind} {thing.__name__}"
    return None


def _callable_of_library(walk: Walk, thing: Any, named: str, where: str) -> str:
    """What is written in C, or was made by a library's decorator: its name, and what of the user's it holds."""
    module = str(attribute(thing, "__module__") or "")
    inside = [attribute(thing, "__wrapped__"), attribute(thing, "code")]  # of lru_cache, of torch.jit
    if not walk.is_library(module) and not walk.takes_source(module) and inside == [None, None]:
        walk.not_covered(f"{where}: {named}, whose code cannot be looked into")
    inside += [held] if type(thing).__module__ == "functools" and (held := set_on(thing)) else []
    of = attribute(thing, "__self__")  # `TABLE.get`
    inside += [of] if isinstance(of, _BOUND_TO) or hasattr(type(of), "__array__") else []
    return f"{module}.{named}({walk.describe_all(inside, where)})"


def _instance(walk: Walk, thing: Any, kind: str, where: str) -> str:
    if isinstance(thing, re.Pattern):
        return repr((thing.pattern, thing.flags))
    if isinstance(thing, weakref.ref):
        return f"{kind}({walk.describe(thing(), where)})"
    if kind == "torch._dynamo.eval_frame.OptimizedModule":  # what the compiler keeps beside it changes with calls
        return f"{kind}({walk.describe(thing._orig_mod, where)})"
    if kind.partition(".")[0] == "torch" and not has(thing, "__dict__") and " at 0x" not in repr(thing):
        return repr(thing)  # dtypes, devices, layouts
    try:
        reduced = None if isinstance(thing, io.IOBase) else thing.__reduce_ex__(4)
    except Exception:  # whatever refuses to be taken apart
        reduced = None
    if reduced is None:
        return _without_value(walk, thing, where)
    if has(thing, "__dict__") or getattr(type(thing), "__slots__", None):
        built_in = next(base for base in type(thing).__mro__ if not base.__flags__ & _HEAP_TYPE)
        items = f"({_reduced(walk, tuple(reduced)[1:], where)})" if built_in is not object else ""
        return f"{walk.describe(type(thing), where)}{items}{_attributes(walk, thing, where)}"
    parts = walk.describe(reduced, where) if isinstance(reduced, str) else _reduced(walk, reduced, where)
    return f"{kind}({parts})"


def _reduced(walk: Walk, reduced: tuple[Any, ...], where: str) -> str:
    """What pickle would make an object of."""
    return walk.describe_all([list(part) if isinstance(part, Iterator) else part for part in reduced], where)


def _without_value(walk: Walk, thing: Any, where: str) -> str:
    if type(thing).__module__ != "_abc":  # what an abstract class remembers of its subclasses
        walk.not_covered(f"{where}, an object without a value of its own ({type(thing).__qualname__})")
    return type(thing).__qualname__


def _attributes(walk: Walk, thing: Any, where: str) -> str:
    slots = [name for base in type(thing).__mro__ for name in _as_names(base.__dict__.get("__slots__", ()))]
    held = {name: attribute(thing, name) for name in slots if not name.startswith("__") and has(thing, name)}
    held |= attribute(thing, "__dict__", {})
    if hasattr(type(thing), "__enter__") and walk.is_library(type(thing).__module__):
        held = {name: value for name, value in held.items() if not _RESTORED.match(str(name))}
    for name, value in held.items():
        if _HOOKS.fullmatch(str(name)) and isinstance(value, dict) and all(isinstance(key, int) for key in value):
            held[name] = [*value.values()]
    return walk.describe_named(((name, held[name]) for name in sorted(map(str, held)) if name in held), where)


def _as_names(slots: Any) -> list[str]:
    return [slots] if isinstance(slots, str) else list(slots)
