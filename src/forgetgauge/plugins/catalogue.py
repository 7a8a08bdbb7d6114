"""A catalogue: names with one-line facts, and the code behind a name once it is used."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from forgetgauge.code import Code, code_digest, code_of, files_named, folders_named
from forgetgauge.errors import UserError, unknown_name
from forgetgauge.probing import attribute


@dataclass(frozen=True)
class Entry:
    """One line of a catalogue."""

    target: str
    """Where the code is: `module:attribute`."""
    summary: str
    """What it is, in one line."""
    needs: str = ""
    """What it must be given (sets, shadow models, access)."""
    cost: str = ""
    """What it costs, in passes over the data."""
    cites: str = ""
    """Where it was published."""
    embedded: bool = False
    """Of data: a package that is installed anyway brings it, so that nothing is downloaded."""
    differs_in: str = ""
    """Of methods: the strength, where models that are unlearned at several values of it can be members of one stack."""


@dataclass
class Catalogue:
    """Names of one sort (`what`), each with its entry; `bind` adds objects of the running program."""

    what: str
    entries: Mapping[str, Entry]
    _bound: dict[str, Any] = field(default_factory=dict)

    def load(self, name: str) -> Any:
        """The object behind a name."""
        if name in self._bound:
            return self._bound[name]
        if name in self.entries:
            return _import_target(self.entries[name].target)
        if ":" in name:
            permit(self.what, name)
            thing = self._import_users(name)
            if inspect.isroutine(thing) or inspect.isclass(thing):
                _refuse_standard(self.what, name, thing.__module__ or "builtins")
            return thing
        self.check(name)
        return self._import_users(self.installed()[name])

    def check(self, name: str) -> None:
        """Refuse a name that stands for nothing, with the nearest one that does; nothing is imported."""
        if name not in self and ":" not in name:
            unread = "".join(f"; {line}" for line in offered(self.group)[1])
            raise UserError(unknown_name(self.what, name, [*self.entries, *self.installed()]) + unread)

    def __contains__(self, name: object) -> bool:
        """Whether it is a name of the catalogue, of another package, or bound."""
        return name in self._bound or name in self.entries or name in self.installed()

    def installed(self) -> dict[str, str]:
        """Name -> `module:attribute` of what other installed packages offer; nothing of it is imported."""
        found, _ = offered(self.group)
        return {name: value for name, value in found.items() if name not in self.entries}

    @property
    def group(self) -> str:
        """Under which other packages offer such names (https://packaging.python.org, entry points)."""
        return f"forgetgauge.{self.what.replace(' ', '-')}"

    def bind(self, thing: Any, name: str | None = None) -> str:
        """Make an object of the running program known under a name that changes when its code does."""
        name = name or f"{_label_of(thing)}@{code_digest(thing)[:12]}"
        self._bound[name] = thing
        return name

    def is_bound(self, name: str) -> bool:
        """Whether it is an object of this program, which no other process knows by that name."""
        return name in self._bound

    def _import_users(self, name: str) -> Any:
        _add_current_folder()
        try:
            return _import_target(name)
        except (Exception, SystemExit) as error:  # whatever a module of the user's raises while it is imported
            raise UserError(f"{self.what} '{name}' cannot be imported: {type(error).__name__}: {error}") from error


def offered(group: str) -> tuple[dict[str, str], list[str]]:
    """(name -> `module:attribute` of what installed packages offer; a line for each whose list cannot be read)."""
    from importlib.metadata import distributions, entry_points

    try:
        return {point.name: point.value for point in entry_points(group=group)}, []
    except Exception:  # one malformed package is enough; the others are asked one by one
        found, unread = dict[str, str](), dict[str, None]()
    for package in distributions():
        try:
            points = package.entry_points
        except Exception:
            unread[f"the installed package {_name_of(package)} is left out: its entry_points.txt cannot be read"] = None
            continue
        for point in points:
            if point.group == group:
                found.setdefault(point.name, point.value)
    return found, list(unread)


def _name_of(package: Any) -> str:
    try:
        return f"'{package.metadata['Name']}'"
    except Exception:
        return "without a name"


# -- code that a file names --------------------------------------------------------------------------------------------


class CodeNamed(Exception):
    """A file names code, and nobody allowed that it is imported."""


Asked = Callable[[str], None]
_ASKED: ContextVar[Asked | None] = ContextVar("asked", default=None)


@contextmanager
def code_announced(to: Asked) -> Iterator[None]:
    """Within, what code of whose is about to be imported is said first, once each."""
    said: set[str] = set()

    def announce(what: str) -> None:
        if what not in said:
            said.add(what)
            to(f"importing {what}")

    token = _ASKED.set(announce)
    try:
        yield
    finally:
        _ASKED.reset(token)


@contextmanager
def no_code() -> Iterator[None]:
    """Within, nothing that a file names is imported: a run file of somebody else's may be looked at."""

    def refuse(what: str) -> None:
        raise CodeNamed(f"it names code, which would be imported and run: {what}")

    token = _ASKED.set(refuse)
    try:
        yield
    finally:
        _ASKED.reset(token)


def permit(what: str, name: str) -> None:
    """Refuse a callable of Python's own library, and ask whoever wants to be asked; nothing is imported."""
    module = name.partition(":")[0].partition(".")[0]
    _add_current_folder()
    _refuse_standard(what, name, module)
    asked = _ASKED.get()
    if asked is not None:
        asked(f"{what} '{name}' ({_file_of(module) or 'no such module is found'})")


def _refuse_standard(what: str, name: str, module: str) -> None:
    top = module.partition(".")[0]
    origin = _file_of(top)
    if top == "builtins" or (top in sys.stdlib_module_names and _is_standard(origin)):
        raise UserError(f"{what} '{name}' is of Python's standard library, where no {what} is")


def _is_standard(origin: str | None) -> bool:
    """Whether a module of such a name is Python's own, and not a file of the user's of the same name."""
    return origin is None or origin in ("built-in", "frozen") or Path(origin).is_relative_to(_STANDARD)


_STANDARD = sysconfig.get_path("stdlib")


def _file_of(module: str) -> str | None:
    """Where a module of the top level would be imported from; it is not."""
    try:
        found = importlib.util.find_spec(module)
    except (ImportError, ValueError, AttributeError):
        return None
    if found is None:
        return None
    return found.origin or next(iter(found.submodule_search_locations or ()), None)


def _add_current_folder() -> None:
    if os.getcwd() not in sys.path:  # the installed command has no current folder on its path; users expect it
        sys.path.insert(0, os.getcwd())


def code_behind(chosen: Sequence[tuple[Catalogue, str]], params: Any = None, files: Sequence[Path] = ()) -> Code:
    """What stands in keys for the code of names, and for files that their parameters name.

    Empty for what we ship (its job kind has a version); for the user's own code a digest, so that edits count.
    """
    own = [catalogue.load(name) for catalogue, name in chosen if name not in catalogue.entries]
    code = code_of(*own, files=[*files_named(params), *files], params=params if own else None)
    folders = [f"the files of the folder {folder}, which a parameter names" for folder in folders_named(params)]
    return replace(code, not_covered=(*code.not_covered, *folders)) if own else code


def _import_target(target: str) -> Any:
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module), attribute)


def _label_of(thing: Any) -> str:
    return str(attribute(thing, "__qualname__", type(thing).__qualname__))


def call_by_name(function: Callable[..., Any], given: Mapping[str, Any]) -> Any:
    """`given` by place as far as its parameters allow, since wrappers often pass on `*args` alone, else by name."""
    signature = inspect.signature(function)
    bound = signature.bind_partial()
    own = [p.name for p in signature.parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    bound.arguments.update({name: given[name] for name in own if name in given})
    others = {name: value for name, value in given.items() if name not in own}
    return function(*bound.args, **bound.kwargs, **others)
