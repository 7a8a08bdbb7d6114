"""What code of the user's leaves behind when it was called: in its own objects, or in the place of functions of ours.

What an object keeps from one call to the next would make its numbers depend on what it was asked before. Its
attributes, the globals of its code and what its functions close over count in its digest (`code/`), so a call that
changes any of them leaves another digest. What code does not tell, such as a generator that seeds itself, is found by
calling it twice.

A method that puts a loss of its own in the place of `torch.nn.functional.cross_entropy` trains all other methods with
it, Retrain among them. Watched are this package, what of torch and numpy computes, the classes inside (models, layers,
tensors, optimisers), and hooks that are registered for all models. To compare them takes two or three milliseconds.
"""

from __future__ import annotations

import copy
import functools
import inspect
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FunctionType, ModuleType
from typing import Any

from forgetgauge.code import code_digest
from forgetgauge.code.modules import kind_of
from forgetgauge.errors import WrongOutput
from forgetgauge.plan.jobs import Named
from forgetgauge.probing import attribute
from forgetgauge.run.algorithms import CATALOGUES, code_of_choice

_OURS = __name__.partition(".")[0]
_LIBRARIES = re.compile(
    r"torch|torch\.(?:_tensor|_C\._nn|functional|random|linalg|special|fft|func|amp|(?:nn|optim|autograd|utils\.data)(?:\..+)?)"
    r"|numpy|numpy\.(?:random|linalg|fft)"
)
_HOOKS_FOR_ALL = ("torch.nn.modules.module", "torch.optim.optimizer")
DESCRIPTORS = (staticmethod, classmethod, property)
_NOT_THERE = object()


# -- its own objects ---------------------------------------------------------------------------------------------------


class OwnState:
    """Of a learner or a method, as it is before it is tried; with it, attributes are put back at the end."""

    def __init__(self, what: str, chosen: Named) -> None:
        self._what, self._chosen = what, chosen
        self._thing = CATALOGUES[what].load(chosen.name)
        self._digest = self._digest_now()
        own = {} if isinstance(self._thing, type | ModuleType) else attribute(self._thing, "__dict__", {})
        self._names = set(own)
        self._before: dict[str, tuple[str | None, Any]] = {}
        """Attribute -> its digest, and a copy of it; only of those that can be copied."""
        for name, value in dict(own).items():
            with suppress(Exception):  # what cannot be copied is not put back
                self._before[name] = _digest_of(value), copy.deepcopy(value, {id(self._thing): self._thing})

    def __enter__(self) -> OwnState:
        return self

    def __exit__(self, *error: object) -> None:
        self.put_back()

    def has_changed(self) -> bool:
        """Whether calling it has changed what it reads of itself and of its surroundings, as far as that is known."""
        now = self._digest_now()
        return None not in (now, self._digest) and now != self._digest

    def put_back(self) -> None:
        """Give it the attributes that changed as they were, so that nothing of a handful of points reaches the run."""
        if not self.has_changed():
            return
        if isinstance(self._thing, type | ModuleType):
            return
        own = attribute(self._thing, "__dict__", {})
        for name, (digest, value) in self._before.items():
            if name not in own or digest != _digest_of(own[name]):
                own[name] = value
        for name in set(own) - self._names:
            del own[name]

    def _digest_now(self) -> str | None:
        try:
            return code_of_choice(CATALOGUES[self._what], self._chosen.name, self._chosen.params).digest
        except Exception:  # a file that it names is gone, or what it holds is too deep to be described
            return None


def _digest_of(value: Any) -> str | None:
    try:
        return code_digest(value)
    except Exception:
        return None


# -- functions of ours -------------------------------------------------------------------------------------------------


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
