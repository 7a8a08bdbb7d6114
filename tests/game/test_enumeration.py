from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forgetgauge.game.splits import Split, draw_split

from .enumeration import (
    advantage,
    enumerate_splits,
    one_point,
    supremum,
    swap_supremum,
    total_variation,
    views,
    whole_set,
)

ONE = Fraction(1, 5)  # of six points: k = 1, 30 splits
TWO = Fraction(1, 2)  # k = 2, 90 splits


def noisy_sum(points: np.ndarray, r: int) -> dict[int, Fraction]:
    """Lr(S) = ΣS + U{0 … r}."""
    return {int(points.sum()) + noise: Fraction(1, r + 1) for noise in range(r + 1)}


def nothing_unlearned(r: int):
    return lambda split: noisy_sum(np.concatenate([split.retain, split.forget]), r)


def retrained(r: int):
    return lambda split: noisy_sum(split.retain, r)


FIXTURES = [
    (ONE, one_point, 0, "1"),
    (ONE, one_point, 1, "5/6"),
    (ONE, one_point, 3, "17/30"),
    (ONE, one_point, 9, "7/30"),
    (ONE, whole_set, 0, "1"),
    (ONE, whole_set, 1, "5/6"),
    (ONE, whole_set, 3, "17/30"),
    (ONE, whole_set, 9, "7/30"),
    (TWO, one_point, 0, "8/15"),
    (TWO, one_point, 1, "13/30"),
    (TWO, one_point, 3, "19/60"),
    (TWO, one_point, 9, "14/75"),
    (TWO, whole_set, 0, "38/45"),
    (TWO, whole_set, 1, "7/9"),
    (TWO, whole_set, 3, "28/45"),
    (TWO, whole_set, 9, "68/225"),
]


@pytest.mark.parametrize(("alpha", "sees", "r", "expected"), FIXTURES)
def test_doing_nothing_has_the_known_supremum(alpha, sees, r, expected):
    assert supremum(enumerate_splits(6, alpha), nothing_unlearned(r), sees) == Fraction(expected)


@pytest.mark.parametrize("weight", [None, [1, 2, 3, 4, 5, Fraction(1, 2)], [0, 1, 1, 0, 3, 2]])
@pytest.mark.parametrize("sees", [one_point, whole_set])
@pytest.mark.parametrize("r", [0, 3])
def test_retrain_is_grounded_at_zero_for_every_adversary(sees, r, weight):
    for alpha in (ONE, TWO):
        splits = [split for split in enumerate_splits(6, alpha) if has_mass(split, weight)]
        assert supremum(splits, retrained(r), sees, weight) == 0


def has_mass(split: Split, weight) -> bool:
    return weight is None or all(any(weight[p] for p in points) for points in (split.forget, split.unseen))


@pytest.mark.parametrize("alpha", [ONE, TWO])
@pytest.mark.parametrize("r", [0, 1, 3, 9])
def test_the_mean_over_swap_pairs_of_total_variation_is_at_least_the_strong_value(alpha, r):
    splits, law = list(enumerate_splits(6, alpha)), nothing_unlearned(r)
    mean = sum((swap_supremum(split, law) for split in splits), Fraction(0)) / len(splits)
    assert mean >= supremum(splits, law, whole_set) >= supremum(splits, law, one_point)


@pytest.mark.parametrize("weight", [None, [1, 2, 3, 4, 5, 6]])
@pytest.mark.parametrize("sees", [one_point, whole_set])
def test_on_one_swap_pair_even_one_query_reaches_the_total_variation(sees, weight):
    for split in enumerate_splits(6, TWO):
        law = nothing_unlearned(3)
        assert supremum([split, split.swapped()], law, sees, weight) == swap_supremum(split, law)


def small_law(split: Split) -> dict[str, Fraction]:
    """Two models; being point 0 in F makes the first likelier, and R adds something of its own."""
    chance = Fraction(1, 3) + Fraction(1, 4) * (0 in split.forget) + Fraction(1, 12) * (1 in split.retain)
    return {"first": chance, "second": 1 - chance}


@pytest.mark.parametrize("weight", [None, [3, 1, 2]])
@pytest.mark.parametrize("sees", [one_point, whole_set])
def test_the_supremum_is_the_best_of_all_deterministic_adversaries(sees, weight):
    splits = list(enumerate_splits(3, TWO))
    seen = sorted({view for law in views(splits, small_law, sees, weight) for view in law}, key=str)
    best = Fraction(0)
    for answers in product((0, 1), repeat=len(seen)):
        table = dict(zip(seen, answers, strict=True))
        gain = advantage(splits, small_law, lambda model, shown, table=table: table[model, shown], sees, weight)
        best = max(best, abs(gain))
    assert best == supremum(splits, small_law, sees, weight) > 0


def test_the_advantage_of_one_adversary_is_definition_3_1_written_out():
    splits, weight = list(enumerate_splits(4, TWO)), [1, 2, 3, 4]
    law = nothing_unlearned(1)

    def accepts(model: int, point: int) -> Fraction:
        return Fraction((model * 7 + point * 3) % 5, 4)

    total = Fraction(0)
    for split in splits:
        for sign, points in ((1, split.forget.tolist()), (-1, split.unseen.tolist())):
            mass = sum(weight[p] for p in points)
            for model, probability in law(split).items():
                total += sign * sum(probability * Fraction(weight[p], mass) * accepts(model, p) for p in points)
    assert advantage(splits, law, accepts, one_point, weight) == total / len(splits)


@settings(max_examples=30)
@given(st.dictionaries(st.tuples(st.integers(0, 15), st.integers(0, 5)), st.fractions(0, 1)))
def test_any_fixed_adversary_gains_nothing_from_retrain_over_all_splits(table):
    def accepts(model: int, point: int) -> Fraction:
        return table.get((model, point), Fraction(1, 3))

    assert advantage(enumerate_splits(6, ONE), retrained(0), accepts, one_point, [1, 2, 3, 4, 5, 6]) == 0


def test_points_without_sensitivity_are_never_shown():
    points = np.array([1, 2])
    assert one_point(points, [5, 0, 3]) == {2: 1}
    assert whole_set(points, [5, 0, 3]) == {frozenset({2}): 1}
    with pytest.raises(ValueError, match=r"\[1, 2\] has no mass"):
        one_point(points, [1, 0, 0])


def test_an_average_over_no_splits_is_refused():
    with pytest.raises(ValueError, match="at least one split"):
        supremum([], retrained(0), one_point)


def test_total_variation_of_disjoint_and_equal_laws():
    half = {"a": Fraction(1, 2), "b": Fraction(1, 2)}
    assert total_variation(half, half) == 0
    assert total_variation(half, {"c": Fraction(1)}) == 1
    assert total_variation(half, {"a": Fraction(1)}) == Fraction(1, 2)


def test_a_deterministic_method_with_two_outputs_is_fully_exposed_on_its_pair():
    split = draw_split(9, 0.5, np.random.default_rng(0))
    assert swap_supremum(split, lambda s: {tuple(s.forget.tolist()): Fraction(1)}) == 1
