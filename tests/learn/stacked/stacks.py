"""Stacks for tests, and what autograd says of each member alone: the reference of the engines."""

import copy
import functools
from collections import OrderedDict

import torch
import torch.nn.functional as F
from torch import nn

from forgetgauge.learn.stacked.traced import TracedStack
from forgetgauge.models.mlp import MLP, linear
from forgetgauge.models.resnet import BasicBlock, ResNet, _shortcut, resnet18, resnet20
from forgetgauge.models.small_cnn import SmallCNN

N_CLASSES = 4


def _thin_resnet18(shape: tuple[int, ...], n_classes: int) -> ResNet:
    """Batch norms, both stems' parts and convolutions as shortcuts, in a thousandth of the weights."""
    blocks = [BasicBlock(a, b, 1 if a == b else 2, "batch", _shortcut(a, b, "batch")) for a, b in ((6, 6), (6, 10))]
    stem = nn.Sequential(
        nn.Conv2d(shape[0], 6, 7, stride=2, padding=3, bias=False),
        nn.BatchNorm2d(6),
        nn.ReLU(),
        nn.MaxPool2d(3, stride=2, padding=1),
    )
    return ResNet(stem, blocks, 10, n_classes)


def _sequence_norm(shape: tuple[int, ...], n_classes: int) -> nn.Module:
    """A norm first of all, of points that are no images, and no ReLU behind it."""
    head = nn.Linear(shape[0] * shape[1], n_classes)
    return nn.Sequential(OrderedDict(norm=nn.GroupNorm(2, shape[0]), flatten=nn.Flatten(), head=head))


def _bare_norm(shape: tuple[int, ...], n_classes: int) -> nn.Module:
    """No ReLU behind the norm: gradients come back with channels first."""
    body = OrderedDict(conv=nn.Conv2d(shape[0], 6, 3, padding=1), norm=nn.GroupNorm(3, 6), flatten=nn.Flatten())
    return nn.Sequential(body | {"head": nn.Linear(6 * shape[1] * shape[2], n_classes)})


MODELS = {
    "sequences, group norm": (_sequence_norm, (4, 6)),
    "group norm, no relu": (_bare_norm, (2, 4, 5)),
    "small-cnn, batch norm": (functools.partial(SmallCNN, width=4, norm="batch"), (1, 8, 8)),
    "small-cnn, group norm": (functools.partial(SmallCNN, width=4, norm="group"), (2, 7, 9)),
    "small-cnn, no norm": (functools.partial(SmallCNN, width=3, norm="none"), (1, 8, 8)),
    "resnet20": (resnet20, (3, 8, 8)),
    "resnet20, group norm": (functools.partial(resnet20, norm="group"), (3, 8, 8)),
    "resnet18": (functools.partial(resnet18, norm="group"), (3, 8, 8)),
    "resnet18, imagenet stem": (functools.partial(resnet18, norm="group", stem="imagenet"), (3, 16, 16)),
    "resnet18, thin": (_thin_resnet18, (3, 16, 16)),
    "mlp": (functools.partial(MLP, hidden=(7, 5)), (2, 3, 2)),
    "mlp, vectors, no bias": (functools.partial(MLP, hidden=(7,), bias=False), (6,)),
    "linear": (linear, (2, 3, 2)),
}
"""name -> (architecture, shape of a point)."""


def build(name: str, n_models: int, seed: int = 0) -> list[nn.Module]:
    """Models with statistics and scales that are not those a model begins with."""
    make, shape = MODELS[name]
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        models = [make(shape, N_CLASSES) for _ in range(n_models)]
        for module in (module for model in models for module in model.modules()):
            if isinstance(module, nn.BatchNorm2d):
                module.running_mean.normal_(0, 0.1)
                module.running_var.uniform_(0.5, 1.5)
            if isinstance(module, nn.BatchNorm2d | nn.GroupNorm):
                nn.init.uniform_(module.weight, 0.5, 1.5)
                nn.init.normal_(module.bias, 0, 0.1)
        for model in models:  # unsure: of a label that is certain, p − 1 is nothing but rounding
            model.head.weight.data *= 0.3
    return models


def batch(name: str, n_models: int, size: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """(K, B, …) inputs and (K, B) labels."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n_models, size, *MODELS[name][1], generator=generator)
    return x, torch.randint(0, N_CLASSES, (n_models, size), generator=generator)


def both_ways(stack: TracedStack, x, y, n_valid, *, train, sums="gradient"):
    """(logits, gradient rows) of a batch's mean cross-entropy, or the sum of squares of the examples' own gradients."""
    n_valid = torch.as_tensor(n_valid, dtype=torch.int32, device=x.device)
    own = torch.arange(x.shape[1], device=x.device) < n_valid[:, None]
    logits, tape = stack.forward(x, n_valid, train=train, keep=True, sums=sums)
    weight = own.float() if sums == "squares" else own / n_valid.clamp(min=1)[:, None]
    stack.backward(tape, (logits.softmax(-1) - F.one_hot(y, N_CLASSES)) * weight[..., None])
    return logits, stack.gradient.clone()


def convolved(x, weight, window):
    """Member by member, as torch convolves: (K, B, H, W, Ci) and (K, rows, columns, Ci, Co) -> (K, B, H', W', Co)."""
    each = [
        F.conv2d(a.permute(0, 3, 1, 2), b.permute(3, 2, 0, 1), stride=window.stride, padding=window.padding)
        for a, b in zip(x, weight, strict=True)
    ]
    return torch.stack(each).permute(0, 1, 3, 4, 2)


def in_float64(model: nn.Module) -> nn.Module:
    return copy.deepcopy(model).double()


def own_gradient(model: nn.Module, x, y) -> dict[str, torch.Tensor]:
    """By autograd, in whatever mode and precision the model has."""
    x = x.to(next(model.parameters()).dtype)
    gradients = torch.autograd.grad(F.cross_entropy(model(x), y), list(model.parameters()))
    return {name: g for (name, _), g in zip(model.named_parameters(), gradients, strict=True)}


def apart(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> float:
    """The largest relative distance of two tables, tensor by tensor; what is tiny is measured against the whole."""
    assert found.keys() == expected.keys()
    whole = sum(float(tensor.norm()) ** 2 for tensor in expected.values()) ** 0.5
    return max(
        float((found[name].double() - expected[name].double()).norm()) / (float(expected[name].norm()) + 1e-3 * whole)
        for name in expected
    )
