"""Functions, classes and partial arguments are described here: by their place in source, and by what they hold."""

from __future__ import annotations

import functools
import types
from types import FunctionType
from typing import Any

from forgetgauge.code.functions import (
    bytecode,
    content,
    defaults,
    folder_of,
    functions_in,
    holds_code,
    is_found_by_name,
    module_of,
    set_on,
    source_of,
    unhooked,
    unwrapped,
)
from forgetgauge.code.walk import OF_REPR, Walk
from forgetgauge.probing import attribute


def partial(walk: Walk, thing: functools.partial[Any], where: str) -> str:
    """The function and its arguments; files that these name count."""
    folder = folder_of(thing)
    if folder:
        names = attribute(attribute(unwrapped(thing.func), "__code__"), "co_varnames", ())
        walk.parameter_files.take(dict(zip(names, thing.args, strict=False)), [folder])
        walk.parameter_files.take(thing.keywords, [folder])
    walk.take_class_of(thing, where)
    return f"partial({walk.describe_all([thing.func, thing.args, thing.keywords, *_held_by(thing)], where)})"


def function(walk: Walk, thing: FunctionType, where: str) -> str:
    """Its code, defaults, closure and attributes; of a library's the name."""
    thing = unhooked(thing)
    cells = [content(cell) for cell in thing.__closure__ or ()]
    if module_of(thing) in OF_REPR:
        return f"{thing.__module__}.{thing.__qualname__}"
    if not walk.is_own(thing):
        return _function_of_library(walk, thing, cells, where)
    walk.meet(thing)
    walk.parameter_files.take(defaults(thing), [folder] if (folder := folder_of(thing)) else [])
    walk.parameter_files.take(dict(zip(thing.__code__.co_freevars, cells, strict=True)), [])
    wrapped = vars(thing).get("__wrapped__")
    behind = [wrapped] if wrapped is not None and not any(wrapped is cell for cell in cells) else []
    settings = [thing.__defaults__, thing.__kwdefaults__, cells, *_held_by(thing), *behind]
    return f"{_code_of(walk, thing)}({walk.describe_all(settings, f'{where}: {thing.__qualname__}')})"


def _function_of_library(walk: Walk, thing: FunctionType, cells: list[Any], where: str) -> str:
    """Its name; of what a library's decorator or factory made from something of the user's, that, too."""
    name, held = f"{thing.__module__}.{thing.__qualname__}", vars(thing)
    if not (cells or "__wrapped__" in held) or (walk.is_library(thing.__module__) and is_found_by_name(thing)):
        return name
    walk.met[id(thing)] = thing
    if "_torchdynamo_orig_callable" in held:  # what the compiler keeps beside it changes with every call
        settings = [held["_torchdynamo_orig_callable"]]
    elif "registry" in held and "dispatch" in held:  # functools.singledispatch, and so do its caches
        settings = [held["__wrapped__"], dict(held["registry"])]
    else:
        settings = [thing.__defaults__, thing.__kwdefaults__, cells, held.get("__wrapped__"), set_on(thing)]
    return f"{name}({walk.describe_all(settings, f'{where}: {thing.__qualname__}')})"


def class_(walk: Walk, thing: type, where: str) -> str:
    """Its name; what a class of the user's says is noted once."""
    name = f"{thing.__module__}.{thing.__qualname__}"
    made = thing.__module__ == "types" and getattr(types, thing.__name__, None) is not thing  # make_dataclass
    if (walk.is_library(thing.__module__) and not made) or not walk.meet(thing):
        return name
    in_source = walk.takes_source(thing.__module__) and "<locals>" not in thing.__qualname__
    inside = "" if in_source else "".join(_code_of(walk, one) for one in functions_in(thing) if walk.is_own(one))
    said = walk.describe_named(sorted(_members(thing).items()), f"{where}: {name}")
    walk.take_class_of(thing, where)
    bases = walk.describe_all([base for base in thing.__bases__ if base is not object], where)
    walk.lines.add(f"class {name}({bases}){inside}{said}")
    return name


def _members(thing: type) -> dict[str, Any]:
    """What a class holds, but for special names that hold no code, and for slots."""
    return {
        key: part
        for key, part in vars(thing).items()
        if (not key.startswith("__") or holds_code(part))
        and type(part).__name__ not in ("getset_descriptor", "member_descriptor")
    }


def _code_of(walk: Walk, thing: FunctionType) -> str:
    """Its place where the source of its module is taken in whole, else what it says or does itself."""
    inside = thing.__code__.co_qualname  # functools.wraps gives a function another name
    name = f"{module_of(thing)}:{inside}"
    if walk.takes_source(module_of(thing)) and "<" not in inside:
        return name
    source = source_of(thing.__code__) if "<lambda>" not in inside else None
    return f"{name} {bytecode(thing.__code__)}" if source is None else f"{name} {source.strip()!r}"


def _held_by(thing: Any) -> list[dict[str, Any]]:
    """The attributes that the user set, if there are any."""
    return [held] if (held := set_on(thing)) else []
