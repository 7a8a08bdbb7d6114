"""ResNet-20/32/44/56/110 for small images (He et al. 2016, section 4.2), with shortcuts that have no parameters.

ResNet-18 has 1 × 1 convolutions as shortcuts; with group norm it is the model of the paper's DP experiments.

The forward is straight-line code made of modules, so that torch.fx can trace it and the stacked engine can train many
at once; `PadShortcut` is to be a leaf there.
"""

from __future__ import annotations

import math
from typing import Literal, cast

import torch.nn.functional as F
from torch import Tensor, nn

Norm = Literal["batch", "group"]
Stem = Literal["cifar", "imagenet"]


class PadShortcut(nn.Module):
    """Option A: every second pixel, and (C_out − C_in) / 2 channels of zeros on both sides; nothing to learn."""

    def __init__(self, channels_in: int, channels_out: int, stride: int = 2) -> None:
        super().__init__()
        if (channels_out - channels_in) % 2:
            raise ValueError(f"{channels_in} channels cannot be padded evenly to {channels_out}")
        self.channels_in, self.channels_out, self.stride = channels_in, channels_out, stride

    def forward(self, x: Tensor) -> Tensor:
        """(n, C_in, h, w) -> (n, C_out, ⌈h / stride⌉, ⌈w / stride⌉)."""
        side = (self.channels_out - self.channels_in) // 2
        return F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, side, side))


class BasicBlock(nn.Module):
    """Two 3 × 3 convolutions beside a shortcut."""

    def __init__(self, n_in: int, n_out: int, stride: int, norm: Norm, shortcut: nn.Module) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(n_in, n_out, 3, stride=stride, padding=1, bias=False)
        self.norm1 = norm_layer(norm, n_out)
        self.relu1 = nn.ReLU()
        self.conv2 = nn.Conv2d(n_out, n_out, 3, padding=1, bias=False)
        self.norm2 = norm_layer(norm, n_out)
        self.shortcut = shortcut
        self.relu2 = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        """(n, n_in, h, w) -> (n, n_out, ⌈h / stride⌉, ⌈w / stride⌉)."""
        residual = self.norm2(self.conv2(self.relu1(self.norm1(self.conv1(x)))))
        return cast(Tensor, self.relu2(residual + self.shortcut(x)))


class ResNet(nn.Module):
    """Stem, blocks, global average pool and a linear head, He-normal in the convolutions and the head."""

    def __init__(self, stem: nn.Module, blocks: list[BasicBlock], width: int, n_outputs: int) -> None:
        super().__init__()
        self.stem = stem
        self.blocks = nn.Sequential(*blocks)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.head = nn.Linear(width, n_outputs)
        for module in self.modules():
            if isinstance(module, nn.Conv2d | nn.Linear):
                nn.init.kaiming_normal_(module.weight)

    def forward(self, x: Tensor) -> Tensor:
        """(n, channels, height, width) -> (n, n_outputs)."""
        return cast(Tensor, self.head(self.flatten(self.pool(self.blocks(self.stem(x))))))


def norm_layer(kind: Norm, channels: int) -> nn.Module:
    """Batch norm, or group norm with gcd(32, C) groups, which is what opacus' ModuleValidator.fix puts in its place."""
    if kind == "batch":
        return nn.BatchNorm2d(channels)
    if kind == "group":
        return nn.GroupNorm(math.gcd(32, channels), channels)
    raise ValueError(f"norm = {kind!r} is none of 'batch', 'group'")


def channels_of(input_shape: tuple[int, ...]) -> int:
    """The channels of an image; anything else is refused."""
    if len(input_shape) != 3:
        raise ValueError(f"wants images (channels, height, width), the data has the shape {tuple(input_shape)}")
    return input_shape[0]


def _cifar_resnet(depth: int, input_shape: tuple[int, ...], n_outputs: int, norm: Norm) -> ResNet:
    """Three stages of n = (depth − 2) / 6 blocks, 16, 32 and 64 channels wide, each stage half the size."""
    stem = nn.Sequential(
        nn.Conv2d(channels_of(input_shape), 16, 3, padding=1, bias=False), norm_layer(norm, 16), nn.ReLU()
    )
    blocks = []
    n_in = 16
    for width in (16, 32, 64):
        for _ in range((depth - 2) // 6):
            shortcut = nn.Identity() if n_in == width else PadShortcut(n_in, width)
            blocks.append(BasicBlock(n_in, width, 1 if n_in == width else 2, norm, shortcut))
            n_in = width
    return ResNet(stem, blocks, 64, n_outputs)


def resnet20(input_shape: tuple[int, ...], n_outputs: int, *, norm: Norm = "batch") -> ResNet:
    """269,722 parameters on CIFAR-10; the paper's main model."""
    return _cifar_resnet(20, input_shape, n_outputs, norm)


def resnet32(input_shape: tuple[int, ...], n_outputs: int, *, norm: Norm = "batch") -> ResNet:
    """464,154 parameters on CIFAR-10."""
    return _cifar_resnet(32, input_shape, n_outputs, norm)


def resnet44(input_shape: tuple[int, ...], n_outputs: int, *, norm: Norm = "batch") -> ResNet:
    """658,586 parameters on CIFAR-10."""
    return _cifar_resnet(44, input_shape, n_outputs, norm)


def resnet56(input_shape: tuple[int, ...], n_outputs: int, *, norm: Norm = "batch") -> ResNet:
    """853,018 parameters on CIFAR-10."""
    return _cifar_resnet(56, input_shape, n_outputs, norm)


def resnet110(input_shape: tuple[int, ...], n_outputs: int, *, norm: Norm = "batch") -> ResNet:
    """1,727,962 parameters on CIFAR-10; He et al. train its first epoch at a tenth of the rate."""
    return _cifar_resnet(110, input_shape, n_outputs, norm)


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
