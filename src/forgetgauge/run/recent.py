"""The weights a worker made last, still in memory: to read a ResNet-18 back from the disk and to hash it takes a tenth
of a second, and an original is read once for every method."""

from __future__ import annotations

from forgetgauge.store.objects import Artefact

ROOM = 2**30
"""Bytes: a dozen ResNet-18s before and after."""


class Recent:
    """Artefacts by key and digest, the latest used ones; whoever takes one must leave it as it is."""

    def __init__(self, room: int = ROOM) -> None:
        self.room = room
        self._kept: dict[tuple[str, str], Artefact] = {}
        self._n_bytes = 0

    def keep(self, key: str, sha256: str, artefact: Artefact) -> None:
        """Keep it, and forget those that were not used for longest."""
        self._forget((key, sha256))
        self._kept[key, sha256] = artefact
        self._n_bytes += _n_bytes(artefact)
        while self._n_bytes > self.room:
            self._forget(next(iter(self._kept)))

    def find(self, key: str, sha256: str) -> Artefact | None:
        """The artefact with that digest, if it is still here."""
        found = self._kept.pop((key, sha256), None)
        if found is not None:
            self._kept[key, sha256] = found  # the last in order is the latest used
        return found

    def _forget(self, place: tuple[str, str]) -> None:
        gone = self._kept.pop(place, None)
        if gone is not None:
            self._n_bytes -= _n_bytes(gone)


def _n_bytes(artefact: Artefact) -> int:
    return sum(array.nbytes for array in artefact.arrays.values())
