"""What a model says about points: logits in eval mode, and the accuracy they amount to."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from forgetgauge.data.dataset import Points
from forgetgauge.learn.stacked.members import NotStackable, check_alike, check_points
from forgetgauge.learn.stacked.trainer import logits_together

BATCH = 1024


@torch.no_grad()
def logits_of(model: nn.Module, points: Points) -> npt.NDArray[np.float32]:
    """(n, n_classes) logits; the model is put into eval mode."""
    model.eval()
    if len(points) == 0:
        return np.zeros((0, points.n_classes), dtype=np.float32)
    parts = [
        model(points.inputs_at(torch.from_numpy(at))) for at in np.split(points.index, range(BATCH, len(points), BATCH))
    ]
    logits: npt.NDArray[np.float32] = torch.cat(parts).float().cpu().numpy()
    return logits


def logits_of_many(models: Sequence[nn.Module], points: Sequence[Points]) -> list[npt.NDArray[np.float32]]:
    """What each model says about its own points; on a GPU all of them in one pass where their architecture allows."""
    if points[0].device.type == "cuda":
        with suppress(NotStackable):
            check_points(points)
            check_alike(models)
            return logits_together(models, points)
    return [logits_of(model, its) for model, its in zip(models, points, strict=True)]


def accuracy_of(logits: npt.NDArray[np.float32], labels: npt.NDArray[np.int64]) -> float:
    """Share of points whose largest logit is that of the label."""
    return float(np.mean(logits.argmax(axis=1) == labels))
