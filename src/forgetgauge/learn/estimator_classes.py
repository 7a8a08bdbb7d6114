"""What the bytes of a stored scikit-learn model may name: they may be a stranger's.

scikit-learn's own code runs on whatever it finds in an estimator, so a free choice of its parts is a choice of what is
done: a stack of models calls the method that its state names, of the object that its state holds. Three rules leave
none. An object is of a class that the run itself names, or of one from a module that the classes around it use; what
is outermost, of the run's own class. There are no functions but those that the run itself gives, and no attribute takes
the place of a method. A text that scikit-learn takes for a method or a folder is one of a few, or the run's own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from inspect import getattr_static
from types import FunctionType, ModuleType
from typing import Any

PACKAGE = "sklearn"
ALWAYS = (
    "numpy.random._mt19937",
    "numpy.random._pcg64",
    "numpy.random._philox",
    "numpy.random._sfc64",
    "numpy.random.bit_generator",
    "scipy.sparse._csc",
    "scipy.sparse._csr",
    "sklearn.linear_model._bayes",
)
"""Modules whose classes any estimator may hold: generators, the two sparse matrices that are three arrays, and what
IterativeImputer imports as late as when it is fitted."""
NEVER = ("sklearn.callback", "sklearn.datasets", "sklearn.externals", "sklearn.utils")
"""What is in them but in no model: classes that talk to other processes, download, call, and wrap others' code."""
BUNCH = "sklearn.utils._bunch:Bunch"
"""The one class of sklearn.utils that is in models: estimators by name."""
CONSTRUCTORS = (
    "numpy.random._pickle:__bit_generator_ctor",
    "numpy.random._pickle:__generator_ctor",
    "numpy.random._pickle:__randomstate_ctor",
    "sklearn.metrics._dist_metrics:newObj",
    "sklearn.neighbors._ball_tree:newObj",
    "sklearn.neighbors._kd_tree:newObj",
)
"""Functions that make an object of a class, or with an object, of their own package."""
METHODS = ("predict", "predict_log_proba", "predict_proba", "decision_function")
"""What a stack may ask of the estimators in it."""
OF_THE_RUN = ("memory", "response_method")
"""Parameters whose texts name a folder that is read and written, and a method that is called."""


class Known:
    """What the run itself names: its estimator, those among its parameters, and the functions that these were given."""

    def __init__(self, like: Any) -> None:
        own = list(_estimators(like, {}))
        self.given = {key: one for key, one in {"": like, **like.get_params(deep=True)}.items() if callable(one)}
        self.classes = {name_of(type(one)): type(one) for one in own}
        self.packages = (PACKAGE, *(name.partition(":")[0].partition(".")[0] for name in self.classes))
        params = (pair for one in own for pair in one.get_params(deep=False).items())
        self.texts = {(key, value) for key, value in params if isinstance(value, str)}

    def class_named(self, name: str, around: Sequence[type]) -> type:
        """Of an object that lies in objects of these classes."""
        if name in self.classes:
            return self.classes[name]
        found = _at_home(name) if self._is_used(name, around) else None
        if not isinstance(found, type) or issubclass(found, type):
            raise TypeError(f"no object of {name} is made from a file here")
        return found

    def plain_named(self, name: str, around: Sequence[type]) -> type:
        """Of an object that has a state and nothing else; who has more says how it is made."""
        cls = self.class_named(name, around)
        if _says_how(cls):
            raise TypeError(f"{name} is made by a call")
        return cls

    def maker_named(self, name: str, around: Sequence[type]) -> Callable[..., Any]:
        """Of an object that is made by a call: one of a few functions, what Cython wrote, or a class that asks so."""
        of_cython = name.partition(":")[2].startswith("__pyx_unpickle_")
        if name in CONSTRUCTORS or (of_cython and self._is_used(name, around)):
            made: Callable[..., Any] = _at_home(name)
            return made
        cls = self.class_named(name, around)
        if _within(name, ALWAYS) or not _says_how(cls):
            raise TypeError(f"{name} is not called")
        return cls

    def _is_used(self, name: str, around: Sequence[type]) -> bool:
        module = name.partition(":")[0]
        if module in ALWAYS or name == BUNCH:
            return True
        is_code = _within(name, self.packages) and not _within(name, NEVER)
        return is_code and any(module in _modules_of(cls) for cls in around)

    def check_state(self, cls: type, state: Any) -> None:
        """TypeError where a state would change what is called, or where files are."""
        if type(state) is not dict:
            if state is not None and hasattr(cls, "get_params"):
                raise TypeError(f"the state of a {cls.__name__} has no names")
            return
        for name, value in state.items():
            own = getattr_static(cls, name, None)
            if callable(own) or hasattr(own, "__wrapped__"):
                raise TypeError(f"{name} of a {cls.__name__} is a method")
            if name == "stack_method_" and any(one not in METHODS for one in value):
                raise TypeError(f"{name} names something else than {', '.join(METHODS)}")
            if name == "_sklearn_version" and not str(value).isprintable():
                raise TypeError(f"{name} is no version")  # it is printed where it is another one
            is_own = value is None or (isinstance(value, str) and (name, value) in self.texts)
            if name in OF_THE_RUN and not is_own:
                raise TypeError(f"{name} is not what the run says")


def _estimators(value: Any, met: dict[int, Any]) -> Iterator[Any]:
    """An estimator, those among its parameters, and theirs; also those in lists and grids."""
    if id(value) in met:
        return
    met[id(value)] = value
    parts: Sequence[Any] = ()
    if hasattr(value, "get_params") and not isinstance(value, type):
        yield value
        parts = list(value.get_params(deep=False).values())
    elif isinstance(value, Mapping):
        parts = list(value.values())
    elif isinstance(value, list | tuple):
        parts = value
    for part in parts:
        yield from _estimators(part, met)


@lru_cache(maxsize=256)
def _modules_of(cls: type) -> frozenset[str]:
    """Where a class and its bases are written, what these modules use, and what shares a private package with them."""
    homes = {base.__module__ for base in cls.__mro__} & sys.modules.keys()
    private = tuple(f"{home.rpartition('.')[0]}." for home in homes if "._" in home.rpartition(".")[0])
    return frozenset(
        homes.union(
            *(_used_by(sys.modules[home]) for home in homes), (one for one in [*sys.modules] if one.startswith(private))
        )
    )


def _used_by(module: ModuleType) -> Iterator[str]:
    for value in list(vars(module).values()):
        if isinstance(value, type | FunctionType | ModuleType):
            yield str(value.__name__ if isinstance(value, ModuleType) else value.__module__)


def _says_how(cls: type) -> bool:
    """Whether it has a `__reduce__` of its own, as compiled classes have."""
    return any("__reduce__" in vars(base) for base in cls.__mro__ if base is not object)


def check_argument(constructor: str, args: Sequence[Any]) -> None:
    """TypeError where one of the constructors is given anything else."""
    (one,) = args
    cls = one if isinstance(one, type) else type(one)
    if not _within(name_of(cls), (constructor.rpartition(".")[0],)):
        raise TypeError(f"{constructor} makes no {cls.__name__}")


def name_of(thing: Any) -> str:
    """Its module and its name there."""
    return f"{thing.__module__}:{thing.__qualname__}"


def _within(name: str, packages: tuple[str, ...]) -> bool:
    return any(name.startswith((f"{package}.", f"{package}:")) for package in packages)


def _at_home(name: str) -> Any:
    """What has this name, in a module that is there already: importing one would run it."""
    module, _, qualname = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in qualname.split("."):
        found = getattr(found, part, None)
    if found is None or name_of(found) != name:
        raise TypeError(f"{name} is not at home there")
    return found
