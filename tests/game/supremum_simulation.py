"""How often the statements about the best of several adversaries keep their word, on pairs whose truth is known.

The signed advantages of a pair are normal with a spread of 0.05 per adversary and a common correlation between
adversaries; the "bits" rows use the thresholded scores of ``simulation`` instead.

Run ``PYTHONPATH=src:tests python -m game.supremum_simulation`` to print the tables of docs/statistics.md.
"""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from forgetgauge.game.adaptive import pairs_needed, stein_intervals, stein_quality_interval
from forgetgauge.game.advantage import PairOutcome
from forgetgauge.game.comparison import compare
from forgetgauge.game.intervals import signed_interval, simultaneous_intervals
from forgetgauge.game.quality import (
    cross_fit,
    cross_fit_pairs,
    quality_interval,
    supremum_interval,
    supremum_interval_of,
)

from .simulation import make_world, simulate_pairs, true_advantage

SPREAD = 0.05  # of one pair's signed advantage
N_ADVERSARIES = 8
TRUTHS = {
    "null": np.zeros(N_ADVERSARIES),
    "ties": np.full(N_ADVERSARIES, 0.05),
    "faint ties": np.full(N_ADVERSARIES, 0.02),
    "ties of both signs": np.where(np.arange(N_ADVERSARIES) % 2 == 0, 0.05, -0.05),
    "one dominant": np.array([0.1, *np.zeros(N_ADVERSARIES - 1)]),
}
CORRELATIONS = (0.0, 0.7)
SCENARIOS = [(name, correlation) for name in TRUTHS for correlation in CORRELATIONS]
INTERVAL_ROWS = [(name, correlation, 8) for name, correlation in SCENARIOS] + [
    (name, 0.0, n_pairs) for name in ("null", "ties", "one dominant") for n_pairs in (5, 16)
]
EIGHT_CUTS = tuple(np.linspace(-1.2, 1.2, N_ADVERSARIES))


def draw_pairs(truth: np.ndarray, correlation: float, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Signed advantages, (*shape, n_adversaries)."""
    own, common = rng.normal(size=(*shape, len(truth))), rng.normal(size=(*shape, 1))
    return truth + SPREAD * (np.sqrt(1 - correlation) * own + np.sqrt(correlation) * common)


def outcomes_of(by_pair: np.ndarray, k: int = 1) -> list[PairOutcome]:
    """Outcomes with these signed advantages: k forgotten points that move by x, k unseen ones that move by −x."""
    labels, weight = np.repeat([True, False], k), np.ones(2 * k)
    return [PairOutcome(np.repeat([row, -row], k, axis=0), labels, weight) for row in by_pair]


@dataclass(frozen=True)
class IntervalReport:
    coverage: float
    width: float
    bonferroni_coverage: float
    bonferroni_width: float
    below_one: float
    crossfit_outside: float


def interval_report(
    name: str, correlation: float, n_pairs: int, *, repetitions: int = 2000, seed: int = 21
) -> IntervalReport:
    """Coverage and width of the interval for Q, and how often its upper end is below 1; "bits" uses ``simulation``."""
    rng, rows = np.random.default_rng(seed), []
    world = make_world(correlation, EIGHT_CUTS) if name == "bits" else None
    truth = true_advantage(world, world.n // 3) if world else TRUTHS[name]
    target = 1 - np.abs(truth).max()
    for _ in range(repetitions):
        if world:
            outcomes = simulate_pairs(world, n_pairs, 1, rng)
        else:
            outcomes = outcomes_of(draw_pairs(truth, correlation, (n_pairs,), rng))
        together = simultaneous_intervals(outcomes)
        alone = [signed_interval(outcomes, adversary) for adversary in range(N_ADVERSARIES)]
        interval, plain = supremum_interval_of(together, alone, 0.95), quality_interval(together, 0.95)
        quality = 1 - np.clip(cross_fit(outcomes).advantage, 0, 1)
        rows.append(
            (
                interval.low <= target <= interval.high,
                interval.high - interval.low,
                plain.low <= target <= plain.high,
                plain.high - plain.low,
                interval.high < 1,
                not interval.low <= quality <= interval.high,
            )
        )
    return IntervalReport(*(float(value) for value in np.mean(rows, axis=0)))


def null_alarm_rate(correlation: float, n_pairs: int = 8, *, repetitions: int = 200_000, seed: int = 26) -> float:
    """How often the upper end for Q is below 1 with 8 useless adversaries: some |t| above its quantile.

    By scipy's quantile, for many runs; the interval itself must say the same of the first of them.
    """
    rng = np.random.default_rng(seed)
    by_pair = draw_pairs(TRUTHS["null"], correlation, (repetitions, n_pairs), rng)
    statistic = by_pair.mean(axis=1) / (by_pair.std(axis=1, ddof=1) / np.sqrt(n_pairs))  # (repetitions, J)
    alarms = np.abs(statistic).max(axis=1) > stats.t.ppf(1 - 0.05 / (2 * N_ADVERSARIES), n_pairs - 1)
    for run, alarm in zip(by_pair[:200], alarms[:200], strict=True):
        assert (supremum_interval(outcomes_of(run)).high < 1) == alarm
    return float(alarms.mean())


def crossfit_errors(name: str, correlation: float, n_pairs: int, *, repetitions: int = 4000, seed: int = 22):
    """Estimate − true signed advantage of the mixture it chose, and the estimates, (repetitions,) each."""
    rng, truth = np.random.default_rng(seed), TRUTHS[name]
    fits = [cross_fit_pairs(by_pair) for by_pair in draw_pairs(truth, correlation, (repetitions, n_pairs), rng)]
    estimates = np.array([fit.advantage for fit in fits])
    return estimates - np.array([fit.choice @ truth for fit in fits]), estimates


def other_folds(name: str, correlation: float, n_pairs: int, folds: str, *, repetitions: int = 4000, seed: int = 22):
    """The same for the roads not taken: "one halving" (even against odd pairs) and "leave one out"."""
    rng, truth, rows = np.random.default_rng(seed), TRUTHS[name], np.arange(repetitions)
    by_pair = draw_pairs(truth, correlation, (repetitions, n_pairs), rng)
    groups = np.arange(n_pairs) % 2 if folds == "one halving" else np.arange(n_pairs)
    estimates = targets = np.zeros(repetitions)
    for group in np.unique(groups):
        scored = groups == group
        means = by_pair[:, ~scored].mean(axis=1)
        best = np.abs(means).argmax(axis=1)
        sign = np.sign(means[rows, best])
        estimates = estimates + sign * by_pair[:, scored].sum(axis=1)[rows, best] / n_pairs
        targets = targets + sign * truth[best] * scored.sum() / n_pairs
    return estimates - targets, estimates


@dataclass(frozen=True)
class SteinReport:
    quality_coverage: float
    joint_coverage: float
    mean_pairs: float
    widest: float


def stein_report(
    name: str,
    correlation: float,
    *,
    half_width: float = 0.04,
    n_pilot: int = 8,
    repetitions: int = 4000,
    seed: int = 24,
) -> SteinReport:
    """Coverage of Stein's intervals at the number of pairs they asked for, that number, and the widest half width."""
    rng, truth = np.random.default_rng(seed), TRUTHS[name]
    target, rows = 1 - np.abs(truth).max(), []
    for _ in range(repetitions):
        pilot = draw_pairs(truth, correlation, (n_pilot,), rng)
        n_pairs = pairs_needed(pilot, half_width)
        by_pair = np.concatenate([pilot, draw_pairs(truth, correlation, (n_pairs - n_pilot,), rng)])
        whole, signed = stein_quality_interval(by_pair, n_pilot), stein_intervals(by_pair, n_pilot)
        holds = all(i.low <= t <= i.high for i, t in zip(signed, truth, strict=True))
        rows.append((whole.low <= target <= whole.high, holds, n_pairs, (whole.high - whole.low) / 2))
    table = np.array(rows)
    return SteinReport(*(float(value) for value in table[:, :3].mean(axis=0)), float(table[:, 3].max()))


COUPLES = {
    "both null": ("null", "null"),
    "null against ties": ("null", "ties"),
    "same dominant": ("one dominant", "one dominant"),
    "ties of one against both signs": ("ties", "ties of both signs"),
    "null against dominant": ("null", "one dominant"),
}


@dataclass(frozen=True)
class ComparisonReport:
    coverage: float
    width: float
    first_better: float
    second_better: float


def comparison_report(couple: str, n_pairs: int = 8, *, repetitions: int = 2000, seed: int = 25) -> ComparisonReport:
    """Coverage of the paired interval of Q_A − Q_B; three quarters of the variance of a pair are common to A and B."""
    rng, rows = np.random.default_rng(seed), []
    truths = [TRUTHS[name] for name in COUPLES[couple]]
    target = np.abs(truths[1]).max() - np.abs(truths[0]).max()
    nothing = np.zeros(N_ADVERSARIES)
    for _ in range(repetitions):
        shared = draw_pairs(nothing, 0.5, (n_pairs,), rng) * np.sqrt(0.75)
        first, second = (truth + shared + draw_pairs(nothing, 0.5, (n_pairs,), rng) / 2 for truth in truths)
        found = compare(outcomes_of(first), outcomes_of(second))
        low, high = found.interval.low, found.interval.high
        rows.append((low <= target <= high, high - low, found.first_is_better, found.second_is_better))
    return ComparisonReport(*(float(value) for value in np.mean(rows, axis=0)))


def print_tables(repetitions: int = 3000) -> None:
    columns = ["truth", "pairs", "coverage", "mean width", "Bonferroni coverage", "its width", "upper end below 1"]
    print(f"| {' | '.join([*columns, 'estimate outside'])} |")
    print("|---|---|---|---|---|---|---|---|")
    for name, correlation, n_pairs in INTERVAL_ROWS:
        r = interval_report(name, correlation, n_pairs, repetitions=repetitions)
        _print_interval(f"{name}, correlation {correlation}", n_pairs, r)
    for memory in (0.0, 0.6):
        r = interval_report("bits", memory, 8, repetitions=repetitions)
        _print_interval(f"bits, memory {memory}", 8, r)
    for correlation in CORRELATIONS:
        rate = null_alarm_rate(correlation)
        print(f"\nnull, 8 pairs, 8 adversaries, correlation {correlation}: upper end below 1 in {rate:.2%} of 200 000")
    print("\n| truth | pairs | folds | bias | sd about its target | sd |\n|---|---|---|---|---|---|")
    for name, correlation in [("null", 0.0), ("null", 0.7), ("ties", 0.7), ("one dominant", 0.0)]:
        for n_pairs in (5, 8, 16):
            rows = {"all halvings": crossfit_errors(name, correlation, n_pairs)}
            rows |= {
                folds: other_folds(name, correlation, n_pairs, folds) for folds in ("one halving", "leave one out")
            }
            for folds, (errors, estimates) in rows.items():
                print(
                    f"| {name}, correlation {correlation} | {n_pairs} | {folds} | {errors.mean():+.4f} "
                    f"± {errors.std() / np.sqrt(len(errors)):.4f} | {errors.std():.4f} | {estimates.std():.4f} |"
                )
    print("\n| truth | Q covered | all signed covered | mean pairs | widest half width |\n|---|---|---|---|---|")
    for name, correlation in SCENARIOS:
        s = stein_report(name, correlation, repetitions=repetitions)
        print(
            f"| {name}, correlation {correlation} | {s.quality_coverage:.1%} | {s.joint_coverage:.1%} "
            f"| {s.mean_pairs:.1f} | {s.widest:.4f} |"
        )
    print("\n| methods | pairs | coverage | mean width | A better | B better |\n|---|---|---|---|---|---|")
    for couple in COUPLES:
        for n_pairs in (5, 8):
            c = comparison_report(couple, n_pairs, repetitions=repetitions)
            print(
                f"| {couple} | {n_pairs} | {c.coverage:.1%} | {c.width:.3f} "
                f"| {c.first_better:.1%} | {c.second_better:.1%} |"
            )


def _print_interval(setting: str, n_pairs: int, r: IntervalReport) -> None:
    print(
        f"| {setting} | {n_pairs} | {r.coverage:.1%} | {r.width:.3f} | {r.bonferroni_coverage:.1%} "
        f"| {r.bonferroni_width:.3f} | {r.below_one:.1%} | {r.crossfit_outside:.1%} |",
        flush=True,
    )


if __name__ == "__main__":
    print_tables()
