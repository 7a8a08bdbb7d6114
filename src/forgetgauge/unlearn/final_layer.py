"""Ft-final and Retr-final: everything frozen but the last layer, which is tuned (or begun anew) on the retain set.

With weight decay and frozen batch norm the head's problem is strictly convex, so the two converge to the same head:
why the paper's two rows agree in most cells, and why both stay near None (the frozen body keeps the memory).
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
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
from forgetgauge.unlearn.stacked import Passes, stacked_features, unlearn_stacked
from forgetgauge.unlearn.unlearner import Context, Request


@dataclass(frozen=True)
class _LastLayerAlone(ABC):
    """Tunes the last layer on the retain set; how it begins is left open."""

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

    @abstractmethod
    def begin(self, model: nn.Module, streams: Streams) -> None:
        """What is done to a copy's head before it is tuned."""

    def unlearn(self, model: nn.Module, retain: Points, forget: Points, context: Context) -> nn.Module:
        """Tune a copy's head on the retain set."""
        model = copy.deepcopy(model)
        self.begin(model, context.streams)
        head = head_of(model)
        trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
        model.requires_grad_(False)
        head.requires_grad_(True)
        layer, inputs = (
            _layer_and_inputs(model, head, retain.x) if self.batch_norm == "frozen" else (model.train(), retain.x)
        )
        self._passes.alone(
            lambda at: retain.task.loss(layer(inputs[at]), retain.y[at]), head.parameters(), retain, context
        )
        head.requires_grad_(False)
        for parameter in trainable:
            parameter.requires_grad_(True)
        return model.eval()

    def unlearn_many(self, requests: Sequence[Request]) -> list[nn.Module]:
        """All of them in one stack, where their models can be one."""
        return unlearn_stacked(requests, self, self._stacked, "float32")

    def _stacked(self, stack: TracedStack, requests: Sequence[Request]) -> list[nn.Module]:
        """The heads alone are a stack of their own, whose data are the features: each member learns from its own rows.

        The body's stack computes the features and is not asked for its members, so that only the heads change.
        """
        for model, request in zip(stack.models, requests, strict=True):
            self.begin(model, request.context.streams)
        if self.batch_norm != "frozen":
            raise NotStackable("the bodies' running statistics move while the heads are tuned")
        retained = [r.retain for r in requests]
        features, labels = stacked_features(stack, retained), torch.cat([part.y for part in retained])
        points = Points.of(features, labels, task=retained[0].task)
        starts = np.cumsum([len(part) for part in retained])[:-1]
        rows = [points.subset(index) for index in np.split(points.index, starts)]
        heads = TracedStack([nn.Sequential(head_of(model)) for model in stack.models])
        self._passes.stacked(heads, requests, rows, train=False)
        return stack.models

    @property
    def _passes(self) -> Passes:
        steps = Steps(lr=self.lr, momentum=self.momentum, weight_decay=self.weight_decay, schedule="cosine")
        return Passes(self.epochs, self.batch_size, steps)


@dataclass(frozen=True)
class FineTuneFinal(_LastLayerAlone):
    """Ft-final: go on from the trained head."""

    def begin(self, model: nn.Module, streams: Streams) -> None:
        """It stays as it is."""


@dataclass(frozen=True)
class RetrainFinal(_LastLayerAlone):
    """Retr-final: a new head (Kaiming-normal weights, zero bias), trained longer since it begins from nothing."""

    epochs: int = 60

    def begin(self, model: nn.Module, streams: Streams) -> None:
        """A new one."""
        head = head_of(model)
        generator = torch.Generator().manual_seed(streams.seed("init"))
        with torch.no_grad():
            fresh = torch.empty(head.weight.shape, dtype=head.weight.dtype)  # drawn on the CPU, whatever the device
            head.weight.copy_(nn.init.kaiming_normal_(fresh, generator=generator))
            if head.bias is not None:
                head.bias.zero_()


def _layer_and_inputs(model: nn.Module, head: nn.Linear, x: Tensor) -> tuple[nn.Module, Tensor]:
    """The body is a fixed function, so its features are computed once; unless the model goes on after its head."""
    model.eval()
    with torch.no_grad():  # a few points by themselves: on a GPU the same points in a larger batch round differently
        head_is_last = torch.equal(head(features_of(model, x[:8])), model(x[:8]))
    return (head, features_of(model, x)) if head_is_last else (model, x)
