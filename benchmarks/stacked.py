"""Training 32 of the embedded default's models as a stack, against the plain loop that trains one after another.

    python benchmarks/stacked.py [N_MODELS] [EPOCHS]

Both on all cores, in one run, the plain loop written as a paper's repository would have it (DataLoader, model, SGD,
scheduler). Prints seconds, images a second summed over models, the ratio, and the accuracy both reach on unseen points.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from forgetgauge.data.dataset import Points
from forgetgauge.data.digits import load_digits
from forgetgauge.learn.minibatch import Minibatch
from forgetgauge.learn.predict import accuracy_of, logits_of
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


def main() -> None:
    """Measure and print."""
    n_models = int(sys.argv[1]) if len(sys.argv) > 1 else 32
    recipe = Minibatch(epochs=int(sys.argv[2]) if len(sys.argv) > 2 else Minibatch().epochs)
    dataset = load_digits()
    orders = [np.random.default_rng(i).permutation(len(dataset.points)) for i in range(n_models)]
    sets = [dataset.points.subset(order[:N_TRAIN]) for order in orders]
    unseen = [dataset.points.subset(order[N_TRAIN:]) for order in orders]
    assert recipe.engine(sets).name == "vmap"

    warm_up = Minibatch(epochs=1)
    warm_up.fit(sets[0], Streams("warm-up"))
    warm_up.fit_many(sets, [Streams(f"warm-up {i}") for i in range(n_models)])

    def alone() -> list[nn.Module]:
        return [recipe.fit(points, Streams(str(i))) for i, points in enumerate(sets)]

    def plain() -> list[nn.Module]:
        return [plain_loop(recipe, points, i) for i, points in enumerate(sets)]

    def stacked() -> list[nn.Module]:
        return recipe.fit_many(sets, [Streams(str(i)) for i in range(n_models)])

    seconds = {}
    print(f"{n_models} models, {recipe.epochs} epochs of {N_TRAIN} images, {torch.get_num_threads()} threads")
    for name, train in (("plain loop", plain), ("our loop, one by one", alone), ("our stack", stacked)):
        begin = time.perf_counter()
        models = train()
        seconds[name] = time.perf_counter() - begin
        accuracy = np.mean([accuracy_of(logits_of(m, p), p.y.numpy()) for m, p in zip(models, unseen, strict=True)])
        rate = n_models * recipe.epochs * N_TRAIN / seconds[name]
        print(f"{name:22s} {seconds[name]:7.2f} s  {rate:9,.0f} images/s  accuracy {accuracy:.3f}", flush=True)
    print(f"stack against the plain loop: {seconds['plain loop'] / seconds['our stack']:.1f}×")
    print(f"stack against our own loop:   {seconds['our loop, one by one'] / seconds['our stack']:.1f}×")


if __name__ == "__main__":
    main()
