"""A step of DP-SGD for many models side by side: their sums of clipped gradients, the noise, the division.

A step is some 700 operations, which a GPU does faster than a host can order them, even for six ResNet-18s. So on a GPU
the sums are captured as a CUDA graph and replayed. Poisson batches differ in size: a graph for every multiple of 32.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from forgetgauge.data.dataset import Points
from forgetgauge.learn.descent import Positions
from forgetgauge.learn.stacked.ghost import GhostStack
from forgetgauge.learn.stacked.members import own_labels

WIDTHS = 32
"""Captured batches are multiples of this wide: of 505 expected points, the widest of 16 draws is 505 to 600."""


@dataclass(frozen=True)
class _Captured:
    """A step's sums for batches of one width, and where they read the batches from."""

    graph: torch.cuda.CUDAGraph
    index: Tensor
    own: Tensor


class ClippedSums:
    """Σ_i min(1, clip_norm / ‖g_i‖) g_i over each member's batch; None: no clip."""

    def __init__(
        self, stack: GhostStack, points: Sequence[Points], clip_norm: float | None, physical_batch_size: int
    ) -> None:
        self.stack, self.points, self.clip_norm, self.physical = stack, points[0], clip_norm, physical_batch_size
        self.labels = own_labels(points)
        self.total = stack.zeros()
        self._captured: dict[int, _Captured] = {}
        self._pool: Any = torch.cuda.graph_pool_handle() if points[0].device.type == "cuda" else None

    def of(self, batches: Sequence[Positions]) -> list[Tensor]:
        """(K, *shape) for each parameter; always the same tensors."""
        totals = list(self.total.values())
        torch._foreach_zero_(totals)
        for index, own in _chunks(batches, self.physical):
            if self.points.device.type == "cuda":
                self._replay(index, own)
            else:
                self._add(torch.from_numpy(index), torch.from_numpy(own))
        return totals

    def _add(self, index: Tensor, own: Tensor) -> None:
        self.stack.add_clipped(self.total, self.points.inputs_at(index), self.labels(index), own, self.clip_norm)

    def _replay(self, index: npt.NDArray[np.int64], own: npt.NDArray[np.bool_]) -> None:
        width = min(self.physical, -(-index.shape[1] // WIDTHS) * WIDTHS)
        if width not in self._captured:
            self._captured[width] = self._capture(len(index), width)
        step, beyond = self._captured[width], ((0, 0), (0, width - index.shape[1]))
        for here, array in ((step.index, np.pad(index, beyond)), (step.own, np.pad(own, beyond))):
            here.copy_(torch.from_numpy(array).pin_memory(), non_blocking=True)  # else the host waits for the GPU
        step.graph.replay()

    def _capture(self, k: int, width: int) -> _Captured:
        device = self.points.device
        index = torch.zeros((k, width), dtype=torch.int64, device=device)
        own = torch.zeros((k, width), dtype=torch.bool, device=device)  # nobody's: nothing is added by trying it out
        side = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(side):  # in memory of its own: while a graph is captured a step takes twice as much
            self._add(index, own)
        torch.cuda.current_stream(device).wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool):
            self._add(index, own)
        return _Captured(graph, index, own)


class Noise:
    """N(0, deviation²) on the members' sums, each member's drawn from its own source as opacus draws it."""

    def __init__(self, deviation: float, like: Iterable[Tensor], sources: Sequence[torch.Generator]) -> None:
        self.deviation = deviation
        self.drawn = [torch.empty_like(stacked) for stacked in like if deviation > 0]
        # Hundreds of draws a step: their views are made once, and they are added all at once.
        self.draws = [(own, source) for drawn in self.drawn for own, source in zip(drawn, sources, strict=True)]

    def add_to(self, totals: list[Tensor]) -> None:
        """In place, parameter by parameter, (K, *shape) each."""
        for own, source in self.draws:
            own.normal_(0.0, self.deviation, generator=source)
        if self.drawn:
            torch._foreach_add_(totals, self.drawn)


def divide(totals: list[Tensor], sizes: Sequence[int]) -> None:
    """Each member's sums by its own expected batch size, in place."""
    if len(set(sizes)) == 1:
        torch._foreach_div_(totals, sizes[0])
        return
    size = torch.tensor(sizes, device=totals[0].device)
    for total in totals:
        total.div_(size.view(-1, *[1] * (total.dim() - 1)))


def in_parts(batch: Positions, physical: int) -> list[Positions]:
    """Parts of at most so many, of sizes that differ by one at most; one empty part where nobody was drawn."""
    return np.array_split(batch, max(1, -(-len(batch) // physical)))


def _chunks(
    batches: Sequence[Positions], physical: int
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]]:
    """(index, own), both (K, B): the members' batches side by side, the shorter filled up with points not their own."""
    widest = max(len(batch) for batch in batches)
    if widest == 0:
        return
    sizes = np.array([len(batch) for batch in batches])
    padded = np.stack([np.pad(batch, (0, widest - len(batch))) for batch in batches])  # (K, widest)
    for columns in in_parts(np.arange(widest), physical):
        yield padded[:, columns], columns[None] < sizes[:, None]
