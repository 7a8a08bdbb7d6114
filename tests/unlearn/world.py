"""A tiny world to unlearn in: noisy images of four classes, a retain set, a forget set and a model of both."""

import copy
import functools
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from forgetgauge.data.dataset import Points
from forgetgauge.learn.minibatch import Minibatch
from forgetgauge.streams import Streams
from forgetgauge.unlearn.unlearner import Context

N_RETAIN, N_FORGET = 37, 13


@dataclass(frozen=True)
class World:
    learner: Minibatch
    points: Points
    retain: Points
    forget: Points
    original: nn.Module

    def context(self, key="a job") -> Context:
        return Context(self.learner, Streams(key))

    def unlearn(self, unlearner, *, model=None, retain=None, forget=None, key="a job") -> nn.Module:
        return unlearner.unlearn(
            self.original if model is None else model,
            self.retain if retain is None else retain,
            self.forget if forget is None else forget,
            self.context(key),
        )


def make_world(norm="batch", model="small-cnn", params=None) -> World:
    """A fresh copy: tests may break it."""
    world = _make_world(norm) if model == "small-cnn" else _build(Minibatch(model=model, epochs=2, batch_size=16))
    return World(world.learner, world.points, world.retain, world.forget, copy.deepcopy(world.original))


@functools.cache
def _make_world(norm: str) -> World:
    return _build(Minibatch(model_params={"width": 4, "norm": norm}, epochs=2, batch_size=16))


def _build(learner: Minibatch) -> World:
    rng = np.random.default_rng(0)
    labels = np.arange(N_RETAIN + N_FORGET + 10) % 4
    inputs = rng.standard_normal((len(labels), 1, 8, 8)) + labels[:, None, None, None] / 2
    points = Points.of(torch.tensor(inputs, dtype=torch.float32), torch.tensor(labels))
    order = rng.permutation(len(labels))
    known = order[: N_RETAIN + N_FORGET]
    original = learner.fit(points.subset(known), Streams("original"))
    return World(learner, points, points.subset(known[:N_RETAIN]), points.subset(known[N_RETAIN:]), original)


def state(model: nn.Module) -> dict[str, torch.Tensor]:
    """All of a model's parameters and buffers, copied."""
    return {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}


def changed(one: nn.Module, other: nn.Module) -> set[str]:
    """Names of what differs in a bit."""
    a, b = one.state_dict(), other.state_dict()
    assert a.keys() == b.keys()
    return {name for name in a if not torch.equal(a[name], b[name])}


def parameters(model: nn.Module) -> set[str]:
    return {name for name, _ in model.named_parameters()}


def buffers(model: nn.Module) -> set[str]:
    return {name for name, _ in model.named_buffers()}
