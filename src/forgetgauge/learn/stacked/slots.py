"""Where each parameter lies in the row that holds all weights of a member."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

ALIGNMENT = 16
"""Every parameter begins at a multiple of this, so that a GPU can read it in wide pieces; the gaps stay 0."""


@dataclass(frozen=True)
class Slot:
    """Where a parameter lies in a member's row, and how it is turned: convolution weights have their outputs last."""

    start: int
    shape: tuple[int, ...]
    """In the twin's own order of axes."""
    order: tuple[int, ...]
    """own.shape[i] = model.shape[order[i]]."""

    @property
    def stop(self) -> int:
        """One past its last place."""
        n = 1
        for size in self.shape:
            n *= size
        return self.start + n

    def of(self, rows: Tensor) -> Tensor:
        """(K, *shape) view of rows (K, P)."""
        return rows[:, self.start : self.stop].view(len(rows), *self.shape)

    def to_model(self, rows: Tensor) -> Tensor:
        """(K, *model shape): the parameter as the model has it."""
        back = [self.order.index(axis) + 1 for axis in range(len(self.order))]
        return self.of(rows).permute(0, *back)

    def from_model(self, stacked: Tensor) -> Tensor:
        """The inverse, flat: (K, size)."""
        return stacked.permute(0, *(axis + 1 for axis in self.order)).reshape(len(stacked), -1)
