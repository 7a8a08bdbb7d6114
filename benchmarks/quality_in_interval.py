"""How often the estimate of Q lies beside its own interval, and what moving it to the interval's end does.

    python benchmarks/quality_in_interval.py [GAMES]

Games of a known Q, decisions by chance: one adversary of several sees something, or all do. Printed: the share of games
whose estimate lies outside, bias and root mean square error before and after it is moved, and the interval's coverage,
which nothing changes. The numbers are in docs/decisions/0044-q-lies-in-its-interval.md.
"""

from __future__ import annotations

import sys

import numpy as np

from forgetgauge.game.advantage import PairOutcome, outcome_of_decisions
from forgetgauge.game.quality import cross_fit, supremum_interval

GAMES = (  # pairs, |F|, adversaries, advantage, its spread over pairs, whether one adversary alone has it
    (5, 100, 9, 0.0, 0.0, False),
    (5, 100, 9, 0.0, 0.05, False),
    (8, 300, 20, 0.0, 0.0, False),
    (5, 20, 20, 0.1, 0.0, False),
    (8, 300, 20, 0.05, 0.0, False),
    (8, 40, 9, 0.1, 0.05, True),
    (5, 300, 9, 0.3, 0.05, True),
    (2, 20, 9, 0.3, 0.0, True),
    (1, 20, 9, 0.1, 0.0, False),
)


def game(
    rng: np.random.Generator, pairs: int, k: int, n_adversaries: int, advantage: float, spread: float, one: bool
) -> list[PairOutcome]:
    """The pairs of a game whose Q is 1 − advantage."""
    found, usual = [], np.where(np.arange(n_adversaries) == 0, advantage, 0.0) if one else advantage
    for _ in range(pairs):
        in_forget = rng.permutation(np.repeat([True, False], k))
        by_pair = np.clip(usual + spread * rng.standard_normal(n_adversaries), -0.9, 0.9)
        says = [
            rng.random((2 * k, n_adversaries)) < (1 - advantage) / 2 + np.where(side[:, None], by_pair, 0)
            for side in (in_forget, ~in_forget)
        ]
        found.append(outcome_of_decisions(says[0][None], says[1][None], in_forget, np.ones(2 * k)))
    return found


def main(n_games: int) -> None:
    """One row for each kind of game."""
    rng = np.random.default_rng(45)
    print("| pairs | F | adversaries | true Q | outside | bias | moved | RMSE | moved | covers |\n" + "|---" * 10 + "|")
    for pairs, k, n_adversaries, advantage, spread, one in GAMES:
        truth, errors, moved, covers = 1 - advantage, [], [], 0
        for _ in range(n_games):
            outcomes = game(rng, pairs, k, n_adversaries, advantage, spread, one)
            estimate, interval = min(1.0, max(0.0, 1 - cross_fit(outcomes).advantage)), supremum_interval(outcomes)
            errors.append(estimate - truth)
            moved.append(min(max(estimate, interval.low), interval.high) - truth)
            covers += interval.low - 1e-12 <= truth <= interval.high + 1e-12
        before, after = np.array(errors), np.array(moved)
        shares = [f"{100 * found:.1f} %" for found in ((np.abs(before - after) > 1e-9).mean(), covers / n_games)]
        numbers = [
            f"{found:.4f}" for each in ("mean", "rms") for part in (before, after) for found in [_of(part, each)]
        ]
        print(
            "| "
            + " | ".join([str(pairs), str(k), str(n_adversaries), f"{truth:g}", shares[0], *numbers, shares[1]])
            + " |"
        )


def _of(errors: np.ndarray, what: str) -> float:
    return float(errors.mean() if what == "mean" else np.sqrt((errors**2).mean()))


if __name__ == "__main__":
    from usage import show_help

    show_help(__doc__)
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
