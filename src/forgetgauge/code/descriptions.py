"""Any object is described here by a text that is equal for equal values, whatever is inside it and however deep."""

from __future__ import annotations

import enum
import functools
import inspect
import os
from collections.abc import Callable
from pathlib import PurePath
from types import FunctionType, MethodType, ModuleType
from typing import Any

from forgetgauge.code.definitions import class_, function, partial
from forgetgauge.code.files import is_weights, name_from_here, names_weights
from forgetgauge.code.values import value
from forgetgauge.code.walk import Walk

_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...), range, slice)
_MOST_PARTS = 200_000
"""Most parts that one digest covers; what is larger is listed as not covered."""


class Descriptions(Walk):
    """Describes objects, and what they hold."""

    def __init__(self) -> None:
        super().__init__()
        self._open: set[int] = set()
        """Ids of the objects inside which the walk is, so that it ends where one holds itself."""
        self._n_parts = 0

    def describe(self, thing: Any, where: str) -> str:
        """A text that is equal for equal values."""
        self._n_parts += 1
        if self._n_parts > _MOST_PARTS:
            self.not_covered(f"{where}, which is too large to be looked through")
            return "(too large)"
        if isinstance(thing, enum.Enum):
            self.take_class_of(thing, where)
            return f"{type(thing).__qualname__}.{thing.name} = {self.describe(thing.value, where)}"
        if type(thing) in _PLAIN:
            if isinstance(thing, str) and is_weights(thing):
                self.imports.add_file(thing, thing)
            return repr(thing)
        if id(thing) in self._open:
            return "(again)"
        self._open.add(id(thing))
        try:
            return _describer_of(thing)(self, thing, where)
        finally:
            self._open.discard(id(thing))


def _describer_of(thing: Any) -> Callable[[Walk, Any, str], str]:
    """What describes things of this kind."""
    if isinstance(thing, PurePath):
        return _path
    if isinstance(thing, ModuleType):
        return _module
    if isinstance(thing, functools.partial):
        return partial
    if inspect.ismethod(thing):
        return _method
    if isinstance(thing, FunctionType):
        return function
    if isinstance(thing, type):
        return class_
    if isinstance(thing, property | staticmethod | classmethod):
        return _wrapped
    return value


def _path(walk: Walk, path: PurePath, _where: str) -> str:
    """Its name, and of a file of weights the content; what is read from a folder is named elsewhere."""
    named = name_from_here(path)
    if names_weights(named) and os.path.isfile(path):
        walk.imports.add_file(named, path)
    return repr(named)


def _module(walk: Walk, module: ModuleType, _where: str) -> str:
    walk.imports.add(module.__name__)
    return f"module {module.__name__}"


def _method(walk: Walk, method: MethodType, where: str) -> str:
    return f"method({walk.describe_all((method.__func__, method.__self__), where)})"


def _wrapped(walk: Walk, thing: Any, where: str) -> str:
    """Properties, and methods of a class itself: the functions behind them."""
    functions = [getattr(thing, name, None) for name in ("fget", "fset", "fdel", "__func__")]
    return walk.describe_all(functions, where)
