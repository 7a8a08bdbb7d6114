"""What the oracle shows, and the look-up adversary of Proposition 3.7."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from forgetgauge.game.adversary import lookup_acceptance, oracle_law
from forgetgauge.game.sensitivity import checked, uniform
from forgetgauge.game.splits import Split, draw_split

SPLIT = Split(np.array([0, 1]), np.array([2, 3, 4]), np.array([5, 6, 7]))
WEIGHTS = np.array([9.0, 9.0, 1.0, 2.0, 0.0, 0.0, 3.0, 1.0])


@pytest.mark.parametrize(
    ("bit", "shown", "shares"), [(0, [2, 3, 4], [1 / 3, 2 / 3, 0]), (1, [5, 6, 7], [0, 3 / 4, 1 / 4])]
)
def test_the_oracle_shows_its_set_in_proportion_to_sensitivity(bit, shown, shares):
    points, law = oracle_law(SPLIT, bit, WEIGHTS)
    assert points.tolist() == shown
    assert law == pytest.approx(shares)


def test_wrong_oracles_are_refused():
    with pytest.raises(ValueError, match="not 2"):
        oracle_law(SPLIT, 2, WEIGHTS)
    with pytest.raises(ValueError, match="unseen set of 3 points no mass"):
        oracle_law(SPLIT, 1, np.array([1.0, 1, 1, 1, 1, 0, 0, 0]))


def agreed(first, second):
    return np.intersect1d(first.forget, second.forget), np.intersect1d(first.unseen, second.unseen)


def exact_advantage(table, weights, n_queries=float("inf")):
    forget, unseen = ([lookup_acceptance(table, split, bit, weights, n_queries) for split in table] for bit in (0, 1))
    return np.mean(np.subtract(forget, unseen))


def played(table, split, bit, weights, n_queries, rng):
    """One play: points are drawn until one of them is in the table."""
    always_forgotten, never_seen = agreed(*table)
    points, law = oracle_law(split, bit, weights)
    for point in rng.choice(points, size=n_queries, p=law):
        if point in always_forgotten:
            return 1.0
        if point in never_seen:
            return 0.0
    return 0.5


def played_advantage(table, weights, rng, n_plays, n_queries):
    def accepted(split, bit):
        return np.mean([played(table, split, bit, weights, n_queries, rng) for _ in range(n_plays)])

    return np.mean([accepted(split, 0) - accepted(split, 1) for split in table])


@given(seed=st.integers(0, 2**32), n=st.integers(12, 60))
def test_on_two_overlapping_random_splits_it_always_wins_even_against_retrain(seed, n):
    rng = np.random.default_rng(seed)
    table = draw_split(n, 0.5, rng), draw_split(n, 0.5, rng)
    assume(all(len(points) for points in agreed(*table)))
    assert exact_advantage(table, uniform(n)) == 1.0
    assert exact_advantage(table, checked(rng.random(n) + 0.01, n)) == 1.0


def test_played_with_draws_it_also_wins_every_time():
    rng = np.random.default_rng(0)
    table = draw_split(60, 0.5, rng), draw_split(60, 0.5, rng)
    assert played_advantage(table, uniform(60), rng, n_plays=50, n_queries=1000) == 1.0


@given(seed=st.integers(0, 2**32), n=st.integers(3, 60))
def test_on_a_swap_pair_it_knows_nothing(seed, n):
    rng = np.random.default_rng(seed)
    split = draw_split(n, 0.5, rng)
    pair = split, split.swapped()
    assert not any(len(points) for points in agreed(*pair))
    assert exact_advantage(pair, uniform(n)) == 0.0
    assert played_advantage(pair, uniform(n), rng, n_plays=2, n_queries=5) == 0.0


def test_its_advantage_grows_to_one_with_the_queries_it_may_make():
    first = Split(np.array([6, 7]), np.array([0, 1, 2]), np.array([3, 4, 5]))
    second = Split(np.array([1, 4]), np.array([0, 6, 7]), np.array([3, 2, 5]))
    by_cap = [exact_advantage((first, second), uniform(8), q) for q in (1, 2, 5, 20, 500)]
    # One draw decides with chance 1/3 on F and 2/3 on T of either split; undecided counts as 1/2.
    assert by_cap[0] == pytest.approx(1 - (2 / 3 + 1 / 3) / 2)
    assert by_cap[1] == pytest.approx(1 - (4 / 9 + 1 / 9) / 2)
    assert by_cap == sorted(by_cap)
    assert by_cap[-1] == 1.0


def test_the_exact_acceptance_is_that_of_play():
    rng = np.random.default_rng(1)
    first, second, third = (draw_split(20, 0.5, rng) for _ in range(3))
    weights = checked(rng.random(20), 20)
    found = np.mean([played((first, second), third, 0, weights, 2, rng) for _ in range(4000)])
    assert found == pytest.approx(lookup_acceptance((first, second), third, 0, weights, 2), abs=0.03)


def test_where_no_point_is_decisive_the_answer_is_a_fair_coin():
    split = Split(np.array([4]), np.array([0, 1]), np.array([2, 3]))
    for bit in (0, 1):
        for n_queries in (1, 5, math.inf):
            assert lookup_acceptance((split, split.swapped()), split, bit, uniform(5), n_queries) == 0.5
