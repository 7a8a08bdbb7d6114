"""A digest of code: what makes a stored result the result of this very function, and of no earlier version of it."""

from __future__ import annotations

import functools
import hashlib
import inspect
from collections.abc import Mapping
from types import CodeType
from typing import Any


def code_digest(thing: Any) -> str:
    """A digest of an object's code and of all it was set up with: closures, partial arguments, attributes, arrays.

    What cannot be looked into counts by its `repr`, which may hold an address: then nothing stored is taken for it.
    """
    return hashlib.sha256(_describe(thing, set()).encode()).hexdigest()


def _describe(thing: Any, seen: set[int]) -> str:
    if thing is None or isinstance(thing, str | bytes | int | float | complex):
        return repr(thing)
    if id(thing) in seen:
        return "(again)"
    seen = seen | {id(thing)}
    if isinstance(thing, Mapping):
        items = (f"{_describe(key, seen)}: {_describe(value, seen)}" for key, value in thing.items())
        return f"{{{', '.join(items)}}}"
    if isinstance(thing, list | tuple | set | frozenset):
        parts = [_describe(item, seen) for item in thing]
        return f"{type(thing).__name__}({', '.join(sorted(parts) if isinstance(thing, set | frozenset) else parts)})"
    if hasattr(thing, "__array__") and not isinstance(thing, type):  # numpy arrays and CPU tensors
        array = thing.detach().cpu().numpy() if hasattr(thing, "detach") else thing.__array__()
        return f"{array.dtype}{array.shape}{hashlib.sha256(array.tobytes()).hexdigest()}"
    if isinstance(thing, functools.partial):
        return f"partial({_describe([thing.func, thing.args, thing.keywords], seen)})"
    if inspect.ismethod(thing):
        return f"method({_describe([thing.__func__, thing.__self__], seen)})"
    if inspect.isfunction(thing):
        cells = [cell.cell_contents for cell in thing.__closure__ or ()]
        known = [thing.__globals__.get(name) for name in sorted(_names(thing.__code__))]
        settings = [thing.__defaults__, thing.__kwdefaults__, cells, [g for g in known if _is_own(g, thing.__module__)]]
        return f"{_bytecode(thing.__code__)}{_describe(settings, seen)}"
    if inspect.isclass(thing):
        members = {name: part for name, part in vars(thing).items() if inspect.isfunction(part) or _is_value(part)}
        bases = [base for base in thing.__bases__ if base.__module__ == thing.__module__]
        return f"class {thing.__qualname__}{_describe([members, bases], seen)}"
    if hasattr(thing, "__dict__"):
        return f"{_describe(type(thing), seen)}{_describe(vars(thing), seen)}"
    return repr(thing)


def _bytecode(code: CodeType) -> str:
    """What a function does, without where it stands: lines, files and addresses do not count."""
    constants = [_bytecode(part) if isinstance(part, CodeType) else repr(part) for part in code.co_consts]
    return repr((code.co_code, code.co_names, code.co_varnames, code.co_freevars, constants))


def _names(code: CodeType) -> set[str]:
    inner = (_names(part) for part in code.co_consts if isinstance(part, CodeType))
    return set(code.co_names).union(*inner)


def _is_own(thing: Any, module: str) -> bool:
    """Whether a global belongs to what the user wrote: a value, or code of the same module."""
    return _is_value(thing) or getattr(thing, "__module__", None) == module


def _is_value(thing: Any) -> bool:
    return isinstance(thing, str | bytes | int | float | complex | list | tuple | dict | set | frozenset)
