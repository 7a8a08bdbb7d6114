"""The simple way to train K ResNet-20s at once, to measure ours against: one network of grouped convolutions.

torch.compile, a CUDA graph of the whole step, bfloat16, channels-last, images on the GPU as bytes. It knows one
network, one optimiser and members of equal size; `gpu_training.py speed` times it.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class GroupedResNet20(nn.Module):
    """K members as groups: channels k · c to (k + 1) · c are member k's."""

    def __init__(self, n_members: int, n_classes: int = 10) -> None:
        super().__init__()
        self.n_members = k = n_members
        widths = [(16, 1)] * 3 + [(32, 2), (32, 1), (32, 1), (64, 2), (64, 1), (64, 1)]
        self.stem, self.stem_norm = self._conv(3, 16, 1), nn.BatchNorm2d(16 * k)
        self.first, self.second = nn.ModuleList(), nn.ModuleList()
        self.first_norm, self.second_norm = nn.ModuleList(), nn.ModuleList()
        self.strides, before = [stride for _, stride in widths], 16
        for width, stride in widths:
            self.first.append(self._conv(before, width, stride))
            self.second.append(self._conv(width, width, 1))
            self.first_norm.append(nn.BatchNorm2d(width * k))
            self.second_norm.append(nn.BatchNorm2d(width * k))
            before = width
        self.weight = nn.Parameter(torch.randn(k, 64, n_classes) * 0.1)
        self.bias = nn.Parameter(torch.zeros(k, 1, n_classes))

    def _conv(self, ci: int, co: int, stride: int) -> nn.Conv2d:
        k = self.n_members
        return nn.Conv2d(ci * k, co * k, 3, stride, 1, bias=False, groups=k)

    def forward(self, x: Tensor) -> Tensor:
        """(B, K · 3, 32, 32) -> (K, B, n_classes)."""
        x = F.relu(self.stem_norm(self.stem(x)))
        parts = zip(self.first, self.first_norm, self.second, self.second_norm, self.strides, strict=True)
        for conv1, norm1, conv2, norm2, stride in parts:
            y = norm2(conv2(F.relu(norm1(conv1(x)))))
            x = F.relu(y + (x if stride == 1 else self._shortcut(x)))
        pooled = x.mean((2, 3)).view(len(x), self.n_members, 64).transpose(0, 1)
        return torch.baddbmm(self.bias.to(pooled.dtype), pooled, self.weight.to(pooled.dtype))

    def _shortcut(self, x: Tensor) -> Tensor:
        x = x[:, :, ::2, ::2]
        n, kc, h, w = x.shape
        c = kc // self.n_members
        return F.pad(x.reshape(n, self.n_members, c, h, w), (0, 0, 0, 0, c // 2, c // 2)).reshape(n, 2 * kc, h, w)


class GroupedStack:
    """SGD with momentum 0.9 on random batches of 128 of the images; `ready` compiles and captures, `step` replays."""

    def __init__(self, n_members: int, images: Tensor, labels: Tensor, batch_size: int = 128) -> None:
        self.images, self.labels, self.n_members, self.batch_size = images, labels, n_members, batch_size
        self.net = GroupedResNet20(n_members).to(images.device, memory_format=torch.channels_last)
        self.compiled = torch.compile(self.net)
        self.weights = list(self.net.parameters())
        self.velocity = [torch.zeros_like(weight) for weight in self.weights]
        self.index = torch.zeros(n_members, batch_size, dtype=torch.long, device=images.device)
        self.rate = torch.full((), 0.1, device=images.device)
        self.graph = torch.cuda.CUDAGraph()

    def _body(self) -> None:
        x = self.images[self.index].transpose(0, 1).reshape(self.batch_size, self.n_members * 3, 32, 32)
        x = ((x.to(torch.bfloat16) - 120.0) / 64.0).contiguous(memory_format=torch.channels_last)
        with torch.autocast("cuda", torch.bfloat16, cache_enabled=False):
            logits = self.compiled(x).float().flatten(0, 1)
        loss = F.cross_entropy(logits, self.labels[self.index].flatten(), reduction="sum") / self.batch_size
        gradients = torch.autograd.grad(loss, self.weights)
        with torch.no_grad():
            torch._foreach_add_(gradients, self.weights, alpha=5e-4)
            torch._foreach_mul_(self.velocity, 0.9)
            torch._foreach_add_(self.velocity, gradients)
            torch._foreach_add_(self.weights, torch._foreach_mul(self.velocity, -self.rate))

    def ready(self) -> None:
        """Until the first step could be replayed."""
        torch.backends.cudnn.benchmark = True
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(4):
                self._body()
        torch.cuda.current_stream().wait_stream(side)
        with torch.cuda.graph(self.graph):
            self._body()
        torch.cuda.synchronize()

    def step(self) -> None:
        """One batch of every member."""
        self.index.random_(0, len(self.images))
        self.graph.replay()
