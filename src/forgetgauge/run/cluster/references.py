"""Artefacts on their way to the machines: small ones travel with a task, others are put into the object store once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from forgetgauge.store.objects import ObjectStore

INLINE_BYTES = 2**15
"""An artefact up to this size travels with the task; a larger one is put into the object store, once."""
STORE_SHARE = 4
"""A quarter of the object store of this machine is kept filled with artefacts that may be read again."""


@dataclass
class References:
    """What of the run's store stands in Ray's; whoever was not used for longest is let go of first."""

    ray: Any
    store: ObjectStore
    room: float
    """Bytes of it."""
    _known: dict[str, tuple[str, list[Any], int]] = field(default_factory=dict)
    _held: int = 0

    def sent(self, key: str, digest: str) -> bytes | list[Any]:
        """An artefact as it travels: itself, or a reference to what every machine fetches once."""
        known = self._known.pop(key, None)
        if known is not None and known[0] == digest:
            self._known[key] = known  # the last in order is the latest used
            return known[1]
        content = self.store.read_bytes(key, digest)
        if len(content) <= INLINE_BYTES:
            return content
        reference = [self.ray.put(content)]
        self._known[key] = (digest, reference, len(content))
        self._held += len(content)
        while self._held > self.room and len(self._known) > 1:
            self.forget(next(iter(self._known)))
        return reference

    def forget(self, key: str) -> None:
        """Read it anew from the store of the run, should it be wanted again."""
        known = self._known.pop(key, None)
        self._held -= known[2] if known else 0
