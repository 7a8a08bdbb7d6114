"""Training DP-SGD models of one ε side by side, against opacus' own loop, one model after another.

    python benchmarks/dp.py [--models 8] [--steps 20] [--batch 64] [--device auto]

On a CPU: the small CNN with group norm on digits, one thread. On a GPU: the paper's ResNet-18 on images of CIFAR-10's
size (random ones: speed does not depend on what they show), n = 22,727, batch 512 in parts of 128. All get the same
Poisson batches. Prints images a second, the ratio of the two, how far their weights are apart after three steps of SGD
with the same noise, and what else might help: opacus' hooks on CUDA streams, its ghost clipping (two backward passes),
functorch's per-example gradients, and our own engine with one model at a time.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from forgetgauge.data.dataset import Points
from forgetgauge.data.digits import load_digits
from forgetgauge.learn.device import choose_device, describe
from forgetgauge.learn.dp_sgd import Budget, DpSgd, poisson_batches
from forgetgauge.learn.stacked.engines import on_streams
from forgetgauge.streams import Streams


def setting(device: torch.device, batch: int | None, physical: int | None) -> tuple[DpSgd, Points, int]:
    """(recipe, all points, points of one model)."""
    if device.type == "cpu":
        recipe = DpSgd(
            model="small-cnn", model_params={"norm": "group"}, batch_size=batch or 64, clip_norm=1.0, target_epsilon=8.0
        )
        return recipe, load_digits().points, 599
    generator = torch.Generator().manual_seed(0)
    images = torch.randn(50_000, 3, 32, 32, generator=generator)
    labels = torch.randint(0, 10, (50_000,), generator=generator)
    recipe = DpSgd(batch_size=batch or 512, physical_batch_size=physical or 128)
    return recipe, Points.of(images, labels).on(device), 22_727


WARM_UP = 2
"""Steps that are not counted. Nor is building the models: a second of a whole training, a third of twenty steps."""


class Shortened(DpSgd):
    """The recipe for so many steps, its noise that of the whole training."""

    n_steps = 0

    def budget(self, n_points: int) -> Budget:
        """As many steps as are timed."""
        return replace(super().budget(n_points), n_steps=self.n_steps)


def opacus_ghost(recipe: DpSgd, points: Points, streams: Streams) -> nn.Module:
    """opacus' fast gradient clipping: norms in a first backward pass, the clipped sum in a second."""
    from opacus.grad_sample import GradSampleModuleFastGradientClipping
    from opacus.optimizers import DPOptimizerFastGradientClipping
    from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

    budget, model = recipe.budget(len(points)), recipe.build(points, streams.seed("init")).train()
    wrapped: Any = GradSampleModuleFastGradientClipping(
        model, max_grad_norm=recipe.clip_norm, use_ghost_clipping=True, loss_reduction="mean"
    )
    optimiser = DPOptimizerFastGradientClipping(
        recipe.optimiser_of(list(model.parameters())),
        noise_multiplier=budget.noise_multiplier,
        max_grad_norm=recipe.clip_norm,
        expected_batch_size=budget.expected_batch_size,
    )
    criterion = DPLossFastGradientClipping(wrapped, optimiser, nn.CrossEntropyLoss())
    for batch in poisson_batches(points, budget, streams):
        parts = np.array_split(batch, max(1, -(-len(batch) // recipe.physical_batch_size)))
        for place, part in enumerate(parts):
            at = torch.from_numpy(part)
            optimiser.signal_skip_step(do_skip=place < len(parts) - 1)
            optimiser.zero_grad()
            criterion(wrapped(points.inputs_at(at)), points.whole_labels[at]).backward()
            optimiser.step()
    return model


def functorch(recipe: DpSgd, points: Points, streams: Streams) -> nn.Module:
    """vmap(grad), clipping and noise by hand."""
    budget, model = recipe.budget(len(points)), recipe.build(points, streams.seed("init")).train()
    parameters = {name: p.detach() for name, p in model.named_parameters()}
    optimiser = recipe.optimiser_of(list(parameters.values()))

    def loss(parameters: dict[str, torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(torch.func.functional_call(model, parameters, x[None]), y[None])

    each = torch.func.vmap(torch.func.grad(loss), (None, 0, 0))
    for batch in poisson_batches(points, budget, streams):
        total = {name: torch.zeros_like(p) for name, p in parameters.items()}
        for part in np.array_split(batch, max(1, -(-len(batch) // recipe.physical_batch_size))):
            at = torch.from_numpy(part)
            grads = each(parameters, points.inputs_at(at), points.whole_labels[at])
            norms = torch.stack([g.flatten(1).norm(dim=1) for g in grads.values()]).norm(dim=0)
            factor = (recipe.clip_norm / (norms + 1e-6)).clamp(max=1.0)
            for name, gradient in grads.items():
                total[name] += torch.tensordot(factor, gradient, 1)
        for name, parameter in parameters.items():
            noise = torch.randn_like(parameter) * budget.noise_multiplier * recipe.clip_norm
            parameter.grad = (total[name] + noise) / budget.expected_batch_size
        optimiser.step()
    return model


def timed(do: Callable[[], object], device: torch.device) -> float:
    """Seconds with the GPU's queue emptied; on a CPU those of the one thread, whoever else is at work."""
    if device.type == "cpu":
        begin = time.process_time()
        do()
        return time.process_time() - begin
    torch.cuda.synchronize(device)
    begin = time.perf_counter()
    do()
    torch.cuda.synchronize(device)
    return time.perf_counter() - begin


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=8)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--batch", type=int)
    parser.add_argument("--physical", type=int)
    parser.add_argument("--tf32", action="store_true", help="products in tf32, for both")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--only", default="", help="names of what to measure beside the two, by commas; none: all")
    asked = parser.parse_args()
    device = choose_device(asked.device)
    torch.set_num_threads(1)
    plain, points, n = setting(device, asked.batch, asked.physical)
    fields = {name: getattr(plain, name) for name in plain.__dataclass_fields__}
    recipe = Shortened(**{**fields, "precision": "tf32" if asked.tf32 else "float32"})
    sets = [points.subset(np.random.default_rng(i).permutation(len(points))[:n]) for i in range(asked.models)]
    streams = [Streams(f"bench {i}") for i in range(asked.models)]
    ways: dict[str, tuple[int, Callable[[], object]]] = {
        "opacus' hooks, one by one": (
            asked.models,
            lambda: [recipe.fit(p, s) for p, s in zip(sets, streams, strict=True)],
        ),
        "side by side": (asked.models, lambda: recipe.fit_many(sets, streams)),
        "our engine, one by one": (
            asked.models,
            lambda: [recipe.fit_many([p], [s]) for p, s in zip(sets, streams, strict=True)],
        ),
        "opacus' ghost clipping, one by one": (1, lambda: opacus_ghost(recipe, sets[0], streams[0])),
        "functorch, one by one": (1, lambda: functorch(recipe, sets[0], streams[0])),
    }
    if device.type == "cuda":
        ways["opacus' hooks, on streams"] = asked.models, lambda: on_streams(recipe.fit, sets, streams)
    kept = {name for name in ways if name.startswith(("opacus' hooks, one", "side"))}
    wanted = kept | (
        {name for name in ways for part in asked.only.split(",") if part in name} if asked.only else ways.keys()
    )
    expected = recipe.budget(n).expected_batch_size
    print(f"{describe(device)}: {asked.models} × {recipe.model}, {asked.steps} steps of about {expected} images")
    print(f"in parts of {recipe.physical_batch_size}, ε = {recipe.target_epsilon:g}, {recipe.precision}")
    try:
        check(recipe, sets, streams)  # first: a way that runs out of memory may leave none
    except torch.OutOfMemoryError:
        print("weights not compared: out of memory")
    seconds: dict[str, float] = {}
    for name, (n_models, train) in ways.items():
        if name not in wanted:
            continue
        try:
            Shortened.n_steps = WARM_UP
            timed(train, device)
            set_up = timed(train, device)  # building models, and the warm-up's steps
            Shortened.n_steps = WARM_UP + asked.steps
            if device.type == "cuda":
                torch.cuda.reset_peak_memory_stats(device)
            seconds[name] = (timed(train, device) - set_up) / n_models
        except Exception as error:  # a way that fails is told, the others go on
            print(f"{name:36s} failed: {type(error).__name__}: {str(error).splitlines()[0]}", flush=True)
            continue
        peak = f"  {torch.cuda.max_memory_allocated(device) / 2**30:5.1f} GiB" if device.type == "cuda" else ""
        a_step, rate = 1e3 * seconds[name] / asked.steps, asked.steps * expected / seconds[name]
        print(f"{name:36s} {a_step:9.2f} ms a step  {rate:10,.0f} images/s{peak}", flush=True)
    if kept <= seconds.keys():
        print(f"side by side against opacus: {seconds[min(kept)] / seconds['side by side']:.1f}×")


def check(recipe: DpSgd, sets: list[Points], streams: list[Streams]) -> None:
    """The two give the same models: plain SGD, three steps, the same batches, the same noise."""
    Shortened.n_steps = 3
    descent = replace(recipe, optimiser="sgd", lr=0.1)
    together = descent.fit_many(sets[:2], streams[:2])
    apart = [descent.fit(p, s) for p, s in zip(sets[:2], streams[:2], strict=True)]
    largest = max(
        (a - b).abs().max().item()
        for one, other in zip(together, apart, strict=True)
        for a, b in zip(one.parameters(), other.parameters(), strict=True)
    )
    if not math.isfinite(largest):
        raise SystemExit("a weight is not a number")
    print(f"largest difference of a weight after three SGD steps: {largest:.1e}")


if __name__ == "__main__":
    main()
