"""A walk through objects knows what it has met so far, and asks of each whose it is.

`definitions` and `values` describe objects for it; `descriptions` decides which of them does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from types import FunctionType
from typing import Any

from forgetgauge.code.functions import module_of
from forgetgauge.code.imports import Imports
from forgetgauge.code.modules import NOT_KEYED, kind_of, source_file
from forgetgauge.code.parameters import ParameterFiles

OF_REPR = ("dataclasses", "reprlib")
"""Modules whose decorators stand before `__repr__` alone."""


class Walk(ABC):
    """What counts, as far as it was met."""

    def __init__(self) -> None:
        self.imports = Imports()
        self.parameter_files = ParameterFiles(self.imports)
        self.lines: set[str] = set()
        """What classes and globals say; each is noted once, by its name."""
        self.met: dict[int, object] = {}
        """Functions and classes by their ids, which stay theirs while they are held here."""
        self.waiting: list[FunctionType | type] = []
        """Those of the user's whose globals were not looked at yet."""

    @abstractmethod
    def describe(self, thing: Any, where: str) -> str:
        """A text that is equal for equal values; `where` says to people where the object is."""

    def describe_all(self, things: Iterable[Any], where: str) -> str:
        """The texts of several objects."""
        return ", ".join(self.describe(thing, where) for thing in things)

    def describe_named(self, things: Iterable[tuple[str, Any]], where: str) -> str:
        """The texts of several objects, each after its name."""
        return "".join(f" {name}={self.describe(thing, where)}" for name, thing in things)

    def not_covered(self, what: str) -> None:
        """Note what may change without changing the digest."""
        self.imports.not_covered.add(what)

    def meet(self, thing: FunctionType | type) -> bool:
        """Note that the globals of a function or class count; False where it was met before."""
        if id(thing) in self.met:
            return False
        self.met[id(thing)] = thing
        self.waiting.append(thing)
        return True

    def takes_source(self, module: str) -> bool:
        """Take in a module's source in whole; False where it has no file, or is the script that runs."""
        if module == "__main__" or source_file(module) is None:
            return False
        self.imports.add(module)
        return True

    def is_library(self, module: str | None) -> bool:
        """Whether code is not the user's own; an installed package is noted."""
        if not module:
            return True
        kind = kind_of(module)
        if kind == "package":
            self.imports.add(module)
        return kind in ("standard", "package") or module.partition(".")[0] in NOT_KEYED

    def is_own(self, function: FunctionType) -> bool:
        """Whether a function is the user's own."""
        module = module_of(function)
        return not module or module in OF_REPR or not self.is_library(module)

    def take_class_of(self, thing: Any, where: str) -> None:
        """Take in the class of an object, or the metaclass of a class, where that is the user's own."""
        module = str(type(thing).__module__)
        if module != "builtins" and kind_of(module) in ("own", "none") and module.partition(".")[0] not in NOT_KEYED:
            self.describe(type(thing), where)
