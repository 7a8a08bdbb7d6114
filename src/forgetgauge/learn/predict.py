"""What a model says about points: its outputs in eval mode, and the utility they amount to."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from forgetgauge.data.dataset import Points
from forgetgauge.errors import UserError
from forgetgauge.learn.stacked.members import NotStackable, check_alike, check_points
from forgetgauge.learn.stacked.trainer import stacked_outputs
from forgetgauge.models.causal_lm import RecordModel

BATCH = 1024
"""Points at once, of small images and short texts."""


@torch.no_grad()
def outputs_of(model: nn.Module, points: Points, *, plainly: bool = False) -> npt.NDArray[np.float32]:
    """(n, n_outputs); the model is put into eval mode. `plainly` a language model need not be asked in other words
    or with rounded weights."""
    model.eval()
    ask = model.own_columns if plainly and isinstance(model, RecordModel) else model
    if len(points) == 0:
        return np.zeros((0, points.n_outputs), dtype=np.float32)
    at_once = len(points) if isinstance(model, RecordModel) else points_at_once(points)  # of like lengths, by itself
    parts = [
        ask(points.inputs_at(torch.from_numpy(at)))
        for at in np.split(points.index, range(at_once, len(points), at_once))
    ]
    outputs: npt.NDArray[np.float32] = torch.cat(parts).float().cpu().numpy()
    return outputs


def points_at_once(points: Points) -> int:
    """BATCH, and fewer of what is large: images beyond 64 × 64 numbers, and texts beyond 64 tokens, whose attention
    grows with the square. It hangs on a point's size alone, so that no number depends on how much memory is free."""
    size = points.whole_inputs[0].numel()
    return max(1, min(BATCH, 2**22 // max(1, size if points.are_numbers else size**2)))


def outputs_of_many(
    models: Sequence[nn.Module], points: Sequence[Points], *, plainly: bool = False
) -> list[npt.NDArray[np.float32]]:
    """What each model says about its own points; on a GPU all of them in one pass where their architecture allows."""
    is_traced = any(True for _ in models[0].parameters()) and not isinstance(models[0], RecordModel)
    if points[0].device.type == "cuda" and is_traced:
        with suppress(NotStackable):
            check_points(points)
            check_alike(models)
            return stacked_outputs(models, points)
    return [outputs_of(model, its, plainly=plainly) for model, its in zip(models, points, strict=True)]


def utility_of(outputs: npt.NDArray[np.float32], points: Points) -> float | None:
    """How well a model does what it is for, by its outputs for these points: of a classifier, the accuracy.

    None where these points cannot show it.
    """
    return points.task.utility(outputs, points.host_labels[points.index])


def known_utility_of(outputs: npt.NDArray[np.float32], points: Points) -> float:
    """The same, or UserError where these points cannot show it."""
    found = utility_of(outputs, points)
    if found is None:
        raise UserError(f"{points.task.utility_name} is not defined on the points that were set aside to measure it")
    return found
