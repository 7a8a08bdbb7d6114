"""What many convolutional networks say of many images, in float32: ways to ask them, on a GPU, in one run.

    python benchmarks/looks.py [MODEL] [N_MODELS] [N_IMAGES]    resnet20, 10 and 10,240 without them

A run asks every model about thousands of points, which for small models takes longer than to unlearn them. Each way is
timed when it is first used, compiling included, and then as the better of two: images a second, summed over models, and
how far its logits are at most from those of the first way. All compute in float32 (or, by kernels, in three products of
TF32, which come to within 1e-6 of it) but the last, in plain TF32. Images are noise of CIFAR-10's size.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from unittest.mock import patch

import torch
from torch import Tensor, nn

from forgetgauge import plugins
from forgetgauge.learn.device import products_in
from forgetgauge.learn.stacked import convolution
from forgetgauge.learn.stacked.traced import TracedStack

BATCH = 512


def models_of(name: str, n_models: int, device: torch.device) -> list[nn.Module]:
    """Networks whose batch norms have statistics that no training begins with."""
    torch.manual_seed(0)
    models = [plugins.models.load(name)((3, 32, 32), 10).to(device).eval() for _ in range(n_models)]
    for module in (module for model in models for module in model.modules()):
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.2)
            module.running_var.uniform_(0.5, 2)
    return models


def in_a_stack(models: list[nn.Module], x: Tensor, looks_at: int) -> Tensor:
    """All models at once, as `learn/predict.py` asks them."""
    stack = TracedStack(models, "float32", looks_at=looks_at)
    parts = [stack.forward(part.expand(len(models), *part.shape))[0] for part in torch.split(x, BATCH)]
    return torch.cat(parts, dim=1)


@torch.no_grad()
def one_by_one(models: list[nn.Module], x: Tensor) -> Tensor:
    """By torch's own convolutions."""
    return torch.stack([torch.cat([model(part) for part in torch.split(x, 2 * BATCH)]) for model in models])


def seconds(way: Callable[[], Tensor], device: torch.device) -> tuple[float, Tensor]:
    """(How long it took, what it gave)."""
    begin = time.perf_counter()
    made = way()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - begin, made


def main() -> None:
    """Time every way."""
    name, n_models, n_images = [*sys.argv[1:4], *["resnet20", "10", "10240"][len(sys.argv) - 1 :]]
    k, n = int(n_models), int(n_images)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    models, x = models_of(name, k, device), torch.randn(n, 3, 32, 32, device=device)

    def in_tf32() -> Tensor:
        with products_in(tf32=True):
            return one_by_one(models, x)

    ways: dict[str, Callable[[], Tensor]] = {
        "in a stack, products with patches": lambda: in_a_stack(models, x, 0),
        "in a stack, by kernels": lambda: in_a_stack(models, x, n),
        "one by one": lambda: one_by_one(models, x),
        "one by one, TF32": in_tf32,
    }
    print(f"{k} × {name}, {n} images each, on {device}\n")
    print("| way | first, s | then, s | images/s | logits differ by |\n|---|---|---|---|---|")
    wanted: Tensor | None = None
    with patch.object(convolution, "MANY", 1), products_in(tf32=False):
        for way, ask in ways.items():
            first, made = seconds(ask, device)
            then = min(seconds(ask, device)[0] for _ in range(2))
            wanted = made if wanted is None else wanted
            off = float((made - wanted).abs().max())
            print(f"| {way} | {first:.2f} | {then:.3f} | {k * n / then:,.0f} | {off:.1e} |", flush=True)


if __name__ == "__main__":
    from usage import show_help

    show_help(__doc__)
    main()
