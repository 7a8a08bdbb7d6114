"""Do the numbers hold what they say? Games whose truth is known, played many times; prints the tables of docs.

    python benchmarks/honesty.py          # 2,000 games per row: about eight minutes on one core
    python benchmarks/honesty.py 200      # a quick look

Nothing is trained: a model is what it answers. `F` and `T` have `K` points each; an answer is right where it says
"forgotten" of a point of F and "unseen" of a point of T. Tables: the lower bound on ε for three mechanisms whose ε is
known; the intervals of Q for a method that fails in a few of its models; false alarms under Retrain; games in which two
models are taken for one; methods that lie above the noise floor and are not Retrain's equal; how optimistic
cross-fitting is when F is small; how many pairs the bounded interval needs, and its width beside other bounds.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator

import numpy as np
from scipy import special

from forgetgauge.game.advantage import PairOutcome
from forgetgauge.game.bounds import tight_epsilon_floor
from forgetgauge.game.intervals import MIN_PAIRS, advantage_floor, lower_bounds
from forgetgauge.game.permutation import noise_floors
from forgetgauge.game.quality import bounded_quality_interval, cross_fit, cross_fit_pairs, supremum_interval
from forgetgauge.results.margin_warnings import is_copy

K = 50
K_OF_FAILURES = 300
EPSILONS = (0.5, 1.0, 2.0, 3.0)
PAIRS = (5, 8, 20)
LEVEL = 0.95
FLIPPED = 0.02
MECHANISMS = ("one bit per model", "one bit per model, 2 % flipped", "randomised response")
FAILURES = ((0.05, 1.0), (0.1, 0.5))
"""(share of models in which the method does nothing, advantage against those): Q = 0.95 both times."""
OUTPUTS = {
    "logit": lambda z: z,
    "confidence, sure of most points": lambda z: 1 / (1 + np.exp(-4 * z - 12)),
    "confidence, sure of all points": lambda z: 1 / (1 + np.exp(-6 * z - 20)),
    "confidence, sure of two classes": lambda z: 1 / (1 + np.exp(-12 * (z + 2 * np.sign(z)))),
    "loss": lambda z: np.log1p(np.exp(-4 * z - 8)),
    "product": lambda z: np.exp(3 * z),
}
"""What a score makes of a model's standard normal logit of a point."""
OWN = (0.3, 0.1, 0.03, 0.01)
"""How far two models of one split differ on a point, in standard deviations between points."""


# -- the lower bound on ε ----------------------------------------------------------------------------------------


def right_answers(mechanism: str, epsilon: float, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Of 2K answers of each model, how many are right: (ε, 0)-certified, each with P(right) = 1 − e^−ε/2 at most."""
    right = 1 - math.exp(-epsilon) / 2
    if mechanism == "randomised response":
        return rng.binomial(2 * K, right, shape)
    flipped = 0.0 if mechanism == "one bit per model" else FLIPPED
    return rng.binomial(2 * K, np.where(rng.random(shape) < right, 1 - flipped, flipped))


def true_epsilon(mechanism: str, epsilon: float) -> float:
    """What the true advantage implies: ε itself, or a little less where answers are flipped afterwards."""
    flipped = FLIPPED if "flipped" in mechanism else 0.0
    return -math.log(1 - (1 - 2 * flipped) * (1 - math.exp(-epsilon)))


def games(mechanism: str, epsilon: float, n_pairs: int, n_games: int, rng: np.random.Generator) -> np.ndarray:
    """Signed SWAP advantages, (n_games, n_pairs): the mean of both sides' 2 · P(right) − 1."""
    return (right_answers(mechanism, epsilon, (n_games, n_pairs, 2), rng) / K - 1).mean(axis=2)


def students_floor(by_pair: np.ndarray) -> np.ndarray:
    """What the bound was before: Student's t, one adversary of two signs; no width where all pairs agree."""
    n_pairs = by_pair.shape[1]
    error = by_pair.std(axis=1, ddof=1) / math.sqrt(n_pairs)
    return np.maximum(0, np.abs(by_pair.mean(axis=1)) - special.stdtrit(n_pairs - 1, (1 + LEVEL) / 2) * error)


def epsilon_excess(mechanism: str, epsilon: float, n_pairs: int, n_games: int) -> tuple[float, float, float]:
    """How often the bound on ε lies above the truth, ours and Student's; the mean of ours."""
    rng = np.random.default_rng([MECHANISMS.index(mechanism), int(2 * epsilon), n_pairs])
    by_pair = games(mechanism, epsilon, n_pairs, n_games, rng)
    truth = 1 - math.exp(-true_epsilon(mechanism, epsilon)) + 1e-9
    floors = advantage_floor(by_pair[..., None], LEVEL)
    above = float((floors > truth).mean()), float((students_floor(by_pair) > truth).mean())
    return *above, abs(float(np.log1p(-floors).mean()))


def epsilon_rows(n_games: int) -> Iterator[list[str]]:
    """One line for each mechanism, ε and number of pairs."""
    yield ["mechanism", "true ε", "pairs", "bound above the truth", "mean bound", "*Student's t above the truth*"]
    for mechanism in MECHANISMS:
        for epsilon in EPSILONS:
            for n_pairs in PAIRS:
                ours, students, mean = epsilon_excess(mechanism, epsilon, n_pairs, n_games)
                truth = true_epsilon(mechanism, epsilon)
                yield [mechanism, f"{truth:.2f}", f"{n_pairs}", f"{ours:.1%}", f"{mean:.2f}", f"*{students:.0%}*"]


# -- a method that fails in a few of its models ------------------------------------------------------------------


def failing_games(share: float, advantage: float, n_pairs: int, n_games: int, rng: np.random.Generator) -> np.ndarray:
    """(n_games, n_pairs): a share of the models is left untouched, the others answer at random."""
    failed = rng.random((n_games, n_pairs, 2)) < share
    right = rng.binomial(2 * K_OF_FAILURES, np.where(failed, (1 + advantage) / 2, 0.5))
    return (right / K_OF_FAILURES - 1).mean(axis=2)


def outcomes_of(by_pair: np.ndarray) -> list[PairOutcome]:
    """Outcomes with these signed advantages, (P, J)."""
    return [PairOutcome(np.array([row, -row]), np.array([True, False]), np.ones(2)) for row in by_pair]


def coverage_of_failures(share: float, advantage: float, n_pairs: int, n_games: int) -> dict[str, tuple[float, float]]:
    """Kind of interval -> (coverage of Q, mean width)."""
    rng, truth = np.random.default_rng([int(100 * share), n_pairs]), 1 - share * advantage
    found: dict[str, list[tuple[bool, float]]] = {"student": [], "bounded": []}
    for by_pair in failing_games(share, advantage, n_pairs, n_games, rng):
        outcomes = outcomes_of(by_pair[:, None])
        for kind, rows in found.items():
            interval = supremum_interval(outcomes, LEVEL, kind)  # type: ignore[arg-type]
            rows.append((interval.low <= truth <= interval.high, interval.high - interval.low))
    means = {kind: np.mean(rows, axis=0) for kind, rows in found.items()}
    return {kind: (float(covered), float(width)) for kind, (covered, width) in means.items()}


def failure_rows(n_games: int) -> Iterator[list[str]]:
    """One line for each way of failing and number of pairs."""
    yield ["models left untouched", "pairs", "Student's covers", "its width", "bounded covers", "its width"]
    for share, advantage in FAILURES:
        for n_pairs in (*PAIRS, 64):
            found = coverage_of_failures(share, advantage, n_pairs, n_games)
            told = [cell for covered, width in found.values() for cell in (f"{covered:.1%}", f"{width:.2f}")]
            yield [f"{share:.0%}, each with an advantage of {advantage:g}", f"{n_pairs}", *told]


# -- false alarms ------------------------------------------------------------------------------------------------


def decided_pairs(n_adversaries: int, n_pairs: int, k: int, rng: np.random.Generator) -> list[PairOutcome]:
    """Retrain: adversaries of one model whose answers follow from one score of every point, cut at eight places."""
    labels, cuts = np.repeat([True, False], k), np.linspace(-1, 1, n_adversaries)
    pairs = []
    for _ in range(n_pairs):
        common = rng.normal(size=(2 * k, 1))
        first, second = ((common + rng.normal(size=(2 * k, 1)) > cuts).astype(float) for _ in range(2))
        pairs.append(PairOutcome(first - second, labels, np.ones(2 * k)))
    return pairs


def false_alarms(n_pairs: int, n_games: int) -> tuple[float, float]:
    """Under Retrain, with eight adversaries: how often p ≤ 0.05, and how often the worst pair lies below its floor."""
    rng = np.random.default_rng(n_pairs)
    rows = []
    for _ in range(n_games):
        outcomes = decided_pairs(8, n_pairs, 20, rng)
        (found,) = noise_floors([outcomes], rng, 400)
        worst = max(np.abs(outcome.advantage).max() for outcome in outcomes)
        rows.append((found.p_value <= 0.05, worst > found.pair_q95 + 1e-12))
    p, worst = np.mean(rows, axis=0)
    return float(p), float(worst)


def above_the_floor(advantage: float, n_games: int, k: int = 1000, n_pairs: int = 8) -> tuple[float, float, float]:
    """One of eight adversaries has this advantage: how often p ≤ 0.05, how often Q is above the floor, how often both.

    Answers are independent here, so what relabelling gives is what games without any advantage give.
    """
    rng, truth = np.random.default_rng(int(1000 * advantage)), np.array([advantage, *[0.0] * 7])

    def drawn(truth: np.ndarray, n: int) -> np.ndarray:
        return (rng.binomial(2 * k, (1 + truth) / 2, (n, n_pairs, 2, 8)) / k - 1).mean(axis=2)

    floor = np.quantile(np.abs(drawn(np.zeros(8), 20_000).mean(axis=1)).max(axis=1), 0.95)
    found = drawn(truth, n_games)
    significant = np.abs(found.mean(axis=1)).max(axis=1) >= floor
    above = np.array([cross_fit_pairs(game).advantage for game in found]) <= floor
    return float(significant.mean()), float(above.mean()), float((significant & above).mean())


def alarm_rows(n_games: int) -> Iterator[list[str]]:
    """Retrain, at several numbers of pairs."""
    yield ["Retrain, eight adversaries", "pairs", "p ≤ 0.05", "worst pair below its floor"]
    for n_pairs in PAIRS:
        yield ["\\|F\\| = 20", f"{n_pairs}", *(f"{share:.1%}" for share in false_alarms(n_pairs, n_games))]


def floor_rows(n_games: int) -> Iterator[list[str]]:
    """Methods that are not as good as Retrain, and lie above the floor."""
    yield ["true Q", "p ≤ 0.05", "Q above the floor", "both"]
    for advantage in (0.0, 0.01, 0.017, 0.025):
        yield [f"{1 - advantage:.3f}", *(f"{share:.1%}" for share in above_the_floor(advantage, n_games))]


def taken_for_one(k: int, own: float, n_pairs: int, n_games: int) -> dict[str, float]:
    """Score -> in how many games two models, trained apart, are said to answer alike up to rounding, on any pair."""
    rng = np.random.default_rng([k, int(1000 * own), n_pairs])
    alarms = dict.fromkeys(OUTPUTS, 0)
    for _ in range(n_games):
        difficulty = rng.standard_normal((n_pairs, 1, 2 * k))
        models = difficulty + own * rng.standard_normal((n_pairs, 2, 2 * k))
        for name, score in OUTPUTS.items():
            alarms[name] += any(is_copy(pair[:1], pair[1:]) for pair in score(models))
    return {name: n / n_games for name, n in alarms.items()}


def likeness_rows(n_games: int) -> Iterator[list[str]]:
    """By size of F and by how much two models differ: the worst of the scores."""
    yield ["\\|F\\|, eight pairs", *(f"models that differ by {own:g} SD" for own in OWN)]
    for k in (3, 5, 10, 20, 100):
        each = [max(taken_for_one(k, own, 8, n_games).values()) for own in OWN]
        yield [f"{k}", *(f"{share:.1%}" for share in each)]


# -- cross-fitting on few points ---------------------------------------------------------------------------------


def optimism(k: int, n_pairs: int, n_adversaries: int, n_games: int) -> float:
    """The largest mean of (Q shown − true Q) over the advantages that the one useful adversary may have."""
    noise = 1 / math.sqrt(2 * k * n_pairs)
    return max(_optimism(k, n_pairs, n_adversaries, scale * noise, n_games) for scale in (1, 2, 3, 4))


def _optimism(k: int, n_pairs: int, n_adversaries: int, advantage: float, n_games: int) -> float:
    if advantage > 1:
        return 0.0
    rng = np.random.default_rng([k, n_pairs, n_adversaries])
    truth = np.array([advantage, *[0.0] * (n_adversaries - 1)])
    if n_pairs < MIN_PAIRS:  # chosen and scored on different points
        fits = [cross_fit(answered_pairs(truth, n_pairs, k, rng)) for _ in range(n_games)]
    else:
        right = rng.binomial(2 * k, (1 + truth) / 2, (n_games, n_pairs, 2, n_adversaries))
        fits = [cross_fit_pairs(game) for game in (right / k - 1).mean(axis=2)]
    return float(advantage - np.clip([fit.advantage for fit in fits], 0, 1).mean())


def answered_pairs(truth: np.ndarray, n_pairs: int, k: int, rng: np.random.Generator) -> list[PairOutcome]:
    """Adversaries with these advantages, each answer on its own."""
    labels, pairs = np.repeat([True, False], k), []
    for _ in range(n_pairs):
        right = rng.random((2, 2 * k, len(truth))) < (1 + truth) / 2
        first, second = (right[0] == labels[:, None]).astype(float), (right[1] == ~labels[:, None]).astype(float)
        pairs.append(PairOutcome(first - second, labels, np.ones(2 * k)))
    return pairs


def optimism_rows(n_games: int) -> Iterator[list[str]]:
    """By size of F, beside the rule that warns of it."""
    yield ["\\|F\\|", "pairs", "2 adversaries", "8 adversaries", "16 adversaries", "1/√(2 · \\|F\\| · pairs)"]
    sizes = [(k, n_pairs) for k in (5, 10, 20, 50, 100, 200) for n_pairs in (5, 8)]
    for k, n_pairs in [*sizes, (20, 1), (100, 1), (50, 4)]:
        each = [f"{optimism(k, n_pairs, n, n_games):.3f}" for n in (2, 8, 16)]
        yield [f"{k}", f"{n_pairs}", *each, f"{1 / math.sqrt(2 * k * n_pairs):.3f}"]


# -- how many pairs the bounded interval needs -------------------------------------------------------------------


def need_rows() -> Iterator[list[str]]:
    """What pairs that all agree leave possible."""
    yield [
        "pairs",
        "all at 0: Adv ≤",
        "best possible",
        "all at 0.15: Adv in",
        "all at 1: Adv ≥",
        "ε ≥",
        "of 9 adversaries: ε ≥",
    ]
    for n_pairs in (5, 8, 12, 20, 40, 64, 100, 200):
        nothing, some, everything = (np.full((n_pairs, 1), value) for value in (0.0, 0.15, 1.0))
        interval = bounded_quality_interval(some, LEVEL)
        many = np.concatenate([everything, np.zeros((n_pairs, 8))], axis=1)
        yield [
            f"{n_pairs}",
            f"{1 - bounded_quality_interval(nothing, LEVEL).low:.2f}",
            f"{1 - ((1 - LEVEL) / 2) ** (1 / n_pairs):.2f}",
            f"[{1 - interval.high:.2f}, {1 - interval.low:.2f}]",
            f"{float(advantage_floor(everything, LEVEL)):.2f}",
            f"{tight_epsilon_floor(float(advantage_floor(everything, LEVEL)), 0.0):.2f}",
            f"{tight_epsilon_floor(float(advantage_floor(many, LEVEL)), 0.0):.2f}",
        ]


def bernstein(values: np.ndarray, miss: float) -> np.ndarray:
    """Maurer and Pontil's empirical Bernstein bound for values in [−1, 1]."""
    n, log = values.shape[-1], math.log(2 / miss)
    slack = np.sqrt(2 * values.var(axis=-1, ddof=1) * log / n) + 2 * 7 * log / (3 * (n - 1))
    return np.maximum(-1, values.mean(axis=-1) - slack)


def hoeffding(values: np.ndarray, miss: float) -> np.ndarray:
    """Hoeffding's bound for values in [−1, 1]."""
    return np.maximum(-1, values.mean(axis=-1) - math.sqrt(2 * math.log(1 / miss) / values.shape[-1]))


def width_rows(n_games: int) -> Iterator[list[str]]:
    """Mean distance of one-sided 97.5 % bounds from the sample's mean."""
    yield ["pairs' advantages", "pairs", "betting", "empirical Bernstein", "Hoeffding"]
    rng = np.random.default_rng(0)
    for n_pairs in (*PAIRS, 64, 200):
        shape = (min(n_games, 500), n_pairs)
        kinds = {
            "all at 0.15": np.full((1, n_pairs), 0.15),
            "normal, 0.15 ± 0.03": rng.normal(0.15, 0.03, shape).clip(-1, 1),
            "one bit per model, ε = 2": games(MECHANISMS[0], 2.0, n_pairs, shape[0], rng),
            "5 % of models fail": failing_games(0.05, 1.0, n_pairs, shape[0], rng),
        }
        for name, values in kinds.items():
            bounds = [bound(values, 0.025) for bound in (lower_bounds, bernstein, hoeffding)]
            yield [name, f"{n_pairs}", *(f"{(values.mean(axis=-1) - low).mean():.2f}" for low in bounds)]


def show(rows: Iterator[list[str]]) -> None:
    """As Markdown."""
    for number, row in enumerate(rows):
        print("| " + " | ".join(row) + " |", flush=True)
        if number == 0:
            print("|" + "---|" * len(row))
    print()


if __name__ == "__main__":
    from usage import show_help

    show_help(__doc__)
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    show(epsilon_rows(repetitions))
    show(failure_rows(repetitions))
    show(alarm_rows(repetitions))
    show(likeness_rows(min(repetitions, 1000)))
    show(floor_rows(repetitions))
    show(optimism_rows(min(repetitions, 500)))
    show(need_rows())
    show(width_rows(repetitions))
