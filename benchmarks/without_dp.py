"""What makes the ResNet-18 of Table 3 memorise at ε = ∞: batch, rate, norms, optimiser, one or two changes at once.

    FORGETGAUGE_DATA=… python benchmarks/without_dp.py [out.json] [--epochs 20] [--device auto]

The paper's model at ε = ∞ has learnt its training labels by heart, swapped ones too (IC score 0.005), and has 0.66 on
the test set. The recipe of the other columns (`as stated`; its batches and its stem are ours) does not learn by heart.
Ordinary training: no clipping, no noise, batches without replacement, n = 22,727 of CIFAR-10. Processes train the
variants side by side: one alone leaves most of a GPU idle.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from torch import nn

from forgetgauge.data.dataset import Points
from forgetgauge.data.loading import load_dataset
from forgetgauge.learn.descent import Optimiser
from forgetgauge.learn.device import choose_device, describe
from forgetgauge.learn.minibatch import Minibatch
from forgetgauge.learn.predict import outputs_of, utility_of
from forgetgauge.streams import Streams

N_POINTS = 22_727


@dataclass(frozen=True)
class Variant:
    """A recipe."""

    norm: str = "group"
    optimiser: Optimiser = "rmsprop"
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
    chosen = np.random.default_rng(0).permutation(len(dataset.points))[:N_POINTS]
    points = dataset.points.subset(np.sort(chosen)).on(place)
    learner = Minibatch(
        model="resnet18",
        model_params={"norm": variant.norm, "stem": "imagenet"},
        optimiser=variant.optimiser,
        lr=variant.lr,
        momentum=0.9 if variant.optimiser == "sgd" else 0.0,
        schedule="constant",
        epochs=epochs,
        batch_size=variant.batch_size,
        precision="tf32",
    )
    model = learner.fit(points, Streams("without DP"))
    return {"own points": _accuracy(model, points), "test set": _accuracy(model, dataset.test.on(place))}


def _accuracy(model: nn.Module, points: Points) -> float:
    return utility_of(outputs_of(model, points), points)


def main() -> None:
    """A line for every variant."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", nargs="?", type=Path)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--device", default="auto")
    given = parser.parse_args()
    found: dict[str, dict[str, float]] = {}
    place, began = choose_device(given.device), time.perf_counter()
    at_once = 1 if place.type == "cpu" else len(VARIANTS)
    with ProcessPoolExecutor(at_once, get_context("spawn")) as pool:
        jobs = {name: pool.submit(train, variant, given.epochs, given.device) for name, variant in VARIANTS.items()}
        print(
            f"{describe(choose_device(given.device))}, {given.epochs} epochs, accuracy on own points, on the test set"
        )
        for name, job in jobs.items():
            found[name] = job.result()
            print(f"{name:26} {found[name]['own points']:.3f} {found[name]['test set']:.3f}")
            sys.stdout.flush()
    if given.out is not None:
        took = {"seconds": round(time.perf_counter() - began, 1), "device": describe(place)}
        given.out.write_text(json.dumps({**took, **found}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
