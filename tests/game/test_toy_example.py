"""The paper's toy example: six points, three unlearners, twenty splits. Scores are kept in integer tenths."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from forgetgauge.game.advantage import swap_advantage
from forgetgauge.game.splits import Split, SwapPair

from .enumeration import advantage, one_point

TENTHS = np.array([7, 4, 3, 1, 6, 8])  # A … F
CUT = 5
EXPECTED = [(0, Fraction(0)), (1, Fraction(1, 6)), (2, Fraction(1, 3))]  # bump on the forget set, SWAP advantage


def toy_split(forget: tuple[int, ...]) -> Split:
    unseen = [point for point in range(6) if point not in forget]
    return Split(np.array([]), np.array(forget), np.array(unseen))


ALL_SPLITS = [toy_split(forget) for forget in combinations(range(6), 3)]


def says_forget(split: Split, bump: int) -> np.ndarray:
    """The attack's decision on all six points against the model unlearned on this split."""
    return TENTHS + bump * np.isin(np.arange(6), split.forget) >= CUT


@pytest.mark.parametrize(("bump", "expected"), EXPECTED)
@pytest.mark.parametrize("split", ALL_SPLITS, ids=lambda s: str(s.forget.tolist()))
def test_the_swap_advantage_is_the_same_for_all_twenty_splits(split, bump, expected):
    pair = SwapPair(split)
    first, second = (says_forget(side, bump)[pair.points] for side in pair.sides)
    measured = swap_advantage(first, second, pair.in_forget, np.ones(6))
    assert measured == pytest.approx(float(expected), abs=1e-15)

    def law(side: Split) -> dict[tuple[bool, ...], Fraction]:
        return {tuple(says_forget(side, bump).tolist()): Fraction(1)}

    exact = advantage(pair.sides, law, lambda model, point: int(model[point]), one_point)
    assert exact == expected


def mia_accuracy(forget: tuple[int, ...], bump: int) -> Fraction:
    split = toy_split(forget)
    right = says_forget(split, bump) == np.isin(np.arange(6), split.forget)
    return Fraction(int(right.sum()), 6)


def test_plain_attack_accuracy_depends_on_the_split():
    assert [mia_accuracy((0, 1, 2), bump) for bump, _ in EXPECTED] == [Fraction(1, 3), Fraction(1, 2), Fraction(2, 3)]
    assert [mia_accuracy((3, 4, 5), bump) for bump, _ in EXPECTED] == [Fraction(2, 3)] * 3
