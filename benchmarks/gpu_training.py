"""Training 16 ResNet-20s on a GPU: ours against the plain loop that a paper's repository would have.

    python benchmarks/gpu_training.py speed [N_MODELS]      images a second, summed over models, in one run
    python benchmarks/gpu_training.py accuracy [EPOCHS]     the same recipe both ways on CIFAR-10, 16 models each

The plain loop: DataLoader with four workers, eager float32 (TF32 as torch has it by default), batch 128, one model
after another. `speed` times it over 300 steps after 50 (its rate does not change), ours over two whole epochs, set-up
and capture of the graph included; data are random bytes of CIFAR-10's size. In `accuracy` only the accuracy counts: to
save time the plain loop's models are trained in eight processes at once, from images that are on the GPU already.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import torch
import torch.nn.functional as F
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

from forgetgauge.data.dataset import Points, Scaling
from forgetgauge.data.loading import load_dataset
from forgetgauge.learn.minibatch import Minibatch
from forgetgauge.learn.predict import accuracy_of, logits_of_many
from forgetgauge.plan.presets import PRESETS
from forgetgauge.streams import Streams

N_TRAIN, N_ALL = 22_727, 50_000
DEVICE = torch.device("cuda", 0)


def recipe(preset: str, **changed: object) -> Minibatch:
    """A preset as a learner."""
    given = {**PRESETS[preset], **changed}
    return Minibatch(**{**given, "milestones": tuple(given.get("milestones", ()))})  # type: ignore[arg-type]


def ordinary_loader(points: Points, how: Minibatch, seed: int) -> DataLoader[tuple[torch.Tensor, ...]]:
    """Four workers that put batches together, image by image."""
    return DataLoader(
        TensorDataset(points.x, points.y),
        how.batch_size,
        shuffle=True,
        num_workers=4,
        pin_memory=True,
        persistent_workers=True,
        generator=torch.Generator().manual_seed(seed),
    )


def resident_loader(points: Points, how: Minibatch, seed: int) -> DataLoader[tuple[torch.Tensor, ...]]:
    """The same batches from images on the GPU."""
    data = TensorDataset(points.x.to(DEVICE), points.y.to(DEVICE))
    order = RandomSampler(data, generator=torch.Generator().manual_seed(seed))
    return DataLoader(data, batch_size=None, sampler=BatchSampler(order, how.batch_size, drop_last=False))


def plain_loop(
    how: Minibatch,
    points: Points,
    seed: int,
    make_loader: Callable[[Points, Minibatch, int], DataLoader[tuple[torch.Tensor, ...]]] = ordinary_loader,
    n_steps: int | None = None,
    skip: int = 0,
) -> tuple[torch.nn.Module, float]:
    """One model the ordinary way, and images a second after the first `skip` steps; all epochs, or `n_steps` steps."""
    model = how.build(points, seed).to(DEVICE).train()
    loader = make_loader(points, how, seed)
    optimiser = torch.optim.SGD(model.parameters(), lr=how.lr, momentum=how.momentum, weight_decay=how.weight_decay)
    total, step, start, seen = how.epochs * len(loader), 0, 0.0, 0
    for _ in range(how.epochs):
        for x, y in loader:
            if step == skip:
                torch.cuda.synchronize()
                start = time.perf_counter()
            for group in optimiser.param_groups:
                group["lr"] = how.steps.rate(step, total)
            optimiser.zero_grad()
            F.cross_entropy(model(x.to(DEVICE, non_blocking=True)), y.to(DEVICE, non_blocking=True)).backward()
            optimiser.step()
            step += 1
            seen += len(x) * (step > skip)
            if step == n_steps:
                torch.cuda.synchronize()
                return model, seen / (time.perf_counter() - start)
    torch.cuda.synchronize()
    return model.eval(), seen / (time.perf_counter() - start)


def speed(n_models: int) -> None:
    """Both rates and their ratio."""
    rng = np.random.default_rng(0)
    images = torch.from_numpy(rng.integers(0, 256, (N_ALL, 3, 32, 32), dtype=np.uint8))
    points = Points.of(images, torch.from_numpy(rng.integers(0, 10, N_ALL)), Scaling((0.5,) * 3, (0.25,) * 3))
    parts = [rng.permutation(N_ALL)[:N_TRAIN] for _ in range(n_models)]
    how = recipe("cifar-resnet", epochs=2)
    _, plain = plain_loop(recipe("cifar-resnet", epochs=4), points.subset(parts[0]), 0, n_steps=350, skip=50)
    here = points.on(DEVICE)
    sets, streams = [here.subset(part) for part in parts], [Streams(str(i)) for i in range(n_models)]
    start = time.perf_counter()
    recipe("cifar-resnet", epochs=1).fit_many([p.subset(p.index[:4000]) for p in sets], streams)
    torch.cuda.synchronize()
    print(f"kernels compiled in {time.perf_counter() - start:.1f} s (once per machine)")
    start = time.perf_counter()
    how.fit_many(sets, streams)
    torch.cuda.synchronize()
    ours = how.epochs * N_TRAIN * n_models / (time.perf_counter() - start)
    print(
        f"plain loop {plain:,.0f} images/s; ours, {n_models} models together, {ours:,.0f} images/s: "
        f"{ours / plain:.1f} times; peak memory {torch.cuda.max_memory_allocated() / 2**30:.1f} GiB"
    )


def plain_accuracy(which: int, epochs: int) -> float:
    """A model of the plain loop, on the official test set."""
    dataset = load_dataset("cifar10")
    part = np.random.default_rng(which).permutation(N_ALL)[:N_TRAIN]
    model, _ = plain_loop(recipe("fast", epochs=epochs), dataset.points.subset(part), which, resident_loader)
    assert dataset.test is not None
    test = dataset.test.on(DEVICE)
    return accuracy_of(logits_of_many([model], [test])[0], test.y.cpu().numpy())


def accuracy(epochs: int, n_models: int = 16) -> None:
    """Mean and deviation over models, both ways, on the same subsets."""
    with ProcessPoolExecutor(8, mp_context=get_context("spawn")) as pool:
        plain = np.array(list(pool.map(plain_accuracy, range(n_models), [epochs] * n_models)))
    dataset = load_dataset("cifar10")
    assert dataset.test is not None
    points, test = dataset.points.on(DEVICE), dataset.test.on(DEVICE)
    sets = [points.subset(np.random.default_rng(i).permutation(N_ALL)[:N_TRAIN]) for i in range(n_models)]
    models = recipe("fast", epochs=epochs).fit_many(sets, [Streams(f"accuracy {i}") for i in range(n_models)])
    ours = np.array([accuracy_of(z, test.y.cpu().numpy()) for z in logits_of_many(models, [test] * n_models)])
    error = np.sqrt(plain.var(ddof=1) / n_models + ours.var(ddof=1) / n_models)
    print(
        f"test accuracy over {n_models} models, {epochs} epochs: plain {plain.mean():.4f} ± {plain.std(ddof=1):.4f}, "
        f"ours {ours.mean():.4f} ± {ours.std(ddof=1):.4f}; "
        f"difference {ours.mean() - plain.mean():+.4f}, standard error {error:.4f}"
    )


if __name__ == "__main__":
    number = int(sys.argv[2]) if len(sys.argv) > 2 else None
    if sys.argv[1:2] == ["accuracy"]:
        accuracy(number or 20)
    else:
        speed(number or 16)
