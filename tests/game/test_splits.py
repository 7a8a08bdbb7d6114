from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from forgetgauge.game.splits import Split, SwapPair, draw_pair, draw_split, split_sizes

from .enumeration import enumerate_splits


def indices(*points: int) -> np.ndarray:
    return np.array(points, dtype=np.int64)


@pytest.fixture
def split() -> Split:
    return Split(indices(4, 0), indices(5, 1), indices(3, 2))


def test_a_split_sorts_its_sets_and_closes_them(split):
    assert split.retain.tolist() == [0, 4]
    assert split.forget.tolist() == [1, 5]
    assert split.unseen.tolist() == [2, 3]
    assert split.n == 6
    assert split.forget.dtype == np.int64
    with pytest.raises(ValueError, match="read-only"):
        split.forget[0] = 9


def test_the_callers_array_is_left_alone():
    forget = indices(5, 1)
    split = Split(indices(0), forget, indices(2, 3))
    forget[0] = 7
    assert split.forget.tolist() == [1, 5]


def test_equality_is_by_content(split):
    assert split == Split(indices(0, 4), indices(1, 5), indices(2, 3))
    assert split != split.swapped()
    assert split != Split(indices(0, 6), indices(1, 5), indices(2, 3))
    assert split != Split(indices(0, 4), indices(1, 5), indices(2, 6))
    assert split != "a split"


@given(n=st.integers(3, 200), seed=st.integers(0, 2**32))
def test_swapping_twice_returns_the_split(n, seed):
    split = draw_split(n, Fraction(1, 2), np.random.default_rng(seed))
    assert split.swapped().swapped() == split
    assert np.array_equal(split.swapped().retain, split.retain)
    assert np.array_equal(split.swapped().forget, split.unseen)


@pytest.mark.parametrize(
    ("retain", "forget", "unseen", "message"),
    [
        ([0], [1, 2], [3], "of one size, but they have 2 and 1"),
        ([0], [], [], "at least one point"),
        ([0, 1], [1], [2], "point 1 appears more than once"),
        ([0], [1, 1], [2, 3], "point 1 appears more than once"),
        ([0], [-1], [2], "index -1"),
        ([0], [1.5], [2], "float64"),
        ([[0]], [1], [2], "shape"),
    ],
)
def test_a_wrong_split_is_refused_with_its_reason(retain, forget, unseen, message):
    with pytest.raises(ValueError, match=message):
        Split(np.array(retain), np.array(forget), np.array(unseen))


def test_an_empty_retain_set_is_a_split_but_is_never_drawn():
    assert Split(np.array([]), indices(0), indices(1)).n == 2
    with pytest.raises(ValueError, match="no point to retain"):
        split_sizes(2, 1)


def test_a_swap_pair_keeps_points_in_the_order_forget_then_unseen(split):
    pair = SwapPair(split)
    assert pair.sides == (split, split.swapped())
    assert pair.points.tolist() == [1, 5, 2, 3]
    assert pair.in_forget.tolist() == [True, True, False, False]


def test_sizes_of_the_papers_cifar_half():
    assert split_sizes(25_000, 0.1) == (20_454, 2_273)


@pytest.mark.parametrize(
    ("n", "alpha", "k"),
    [
        (11, 0.1, 1),  # exactly one
        (22, 0.1, 2),
        (6, 0.2, 1),
        (6, 0.5, 2),
        (6, 1 / 3, 2),  # 6/4 = 1.5 rounds upwards although the float 1/3 lies below one third
        (10, 1 / 3, 3),  # 2.5
        (10, Fraction(1, 3), 3),
        (14, 1 / 3, 4),  # 3.5: not to the even neighbour by accident
        (18, 1 / 3, 5),  # 4.5: upwards, where rounding to even gives 4
        (15, 3 / 7, 5),  # 4.5
        (35, 0.4, 10),
    ],
)
def test_half_is_rounded_upwards_and_floats_mean_what_they_say(n, alpha, k):
    assert split_sizes(n, alpha) == (n - 2 * k, k)


@given(n=st.integers(1, 10_000), numerator=st.integers(1, 999))
def test_float_and_fraction_agree_and_nothing_is_lost(n, numerator):
    exact = Fraction(numerator, 1000)
    try:
        n_retain, k = split_sizes(n, exact)
    except ValueError:
        with pytest.raises(ValueError, match="leaves no point"):
            split_sizes(n, numerator / 1000)
        return
    assert split_sizes(n, numerator / 1000) == (n_retain, k)
    assert n_retain + 2 * k == n
    assert n_retain >= 1
    assert abs(k - exact * n / (1 + exact)) <= Fraction(1, 2)


@pytest.mark.parametrize(
    ("n", "alpha", "message"),
    [
        (50, 0.001, "alpha = 0.001 of 50 points leaves no point to forget"),
        (0, 0.1, "leaves no point to forget"),
        (10, 1.0, "forgets 5 and keeps 5 unseen, which leaves no point to retain"),
        (11, 1.0, "forgets 6 and keeps 6"),
        (10, 0.99, "leaves no point to retain"),
        (10, 0.0, r"alpha must lie in \(0, 1\], but it is 0.0"),
        (10, -0.1, "alpha must lie"),
        (10, 1.5, "alpha must lie"),
        (10, float("nan"), "alpha must lie"),
        (-1, 0.5, "cannot have -1 points"),
    ],
)
def test_impossible_sizes_are_refused_with_the_numbers(n, alpha, message):
    with pytest.raises(ValueError, match=message):
        split_sizes(n, alpha)


@pytest.mark.parametrize(("n", "alpha", "count"), [(6, 0.2, 30), (6, 0.5, 90), (7, 0.5, 210), (3, 0.5, 6)])
def test_enumeration_lists_every_split_once(n, alpha, count):
    keys = [(tuple(s.forget.tolist()), tuple(s.unseen.tolist())) for s in enumerate_splits(n, alpha)]
    assert len(keys) == len(set(keys)) == count
    assert all(s.n == n for s in enumerate_splits(n, alpha))


def test_drawn_splits_are_uniform_over_the_enumeration():
    rng = np.random.default_rng(0)
    drawn = Counter()
    for _ in range(9_000):
        split = draw_pair(6, 0.5, rng).split
        drawn[tuple(split.forget.tolist()), tuple(split.unseen.tolist())] += 1
    assert len(drawn) == 90
    assert chisquare(list(drawn.values())).pvalue > 0.01


def test_the_same_generator_draws_the_same_pair():
    first, second = (draw_pair(100, 0.1, np.random.default_rng(3)) for _ in range(2))
    assert first == second
    assert first != draw_pair(100, 0.1, np.random.default_rng(4))


def test_a_split_is_no_other_thing():
    split = Split(np.array([2]), np.array([0]), np.array([1]))
    assert (split == "split") is False
    assert split == Split(np.array([2]), np.array([0]), np.array([1]))


def test_alpha_is_read_as_a_fraction_of_at_most_nine_digits():
    assert split_sizes(3 * 10**12, 0.5000000001) == (10**12, 10**12)  # ½, and what is written after it is rounding
    assert split_sizes(3 * 10**6, 0.500001) != (10**6, 10**6)


@pytest.mark.parametrize(("n", "alpha"), [(10, 0.2), (31, 0.5), (100, 0.9)])
def test_a_drawn_split_holds_every_point_once(n, alpha):
    split = draw_split(n, alpha, np.random.default_rng(0))
    assert sorted([*split.retain, *split.forget, *split.unseen]) == list(range(n))
    assert (len(split.retain), len(split.forget)) == split_sizes(n, alpha)


def test_f_and_t_among_some_points_are_of_these_and_all_others_are_retained():
    among, rng = np.arange(40) % 3 == 0, np.random.default_rng(0)
    split = draw_split(40, 0.1, rng, among=among)
    assert among[split.forget].all()
    assert among[split.unseen].all()
    assert split.n == 40
    assert len(split.forget) == len(draw_split(40, 0.1, rng).forget)


def test_f_among_some_points_is_a_random_half_of_f_and_t():
    among, rng, times = np.arange(30) < 6, np.random.default_rng(1), np.zeros(30)
    for _ in range(2000):
        times[draw_split(30, 0.1, rng, among=among).forget] += 1
    np.testing.assert_allclose(times[:6] / 2000, 0.5, atol=0.05)  # 3 of 6
    assert not times[6:].any()


def test_too_few_points_to_draw_from_are_refused():
    with pytest.raises(ValueError, match="there are 5 to draw them from"):
        draw_split(30, 0.1, np.random.default_rng(0), among=np.arange(30) < 5)
