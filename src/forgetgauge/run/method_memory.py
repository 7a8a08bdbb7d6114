"""What methods find of models whatever their strength is, kept in a worker while strengths are tried."""

from __future__ import annotations

from typing import Any


class MethodMemory:
    """By a key that is the same at every strength, for as long as there is room for it."""

    def __init__(self, room: int = 2**30) -> None:
        self.room = room
        self._of: dict[str, dict[str, Any]] = {}

    def of(self, key: str) -> dict[str, Any]:
        """What was found under that key; the caller adds to it."""
        self._of[key] = self._of.pop(key, {})  # the last in order is the latest used
        return self._of[key]

    def trim(self) -> None:
        """Forget what was not used for longest, down to `room` bytes."""
        sizes = {key: sum(map(_n_bytes, found.values())) for key, found in self._of.items()}
        while sum(sizes.values()) > self.room:
            first = next(iter(sizes))
            del self._of[first], sizes[first]


def _n_bytes(found: Any) -> int:
    """Of all arrays and tensors in lists and tables."""
    if isinstance(found, dict | list | tuple):
        return sum(map(_n_bytes, found.values() if isinstance(found, dict) else found))
    return int(getattr(found, "nbytes", 0))
