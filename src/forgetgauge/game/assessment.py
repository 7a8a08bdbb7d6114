"""Everything the game says about one unlearning method, from the outcomes of its swap pairs, in one call."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from forgetgauge.game.advantage import PairOutcome
from forgetgauge.game.arrays import Floats
from forgetgauge.game.bounded import advantage_floor
from forgetgauge.game.crossfit import CrossFitBasis
from forgetgauge.game.epsilon import empirical_epsilon
from forgetgauge.game.intervals import Interval, IntervalKind, signed_interval
from forgetgauge.game.permutation import NoiseFloor, noise_floors
from forgetgauge.game.supremum import estimate_supremum


@dataclass(frozen=True, eq=False)
class Assessment:
    """The signed advantages of a method's adversaries, and the Unlearning Quality they leave."""

    by_pair: Floats
    """Signed SWAP advantage of each pair and adversary, (n_pairs, n_adversaries)."""
    advantage: Floats
    """Its mean over pairs, (n_adversaries,), still signed."""
    intervals: tuple[Interval, ...]
    """One interval per adversary, each at the level asked for on its own."""
    quality: float
    """1 − the advantage of the best adversary, chosen and scored on different pairs; clipped to [0, 1]."""
    quality_plugin: float
    """The paper's 1 − max_a |Adv_a|, biased low: the best adversary chosen and scored on the same pairs."""
    crossfit_advantage: float
    """The advantage behind ``quality`` before clipping; negative where nothing but chance was chosen."""
    basis: CrossFitBasis
    """What ``quality`` was chosen and scored on: pairs, or with too few of them points of the same models."""
    quality_interval: Interval
    """For Q at the level asked for although the best adversary was looked for; ``quality_plugin`` lies in it."""
    bounded_interval: Interval
    """For Q, from independent pairs of any distribution: what a certificate is judged by."""
    advantage_floor: float
    """Adv is at least this with the confidence asked for, for pairs of any distribution; ``epsilon`` rests on it."""
    best: int
    """The index of the adversary of largest |Adv_a| over all pairs."""
    epsilon: float | None
    """The ε of any (ε, ``delta``)-certified removal is at least this, with the confidence asked for; None below five
    pairs."""
    delta: float
    """The δ that ``epsilon`` belongs to."""
    noise: NoiseFloor
    """What max_a |Adv_a| is by chance alone, and the p-value of "no different from Retrain"."""


def assess(
    outcomes: Sequence[PairOutcome],
    rng: np.random.Generator,
    *,
    level: float = 0.95,
    n_relabellings: int = 2000,
    delta: float = 1e-5,
    interval: IntervalKind = "student",
) -> Assessment:
    """Quality, advantages, intervals, ε and noise floor of one method; deterministic given ``rng``."""
    return assess_all([outcomes], rng, level=level, n_relabellings=n_relabellings, delta=delta, interval=interval)[0]


def assess_all(
    methods: Sequence[Sequence[PairOutcome]],
    rng: np.random.Generator,
    *,
    level: float = 0.95,
    n_relabellings: int = 2000,
    delta: float = 1e-5,
    interval: IntervalKind = "student",
) -> list[Assessment]:
    """Several methods, each as ``assess`` has it with an equal generator, in less time: relabellings are shared."""
    noises = noise_floors(methods, rng, n_relabellings)
    return [_assessed(outcomes, noise, level, delta, interval) for outcomes, noise in zip(methods, noises, strict=True)]


def _assessed(
    outcomes: Sequence[PairOutcome], noise: NoiseFloor, level: float, delta: float, kind: IntervalKind
) -> Assessment:
    supremum = estimate_supremum(outcomes, level, kind)
    by_pair = np.array([outcome.advantage for outcome in outcomes])  # (P, J)
    advantage = by_pair.mean(axis=0)
    return Assessment(
        by_pair=by_pair,
        advantage=advantage,
        intervals=tuple(signed_interval(outcomes, adversary, level, kind) for adversary in range(len(advantage))),
        quality=supremum.quality,
        quality_plugin=supremum.quality_plugin,
        crossfit_advantage=supremum.crossfit_advantage,
        basis=supremum.basis,
        quality_interval=supremum.interval,
        bounded_interval=supremum.bounded,
        advantage_floor=float(advantage_floor(by_pair, level)),
        best=supremum.best,
        epsilon=empirical_epsilon(by_pair, delta, level),
        delta=delta,
        noise=noise,
    )
