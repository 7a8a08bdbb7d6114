"""A fitted scikit-learn estimator as bytes, and back, without pickles.

The state is what `__reduce_ex__` names: numbers, texts, arrays, and objects of classes with a state of their own. It is
written as JSON with the arrays behind it. Reading makes objects of a few kinds of classes alone: those of scikit-learn,
of scipy's sparse matrices and numpy's generators, and of the packages of the estimators that the run itself names. A
name is followed only to where the class is at home: that scikit-learn imports a module gives nobody its classes. No
function is called that the bytes name, but for the handful of constructors listed here and those that Cython wrote.
"""

from __future__ import annotations

import copyreg
import json
import math
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from forgetgauge.errors import UserError

MOST_DEEP = 100
"""Objects within objects; more is a cycle."""
PACKAGES = ("sklearn", "scipy.sparse", "numpy.random")
"""Whose classes may be made again."""
NEVER = ("sklearn.callback", "sklearn.datasets", "sklearn.externals", "sklearn.utils._testing")
"""What is in them but in no model: classes that talk to other processes, download, and wrap others' code."""
CONSTRUCTORS = (
    "numpy.random._pickle:__bit_generator_ctor",
    "numpy.random._pickle:__generator_ctor",
    "numpy.random._pickle:__randomstate_ctor",
    "sklearn.metrics._dist_metrics:newObj",
    "sklearn.neighbors._ball_tree:newObj",
    "sklearn.neighbors._kd_tree:newObj",
)
TYPES = {kind.__name__: kind for kind in (bool, int, float, str)}
Node = Any
"""What JSON can hold; a mapping with one key says what the value is."""


def state_bytes(estimator: Any, like: Any) -> npt.NDArray[np.uint8]:
    """(n,) all of an estimator; `like` is the one that the run names, not fitted."""
    writer = _Writer(like)
    head = json.dumps(writer.node(estimator, 0), allow_nan=False).encode()
    whole = b"".join([len(head).to_bytes(8, "little"), head, *writer.arrays])
    return np.frombuffer(whole, dtype=np.uint8).copy()


def estimator_of(state: npt.NDArray[np.uint8], like: Any) -> Any:
    """The estimator that `state_bytes` wrote; UserError where the bytes are no such thing."""
    whole = state.tobytes()
    try:
        n_head = int.from_bytes(whole[:8], "little")
        head = json.loads(whole[8 : 8 + n_head])
        made = _Reader(like, whole[8 + n_head :]).value(head)
        if not hasattr(made, "predict"):
            raise TypeError(f"a {type(made).__name__} is no estimator")
        return made
    except Exception as error:  # constructors and states of others' classes raise what they like
        raise UserError(f"a stored scikit-learn model cannot be read: {type(error).__name__}: {error}") from None


class _Known:
    """What the run itself names, by key: the parameters of its estimator, and the classes of these."""

    def __init__(self, like: Any) -> None:
        given = {"": like, **like.get_params(deep=True)}
        self.given = {key: value for key, value in given.items() if callable(value)}
        self.classes = {_name(type(value)): type(value) for value in given.values() if hasattr(value, "get_params")}
        self.packages = (*PACKAGES, *(name.partition(":")[0].partition(".")[0] for name in self.classes))

    def class_named(self, name: str) -> type:
        """Of an object that is to be made."""
        if name in self.classes:
            return self.classes[name]
        found = _imported(name) if _within(name, self.packages) and not _within(name, NEVER) else None
        if not isinstance(found, type) or issubclass(found, type):
            raise TypeError(f"no object of {name} is made from a file")
        return found

    def maker_named(self, name: str) -> Callable[..., Any]:
        """Of an object that is made by a call: its class, one of a few functions, or what Cython wrote for a class."""
        of_cython = name.partition(":")[2].startswith("__pyx_unpickle_") and _within(name, PACKAGES)
        made: Callable[..., Any] = _imported(name) if of_cython or name in CONSTRUCTORS else self.class_named(name)
        return made


class _Writer:
    def __init__(self, like: Any) -> None:
        self.known, self.what = _Known(like), type(like).__name__
        self.keys = {id(value): key for key, value in self.known.given.items()}
        self.arrays: list[bytes] = []
        self.n_bytes = 0
        self.met: dict[int, tuple[int, Any]] = {}
        """Objects that were written, by identity: a thousand trees share one random generator."""

    def node(self, value: Any, depth: int) -> Node:
        """A value of any sort."""
        if depth > MOST_DEEP:
            raise UserError(f"{self.what}: its state refers to itself, and cannot be kept")
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if id(value) in self.keys:
            return {"given": self.keys[id(value)]}
        if isinstance(value, type):
            return self._type(value)
        if type(value) in (np.ndarray, np.memmap) or isinstance(value, np.generic):
            return self._array(np.asarray(value), isinstance(value, np.generic), depth)
        if type(value) is np.ma.MaskedArray:
            return {"masked": [self.node(part, depth + 1) for part in (value.data, value.mask, value.fill_value)]}
        if isinstance(value, np.dtype):
            return {"dtype": np.lib.format.dtype_to_descr(value)}
        if type(value) in (bytes, bytearray):
            return {type(value).__name__: self._array(np.frombuffer(bytes(value), dtype=np.uint8), False, depth)}
        if type(value) in (list, tuple):
            return {type(value).__name__: [self.node(one, depth + 1) for one in value]}
        if type(value) in (set, frozenset):  # whose order is another one in every process
            return {type(value).__name__: sorted((self.node(one, depth + 1) for one in value), key=json.dumps)}
        if type(value) is dict:
            return {"dict": [[self.node(part, depth + 1) for part in pair] for pair in value.items()]}
        if type(value) is slice:
            return {"slice": [self.node(part, depth + 1) for part in (value.start, value.stop, value.step)]}
        return self._object(value, depth)

    def _type(self, value: type) -> Node:
        if value in TYPES.values():
            return {"type": value.__name__}
        if issubclass(value, np.generic):
            return {"numpy": value.__name__}
        return {"class": self._allowed(self.known.class_named, value)}

    def _array(self, array: npt.NDArray[Any], is_scalar: bool, depth: int) -> Node:
        if array.dtype.hasobject:
            return {"objects": [list(array.shape), [self.node(one, depth + 1) for one in array.ravel().tolist()]]}
        by_columns = array.flags.f_contiguous and not array.flags.c_contiguous
        order: Literal["F", "C"] = "F" if by_columns else "C"  # sums of products are rounded by it
        data, start = _without_gaps(array).tobytes(order), self.n_bytes
        self.arrays.append(data)
        self.n_bytes += len(data)
        told = [np.lib.format.dtype_to_descr(array.dtype), list(array.shape), start, order]
        return {"scalar" if is_scalar else "array": told}

    def _object(self, value: Any, depth: int) -> Node:
        if id(value) in self.met:
            return {"again": self.met[id(value)][0]}
        try:
            reduced = value.__reduce_ex__(2)
        except Exception as error:
            raise UserError(f"{self.what}: a {type(value).__name__} in its state cannot be kept: {error}") from None
        if isinstance(reduced, str):
            raise UserError(f"{self.what}: a {type(value).__name__} in its state, {reduced}, cannot be kept")
        make, args, state, items, pairs = (*reduced, None, None, None)[:5]
        if make is copyreg.__newobj__:  # type: ignore[attr-defined]
            (cls, *args), kind = args, "new"
            name = self._allowed(self.known.class_named, cls)
        else:
            kind, name = "made", self._allowed(self.known.maker_named, make)
        parts = [list(args), state, None if items is None else list(items), None if pairs is None else dict(pairs)]
        node = {kind: [name, *(self.node(part, depth + 1) for part in parts)]}
        self.met[id(value)] = len(self.met), value
        return node

    def _allowed(self, known: Callable[[str], Any], thing: Any) -> str:
        name = _name(thing)
        try:
            known(name)
        except (TypeError, ImportError, AttributeError):
            raise UserError(
                f"{self.what}: a {name.replace(':', '.')} in its state cannot be kept; models are stored without "
                "pickles, so only what scikit-learn and the estimator's own package make can be"
            ) from None
        return name


class _Reader:
    def __init__(self, like: Any, data: bytes) -> None:
        self.known, self.data = _Known(like), data
        self.made: list[Any] = []

    def value(self, node: Node) -> Any:
        """What was written."""
        if not isinstance(node, dict):
            return node
        ((kind, told),) = node.items()
        return getattr(self, f"read_{kind}")(told)  # no other attribute begins so

    def _values(self, nodes: list[Node]) -> Iterator[Any]:
        return map(self.value, nodes)

    def read_again(self, number: int) -> Any:
        return self.made[number]

    def read_float(self, told: str) -> float:
        return float(told)

    def read_given(self, key: str) -> Any:
        return self.known.given[key]

    def read_type(self, name: str) -> type:
        return TYPES[name]

    def read_numpy(self, name: str) -> type:
        return np.dtype(name).type

    def read_class(self, name: str) -> type:
        return self.known.class_named(name)

    def read_dtype(self, told: Any) -> np.dtype[Any]:
        return np.lib.format.descr_to_dtype(told)

    def read_array(self, told: Any) -> npt.NDArray[Any]:
        dtype, shape, start, order = np.lib.format.descr_to_dtype(told[0]), tuple(told[1]), told[2], told[3]
        n_items = math.prod(shape)
        if not n_items:
            return np.empty(shape, dtype=dtype)
        flat = np.frombuffer(self.data, dtype=dtype, count=n_items, offset=start)
        return flat.reshape(shape, order=order).copy(order="K")

    def read_scalar(self, told: Any) -> Any:
        return self.read_array(told)[()]

    def read_bytes(self, told: Node) -> bytes:
        return bytes(self.value(told).tobytes())

    def read_bytearray(self, told: Node) -> bytearray:
        return bytearray(self.read_bytes(told))

    def read_masked(self, told: list[Node]) -> npt.NDArray[Any]:
        data, mask, fill_value = self._values(told)
        return np.ma.MaskedArray(data, mask, fill_value=fill_value)

    def read_objects(self, told: Any) -> npt.NDArray[Any]:
        flat = np.empty(len(told[1]), dtype=object)
        for i, one in enumerate(self._values(told[1])):
            flat[i] = one
        return flat.reshape(tuple(told[0]))

    def read_list(self, told: list[Node]) -> list[Any]:
        return list(self._values(told))

    def read_tuple(self, told: list[Node]) -> tuple[Any, ...]:
        return tuple(self._values(told))

    def read_set(self, told: list[Node]) -> set[Any]:
        return set(self._values(told))

    def read_frozenset(self, told: list[Node]) -> frozenset[Any]:
        return frozenset(self._values(told))

    def read_dict(self, told: list[list[Node]]) -> dict[Any, Any]:
        return {self.value(key): self.value(value) for key, value in told}

    def read_slice(self, told: list[Node]) -> slice:
        return slice(*self._values(told))

    def read_new(self, told: list[Any]) -> Any:
        cls = self.known.class_named(told[0])
        return self._filled(cls.__new__(cls, *self.value(told[1])), told)

    def read_made(self, told: list[Any]) -> Any:
        return self._filled(self.known.maker_named(told[0])(*self.value(told[1])), told)

    def _filled(self, made: Any, told: list[Any]) -> Any:
        """With its state, as `copy` does it."""
        state, items, pairs = self._values(told[2:])
        if state is not None:
            if hasattr(made, "__setstate__"):
                made.__setstate__(state)
            else:
                own, slots = state if isinstance(state, tuple) else (state, None)
                vars(made).update(own or {})
                for name, value in (slots or {}).items():
                    setattr(made, name, value)
        for one in items or ():
            made.append(one)
        for key, value in (pairs or {}).items():
            made[key] = value
        self.made.append(made)
        return made


def _without_gaps(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Bytes between the fields of a record, which hold whatever was in memory, are 0: equal models have equal bytes."""
    if array.dtype.names is None:
        return array
    clean = np.zeros(array.shape, dtype=array.dtype)
    for name in array.dtype.names:
        clean[name] = array[name]
    return clean


def _name(thing: Any) -> str:
    return f"{thing.__module__}:{thing.__qualname__}"


def _within(name: str, packages: tuple[str, ...]) -> bool:
    return any(name.startswith((f"{package}.", f"{package}:")) for package in packages)


def _imported(name: str) -> Any:
    module, _, qualname = name.partition(":")
    found: Any = import_module(module)
    for part in qualname.split("."):
        found = getattr(found, part)
    if _name(found) != name:
        raise TypeError(f"{name} is {_name(found)}")
    return found
