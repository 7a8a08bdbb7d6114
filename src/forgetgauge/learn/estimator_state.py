"""A fitted scikit-learn estimator as bytes, and back, without pickles.

The state is what `__reduce_ex__` names: numbers, texts, arrays, and objects of classes with a state of their own. It is
written as JSON with the arrays behind it. Which classes and words it may name, `estimator_classes` says; what compiled
code takes for granted, `estimator_checks` checks. What is written is held to the same rules as what is read.
"""

from __future__ import annotations

import copyreg
import json
import math
from collections.abc import Callable, Iterator
from types import FunctionType, MemberDescriptorType
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from forgetgauge.errors import UserError
from forgetgauge.learn.estimator_checks import SEARCH_TREES, TREE, check_made, check_tree, searched_again
from forgetgauge.learn.estimator_classes import CONSTRUCTORS, Known, check_argument, name_of

MOST_DEEP = 100
"""Objects, lists and tables within each other; more is a cycle, most likely."""
TYPES = {kind.__name__: kind for kind in (bool, int, float, str)}
Node = Any
"""What JSON can hold; a mapping with one key says what the value is."""


def state_bytes(estimator: Any, like: Any) -> npt.NDArray[np.uint8]:
    """(n,) all of an estimator; `like` is the one that the run names, not fitted."""
    if type(estimator) is not type(like):
        raise UserError(
            f"model.estimator is a {type(estimator).__name__}, but the run's is a {type(like).__name__}: another one "
            "must be of the same class"
        )
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
        if type(made) is not type(like):
            raise TypeError(f"a {type(made).__name__}, but the run's is a {type(like).__name__}")
        return made
    except Exception as error:  # constructors and states of others' classes raise what they like
        raise UserError(f"a stored scikit-learn model cannot be read: {type(error).__name__}: {error}") from None


class _Writer:
    def __init__(self, like: Any) -> None:
        self.known, self.what = Known(like), type(like).__name__
        self.keys = {id(value): key for key, value in self.known.given.items()}
        self.arrays: list[bytes] = []
        self.n_bytes = 0
        self.around: list[type] = []
        """Classes of the objects that the one at hand lies in."""
        self.met: dict[int, tuple[int, Any]] = {}
        """Objects that were written, by identity: a thousand trees share one random generator."""

    def node(self, value: Any, depth: int) -> Node:
        """A value of any sort."""
        if depth > MOST_DEEP:
            raise UserError(
                f"{self.what}: its state refers to itself, or lies more than {MOST_DEEP} deep, and cannot be kept"
            )
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
            return {type(value).__name__: [self.node(one, depth + 1) for one in sorted(value, key=repr)]}
        if type(value) is dict:
            return {"dict": [[self.node(part, depth + 1) for part in pair] for pair in value.items()]}
        if type(value) is slice:
            return {"slice": [self.node(part, depth + 1) for part in (value.start, value.stop, value.step)]}
        return self._object(value, depth)

    def _type(self, value: type) -> Node:
        if value in TYPES.values():
            return {"type": value.__name__}
        if issubclass(value, np.number | np.bool_):
            return {"numpy": value.__name__}
        raise UserError(f"{self.what}: the class {value.__name__} in its state cannot be kept")

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
        if isinstance(value, FunctionType):
            why = "cannot be kept: only those among the estimator's parameters can"
            raise UserError(f"{self.what}: the function {value.__qualname__} in its state {why}")
        try:
            reduced = value.__reduce_ex__(2)
        except Exception as error:
            raise UserError(f"{self.what}: a {type(value).__name__} in its state cannot be kept: {error}") from None
        if isinstance(reduced, str):
            raise UserError(f"{self.what}: a {type(value).__name__} in its state, {reduced}, cannot be kept")
        make, args, state, items, pairs = (*reduced, None, None, None)[:5]
        kind, known = "made", self.known.maker_named
        if make is copyreg.__newobj__:  # type: ignore[attr-defined]
            (make, *args), kind, known = args, "new", self.known.plain_named
        name = self._allowed(make, known)
        self._allowed(type(value), lambda *_: self.known.check_state(type(value), state))
        self.around += [make] if isinstance(make, type) else []
        given = [self._argument(one, depth + 1) for one in args]
        parts = [state, None if items is None else list(items), None if pairs is None else dict(pairs)]
        node = {kind: [name, {"list": given}, *(self.node(part, depth + 1) for part in parts)]}
        del self.around[len(self.around) - isinstance(make, type) :]
        self.met[id(value)] = len(self.met), value
        return node

    def _argument(self, value: Any, depth: int) -> Node:
        """Of a constructor: it may be a class."""
        if isinstance(value, type) and value not in TYPES.values() and not issubclass(value, np.generic):
            return {"class": self._allowed(value, self.known.class_named)}
        return self.node(value, depth)

    def _allowed(self, thing: Any, known: Callable[[str, list[type]], Any]) -> str:
        name = name_of(thing)
        try:
            known(name, self.around)
        except TypeError as error:
            raise UserError(
                f"{self.what}: a {name.replace(':', '.')} in its state cannot be kept: {error}; models are stored "
                "without pickles, so only what scikit-learn and the estimator's own package make can be"
            ) from None
        return name


class _Reader:
    def __init__(self, like: Any, data: bytes) -> None:
        self.known, self.data, self.n_left = Known(like), data, len(data)
        self.made: list[Any] = []
        self.around: list[type] = []

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
        found = np.dtype(name).type
        if not issubclass(found, np.number | np.bool_):
            raise TypeError(f"{name} is no type of numbers")
        return found

    def read_dtype(self, told: Any) -> np.dtype[Any]:
        return np.lib.format.descr_to_dtype(told)

    def read_array(self, told: Any) -> npt.NDArray[Any]:
        dtype, shape, start, order = np.lib.format.descr_to_dtype(told[0]), tuple(told[1]), told[2], told[3]
        n_items = math.prod(shape)
        self.n_left -= n_items * dtype.itemsize  # each byte is written once, so none is read twice
        if min(shape, default=0) < 0 or self.n_left < 0:
            raise ValueError(f"an array of {told[1]} does not fit the file")
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
        cls = self.known.plain_named(told[0], self.around)
        args, *rest = self._parts(cls, told)
        return self._filled(cls.__new__(cls, *args), *rest)

    def read_made(self, told: list[Any]) -> Any:
        make = self.known.maker_named(told[0], self.around)
        args, state, *rest = self._parts(make, told)
        if told[0] in CONSTRUCTORS:
            check_argument(told[0], args)
        if told[0] in SEARCH_TREES:
            return self._kept(searched_again(args[0], state))
        if told[0] == TREE:
            check_tree(args, state)
        return self._filled(make(*args), state, *rest)

    def _parts(self, make: Any, told: list[Any]) -> list[Any]:
        """What an object is made of: arguments, which may be classes, its state, and what it contains."""
        self.around += [make] if isinstance(make, type) else []
        parts = [[self._argument(one) for one in told[1]["list"]], *self._values(told[2:])]
        del self.around[len(self.around) - isinstance(make, type) :]
        return parts

    def _argument(self, node: Node) -> Any:
        if isinstance(node, dict) and "class" in node:
            return self.known.class_named(node["class"], self.around)
        return self.value(node)

    def _filled(self, made: Any, state: Any, items: Any, pairs: Any) -> Any:
        """With its state, as `copy` does it."""
        self.known.check_state(type(made), state)
        if state is not None:
            if hasattr(made, "__setstate__"):
                made.__setstate__(state)
            else:
                own, slots = state if isinstance(state, tuple) else (state, None)
                self.known.check_state(type(made), own)
                vars(made).update(**(own or {}))
                for name, value in (slots or {}).items():
                    if not isinstance(getattr(type(made), name, None), MemberDescriptorType):
                        raise TypeError(f"{name} is no slot of a {type(made).__name__}")
                    setattr(made, name, value)
        for one in items or ():
            made.append(one)
        for key, value in (pairs or {}).items():
            if callable(value):
                raise TypeError(f"{key} in a {type(made).__name__} is a function")
            made[key] = value
        return self._kept(made)

    def _kept(self, made: Any) -> Any:
        check_made(made)
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
