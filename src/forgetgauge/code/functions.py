"""Functions and classes tell here where they were written, and what they hold, name and do."""

from __future__ import annotations

import functools
import inspect
import os
import re
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

from forgetgauge.code.modules import kind_of
from forgetgauge.probing import attribute


def module_of(function: FunctionType) -> str:
    """Where it was written, whatever functools.wraps says."""
    return str(function.__globals__.get("__name__") or "")


def folder_of(thing: Any) -> str:
    """Where the module lies that an object's code is in; empty for what is not the user's own."""
    thing = unwrapped(thing)
    code = thing if isinstance(thing, type | FunctionType) else unwrapped(attribute(thing, "__func__", type(thing)))
    module = module_of(code) if isinstance(code, FunctionType) else str(attribute(code, "__module__") or "")
    if module and kind_of(module) == "own":
        file = attribute(sys.modules.get(module), "__file__")
        return os.path.dirname(os.path.abspath(file)) if isinstance(file, str) else ""
    return ""


def unwrapped(thing: Any) -> Any:
    """What lies behind partial arguments and decorators."""
    for _ in range(100):
        held = attribute(thing, "__dict__")
        wrapped = held.get("__wrapped__") if isinstance(held, dict) else None
        inner = thing.func if isinstance(thing, functools.partial) else wrapped
        if inner is None:
            break
        thing = inner
    return thing


def unhooked(part: Any) -> Any:
    """The `step` of an optimiser without the hook that torch puts before it when the first one is made."""
    if isinstance(part, FunctionType) and "hooked" in vars(part) and module_of(part) == "torch.optim.optimizer":
        return vars(part)["__wrapped__"]
    return part


def is_found_by_name(thing: FunctionType) -> bool:
    """Whether a library has it under its name, decorated or not: the user made nothing of it."""
    found: Any = sys.modules.get(thing.__module__)
    for part in thing.__qualname__.split("."):
        found = attribute(found, part)
    return found is thing


def set_on(thing: Any, *without: str) -> dict[str, Any]:
    """Attributes that the user set on an object of a library's, by name; `cache_parameters` are of `lru_cache`."""
    no = re.compile("|".join(["__", "cache_parameters$", *without]))
    held = attribute(thing, "__dict__", {})
    return {str(name): value for name, value in dict(held).items() if not no.match(str(name))}


def holds_code(part: Any) -> bool:
    """Whether a special name of a class holds code that is not looked at anyway: a function, or what wraps one."""
    code = attribute(part, "__func__", part)
    if part is not code and isinstance(code, FunctionType):
        return code.__closure__ is not None
    return callable(code) and not isinstance(code, type)


def defaults(function: FunctionType) -> dict[str, Any]:
    """Parameter -> its default."""
    code, values = function.__code__, function.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount]
    return {**dict(zip(names[len(names) - len(values) :], values, strict=False)), **(function.__kwdefaults__ or {})}


def functions_in(thing: FunctionType | type) -> Iterator[FunctionType]:
    """A function, or all of a class."""
    if isinstance(thing, FunctionType):
        yield thing
        return
    for part in map(unhooked, vars(thing).values()):
        wrapped = [attribute(part, name) for name in ("fget", "fset", "fdel", "__func__", "func")]
        yield from (one for one in (part, *wrapped) if isinstance(one, FunctionType))


def source_of(code: CodeType) -> str | None:
    """What is written there; None where that is in no file."""
    try:
        return inspect.getsource(code)
    except (OSError, TypeError):
        return None


def code_objects(code: CodeType) -> Iterator[CodeType]:
    """All that is defined inside."""
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield part
            yield from code_objects(part)


def names_in(code: CodeType) -> set[str]:
    """Globals and attributes that code names."""
    return {name for part in (code, *code_objects(code)) for name in part.co_names}


def texts_in(code: CodeType) -> set[str]:
    """Texts in it that may be names."""
    constants = [constant for part in (code, *code_objects(code)) for constant in part.co_consts]
    return {text for text in constants if isinstance(text, str) and text.isidentifier()}


def bytecode(code: CodeType) -> str:
    """What a function does, without where it stands: lines, files and addresses do not count."""
    constants = [
        bytecode(part)
        if isinstance(part, CodeType)
        else repr(sorted(map(repr, part)) if isinstance(part, frozenset) else part)
        for part in code.co_consts
    ]
    return repr((code.co_code, code.co_names, code.co_varnames, code.co_freevars, constants))


def content(cell: Any) -> Any:
    """What a variable of the function around holds."""
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None
