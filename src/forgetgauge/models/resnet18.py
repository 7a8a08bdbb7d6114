"""ResNet-18 with 1 × 1 convolutions as shortcuts; with group norm it is the model of the paper's DP experiments."""

from __future__ import annotations

from typing import Literal

from torch import nn

from forgetgauge.models.resnet import BasicBlock, Norm, ResNet, channels_of, norm_layer

Stem = Literal["cifar", "imagenet"]


def resnet18(input_shape: tuple[int, ...], n_outputs: int, *, norm: Norm = "batch", stem: Stem = "cifar") -> ResNet:
    """11,173,962 parameters on CIFAR-10; 11,181,642 with the stem of torchvision, which shrinks images fourfold."""
    blocks = []
    n_in = 64
    for width in (64, 128, 256, 512):
        for _ in range(2):
            stride = 1 if n_in == width else 2
            blocks.append(BasicBlock(n_in, width, stride, norm, _shortcut(n_in, width, norm)))
            n_in = width
    return ResNet(_stem(stem, channels_of(input_shape), norm), blocks, 512, n_outputs)


def _shortcut(n_in: int, n_out: int, norm: Norm) -> nn.Module:
    if n_in == n_out:
        return nn.Identity()
    return nn.Sequential(nn.Conv2d(n_in, n_out, 1, stride=2, bias=False), norm_layer(norm, n_out))


def _stem(kind: Stem, channels: int, norm: Norm) -> nn.Sequential:
    if kind == "cifar":
        return nn.Sequential(nn.Conv2d(channels, 64, 3, padding=1, bias=False), norm_layer(norm, 64), nn.ReLU())
    if kind == "imagenet":
        convolution = nn.Conv2d(channels, 64, 7, stride=2, padding=3, bias=False)
        return nn.Sequential(convolution, norm_layer(norm, 64), nn.ReLU(), nn.MaxPool2d(3, stride=2, padding=1))
    raise ValueError(f"stem = {kind!r} is none of 'cifar', 'imagenet'")
