"""What makes the ResNet-18 of Table 3 memorise at ε = ∞: batch, rate, norms and optimiser, one change at a time.

    FORGETGAUGE_DATA=… python benchmarks/without_dp.py [out.json] [--epochs 20] [--device auto]

The paper's model at ε = ∞ has learnt its training labels by heart, swapped ones too (IC score 0.005), and has 0.66 on
the test set. The recipe that it states (`as stated`) does not learn by heart. A plain loop: no clipping, no noise,
batches without replacement, n = 22,727 of CIFAR-10. Processes train the variants side by side: one alone leaves most of
a GPU idle.
"""

from __future__ import annotations

import argparse
import json
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from forgetgauge.data.dataset import Points
from forgetgauge.data.loading import load_dataset
from forgetgauge.learn.device import choose_device, describe, products_in
from forgetgauge.learn.predict import accuracy_of, logits_of
from forgetgauge.models.building import build_model

N_POINTS = 22_727


@dataclass(frozen=True)
class Variant:
    """A recipe."""

    norm: str = "group"
    optimiser: str = "rmsprop"
    lr: float = 0.01
    batch_size: int = 512


STATED = Variant()
VARIANTS = {
    "as stated": STATED,
    "batches of 128": replace(STATED, batch_size=128),
    "rate 0.001": replace(STATED, lr=0.001),
    "rate 0.0001": replace(STATED, lr=0.0001),
    "batch norms": replace(STATED, norm="batch"),
    "batch norms, rate 0.001": replace(STATED, norm="batch", lr=0.001),
    "SGD with momentum": replace(STATED, optimiser="sgd"),
}


def train(variant: Variant, epochs: int, device: str) -> dict[str, float]:
    """Accuracy on its own points and on the test set."""
    place, dataset = choose_device(device), load_dataset("cifar10")
    assert dataset.test is not None
    rng = np.random.default_rng(0)
    chosen = dataset.points.subset(np.sort(rng.permutation(len(dataset.points))[:N_POINTS])).on(place)
    params = {"norm": variant.norm, "stem": "imagenet"}
    shape = tuple(chosen.whole_inputs.shape[1:])
    model = build_model("resnet18", params, shape, chosen.n_classes, seed=0).to(place).train()
    steps: torch.optim.Optimizer = torch.optim.RMSprop(model.parameters(), lr=variant.lr)
    if variant.optimiser == "sgd":
        steps = torch.optim.SGD(model.parameters(), lr=variant.lr, momentum=0.9)
    with products_in(tf32=True):
        for _ in range(epochs):
            for batch in np.array_split(rng.permutation(chosen.index), -(-N_POINTS // variant.batch_size)):
                at = torch.from_numpy(batch)
                steps.zero_grad()
                F.cross_entropy(model(chosen.inputs_at(at)), chosen.whole_labels[at]).backward()  # type: ignore[no-untyped-call]
                steps.step()
        own, new = (_accuracy(model, points) for points in (chosen, dataset.test.on(place)))
    return {"own points": own, "test set": new}


def _accuracy(model: torch.nn.Module, points: Points) -> float:
    return accuracy_of(logits_of(model, points), points.y.cpu().numpy())


def main() -> None:
    """A line for every variant."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", nargs="?", type=Path)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--device", default="auto")
    given = parser.parse_args()
    found: dict[str, dict[str, float]] = {}
    with ProcessPoolExecutor(len(VARIANTS) if given.device != "cpu" else 1, get_context("spawn")) as pool:
        jobs = {name: pool.submit(train, variant, given.epochs, given.device) for name, variant in VARIANTS.items()}
        print(
            f"{describe(choose_device(given.device))}, {given.epochs} epochs, accuracy on own points, on the test set"
        )
        for name, job in jobs.items():
            found[name] = job.result()
            print(f"{name:26} {found[name]['own points']:.3f} {found[name]['test set']:.3f}")
            sys.stdout.flush()
    if given.out is not None:
        given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
