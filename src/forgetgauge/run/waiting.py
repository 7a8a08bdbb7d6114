"""Assignments that are yet to begin: the first whose inputs are all there is found without asking the others.

Ten thousand may wait. Each that lacks an input is kept under one artefact that it lacks, and looked at again when that
is there.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator

from forgetgauge.plan.jobs import Kind
from forgetgauge.run.assignments import Assignment


class Waiting:
    """In the order in which they should begin."""

    def __init__(self, assignments: Iterable[Assignment], is_available: Callable[[str], bool]) -> None:
        self._is_available = is_available
        self._all: dict[int, Assignment] = {}
        self._ready: dict[Kind, list[int]] = {}
        """Places of those that lacked nothing when they were last looked at, by their kind of job; each a heap."""
        self._lacking: dict[str, list[int]] = {}
        """Key of an artefact -> places of those that were found to lack it."""
        self._first = 0
        self.replace(assignments)

    def __len__(self) -> int:
        """How many."""
        return len(self._all)

    def __iter__(self) -> Iterator[Assignment]:
        """All of them, in their order."""
        return (self._all[place] for place in sorted(self._all))

    def replace(self, assignments: Iterable[Assignment]) -> None:
        """These, in place of all that waited."""
        waiting = list(assignments)
        self._all.clear()
        self._ready.clear()
        self._lacking.clear()
        self._first = 0
        for place, assignment in enumerate(waiting):
            self._all[place] = assignment
            self._look_at(place)

    def put_first(self, assignments: Iterable[Assignment]) -> None:
        """Before all others, as what is tried again is."""
        for assignment in reversed(list(assignments)):
            self._first -= 1
            self._all[self._first] = assignment
            self._look_at(self._first)

    def arrived(self, keys: Iterable[str]) -> None:
        """These artefacts are there now."""
        for key in keys:
            for place in self._lacking.pop(key, ()):
                self._look_at(place)

    def take(self, has_room: Callable[[Assignment], bool], fits: Callable[[Assignment], bool]) -> Assignment | None:
        """The first that lacks nothing, has room and fits; None where there is none.

        Whether somebody has room is asked once for each kind of job, whether it fits of one after another.
        """
        passed_over: list[tuple[Kind, int]] = []
        kinds = [kind for kind in self._ready if self._settle(kind) and has_room(self._all[self._ready[kind][0]])]
        taken = None
        while taken is None and (kinds := [kind for kind in kinds if self._settle(kind)]):
            kind = min(kinds, key=lambda one: self._ready[one][0])
            place = heapq.heappop(self._ready[kind])
            if fits(self._all[place]):
                taken = self._all.pop(place)
            else:
                passed_over.append((kind, place))
        for kind, place in passed_over:
            heapq.heappush(self._ready[kind], place)
        return taken

    def _look_at(self, place: int) -> None:
        """Put one where it belongs: with those that are ready, or under an artefact that it lacks."""
        assignment = self._all[place]
        lacks = next((key for key in assignment.inputs if not self._is_available(key)), None)
        if lacks is not None:
            self._lacking.setdefault(lacks, []).append(place)
        else:
            heapq.heappush(self._ready.setdefault(assignment.jobs[0].kind, []), place)

    def _settle(self, kind: Kind) -> bool:
        """Whether one is ready: an artefact may have been lost since the first of them was looked at."""
        ready = self._ready[kind]
        while ready and not all(map(self._is_available, self._all[ready[0]].inputs)):
            self._look_at(heapq.heappop(ready))
        return bool(ready)
