"""Records of a batch without their padding: the tokens of a member's records lie one after another in a row of slots.

Most of what a language model does to a token knows no other: products, norms, the last layer. Attention alone needs
records, and is given them padded. `Room` says how many slots there are, a number that the host knows from the lengths
of the records; what lies where is computed on the device, so that a step can be captured, and one captured step serves
all batches that its room is large enough for. A record that is all padding takes no slot.

From slots to records and back goes by gathering alone, in the backward pass too: no two slots hold one token, so no sum
is taken, and nothing of it depends on the order of additions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from forgetgauge.data.dataset import Points
from forgetgauge.game.arrays import Ints
from forgetgauge.models.condensed import DECLINED, PADDING, ids_of, n_counted

STEPS_TO_TWICE, SLOTS = 4, 64
"""Rooms grow by a factor of 2^(1/4) and are multiples of 64: few sizes, each captured once, and little is empty."""


@dataclass(frozen=True)
class Room:
    """What a step's batches have at most."""

    tokens: int
    """Of one member."""
    counted: int
    """Counted tokens of all members together."""


@dataclass(frozen=True)
class RecordSizes:
    """(n_all,) of each record of the data set, in the longer of the versions that a descent may read."""

    tokens: Ints
    counted: Ints
    length: int
    """Of all records as they are stored, with their padding."""

    @staticmethod
    def of(points: Points) -> RecordSizes:
        """As it was given, or with a refusal for an answer."""
        codes = points.whole_inputs[:, : DECLINED + 1]
        tokens, counted = (codes != PADDING).sum(-1), n_counted(codes)
        most_tokens, most_counted = (sizes.amax(1).cpu().numpy().astype(np.int64) for sizes in (tokens, counted))
        return RecordSizes(most_tokens, most_counted, codes.shape[-1])

    def needed(self, index: Ints, n_valid: npt.NDArray[np.int32]) -> tuple[Ints, Ints]:
        """(steps, K, B) records, of which (steps, K) are there -> (steps,) tokens of the member that has most, and
        (steps,) counted tokens of all."""
        there = np.arange(index.shape[-1]) < n_valid[..., None]
        tokens, counted = (np.where(there, sizes[index], 0).sum(-1) for sizes in (self.tokens, self.counted))
        return tokens.max(1), counted.sum(1)


def roomy(n: int, most: int) -> int:
    """The smallest size of a room for n, and never more than there can be."""
    exponent = 0
    while (size := -(-round(SLOTS * 2 ** (exponent / STEPS_TO_TWICE)) // SLOTS) * SLOTS) < n:
        exponent += 1
    return min(size, most)


# -- what lies where ---------------------------------------------------------------------------------------------------


class Layout:
    """Of (K, B, length) codes in a room; without one, every record keeps its padding and nothing is moved."""

    def __init__(self, codes: Tensor, room: Room | None) -> None:
        self.codes, self.room = codes, room
        self.k, self.n_records, self.length = codes.shape
        whole = self.n_records * self.length
        self.slots = whole if room is None else min(room.tokens, whole)
        """Of each member."""
        self.is_padded = self.slots == whole
        self.places, self.flat = self._padded() if self.is_padded else self._packed()

    def _padded(self) -> tuple[Tensor, Tensor]:
        places = torch.arange(self.length, device=self.codes.device).repeat(self.k * self.n_records)
        return places, self.codes.reshape(-1)

    def _packed(self) -> tuple[Tensor, Tensor]:
        """(K · slots,) the place of each slot's token in its record, and its code: padding in what is left."""
        device = self.codes.device
        lengths = (self.codes != PADDING).sum(-1)
        ends = lengths.cumsum(1)
        starts, slot = ends - lengths, torch.arange(self.slots, device=device)
        record = torch.searchsorted(ends, slot.repeat(self.k, 1), right=True).clamp_(max=self.n_records - 1)
        place = (slot - starts.gather(1, record)).clamp_(max=self.length - 1)
        member = torch.arange(self.k, device=device)[:, None]
        self.there = (slot < ends[:, -1:]).flatten()
        self.source = ((member * self.n_records + record) * self.length + place).flatten()
        """(K · slots,) which padded place a slot's token comes from."""
        at = torch.arange(self.length, device=device)
        self.inside = (at < lengths[..., None]).flatten()
        self.slot_of = ((starts[..., None] + at).clamp_(max=self.slots - 1) + member[..., None] * self.slots).flatten()
        """(K · B · length,) which slot a padded place's token is in."""
        codes = torch.where(self.there, self.codes.reshape(-1)[self.source], PADDING)
        return place.flatten(), codes

    @property
    def ids(self) -> Tensor:
        """(K · slots,) token ids."""
        return ids_of(self.flat)

    def padded(self, x: Tensor) -> Tensor:
        """(K · slots, …) -> (K · B, length, …); what stands after the end of a record is any slot's."""
        if not self.is_padded:
            x = moved(x, self.slot_of, self.source, self.there)
        return x.view(self.k * self.n_records, self.length, *x.shape[1:])

    def packed(self, x: Tensor) -> Tensor:
        """(K · B, length, …) -> (K · slots, …)."""
        x = x.reshape(-1, *x.shape[2:])
        return x if self.is_padded else moved(x, self.source, self.slot_of, self.inside)

    # -- counted tokens ------------------------------------------------------------------------------------------

    @cached_property
    def follows(self) -> Tensor:
        """(K · slots,) the code of the token after each slot's, in the same record; else padding."""
        after = torch.full_like(self.codes, PADDING)
        after[..., :-1] = self.codes[..., 1:]
        after = after.reshape(-1)
        return after if self.is_padded else torch.where(self.there, after[self.source], PADDING)

    @cached_property
    def _counted(self) -> tuple[Tensor, Tensor, Tensor]:
        """(K · slots,) whether the token after a slot counts, (K · slots,) its number then, (counted,) the slots."""
        counted = self.follows >= 0
        until = counted.cumsum(0)
        most = self.k * self.n_records * (self.length - 1)
        n = most if self.room is None else min(self.room.counted, most)
        wanted = torch.arange(1, n + 1, device=until.device)
        slots = torch.searchsorted(until, wanted).clamp_(max=len(until) - 1)
        return counted, (until - 1).clamp_(0, n - 1), slots

    def before_counted(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """(K · slots, d) -> (counted, d) the states at the slots before counted tokens, and (counted,) these tokens;
        of what is left any."""
        counted, number, slots = self._counted
        return moved(states, slots, number, counted), ids_of(self.follows[slots])

    def per_record(self, values: Tensor) -> Tensor:
        """(counted,) a number for each counted token -> (K, B) their sums; what stands elsewhere is another member's,
        perhaps NaN where that one diverged, and not even its product with 0 may be added."""
        counted, number, slots = self._counted
        n = counted.sum()
        each = moved(values, number, slots, torch.arange(len(values), device=n.device) < n)
        at_places = self.padded(each).view(self.codes.shape)
        return torch.where(self._before_counted_at_places, at_places, 0).sum(-1)

    @cached_property
    def _before_counted_at_places(self) -> Tensor:
        found = torch.zeros_like(self.codes, dtype=torch.bool)
        found[..., :-1] = self.codes[..., 1:] >= 0
        return found


class _Moved(torch.autograd.Function):
    """x[index]; each row of x that `is_moved` went to the one place `back`, and to others where nobody looks."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, index: Tensor, back: Tensor, is_moved: Tensor) -> Tensor:
        ctx.save_for_backward(back, is_moved)
        return x.index_select(0, index)

    @staticmethod
    def backward(ctx: Any, *given: Tensor) -> tuple[Tensor, None, None, None]:
        back, is_moved = ctx.saved_tensors
        found = given[0].index_select(0, back)
        return torch.where(is_moved.view(-1, *(1,) * (found.dim() - 1)), found, 0), None, None, None


def moved(x: Tensor, index: Tensor, back: Tensor, is_moved: Tensor) -> Tensor:
    """(n, …), (m,) -> (m, …) rows of x, differentiable by gathering: the gradient of row i is that of row `back[i]` of
    what is made, or 0."""
    made: Tensor = _Moved.apply(x, index, back, is_moved)  # type: ignore[no-untyped-call]
    return made
