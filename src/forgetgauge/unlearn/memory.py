"""What a shipped method finds of models whatever its strength is, computed once while strengths are tried.

Importances of weights are most of the work of some methods. What is remembered is found again by all that decides it:
the weights, the points, what is computed of them, and which models are computed as one. So it is, bit for bit, what
would be computed again, and a run that goes on in a new process makes the same models.
"""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import torch
from torch import Tensor, nn

from forgetgauge.learn.descent import own_randomness
from forgetgauge.streams import Streams

if TYPE_CHECKING:
    from forgetgauge.data.dataset import Points
    from forgetgauge.unlearn.unlearner import Request

Found = TypeVar("Found", bound="Tensor | Sequence[Any] | dict[str, Any]")


@dataclass(frozen=True)
class _Entry(Generic[Found]):
    found: Found
    data: tuple[weakref.ref[Tensor], ...]
    """The tensors that the points are positions of: other data may have the same positions."""
    n_bytes: int


class Memory:
    """Findings of one process, in so many bytes of tensors; those that were not used for longest go first."""

    def __init__(self, room: int = 2**30) -> None:
        self.room = room
        self._entries: dict[str, _Entry[Any]] = {}

    def find(self, key: str, data: Sequence[Tensor]) -> Any:
        """What was kept under a key, of these very data; None where nothing is."""
        entry = self._entries.pop(key, None)
        if entry is None or any(ref() is not own for ref, own in zip(entry.data, data, strict=True)):
            return None
        self._entries[key] = entry  # the last in order is the latest used
        return entry.found

    def keep(self, key: str, data: Sequence[Tensor], found: Found) -> None:
        """Keep it, if there is room for it at all."""
        entry = _Entry(found, tuple(weakref.ref(own) for own in data), _n_bytes(found))
        if entry.n_bytes > self.room:
            return
        self._entries[key] = entry
        while sum(entry.n_bytes for entry in self._entries.values()) > self.room:
            del self._entries[next(iter(self._entries))]

    def clear(self) -> None:
        """Forget everything: memory is short."""
        self._entries.clear()


def recalled(what: str, requests: Sequence[Request], compute: Callable[[], Found]) -> Found:
    """What `compute` gives of the requests' models and points, from their memory where they have one.

    `what` names all else that decides it. Nobody may change what is given.
    """
    memory, streams = requests[0].context.memory, requests[0].context.streams
    if memory is None:
        with own_randomness(streams):
            return compute()
    key, data = _digest(what, requests), _data_of(requests)
    found: Found | None = memory.find(key, data)
    if found is None:
        with own_randomness(Streams(key)):  # or a model that draws while it is asked would differ with each strength
            found = compute()
        memory.keep(key, data, found)
    return found


def streams_of(what: str, model: nn.Module, points: Points) -> Streams:
    """Random streams of a model and points, whichever job asks: what is drawn is the same at every strength."""
    digest = hashlib.sha256(what.encode())
    _add_weights(digest, model)
    _add_points(digest, points)
    return Streams(digest.hexdigest())


def _digest(what: str, requests: Sequence[Request]) -> str:
    digest = hashlib.sha256(what.encode())
    for request in requests:
        _add_weights(digest, request.model)
        _add_points(digest, request.retain)
        _add_points(digest, request.forget)
    return digest.hexdigest()


def _add_points(digest: hashlib._Hash, points: Points) -> None:
    digest.update(f"{len(points)} {points.scaling}".encode())
    digest.update(points.index.tobytes())


def _add_weights(digest: hashlib._Hash, model: nn.Module) -> None:
    for name, tensor in model.state_dict().items():
        if isinstance(tensor, Tensor):
            flat = tensor.detach().cpu().contiguous().view(-1).view(torch.uint8)
            digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
            digest.update(flat.numpy().tobytes())
        else:  # what a module writes of its own accord
            digest.update(f"{name} {tensor!r}".encode())


def _data_of(requests: Sequence[Request]) -> list[Tensor]:
    def tensors(points: Points) -> list[Tensor]:
        return [points.whole_inputs, points.whole_labels]

    return [tensor for request in requests for tensor in (*tensors(request.retain), *tensors(request.forget))]


def _n_bytes(found: Any) -> int:
    """Bytes of all tensors in lists and tables."""
    if isinstance(found, Tensor):
        return found.untyped_storage().nbytes()
    return sum(map(_n_bytes, found.values() if isinstance(found, dict) else found))
