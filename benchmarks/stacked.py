"""Training the embedded default's models as a stack, against the plain loop that trains one after another.

    python benchmarks/stacked.py [N_MODELS] [EPOCHS] [ROUNDS]

Three ways, interleaved: each round trains all models each way, so that a machine that is busy for a while is busy for
all three. The plain loop is written as a paper's repository would have it (DataLoader, model, SGD, scheduler). Prints
the median seconds with the smallest and largest, images a second summed over models, the accuracy on unseen points, and
the median over rounds of the ratio within a round; above them the number of threads and the load of the machine, on
which the ratio depends.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from forgetgauge.data.dataset import Points
from forgetgauge.data.digits import load_digits
from forgetgauge.learn.minibatch import Minibatch
from forgetgauge.learn.predict import outputs_of, utility_of
from forgetgauge.streams import Streams

N_TRAIN = 599  # |R ∪ F| of the embedded default


def plain_loop(recipe: Minibatch, points: Points, seed: int) -> nn.Module:
    """One model, the ordinary way."""
    model = recipe.build(points, seed).train()
    order = torch.Generator().manual_seed(seed)
    loader = DataLoader(TensorDataset(points.x, points.y), batch_size=recipe.batch_size, shuffle=True, generator=order)
    optimiser = torch.optim.SGD(model.parameters(), lr=recipe.lr, momentum=recipe.momentum)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, recipe.epochs * len(loader))
    for _ in range(recipe.epochs):
        for x, y in loader:
            optimiser.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimiser.step()
            scheduler.step()
    return model.eval()


def spread(values: list[float], form: str) -> str:
    """The median, with the smallest and the largest."""
    return f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


def main() -> None:
    """Measure and print."""
    given = [int(word) for word in sys.argv[1:]]
    n_models, epochs, rounds = [*given, *(32, 10, 5)[len(given) :]]
    recipe = Minibatch(epochs=epochs)
    dataset = load_digits()
    orders = [np.random.default_rng(i).permutation(len(dataset.points)) for i in range(n_models)]
    sets = [dataset.points.subset(order[:N_TRAIN]) for order in orders]
    unseen = [dataset.points.subset(order[N_TRAIN:]) for order in orders]
    if recipe.engine(sets).name != "vmap":
        raise SystemExit("these models are not stacked by vmap")

    warm_up = Minibatch(epochs=1)
    plain_loop(warm_up, sets[0], 0)
    warm_up.fit(sets[0], Streams("warm-up"))
    warm_up.fit_many(sets, [Streams(f"warm-up {i}") for i in range(n_models)])

    ways: dict[str, Callable[[], list[nn.Module]]] = {
        "plain loop": lambda: [plain_loop(recipe, points, i) for i, points in enumerate(sets)],
        "our loop, one by one": lambda: [recipe.fit(points, Streams(str(i))) for i, points in enumerate(sets)],
        "our stack": lambda: recipe.fit_many(sets, [Streams(str(i)) for i in range(n_models)]),
    }
    load = os.getloadavg()[0]
    print(
        f"{n_models} models, {epochs} epochs of {N_TRAIN} images, {rounds} rounds; {torch.get_num_threads()} threads, "
        f"{os.cpu_count()} cores, load average before the first round {load:.1f}"
    )
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    accuracy: dict[str, float] = {}
    for number in range(rounds):
        for name, train in ways.items():
            begin = time.perf_counter()
            models = train()
            seconds[name].append(time.perf_counter() - begin)
            right = [utility_of(outputs_of(m, p), p) for m, p in zip(models, unseen, strict=True)]
            accuracy[name] = float(np.mean(right))
        took = ", ".join(f"{name} {of_way[-1]:.1f} s" for name, of_way in seconds.items())
        print(f"round {number + 1}: {took}; load average {os.getloadavg()[0]:.1f}", flush=True)

    print("\n| | seconds | images/s, summed | accuracy on unseen points |\n|---|---|---|---|")
    for name, of_way in seconds.items():
        rate = n_models * epochs * N_TRAIN / statistics.median(of_way)
        print(f"| {name} | {spread(of_way, '.1f')} | {rate:,.0f} | {accuracy[name]:.3f} |")
    for name in ("plain loop", "our loop, one by one"):
        ratios = [other / ours for other, ours in zip(seconds[name], seconds["our stack"], strict=True)]
        print(f"stack against {name}: {spread(ratios, '.1f')} times as fast")


if __name__ == "__main__":
    from usage import show_help

    show_help(__doc__)
    main()
