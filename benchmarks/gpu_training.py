"""Training 16 ResNet-20s on a GPU: ours, one network of grouped convolutions, and a paper repository's plain loop.

    python benchmarks/gpu_training.py speed [N_MODELS ...]  images a second, summed over models, three ways in one run
    python benchmarks/gpu_training.py profile [N_MODELS]    where a step's time goes, kernel by kernel
    python benchmarks/gpu_training.py accuracy [EPOCHS]     the same recipe both ways on CIFAR-10, 16 models each

The plain loop: DataLoader with four workers, eager float32 (TF32 as torch has it by default), batch 128, one model
after another. `speed` times it over 300 steps after 50 (its rate does not change); the other two until they are ready
(compiling and capturing their graphs, in a process whose caches are empty the first time) and over the steps behind
that; from both follows what a whole training takes, 200 epochs of 22,727 images. Data are random bytes of CIFAR-10's
size. In `accuracy` only the accuracy counts: to save time the plain loop's models are trained in eight processes at
once, from images that are on the GPU already.
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
from grouped_stack import GroupedStack
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, TensorDataset

from forgetgauge.data.dataset import Points, Scaling
from forgetgauge.data.loading import load_dataset
from forgetgauge.learn.descent import batches_per_epoch
from forgetgauge.learn.minibatch import Minibatch
from forgetgauge.learn.predict import outputs_of_many, utility_of
from forgetgauge.plan.runfile import PRESETS
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


def random_points() -> Points:
    """Bytes of CIFAR-10's size."""
    rng = np.random.default_rng(0)
    images = torch.from_numpy(rng.integers(0, 256, (N_ALL, 3, 32, 32), dtype=np.uint8))
    return Points.of(images, torch.from_numpy(rng.integers(0, 10, N_ALL)), Scaling((0.5,) * 3, (0.25,) * 3))


def sets_of(points: Points, n_models: int) -> tuple[list[Points], list[Streams]]:
    """A training set of the paper's size for every model."""
    orders = [np.random.default_rng(i).permutation(N_ALL)[:N_TRAIN] for i in range(n_models)]
    return [points.subset(order) for order in orders], [Streams(str(i)) for i in range(n_models)]


def seconds(work: Callable[[], object]) -> float:
    """Until the GPU has finished."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def ours(n_models: int, points: Points) -> tuple[float, float]:
    """(seconds until ready, seconds of an epoch): from trainings of one and of five epochs."""
    sets, streams = sets_of(points, n_models)
    one = seconds(lambda: recipe("cifar-resnet", epochs=1).fit_many(sets, streams))
    again = seconds(lambda: recipe("cifar-resnet", epochs=1).fit_many(sets, streams))
    five = seconds(lambda: recipe("cifar-resnet", epochs=5).fit_many(sets, streams))
    epoch = (five - again) / 4
    return one - epoch, epoch


def grouped(n_models: int, points: Points) -> tuple[float, float]:
    """The same of the grouped stack, from 300 steps."""
    stack: list[GroupedStack] = []
    whole = points.whole_inputs, points.whole_labels

    def prepare() -> None:
        stack.append(GroupedStack(n_models, *whole))
        stack[0].ready()

    ready = seconds(prepare)
    for _ in range(20):
        stack[0].step()
    step = seconds(lambda: [stack[0].step() for _ in range(300)]) / 300
    return ready, step * batches_per_epoch(N_TRAIN, 128)


def speed(numbers: list[int]) -> None:
    """The three ways, and what a whole training takes of the two that train many."""
    points = random_points()
    one = points.subset(np.random.default_rng(0).permutation(N_ALL)[:N_TRAIN])
    _, plain = plain_loop(recipe("cifar-resnet", epochs=4), one, 0, n_steps=350, skip=50)
    print(f"plain loop: {plain:,.0f} images/s", flush=True)
    here = points.on(DEVICE)
    for n_models in numbers:
        whole = {}
        for name, way in (("grouped stack", grouped), ("ours", ours)):
            torch.cuda.reset_peak_memory_stats()
            ready, epoch = way(n_models, here)
            rate, whole[name] = N_TRAIN * n_models / epoch, ready + 200 * epoch
            peak = torch.cuda.max_memory_allocated() / 2**30
            print(
                f"{n_models} models, {name}: ready in {ready:.1f} s, then {rate:,.0f} images/s, {rate / plain:.1f} "
                f"times the plain loop; 200 epochs in {whole[name]:.0f} s; peak memory {peak:.1f} GiB",
                flush=True,
            )
        print(
            f"{n_models} models, a whole training: {whole['grouped stack'] / whole['ours']:.2f} times the grouped stack"
        )


def profile(n_models: int) -> None:
    """Milliseconds of a step on the GPU, by kernel."""
    sets, streams = sets_of(random_points().on(DEVICE), n_models)
    few = [part.subset(part.index[:8192]) for part in sets]
    recipe("cifar-resnet", epochs=1).fit_many(few, streams)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA], acc_events=True) as seen:
        recipe("cifar-resnet", epochs=1).fit_many(few, streams)
        torch.cuda.synchronize()
    n_steps = batches_per_epoch(8192, 128)
    rows = sorted(seen.key_averages(), key=lambda event: -event.device_time_total)
    total = sum(event.device_time_total for event in rows)
    print("| kernel | launches a step | ms a step | share |\n|---|---|---|---|")
    for event in rows[:24]:
        ms = event.device_time_total / n_steps / 1000
        print(f"| {event.key[:100]} | {event.count / n_steps:.1f} | {ms:.3f} | {event.device_time_total / total:.0%} |")
    print(f"| all | | {total / n_steps / 1000:.3f} | |")


def plain_accuracy(which: int, epochs: int) -> float:
    """A model of the plain loop, on the official test set."""
    dataset = load_dataset("cifar10")
    part = np.random.default_rng(which).permutation(N_ALL)[:N_TRAIN]
    model, _ = plain_loop(recipe("fast", epochs=epochs), dataset.points.subset(part), which, resident_loader)
    assert dataset.test is not None
    test = dataset.test.on(DEVICE)
    return utility_of(outputs_of_many([model], [test])[0], test)


def accuracy(epochs: int, n_models: int = 16) -> None:
    """Mean and deviation over models, both ways, on the same subsets."""
    with ProcessPoolExecutor(8, mp_context=get_context("spawn")) as pool:
        plain = np.array(list(pool.map(plain_accuracy, range(n_models), [epochs] * n_models)))
    dataset = load_dataset("cifar10")
    assert dataset.test is not None
    points, test = dataset.points.on(DEVICE), dataset.test.on(DEVICE)
    sets = [points.subset(np.random.default_rng(i).permutation(N_ALL)[:N_TRAIN]) for i in range(n_models)]
    models = recipe("fast", epochs=epochs).fit_many(sets, [Streams(f"accuracy {i}") for i in range(n_models)])
    ours = np.array([utility_of(z, test) for z in outputs_of_many(models, [test] * n_models)])
    error = np.sqrt(plain.var(ddof=1) / n_models + ours.var(ddof=1) / n_models)
    print(
        f"test accuracy over {n_models} models, {epochs} epochs: plain {plain.mean():.4f} ± {plain.std(ddof=1):.4f}, "
        f"ours {ours.mean():.4f} ± {ours.std(ddof=1):.4f}; "
        f"difference {ours.mean() - plain.mean():+.4f}, standard error {error:.4f}"
    )


if __name__ == "__main__":
    from usage import show_help

    show_help(__doc__)
    numbers = [int(given) for given in sys.argv[2:]]
    if sys.argv[1:2] == ["accuracy"]:
        accuracy(*numbers or [20])
    elif sys.argv[1:2] == ["profile"]:
        profile(*numbers or [16])
    else:
        speed(numbers or [16, 64])
