"""Everything the game says about one unlearning method, from the outcomes of its swap pairs, in one call."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from forgetgauge.game.advantage import PairOutcome
from forgetgauge.game.arrays import Floats
from forgetgauge.game.intervals import Interval, signed_interval, simultaneous_intervals
from forgetgauge.game.permutation import NoiseFloor, noise_floor
from forgetgauge.game.quality import best_adversary, quality, quality_interval


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
    """1 − max_a |Adv_a|."""
    quality_interval: Interval
    """From simultaneous intervals: it holds at the level asked for although the best adversary was picked."""
    best: int
    """The index of the adversary that attains the maximum."""
    noise: NoiseFloor
    """What max_a |Adv_a| is by chance alone, and the p-value of "no different from Retrain"."""


def assess(
    outcomes: Sequence[PairOutcome],
    rng: np.random.Generator,
    *,
    level: float = 0.95,
    n_relabellings: int = 2000,
) -> Assessment:
    """Quality, advantages, intervals and noise floor of one method; deterministic given ``rng``."""
    simultaneous = simultaneous_intervals(outcomes, level)
    by_pair = np.array([outcome.advantage for outcome in outcomes])  # (P, J)
    advantage = by_pair.mean(axis=0)
    return Assessment(
        by_pair=by_pair,
        advantage=advantage,
        intervals=tuple(signed_interval(outcomes, adversary, level) for adversary in range(len(advantage))),
        quality=quality(advantage),
        quality_interval=quality_interval(simultaneous, level),
        best=best_adversary(advantage),
        noise=noise_floor(outcomes, rng, n_relabellings),
    )
