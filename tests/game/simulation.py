"""Simulated swap pairs whose true advantage is known, to see how often the intervals and the test keep their word.

A world is a fixed data set: every point has a base score, a memory (what being forgotten adds to its score) and a
sensitivity to model-wide shifts. A model adds a shift that moves all its points together; the two sides and all seeds
of a pair share what comes from R. An adversary accepts when the score passes its cut. The expected signed SWAP
advantage follows from the normal distribution function, without any code under test.

Run ``PYTHONPATH=src:tests python -m game.simulation`` to print the table of docs/statistics.md.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from forgetgauge.game.advantage import PairOutcome, outcome_of_decisions
from forgetgauge.game.assessment import assess_all
from forgetgauge.game.intervals import pair_interval, signed_interval, simultaneous_intervals, welch_interval
from forgetgauge.game.permutation import noise_floors
from forgetgauge.game.quality import quality_interval

PAIR_SHIFT, PAIR_NOISE, MODEL_SHIFT, MODEL_NOISE = 0.3, 0.5, 0.3, 0.7
REPETITIONS = 3000  # the standard error of a coverage of 95 % is then 0.40 %

normal_cdf = np.vectorize(NormalDist().cdf, otypes=[float])


@dataclass(frozen=True)
class World:
    base: np.ndarray
    memory: np.ndarray
    slope: np.ndarray
    cuts: np.ndarray
    weight: np.ndarray

    @property
    def n(self) -> int:
        return len(self.base)

    def effect(self) -> np.ndarray:
        """P(accepted | forgotten) − P(accepted | unseen) of every point and adversary, (n, n_adversaries)."""
        shifts = self.slope**2 * (PAIR_SHIFT**2 + MODEL_SHIFT**2)
        spread = np.sqrt(shifts + PAIR_NOISE**2 + MODEL_NOISE**2)[:, None]
        margin = self.base[:, None] - self.cuts
        return normal_cdf((margin + self.memory[:, None]) / spread) - normal_cdf(margin / spread)


def make_world(memory: float, cuts: tuple[float, ...] = (0.0,), *, weighted: bool = False, n: int = 300) -> World:
    rng = np.random.default_rng(7)
    base, slope = rng.normal(size=n), 1 + 0.3 * rng.normal(size=n)
    weight = rng.lognormal(size=n) if weighted else np.ones(n)
    return World(base, memory * rng.exponential(size=n), slope, np.array(cuts), weight)


def true_advantage(world: World, k: int) -> np.ndarray:
    """The target, (n_adversaries,): exact for equal weights, else an average over 100 000 random splits."""
    effect = world.effect()
    if np.ptp(world.weight) == 0:
        return effect.mean(axis=0)
    rng = np.random.default_rng(11)
    forgets = rng.permuted(np.tile(np.arange(world.n), (100_000, 1)), axis=1)[:, :k]
    shares = world.weight[forgets] / world.weight[forgets].sum(axis=1, keepdims=True)
    return np.einsum("sk,ska->a", shares, effect[forgets]) / len(forgets)


def simulate_pairs(
    world: World, n_pairs: int, n_seeds: int, rng: np.random.Generator, *, soft: bool = False
) -> list[PairOutcome]:
    """Outcomes of independent swap pairs; ``soft`` adversaries answer with probabilities instead of bits."""
    k = world.n // 3  # a third of the points each for R, F and T
    in_forget = np.repeat([True, False], k)
    points = rng.permuted(np.tile(np.arange(world.n), (n_pairs, 1)), axis=1)[:, : 2 * k]
    base, memory, slope = (values[points][:, None, :] for values in (world.base, world.memory, world.slope))
    common = base + slope * PAIR_SHIFT * rng.normal(size=(n_pairs, 1, 1))
    common = common + PAIR_NOISE * rng.normal(size=common.shape)

    def decisions(forgotten: np.ndarray) -> np.ndarray:
        shift = MODEL_SHIFT * rng.normal(size=(n_pairs, n_seeds, 1))
        noise = MODEL_NOISE * rng.normal(size=(n_pairs, n_seeds, 2 * k))
        margin = (common + memory * forgotten + slope * shift + noise)[..., None] - world.cuts  # (P, seeds, 2k, J)
        return 1 / (1 + np.exp(-4 * margin)) if soft else margin >= 0

    first, second = decisions(in_forget), decisions(~in_forget)
    return [outcome_of_decisions(first[p], second[p], in_forget, world.weight[points[p]]) for p in range(n_pairs)]


def coverage_over_pairs(
    n_pairs: int, n_seeds: int, memory: float, *, weighted: bool = False, repetitions: int = REPETITIONS, seed: int = 1
) -> float:
    """How often the 95 % interval over pairs holds the expected signed SWAP advantage of one adversary."""
    world, rng = make_world(memory, weighted=weighted), np.random.default_rng(seed)
    target = float(true_advantage(world, world.n // 3)[0])
    hits = 0
    for _ in range(repetitions):
        interval = signed_interval(simulate_pairs(world, n_pairs, n_seeds, rng), 0)
        assert interval.basis == "over pairs"
        hits += interval.low <= target <= interval.high
    return hits / repetitions


def coverage_given_models(
    n_pairs: int, k: int, *, weighted: bool = False, repetitions: int = REPETITIONS, seed: int = 2
) -> float:
    """How often Welch's 95 % interval holds the advantage of the models at hand over newly drawn points."""
    rng, memory, hits = np.random.default_rng(seed), 0.5, 0
    cdf = NormalDist(sigma=math.sqrt(1 + MODEL_NOISE**2)).cdf  # base scores are N(0, 1) in the population of points
    in_forget = np.repeat([True, False], k)
    for _ in range(repetitions):
        outcomes, targets = [], []
        for shift, shift_swapped in rng.normal(scale=MODEL_SHIFT, size=(n_pairs, 2)):
            base = rng.normal(size=2 * k)
            first = base + memory * in_forget + shift + MODEL_NOISE * rng.normal(size=2 * k) >= 0
            second = base + memory * ~in_forget + shift_swapped + MODEL_NOISE * rng.normal(size=2 * k) >= 0
            weight = rng.uniform(0.5, 1.5, size=2 * k) if weighted else np.ones(2 * k)
            outcomes.append(outcome_of_decisions(first[None, :, None], second[None, :, None], in_forget, weight))
            forgotten = cdf(memory + shift) + cdf(memory + shift_swapped)
            targets.append((forgotten - cdf(shift) - cdf(shift_swapped)) / 2)
        interval = welch_interval(outcomes, 0)
        hits += interval.low <= np.mean(targets) <= interval.high
    return hits / repetitions


CUTS = (-0.6, -0.2, 0.2, 0.6)


def joint_coverage(
    n_pairs: int, memory: float, *, repetitions: int = REPETITIONS, seed: int = 3
) -> tuple[float, float]:
    """How often four simultaneous intervals all hold, and how often the interval for Q holds the true Q."""
    world, rng = make_world(memory, CUTS), np.random.default_rng(seed)
    target = true_advantage(world, world.n // 3)
    true_quality = 1 - np.abs(target).max()
    all_hold = quality_holds = 0
    for _ in range(repetitions):
        intervals = simultaneous_intervals(simulate_pairs(world, n_pairs, 1, rng))
        all_hold += all(i.low <= t <= i.high for i, t in zip(intervals, target, strict=True))
        whole = quality_interval(intervals, 0.95)
        quality_holds += whole.low <= true_quality <= whole.high
    return all_hold / repetitions, quality_holds / repetitions


def false_alarm_rate(n_pairs: int, n_seeds: int, *, soft: bool, repetitions: int = 2000, seed: int = 4) -> float:
    """How often the permutation test at 5 % calls a Retrain-like method different, by the best of four adversaries."""
    world, rng = make_world(0.0, CUTS), np.random.default_rng(seed)
    alarms = 0
    for _ in range(repetitions):
        outcomes = simulate_pairs(world, n_pairs, n_seeds, rng, soft=soft)
        alarms += noise_floor(outcomes, rng, 99).p_value <= 0.05
    return alarms / repetitions


def naive_bootstrap_coverage(n_pairs: int, memory: float, *, repetitions: int = REPETITIONS, seed: int = 5) -> float:
    """The road not taken: a percentile bootstrap over pairs, 1000 resamples."""
    world, rng = make_world(memory), np.random.default_rng(seed)
    target = float(true_advantage(world, world.n // 3)[0])
    hits = 0
    for _ in range(repetitions):
        by_pair = np.array([outcome.advantage[0] for outcome in simulate_pairs(world, n_pairs, 1, rng)])
        means = by_pair[rng.integers(n_pairs, size=(1000, n_pairs))].mean(axis=1)
        low, high = np.quantile(means, [0.025, 0.975])
        hits += low <= target <= high
    return hits / repetitions


def double_counted_coverage(n_pairs: int, memory: float, *, repetitions: int = REPETITIONS, seed: int = 6) -> float:
    """The other road not taken: Student's t over pairs with the points' own noise added on top."""
    world, rng = make_world(memory), np.random.default_rng(seed)
    target = float(true_advantage(world, world.n // 3)[0])
    hits = 0
    for _ in range(repetitions):
        outcomes = simulate_pairs(world, n_pairs, 1, rng)
        over_pairs = pair_interval(np.array([outcome.advantage[0] for outcome in outcomes]))
        over_points = welch_interval(outcomes, 0)
        half = math.hypot(over_pairs.high - over_pairs.low, over_points.high - over_points.low) / 2
        hits += abs(target - (over_pairs.low + over_pairs.high) / 2) <= half
    return hits / repetitions


PAIR_SCENARIOS = [
    (n_pairs, n_seeds, memory, False) for n_pairs in (5, 8, 16) for n_seeds, memory in ((1, 0.6), (3, 0.6))
] + [(8, 1, 0.0, False), (8, 1, 0.6, True)]
WELCH_SCENARIOS = [(1, 100, False), (3, 100, False), (1, 20, False), (1, 100, True)]
JOINT_SCENARIOS = [(5, 0.0), (8, 0.0), (8, 0.6)]
ALARM_SCENARIOS = [(1, 1, False), (1, 1, True), (5, 3, True)]


def print_table() -> None:
    print("| interval | setting | measured |\n|---|---|---|")
    for n_pairs, n_seeds, memory, weighted in PAIR_SCENARIOS:
        share = coverage_over_pairs(n_pairs, n_seeds, memory, weighted=weighted)
        setting = f"{n_pairs} pairs, seeds {n_seeds}, memory {memory}" + (", unequal weights" if weighted else "")
        print(f"| Student t over pairs, 95 % | {setting} | {share:.1%} |")
    for n_pairs, k, weighted in WELCH_SCENARIOS:
        share = coverage_given_models(n_pairs, k, weighted=weighted)
        setting = f"pairs {n_pairs}, k = {k}" + (", unequal weights" if weighted else "")
        print(f"| Welch given these models, 95 % | {setting} | {share:.1%} |")
    for n_pairs, memory in JOINT_SCENARIOS:
        both = joint_coverage(n_pairs, memory, repetitions=20_000)
        print(f"| four simultaneous intervals, 95 % | {n_pairs} pairs, memory {memory} | {both[0]:.1%} |")
        print(f"| interval for Q from these | {n_pairs} pairs, memory {memory} | {both[1]:.1%} |")
    for n_pairs, n_seeds, soft in ALARM_SCENARIOS:
        share = false_alarm_rate(n_pairs, n_seeds, soft=soft)
        setting = f"pairs {n_pairs}, seeds {n_seeds}, " + ("probabilities" if soft else "bits")
        print(f"| permutation test at 5 %, false alarms, best of four | {setting} | {share:.1%} |")
    print(f"| *percentile bootstrap over pairs* | 8 pairs | {naive_bootstrap_coverage(8, 0.6):.1%} |")
    print(f"| *t over pairs, point noise added on top* | 8 pairs | {double_counted_coverage(8, 0.6):.1%} |")


def assess(outcomes, rng, **options):
    """One method assessed alone."""
    return assess_all([outcomes], rng, **options)[0]


def noise_floor(outcomes, rng, n_relabellings=2000, level=0.95):
    """The noise floor of one method."""
    return noise_floors([outcomes], rng, n_relabellings, level)[0]


if __name__ == "__main__":
    print_table()
