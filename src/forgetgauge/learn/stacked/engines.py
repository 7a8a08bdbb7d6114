"""Which engine trains a stack of models: the fastest that knows the architecture.

traced   a GPU's kernels for all members at once (traced.py); members may have sets of different sizes
vmap     any architecture without random numbers or odd buffers, members of equal size (vmap.py)
streams  a GPU, one member per CUDA stream, for what vmap refuses
solo     one after another
ghost    DP-SGD of all members at once, each example's gradient clipped (ghost.py)
opacus   DP-SGD of one after another, by opacus
lora     adapters of all members on one frozen base (records.py)
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

import torch
from torch import nn

from forgetgauge.data.dataset import Points
from forgetgauge.learn.stacked.members import check_points, reason_against
from forgetgauge.learn.stacked.traced import TracedStack
from forgetgauge.learn.stacked.vmap import check_draws_nothing, check_vmap
from forgetgauge.streams import Streams

N_STREAMS = 8


@dataclass(frozen=True)
class Engine:
    """What trains the members, and the reason why nothing faster does."""

    name: Literal["traced", "vmap", "streams", "solo", "ghost", "opacus", "lora"]
    reason: str = ""

    @property
    def mixes_sizes(self) -> bool:
        """Whether members of one stack may have sets of different sizes."""
        return self.name != "vmap"


def choose_engine(model: nn.Module, points: Sequence[Points]) -> Engine:
    """The fastest for models like this (in train mode) on these points."""
    apart = reason_against(check_points, points)
    if apart is not None:
        return Engine("solo", apart)
    on_gpu = points[0].device.type == "cuda"
    not_traced = reason_against(TracedStack, [copy.deepcopy(model)]) if on_gpu else "the kernels are for a GPU"
    if not_traced is None:
        return Engine("traced")
    if len(points) == 1:
        return Engine("solo", "a stack of one is a model alone")
    x, y = points[0].subset(points[0].index[:4]).x, points[0].subset(points[0].index[:4]).y
    no_vmap = reason_against(check_vmap, copy.deepcopy(model), x, y, points[0].task.loss)
    if no_vmap is None:
        return Engine("vmap", not_traced)
    if on_gpu and reason_against(check_draws_nothing, model) is None:
        return Engine("streams", no_vmap)
    return Engine("solo", no_vmap)


def on_streams(
    fit: Callable[[Points, Streams], nn.Module], points: Sequence[Points], streams: Sequence[Streams]
) -> list[nn.Module]:
    """Fit each member in a thread with a CUDA stream of its own; none of them may draw from a global generator."""

    def one(p: Points, s: Streams) -> nn.Module:
        with torch.cuda.stream(torch.cuda.Stream(p.device)):  # type: ignore[no-untyped-call]
            model = fit(p, s)
            torch.cuda.current_stream(p.device).synchronize()
        return model

    with ThreadPoolExecutor(N_STREAMS) as pool:
        return list(pool.map(one, points, streams))
