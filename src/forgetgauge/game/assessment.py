"""Everything the game says about one unlearning method, from the outcomes of its swap pairs, in one call."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from forgetgauge.game.advantage import PairOutcome
from forgetgauge.game.arrays import Floats
from forgetgauge.game.bounds import least_epsilon
from forgetgauge.game.direction import differ_by_themselves
from forgetgauge.game.intervals import MIN_PAIRS, Interval, IntervalKind, advantage_floor, signed_interval
from forgetgauge.game.one_model import log_p_of_most_visible
from forgetgauge.game.permutation import NoiseFloor, noise_floors
from forgetgauge.game.quality import (
    CrossFitBasis,
    best_adversary,
    bounded_quality_interval,
    cross_fit,
    quality_plugin,
    supremum_interval,
)


@dataclass(frozen=True, eq=False)
class Assessment:
    """The signed advantages of a method's adversaries, and the Unlearning Quality they leave."""

    by_pair: Floats
    """Signed SWAP advantage of each pair and adversary, (n_pairs, n_adversaries)."""
    advantage: Floats
    """Its mean over pairs, (n_adversaries,), still signed."""
    intervals: tuple[Interval, ...]
    """One interval per adversary, each at the level asked for on its own."""
    estimate: float
    """1 − the advantage of the best adversary, chosen and scored on different pairs; not clipped."""
    quality_plugin: float
    """The paper's 1 − max_a |Adv_a|, biased low: the best adversary chosen and scored on the same pairs."""
    basis: CrossFitBasis
    """What ``estimate`` was chosen and scored on: pairs, or with too few of them points of the same models."""
    quality_interval: Interval
    """For Q at the level asked for although the best adversary was looked for; ``quality_plugin`` lies in it."""
    bounded_interval: Interval
    """For Q, from independent pairs of any distribution: what a certificate is judged by."""
    advantage_floor: float
    """Adv is at least this, for pairs of any distribution, with half of the error asked for; 0 below five pairs."""
    model_log_p: float
    """ln p of the model that shows F most, corrected for the choice among ``n_models`` and all adversaries."""
    n_models: int
    """Models of which single decisions are known; 0 where ε does not rest on them."""
    rests_on_models: bool
    """Whether F is taken for a random half of the points, which ``model_log_p`` needs."""
    best: int
    """The index of the adversary of largest |Adv_a| over all pairs."""
    epsilon: float
    """The ε of any (ε, ``delta``)-certified removal is at least this, with the confidence asked for; it rests on
    ``advantage_floor`` and ``model_log_p``."""
    delta: float
    """The δ that ``epsilon`` belongs to."""
    noise: NoiseFloor
    """What max_a |Adv_a| is by chance alone, and the p-value of "no different from Retrain"."""

    @property
    def quality(self) -> float:
        """The value in ``quality_interval`` that is nearest to ``estimate``.

        The interval allows for the search among adversaries and speaks for Q at its level; the estimate, which scores
        other pairs than it chose on, does not, and lies beside it in a few games of a hundred. It is then no farther
        from the true Q for being moved to the interval's end, wherever the interval holds (docs/statistics.md).
        """
        return float(np.clip(self.estimate, self.quality_interval.low, self.quality_interval.high))


def assess_all(
    methods: Sequence[Sequence[PairOutcome]],
    rng: np.random.Generator,
    *,
    level: float = 0.95,
    n_relabellings: int = 2000,
    delta: float = 1e-5,
    interval: IntervalKind = "student",
    is_drawn: bool = True,
    n_looks: int = 1,
) -> list[Assessment]:
    """Quality, advantages, intervals, ε and noise floor of each method; deterministic given ``rng``.

    Where it is not known that F was drawn at random, ``is_drawn`` is false: ε then rests on single models only where F
    and T do not differ by themselves. ``n_looks`` is 2 where the number of pairs was chosen after a look.

    The methods share their relabellings: each gets what it would get alone with an equal generator, in less time.
    """
    noises = noise_floors(methods, rng, n_relabellings, level)
    rests_on_models = [is_drawn or not differ_by_themselves(outcomes) for outcomes in methods]
    return [
        _assessed(*one, n_looks, level, delta, interval) for one in zip(methods, noises, rests_on_models, strict=True)
    ]


def _assessed(
    outcomes: Sequence[PairOutcome],
    noise: NoiseFloor,
    rests_on_models: bool,
    n_looks: int,
    level: float,
    delta: float,
    kind: IntervalKind,
) -> Assessment:
    fitted = cross_fit(outcomes)
    by_pair = np.array([outcome.advantage for outcome in outcomes])  # (P, J)
    advantage = by_pair.mean(axis=0)
    floor = float(advantage_floor(by_pair, (1 + level) / 2)) if len(by_pair) >= MIN_PAIRS else 0.0
    log_p, n_models = log_p_of_most_visible(outcomes, n_looks) if rests_on_models else (0.0, 0)
    return Assessment(
        by_pair=by_pair,
        advantage=advantage,
        intervals=tuple(signed_interval(outcomes, adversary, level, kind) for adversary in range(len(advantage))),
        estimate=1 - fitted.advantage,
        quality_plugin=quality_plugin(advantage),
        basis=fitted.basis,
        quality_interval=supremum_interval(outcomes, level, kind),
        bounded_interval=bounded_quality_interval(by_pair, level),
        advantage_floor=floor,
        model_log_p=log_p,
        n_models=n_models,
        rests_on_models=rests_on_models,
        best=best_adversary(advantage),
        epsilon=least_epsilon(floor, log_p, n_models=n_models, delta=delta, level=level),
        delta=delta,
        noise=noise,
    )
