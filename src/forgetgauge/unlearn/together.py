"""Many requests of one method at once: what the methods share where a twin stands in for all their models.

A method brings a function that moves all members of a twin; where their models have none, or where the function says
`Unstackable`, each request is answered alone. Orders, labels and noise come from the same streams either way, so a
model differs by rounding only (and on a GPU by the learner's precision, in which a twin computes).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any, get_args

import numpy as np
import torch
from torch import Tensor, nn

from forgetgauge.data.dataset import Points
from forgetgauge.learn.descent import Positions, Steps
from forgetgauge.learn.fleet import AfterStep, Feed, descend_together, rectangle
from forgetgauge.learn.members import alike, own_labels
from forgetgauge.learn.twin import Precision, Twin
from forgetgauge.learn.unstackable import Unstackable
from forgetgauge.models.head import head_of
from forgetgauge.unlearn.unlearner import Request, Unlearner

DEVICES: tuple[str, ...] = ("cuda",)
"""Where twins are made: their kernels are for a GPU. On a CPU they work too, which is how they are tested."""

FEATURES_AT_ONCE = 256

Stacked = Callable[[Twin, Sequence[Request]], list[nn.Module]]
"""Moves the members of a twin, which are copies of the requests' models, and returns them."""


def unlearn_together(
    requests: Sequence[Request], unlearner: Unlearner, stacked: Stacked, precision: Precision | None = None
) -> list[nn.Module]:
    """By `stacked` where the models have a twin, else one after another."""
    twin = twin_of(requests, precision)
    if twin is not None:
        try:
            done = [model.eval() for model in stacked(twin, requests)]
            for request in requests:
                request.context.engine = "twin"
            return done
        except Unstackable:  # e.g. a head that is not the last layer
            pass
    return [unlearner.unlearn(r.model, r.retain, r.forget, r.context) for r in requests]


def twin_of(requests: Sequence[Request], precision: Precision | None = None) -> Twin | None:
    """Of copies of the requests' models, in the learner's precision unless told; None where they have none."""
    if not requests or not _of_one_data_set(requests) or not _alike([r.model for r in requests]):
        return None
    if requests[0].retain.device.type not in DEVICES:
        return None
    try:
        return Twin([copy.deepcopy(r.model) for r in requests], precision or _precision_of(requests[0]))
    except Unstackable:
        return None


def _of_one_data_set(requests: Sequence[Request]) -> bool:
    """One tensor of inputs for all of them, and for each request one version of the labels, whichever it is."""
    first = requests[0].retain
    return all(
        p.whole_inputs is first.whole_inputs and p.whole_labels is r.retain.whole_labels and p.scaling == first.scaling
        for r in requests
        for p in (r.retain, r.forget)
    )


def _alike(models: Sequence[nn.Module]) -> bool:
    """Whether one graph serves them all, and every weight may move: a twin has no frozen ones (and no doubles)."""
    shapes = [[(name, p.shape, p.device) for name, p in model.named_parameters()] for model in models]
    plain = all(p.requires_grad and p.dtype == torch.float32 for model in models for p in model.parameters())
    return plain and len(shapes[0]) > 0 and all(other == shapes[0] for other in shapes) and alike(models)


def _precision_of(request: Request) -> Precision:
    """The learner's where it has one; a CPU computes in float32."""
    wanted: Precision = getattr(request.context.learner, "precision", "float32")
    return wanted if request.retain.device.type == "cuda" and wanted in get_args(Precision) else "float32"


# -- descents ----------------------------------------------------------------------------------------------------------


def descended(
    twin: Twin,
    parts: Sequence[Points],
    feeds: Sequence[Feed],
    steps: Steps,
    *,
    batch_size: int,
    train: bool,
    sign: float = 1.0,
    after_step: AfterStep | None = None,
) -> list[nn.Module]:
    """The members after their feeds, whose batches are of these parts; with `train`, batch norms moved too."""
    widest = min(batch_size, max(len(part) for part in parts))
    descend_together(twin, parts[0], feeds, steps, batch_size=widest, train=train, sign=sign, after_step=after_step)
    return twin.members([feed.n_steps for feed in feeds] if train else None)


# -- gradients and features --------------------------------------------------------------------------------------------


def gradients_together(
    twin: Twin, points: Sequence[Points], batches: Sequence[Sequence[Positions]]
) -> Iterator[Tensor]:
    """(K, P) for each place in the members' lists: the gradient of that batch's summed loss, in eval mode.

    `points` is for each member any part of its data, with the labels it was taught. 0 for a member whose list has
    ended. The tensor is the twin's own, and overwritten by the next.
    """
    nothing, labels = np.zeros(0, dtype=np.int64), own_labels(points)
    for place in range(max(len(own) for own in batches)):
        here = [own[place] if place < len(own) else nothing for own in batches]
        at, n_valid = rectangle(here, twin.device)
        logits, play = twin.forward(points[0].inputs_at(at), n_valid, keep=True)
        valid = torch.arange(at.shape[1], device=twin.device) < n_valid[:, None]
        twin.backward(play, points[0].task.loss_gradient(logits, labels(at)) * valid[..., None])
        yield twin.gradient


def features_together(twin: Twin, parts: Sequence[Points]) -> Tensor:
    """(Σ n, d) what the head is given, in eval mode: the points of the first member's part, then the second's, …"""
    last: Any = twin.steps[-1]
    model = twin.models[0]
    head = next(name for name, module in model.named_modules() if module is head_of(model))
    if getattr(last, "weight", None) is not twin.slots[f"{head}.weight"]:
        raise Unstackable("its head is not its last layer")
    at, _ = rectangle([part.index for part in parts], twin.device)
    caught = []
    for some in torch.split(at, FEATURES_AT_ONCE, dim=1):
        _, play = twin.forward(parts[0].inputs_at(some))
        caught.append(play.read(twin, last.reads).float())
    features = torch.cat(caught, dim=1)  # (K, longest, d)
    return torch.cat([features[k, : len(part)] for k, part in enumerate(parts)])
