"""Does the test of one model hold what it says? Draws whose truth is known, many times; prints the tables of docs.

    python benchmarks/one_model.py          # 10,000 draws per row: a few minutes on one core
    python benchmarks/one_model.py 500      # a quick look

Nothing is trained: a model is what it answers. Tables: how often each rule has p ≤ 0.05 for a model that is independent
of the draw; how often ε ≥ lies above the truth for a mechanism whose ε is known; and which rule for the choice among
adversaries sees more: Bonferroni's over all of them, or choosing on a random half of the points, testing on the rest.
Then of whole games: how often their ε ≥ lies above the truth, and what three rules for all their models prove.
"""

from __future__ import annotations

import math
import sys

import numpy as np

from forgetgauge.game.advantage import PairOutcome, outcome_of_decisions
from forgetgauge.game.bounds import least_epsilon, tight_epsilon_floor
from forgetgauge.game.intervals import advantage_floor
from forgetgauge.game.one_model import (
    ModelTest,
    group_epsilon,
    groups_test,
    half_test,
    log10_p_of_best,
    log_p_of_most_visible,
    pairs_test,
    ranks_test,
    top_test,
)
from forgetgauge.game.permutation import noise_floors

N = 100
"""Points in F, and in T."""
N_ADVERSARIES = 9
ALIKE = 0.8
"""Correlation of the adversaries' scores."""
ADVANTAGES = (0.1, 0.2, 0.3)
GAMES = ((100, 0.1, 0.3), (100, 0.3, 0.3), (300, 0.15, 0.3), (300, 0.15, 0.0), (2500, 0.1, 0.3), (2500, 0.5, 0.1))
"""Points in F, advantage, by how much of it models differ."""


def draw(n: int, n_forget: int, rng: np.random.Generator) -> np.ndarray:
    """Who is in F."""
    forget = np.zeros(n, dtype=np.bool_)
    forget[rng.choice(n, n_forget, replace=False)] = True
    return forget


def scores_of(n: int, rng: np.random.Generator, shift: np.ndarray | float = 0.0) -> np.ndarray:
    """(adversaries, n) scores that resemble each other."""
    common, own = rng.normal(size=n), rng.normal(size=(N_ADVERSARIES, n))
    return math.sqrt(ALIKE) * common + math.sqrt(1 - ALIKE) * own + shift


def false_alarms(n_draws: int) -> None:
    """Rows of the first table."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 30, 60)  # of 60 persons, unequal
    person = np.repeat(np.arange(60), sizes)
    pair = np.repeat(np.arange(N), 2)
    found: dict[str, int] = dict.fromkeys(
        ("answers of a half", "ranks of a half", "top 5 % of a half", "matched pairs", "persons of 1 to 29 points",
         "best of nine adversaries", "most visible of a game's 16 models"), 0,
    )  # fmt: skip
    for _ in range(n_draws):
        scores, forget = scores_of(2 * N, rng), draw(2 * N, N, rng)
        tests = [half_test(score > rng.normal(), forget) for score in scores]
        coins = np.zeros(2 * N, dtype=np.bool_)
        coins[2 * np.arange(N) + rng.integers(0, 2, N)] = True
        of_persons = (rng.normal(size=60)[person] + rng.normal(size=len(person))) > 0.5
        log_ps = {
            "answers of a half": tests[0].log_p,
            "ranks of a half": ranks_test(scores[0], forget).log_p,
            "top 5 % of a half": top_test(scores[0], forget, N // 10).log_p,
            "matched pairs": pairs_test(scores[0] > 0, coins, pair).log_p,
            "persons of 1 to 29 points": groups_test(of_persons, draw(60, 30, rng)[person], person).log_p,
            "best of nine adversaries": log_p_of_best(tests),
            "most visible of a game's 16 models": log_p_of_most_visible(play(rng))[0],
        }
        for name, log_p in log_ps.items():
            found[name] += log_p <= math.log(0.05) + 1e-12
    print(f"\n| rule | p ≤ 0.05 in {n_draws:,} draws |\n|---|---|")
    for name, n_alarms in found.items():
        print(f"| {name} | {100 * n_alarms / n_draws:.1f} % |")


def play(rng: np.random.Generator, *, k: int = N, spread: float = 0.0, advantage: float = 0.0) -> list[PairOutcome]:
    """Eight pairs, nine adversaries; the advantage of a model differs from the mean by so many times itself."""
    outcomes = []
    for _ in range(8):
        forget = draw(2 * k, k, rng)
        says = []
        for own in (forget, ~forget):
            mine = advantage * (1 + spread * rng.normal())
            says.append([(scores_of(2 * k, rng, 1.2533 * mine * np.where(own, 1, -1)) > 0).T])
        outcomes.append(outcome_of_decisions(*np.array(says), forget, np.ones(2 * k)))
    return outcomes


def log_p_of_best(tests: list[ModelTest]) -> float:
    """ln p of the most telling test, corrected for the choice."""
    return math.log(10) * log10_p_of_best([test.log10_p for test in tests])


def twice_the_median(outcomes: list[PairOutcome]) -> float:
    """ln p of all models by the other rule that holds however they depend on each other."""
    each = [
        log_p_of_best([half_test(own, forget) for own in says[0].T])
        for outcome in outcomes
        for says, forget in zip(outcome.decisions, outcome.sides, strict=True)
    ]
    return min(0.0, math.log(2) + sorted(each)[len(each) // 2])


def of_games(n_games: int) -> None:
    """What a game of 16 models proves about ε by three rules: the mean over pairs, twice the median p, the smallest."""
    rng = np.random.default_rng(3)
    print("\n| points in F | advantage | models differ by | ε ≥ by the mean over pairs | twice the median p |"
          " most visible model | ε ≥ |\n|---|---|---|---|---|---|---|")  # fmt: skip
    for k, advantage, spread in GAMES:
        found: list[list[float]] = [[], [], [], []]
        for _ in range(n_games):
            outcomes = play(rng, k=k, spread=spread, advantage=advantage)
            floor = float(advantage_floor(np.array([one.advantage for one in outcomes]), 0.975))
            log_p, n_models = log_p_of_most_visible(outcomes)
            found[0].append(tight_epsilon_floor(floor, 0.0))
            found[1].append(group_epsilon(twice_the_median(outcomes)))
            found[2].append(group_epsilon(log_p))
            found[3].append(least_epsilon(floor, log_p, n_models=n_models, delta=0.0))
        medians = " | ".join(f"{np.median(each):.2f}" for each in found)
        print(f"| {k} | {advantage} | {100 * spread:.0f} % | {medians} |")


def small_advantages(n_games: int) -> None:
    """How many games each rule calls no retraining's: relabelling all pairs together, or the p of single models."""
    rng = np.random.default_rng(5)
    print(f"\n| points in F | advantage | relabelling, of {n_games} games | most visible model | twice the median p |")
    print("|---|---|---|---|---|")
    for k, advantage in ((100, 0.05), (300, 0.03), (300, 0.05)):
        seen = np.zeros(3, dtype=int)
        for _ in range(n_games):
            outcomes = play(rng, k=k, advantage=advantage, spread=0.3)
            p = noise_floors([outcomes], rng, 400)[0].p_value
            log_ps = log_p_of_most_visible(outcomes)[0], twice_the_median(outcomes)
            seen += [p <= 0.05, *(log_p <= math.log(0.05) for log_p in log_ps)]
        print(f"| {k} | {advantage} | {' | '.join(map(str, seen))} |")


def games_too_high(n_games: int) -> None:
    """The mechanism of `epsilons_too_high`, in games of five pairs: how often ε ≥ lies above the truth."""
    rng = np.random.default_rng(4)
    n = 12
    print(f"\n| chance of naming F | ε | ε ≥ above it in {n_games:,} games of 10 models |\n|---|---|---|")
    for chance in (0.0, 0.01, 0.1, 0.5):
        truth, above = math.log(1 + chance * (math.comb(n, n // 2) - 1)), 0
        for _ in range(n_games):
            outcomes = []
            for _ in range(5):
                forget = draw(n, n // 2, rng)
                says = [own if rng.random() < chance else draw(n, n // 2, rng) for own in (forget, ~forget)]
                outcomes.append(outcome_of_decisions(*np.array(says)[:, None, :, None], forget, np.ones(n)))
            floor = float(advantage_floor(np.array([one.advantage for one in outcomes]), 0.975))
            log_p, n_models = log_p_of_most_visible(outcomes)
            above += least_epsilon(floor, log_p, n_models=n_models, delta=0.0) > truth + 1e-9
        print(f"| {chance} | {truth:.2f} | {100 * above / n_games:.1f} % |")


def epsilons_too_high(n_draws: int) -> None:
    """A mechanism that names F with some chance and else a random half: with N halves, ε = ln(1 + chance · (N − 1))."""
    rng = np.random.default_rng(1)
    n = 12
    print(f"\n| chance of naming F | ε | ε ≥ above it in {n_draws:,} draws | largest ε ≥ |\n|---|---|---|---|")
    for chance in (0.0, 0.01, 0.1, 0.5):
        truth = math.log(1 + chance * (math.comb(n, n // 2) - 1))
        floors = []
        for _ in range(n_draws):
            forget = draw(n, n // 2, rng)
            says = forget if rng.random() < chance else draw(n, n // 2, rng)
            floors.append(group_epsilon(half_test(says, forget).log_p))
        above = np.mean(np.array(floors) > truth + 1e-9)
        print(f"| {chance} | {truth:.2f} | {100 * above:.1f} % | {max(floors):.2f} |")


def choices(n_draws: int) -> None:
    """Which rule sees more: of nine adversaries one sees F with this advantage, the others with half of it."""
    rng = np.random.default_rng(2)
    print("\n| points in F | advantage | seen by Bonferroni | by halves | median ε ≥, Bonferroni | by halves |")
    print("|---|---|---|---|---|---|")
    for n in (100, 300):
        for advantage in ADVANTAGES:
            seen, epsilon = np.zeros(2), ([], [])
            for _ in range(n_draws // 5):
                forget = draw(2 * n, n, rng)
                strength = np.where(np.arange(N_ADVERSARIES) == 0, advantage, advantage / 2)[:, None]
                shift = 1.2533 * strength * np.where(forget, 1, -1)  # so that Φ(shift) is (1 + advantage)/2, nearly
                says = scores_of(2 * n, rng, shift) > 0
                bonferroni = log_p_of_best([half_test(own, forget) for own in says])
                first = draw(2 * n, n, rng)
                on_first = [half_test(own[first], forget[first]) for own in says]
                best = int(np.argmin([test.log_p for test in on_first]))
                on_second = half_test(says[best][~first], forget[~first])
                halves = on_second.log_p_above if on_first[best].advantage > 0 else on_second.log_p_below
                for place, log_p in enumerate((bonferroni, halves)):
                    seen[place] += log_p <= math.log(0.05)
                    epsilon[place].append(group_epsilon(log_p))
            rates = [f"{100 * share / (n_draws // 5):.0f} %" for share in seen]
            medians = [f"{np.median(floors):.2f}" for floors in epsilon]
            print(f"| {n} | {advantage} | {' | '.join([*rates, *medians])} |")


if __name__ == "__main__":
    from usage import show_help

    show_help(__doc__)
    n_draws = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    false_alarms(n_draws)
    epsilons_too_high(n_draws)
    choices(n_draws)
    games_too_high(n_draws)
    of_games(max(20, n_draws // 50))
    small_advantages(60)
