"""The strengths of the paper's eight methods, in one place; the paper gives none of them.

A strength may be chosen by accuracy on the shadow half alone, never by Q. `Family.tuned_on` says
where that was done. Beside the chosen values stand those that `forgetgauge reproduce strengths` shows Q along. Two
parameters cannot stay at their published values:

- SSD's selection weight w (where I_F > w I_D). 10 is published for importances by batches (the method's defaults). The
  importances here are per sample, where I_D ≥ (|F| / |R ∪ F|) I_F, which is α I_F: a weight of 1/α or more selects
  nothing. So the weight given here is for α = 0.1, and at another α it is w^(ln α / ln 0.1): always between 1 and 1/α.
- Fisher's labels: one sampled label a point is unbiased and as many times cheaper as there are classes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Methods = dict[str, dict[str, Any]]

METHODS = ("retrain", "none", "neg-grad", "retrain-final", "ft-final", "fisher", "salun", "ssd")


@dataclass(frozen=True)
class Grid:
    """Values of one method's strength to show Q along."""

    strength: str
    """The name of the parameter."""
    values: tuple[float, ...]
    """Weakest first."""


@dataclass(frozen=True)
class Family:
    """Networks whose methods have the same strengths in every table."""

    tuned_on: str
    """In which game `chosen` was chosen, on the shadow half; empty where these are defaults. Tables say so."""
    chosen: Methods
    """Method -> what differs from its defaults; the strength of every grid is named, even at its default."""
    grids: Mapping[str, Grid] = field(default_factory=dict)


# CIFAR and MNIST ResNets; results/tuning-cifar10 has the search
_RESNET = Family(
    tuned_on="CIFAR-10, ResNet-20, α = 0.1, 200 epochs",
    chosen={
        "neg-grad": {"lr": 6e-3},
        "fisher": {"alpha": 3e-8, "labels": "sampled"},
        "salun": {"lr": 1e-4},
        "ssd": {"importance": "per-sample", "alpha": 2.0},
    },
    grids={
        "neg-grad": Grid("lr", (1.5e-3, 6e-3, 9e-3, 0.012)),
        "fisher": Grid("alpha", (1e-8, 1e-7, 3e-7, 1e-6)),
        "salun": Grid("lr", (1e-4, 1e-3, 0.013)),
        "ssd": Grid("alpha", (5.0, 3.0, 2.0, 1.5)),
    },
)

FAMILIES: dict[str, Family] = {
    "resnet": _RESNET,
    # 20 epochs: from 1e-4 up NegGrad ruins every model (results/tuning-cifar10-short).
    "resnet-short": Family(
        tuned_on=f"{_RESNET.tuned_on}; NegGrad’s for 20 epochs, on the models of Table 2",
        chosen={**_RESNET.chosen, "neg-grad": {"lr": 1e-6}},
        grids={**_RESNET.grids, "neg-grad": Grid("lr", (1e-7, 1e-6, 1e-5, 3e-5))},
    ),
    "bert": Family(
        tuned_on="", chosen={"fisher": {"labels": "sampled"}, "ssd": {"importance": "per-sample", "alpha": 5.0}}
    ),
    # ResNet-18 with group norm, DP-SGD; results/tuning-dp-cifar10 has the search. One value for both ends of Table 3.
    "dp": Family(
        tuned_on="CIFAR-10, ResNet-18, α = 0.1, DP-SGD at ε = 50 and ∞",
        chosen={
            "neg-grad": {"lr": 1e-6},
            "fisher": {"alpha": 1e-8, "labels": "sampled"},
            "salun": {"lr": 0.1},
            "ssd": {"importance": "per-sample", "alpha": 8.0},
        },
    ),
    # The embedded run's (plan/digits.toml), with few epochs: smoke is about the machinery.
    "digits": Family(
        tuned_on="the embedded run",
        chosen={
            "neg-grad": {"lr": 0.005, "epochs": 1},
            "retrain-final": {"epochs": 2},
            "ft-final": {"epochs": 2},
            "fisher": {"alpha": 5e-7, "labels": "sampled"},
            "salun": {"lr": 2e-4, "epochs": 1},
            "ssd": {"importance": "per-sample", "alpha": 5.0},
        },
        grids={
            "neg-grad": Grid("lr", (0.001, 0.002, 0.005, 0.02)),
            "fisher": Grid("alpha", (1e-7, 5e-7, 2e-6, 1e-5)),
            "salun": Grid("lr", (1e-4, 2e-4, 1e-3, 5e-3)),
            "ssd": Grid("alpha", (5.0, 3.0, 1.7, 1.5)),
        },
    ),
}


CLIP_NORMS: dict[str, dict[float, float]] = {
    "digits": {50.0: 0.1, 150.0: 1.2, 600.0: 10.0},
    "dp": {},
}
"""Family -> ε -> the clip norm of DP-SGD with the highest accuracy on shadow points, by `benchmarks/clip_norms.py`. The
paper tunes it “individually” and gives no value."""

TUTORIAL_CLIP_NORM = 1.2
"""Of opacus' CIFAR-10 tutorial, for what was not chosen."""


def clip_norm(family: str, epsilon: float) -> float:
    """The clip norm of DP-SGD at a budget ε."""
    return CLIP_NORMS[family].get(epsilon, TUTORIAL_CLIP_NORM)


def clip_remark(family: str) -> str:
    """What a table of models of DP-SGD must say of their clip norms."""
    chosen = CLIP_NORMS[family]
    if not chosen:
        return (
            f"The clip norm is {TUTORIAL_CLIP_NORM} at every ε, that of opacus’ tutorial; "
            "the paper tunes it for each ε and gives no value."
        )
    each = ", ".join(f"{value:g} at ε = {epsilon:g}" for epsilon, value in chosen.items())
    return f"The clip norm was chosen for each ε by accuracy on shadow points, as the paper tunes its own: {each}."


def unlearners(family: str, alpha: float) -> Methods:
    """The eight methods with their strengths, as the run file's `[unlearners]`, at an unlearning portion α."""
    chosen = {name: dict(FAMILIES[family].chosen.get(name, {})) for name in METHODS}
    chosen["ssd"]["alpha"] = ssd_weight(chosen["ssd"]["alpha"], alpha)
    return chosen


def along(family: str) -> dict[str, Grid]:
    """Method -> the values of its strength, weakest first, that of the tables among them."""
    return {name: _with(grid, chosen_strength(family, name)) for name, grid in FAMILIES[family].grids.items()}


def chosen_strength(family: str, method: str) -> float:
    """What the tables have, at α = 0.1."""
    value: float = FAMILIES[family].chosen[method][FAMILIES[family].grids[method].strength]
    return value


def variants(family: str) -> Methods:
    """Every value of every grid as an entry of `[unlearners]`; that of the tables is the same job as theirs."""
    return {
        variant_name(method, value): {**FAMILIES[family].chosen[method], grid.strength: value, "method": method}
        for method, grid in along(family).items()
        for value in grid.values
    }


def variant_name(method: str, value: float) -> str:
    """The id of a method at one strength: `ssd-5`, `fisher-1e-09`."""
    return f"{method}-{value:g}"


def _with(grid: Grid, value: float) -> Grid:
    falling = grid.values[0] > grid.values[-1]
    return Grid(grid.strength, tuple(sorted({*grid.values, value}, reverse=falling)))


def ssd_weight(at_one_tenth: float, alpha: float) -> float:
    """The selection weight at α, as far between 1 and 1/α on a logarithmic scale as it is at α = 0.1."""
    return at_one_tenth if alpha == 0.1 else round(at_one_tenth ** (math.log(alpha) / math.log(0.1)), 4)


def remark(family: str) -> str:
    """What a table must say of its strengths."""
    where = FAMILIES[family].tuned_on
    chosen = f"were chosen for {where}" if where else "are defaults, untuned"
    return f"Strengths of the methods {chosen}."
