import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from forgetgauge.game.adversary import Access
from forgetgauge.game.lookup import LookupAdversary
from forgetgauge.game.oracle import Oracle
from forgetgauge.game.sensitivity import checked, uniform
from forgetgauge.game.splits import Split, draw_split

RETRAINED = "Lr(R): a model of the retain set alone"


def exact_advantage(adversary, splits, weights, n_queries=float("inf")):
    sides = [
        adversary.acceptance(split, 0, weights, n_queries) - adversary.acceptance(split, 1, weights, n_queries)
        for split in splits
    ]
    return sum(sides) / len(sides)


def played_advantage(adversary, splits, weights, rng, n_plays=50):
    def accepted(split, bit):
        oracle = (Oracle(split, bit, weights, rng, adversary.n_queries) for _ in range(n_plays))
        return np.mean([adversary.accepts(RETRAINED, o) for o in oracle])

    return np.mean([accepted(split, 0) - accepted(split, 1) for split in splits])


@given(seed=st.integers(0, 2**32), n=st.integers(12, 60))
def test_on_two_overlapping_random_splits_it_always_wins_even_against_retrain(seed, n):
    rng = np.random.default_rng(seed)
    first, second = draw_split(n, 0.5, rng), draw_split(n, 0.5, rng)
    adversary = LookupAdversary(first, second)
    assume(adversary.always_forgotten and adversary.never_seen)
    assert exact_advantage(adversary, [first, second], uniform(n)) == 1.0
    assert exact_advantage(adversary, [first, second], checked(rng.random(n) + 0.01, n)) == 1.0


def test_played_with_draws_it_also_wins_every_time():
    rng = np.random.default_rng(0)
    first, second = draw_split(60, 0.5, rng), draw_split(60, 0.5, rng)
    adversary = LookupAdversary(first, second)
    assert adversary.access == Access.BLACK_BOX
    assert played_advantage(adversary, [first, second], uniform(60), rng) == 1.0


@given(seed=st.integers(0, 2**32), n=st.integers(3, 60))
def test_on_a_swap_pair_it_knows_nothing(seed, n):
    rng = np.random.default_rng(seed)
    split = draw_split(n, 0.5, rng)
    pair = [split, split.swapped()]
    adversary = LookupAdversary(*pair, n_queries=5)
    assert not adversary.always_forgotten
    assert not adversary.never_seen
    assert exact_advantage(adversary, pair, uniform(n)) == 0.0
    assert played_advantage(adversary, pair, uniform(n), rng, n_plays=2) == 0.0


def test_its_advantage_grows_to_one_with_the_queries_it_may_make():
    first = Split(np.array([6, 7]), np.array([0, 1, 2]), np.array([3, 4, 5]))
    second = Split(np.array([1, 4]), np.array([0, 6, 7]), np.array([3, 2, 5]))
    adversary = LookupAdversary(first, second)
    by_cap = [exact_advantage(adversary, [first, second], uniform(8), q) for q in (1, 2, 5, 20, 500)]
    # One draw decides with chance 1/3 on F and 2/3 on T of either split; undecided counts as 1/2.
    assert by_cap[0] == pytest.approx(1 - (2 / 3 + 1 / 3) / 2)
    assert by_cap[1] == pytest.approx(1 - (4 / 9 + 1 / 9) / 2)
    assert by_cap == sorted(by_cap)
    assert by_cap[-1] == 1.0


def test_the_exact_acceptance_is_that_of_play():
    rng = np.random.default_rng(1)
    first, second, third = (draw_split(20, 0.5, rng) for _ in range(3))
    adversary, weights = LookupAdversary(first, second, n_queries=2), checked(rng.random(20), 20)
    played = np.mean([adversary.accepts(None, Oracle(third, 0, weights, rng, 2)) for _ in range(20_000)])
    assert played == pytest.approx(adversary.acceptance(third, 0, weights, 2), abs=0.015)


def test_the_oracles_own_cap_also_ends_in_one_half():
    split = Split(np.array([0]), np.array([1]), np.array([2]))
    adversary = LookupAdversary(split, split.swapped(), n_queries=10)
    oracle = Oracle(split, 0, uniform(3), np.random.default_rng(0), max_queries=3)
    assert adversary.accepts(None, oracle) == 0.5
    assert oracle.n_queries == 3


def test_an_adversary_that_may_not_ask_is_refused():
    split = Split(np.array([0]), np.array([1]), np.array([2]))
    with pytest.raises(ValueError, match="at least one query"):
        LookupAdversary(split, split, n_queries=0)
