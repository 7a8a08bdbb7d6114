"""The points of a stack's members: one tensor of inputs for all of them, and for each the labels it was taught."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from forgetgauge.data.dataset import Points


def why_apart(points: Sequence[Points]) -> str | None:
    """Why models on these points cannot be members of one stack, whatever their architecture; None where they can."""
    first = points[0]
    if any(p.whole_inputs is not first.whole_inputs for p in points):
        return "the points are of different data sets"
    if any(p.whole_labels is not first.whole_labels and p.n_outputs != first.n_outputs for p in points):
        return "the points have different numbers of classes"
    return None


def own_labels(points: Sequence[Points]) -> Callable[[Tensor], Tensor]:
    """(K, B) positions in the whole data set -> (K, B) labels, each row by its member's own version of them.

    Where all members share one version, nothing is copied; else the versions are laid out as one (K, n_all) table, so
    that a step is one operation however many there are.
    """
    whole = points[0].whole_labels
    if all(p.whole_labels is whole for p in points):
        return lambda at: whole[at]
    table = torch.stack([p.whole_labels for p in points])
    return lambda at: table.gather(1, at.to(table.device))


def alike(models: Sequence[nn.Module]) -> bool:
    """Whether one graph serves them all: a batch and a group norm have the same parameters, and print differently."""
    return len({str(model) for model in models}) == 1
