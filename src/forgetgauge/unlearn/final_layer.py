"""Ft-final and Retr-final: everything frozen but the last layer, which is tuned (or begun anew) on the retain set.

With weight decay and frozen batch norm the head's problem is strictly convex, so the two converge to the same head:
why the paper's two rows agree in most cells, and why both stay near None (the frozen body keeps the memory).
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn

from forgetgauge.data.dataset import Points
from forgetgauge.learn.descent import Steps, check_steps
from forgetgauge.learn.stacked.members import NotStackable
from forgetgauge.learn.stacked.traced import TracedStack
from forgetgauge.models.head import features_of, head_of
from forgetgauge.streams import Streams
from forgetgauge.unlearn.passes import Passes
from forgetgauge.unlearn.stacked import stacked_features, unlearn_stacked
from forgetgauge.unlearn.unlearner import Context, Request


@dataclass(frozen=True)
class FineTuneFinal:
    """Ft-final: go on from the trained head."""

    needs_head: ClassVar[bool] = True
    lr: float = 0.05
    momentum: float = 0.9
    weight_decay: float = 5e-5
    epochs: int = 30
    batch_size: int = 64
    batch_norm: Literal["frozen", "train"] = "frozen"
    """`train`, as in the published code: the frozen layers' running statistics still move on R's batches."""

    def __post_init__(self) -> None:
        check_steps(self.lr, self.epochs, self.batch_size)

    def unlearn(self, model: nn.Module, retain: Points, forget: Points, context: Context) -> nn.Module:
        """Tune a copy's head on the retain set."""
        return _tune_head(copy.deepcopy(model), retain, context, self)

    def unlearn_many(self, requests: Sequence[Request]) -> list[nn.Module]:
        """All of them in one stack, where their models can be one."""
        return unlearn_stacked(requests, self, self._stacked, "float32")

    def _stacked(self, stack: TracedStack, requests: Sequence[Request]) -> list[nn.Module]:
        return _tune_heads(stack, requests, self)


@dataclass(frozen=True)
class RetrainFinal:
    """Retr-final: a new head (Kaiming-normal weights, zero bias), trained longer since it begins from nothing."""

    needs_head: ClassVar[bool] = True
    lr: float = 0.05
    momentum: float = 0.9
    weight_decay: float = 5e-5
    epochs: int = 60
    batch_size: int = 64
    batch_norm: Literal["frozen", "train"] = "frozen"
    """`train`, as in the published code: the frozen layers' running statistics still move on R's batches."""

    def __post_init__(self) -> None:
        check_steps(self.lr, self.epochs, self.batch_size)

    def unlearn(self, model: nn.Module, retain: Points, forget: Points, context: Context) -> nn.Module:
        """Begin a copy's head anew and train it on the retain set."""
        model = copy.deepcopy(model)
        _begin_anew(model, context.streams)
        return _tune_head(model, retain, context, self)

    def unlearn_many(self, requests: Sequence[Request]) -> list[nn.Module]:
        """All of them in one stack, where their models can be one."""
        return unlearn_stacked(requests, self, self._stacked, "float32")

    def _stacked(self, stack: TracedStack, requests: Sequence[Request]) -> list[nn.Module]:
        for model, request in zip(stack.models, requests, strict=True):
            _begin_anew(model, request.context.streams)
        return _tune_heads(stack, requests, self)


def _begin_anew(model: nn.Module, streams: Streams) -> None:
    head = head_of(model)
    generator = torch.Generator().manual_seed(streams.seed("init"))
    with torch.no_grad():
        fresh = torch.empty(head.weight.shape, dtype=head.weight.dtype)  # drawn on the CPU, whatever the device
        head.weight.copy_(nn.init.kaiming_normal_(fresh, generator=generator))
        if head.bias is not None:
            head.bias.zero_()


def _tune_head(model: nn.Module, retain: Points, context: Context, how: FineTuneFinal | RetrainFinal) -> nn.Module:
    head = head_of(model)
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    model.requires_grad_(False)
    head.requires_grad_(True)
    layer, inputs = (
        _layer_and_inputs(model, head, retain.x) if how.batch_norm == "frozen" else (model.train(), retain.x)
    )
    _passes(how).alone(lambda at: retain.task.loss(layer(inputs[at]), retain.y[at]), head.parameters(), retain, context)
    head.requires_grad_(False)
    for parameter in trainable:
        parameter.requires_grad_(True)
    return model.eval()


def _tune_heads(stack: TracedStack, requests: Sequence[Request], how: FineTuneFinal | RetrainFinal) -> list[nn.Module]:
    """The heads alone are a stack of their own, whose data are the features: each member learns from its own rows.

    The body's stack computes the features and is not asked for its members, so that only the heads change.
    """
    if how.batch_norm != "frozen":
        raise NotStackable("the bodies' running statistics move while the heads are tuned")
    retained = [r.retain for r in requests]
    features, labels = stacked_features(stack, retained), torch.cat([part.y for part in retained])
    points = Points.of(features, labels, task=retained[0].task)
    starts = np.cumsum([len(part) for part in retained])[:-1]
    rows = [points.subset(index) for index in np.split(points.index, starts)]
    heads = TracedStack([nn.Sequential(head_of(model)) for model in stack.models])
    _passes(how).stacked(heads, requests, rows, train=False)
    return stack.models


def _passes(how: FineTuneFinal | RetrainFinal) -> Passes:
    steps = Steps(lr=how.lr, momentum=how.momentum, weight_decay=how.weight_decay, schedule="cosine")
    return Passes(how.epochs, how.batch_size, steps)


def _layer_and_inputs(model: nn.Module, head: nn.Linear, x: Tensor) -> tuple[nn.Module, Tensor]:
    """The body is a fixed function, so its features are computed once; unless the model goes on after its head."""
    model.eval()
    with torch.no_grad():  # a few points by themselves: on a GPU the same points in a larger batch round differently
        head_is_last = torch.equal(head(features_of(model, x[:8])), model(x[:8]))
    return (head, features_of(model, x)) if head_is_last else (model, x)
