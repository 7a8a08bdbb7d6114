"""Functions that every method is trained and measured by, as they were before code of the user's ran.

A method that puts a loss of its own in the place of `torch.nn.functional.cross_entropy` trains all other methods with
it, Retrain among them. Watched are this package, what of torch and numpy computes, the classes inside (models, layers,
tensors, optimisers), and hooks that are registered for all models. To compare them takes two or three milliseconds.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FunctionType, ModuleType
from typing import Any

from forgetgauge.code.imports import kind_of
from forgetgauge.errors import WrongOutput

_OURS = __name__.partition(".")[0]
_LIBRARIES = re.compile(
    r"torch|torch\.(?:_tensor|_C\._nn|functional|random|linalg|special|fft|func|amp|(?:nn|optim|autograd|utils\.data)(?:\..+)?)"
    r"|numpy|numpy\.(?:random|linalg|fft)"
)
_HOOKS_FOR_ALL = ("torch.nn.modules.module", "torch.optim.optimizer")
DESCRIPTORS = (staticmethod, classmethod, property)
_NOT_THERE = object()


@contextmanager
def functions_kept() -> Iterator[None]:
    """WrongOutput where a function that every method depends on was replaced, or a hook left for all models; it is put
    back."""
    before = [(where, dict(vars(where))) for where in _modules_and_classes(len(sys.modules))]
    hooks = [(where, dict(where)) for where in _hooks_for_all()]
    replaced, left = list[str](), False
    try:
        yield
    finally:
        for where, names in before:
            if not _are_the_same(vars(where), names):
                replaced += _put_back(where, names)
        for where, held in hooks:
            if where.keys() != held.keys():
                left = True
                where.clear()
                where.update(held)
    if replaced:
        more = f", and {len(replaced) - 1} more" if replaced[1:] else ""
        raise WrongOutput(
            f"it replaced {replaced[0]}{more}, by which every method is trained or measured; it was put back: "
            "call a function of your own instead"
        )
    if left:
        raise WrongOutput(
            "it left a hook that is registered for all models, those of every other method among them; it was removed: "
            "register it on the model, or remove it"
        )


def replaced_at_import() -> list[str]:
    """A line where code of the user's stood in the place of a library's function before anything of it was run."""
    found = {}
    for where in _modules_and_classes(len(sys.modules)):
        if _name_of(where).partition(".")[0] != _OURS:
            for name, what in list(vars(where).items()):
                if isinstance(what, FunctionType) and _is_the_users(what):
                    found[f"{_name_of(where)}.{name}"] = what.__code__.co_filename
    if not found:
        return []
    name, others = min(found), f" and {len(found) - 1} more are" if len(found) > 1 else " is"
    return [f"{name}{others} code of {found[name]}, by which every method is trained or measured, Retrain among them"]


def _is_the_users(function: FunctionType) -> bool:
    module = str(function.__globals__.get("__name__") or "")
    return module.partition(".")[0] not in ("torch", "numpy", _OURS) and kind_of(module) == "own"


@functools.lru_cache(1)
def _modules_and_classes(n_loaded: int) -> list[Any]:
    """While no further module is loaded: to look for them takes longer than most jobs."""
    loaded = [(name, one) for name, one in list(sys.modules.items()) if isinstance(one, ModuleType)]
    modules = [one for name, one in loaded if name.partition(".")[0] == _OURS or _LIBRARIES.fullmatch(name)]
    inside = {what for module in modules for what in vars(module).values() if isinstance(what, type)}
    tops = (_OURS, "torch", "numpy")
    return modules + [what for what in inside if str(what.__module__).partition(".")[0] in tops]


def _hooks_for_all() -> list[dict[Any, Any]]:
    """Where hooks are kept that are called for every model, and for every optimiser."""
    spaces = [vars(sys.modules[name]) for name in _HOOKS_FOR_ALL if name in sys.modules]
    return [
        held for space in spaces for name, held in space.items() if name[:8] == "_global_" and isinstance(held, dict)
    ]


def _are_the_same(now: Any, before: dict[str, Any]) -> bool:
    """Whether nothing changed at all, as after nearly every job; quickly."""
    try:
        return bool(now == before)
    except Exception:  # things that cannot be compared, which are others then
        return False


def _put_back(where: Any, before: dict[str, Any]) -> list[str]:
    """The names of functions that are others now than they were, once they are as before."""
    now, names = dict(vars(where)), list[str]()
    ours = _name_of(where).partition(".")[0] == _OURS
    for name, what in before.items():
        is_other = now.get(name, _NOT_THERE) is not what and (callable(what) or isinstance(what, DESCRIPTORS))
        if is_other and (ours or not _is_the_librarys_doing(name, what, now.get(name))) and _set(where, name, what):
            names.append(f"{_name_of(where)}.{name}")
    for name in now.keys() - before.keys() if isinstance(where, type) else ():
        what = now[name]
        inherited = next((vars(base)[name] for base in where.__mro__[1:] if name in vars(base)), _NOT_THERE)
        if inherited is _NOT_THERE or not (callable(what) or isinstance(what, DESCRIPTORS)):
            continue  # a name of its own, which nobody else asks for
        if ours or not _is_the_librarys_doing(name, inherited, what):
            delattr(where, name)
            names.append(f"{_name_of(where)}.{name}")
    return sorted(names)


def _set(where: Any, name: str, what: Any) -> bool:
    try:
        setattr(where, name, what)
    except (AttributeError, TypeError):  # what cannot be set was not set
        return False
    return True


def _is_the_librarys_doing(name: str, before: Any, now: Any) -> bool:
    """Whether torch itself wraps a function when it is first needed (`SGD.step` for its profiler, `Module.__init__` for
    its compiler), or changes what is private to it."""
    if name[:1] == "_" and name[:2] != "__" and _is_written_in(now, _folders("")):
        return True
    wrapped, wrappers = inspect.unwrap(before), _folders("_dynamo/", "_compile.py", "optim/optimizer.py")
    for _ in range(20):
        if now is wrapped:
            return True
        if not _is_written_in(now, wrappers):
            return False
        if any(one is before for one in _held_by(now)):
            return True
        now = getattr(now, "__wrapped__", None)
    return False


def _held_by(function: FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # one that is empty
            yield cell.cell_contents


def _is_written_in(function: Any, places: tuple[str, ...]) -> bool:
    return isinstance(function, FunctionType) and function.__code__.co_filename.startswith(places)


def _folders(*inside: str) -> tuple[str, ...]:
    """Where torch and numpy lie, or files and folders inside."""
    found = [getattr(sys.modules.get(name), "__file__", None) for name in ("torch", "numpy")]
    return tuple(os.path.join(os.path.dirname(file), part) for file in found if file for part in inside)


def _name_of(where: Any) -> str:
    return f"{where.__module__}.{where.__qualname__}" if isinstance(where, type) else str(where.__name__)
