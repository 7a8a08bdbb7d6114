from __future__ import annotations

import math

import numpy as np
import pytest

from forgetgauge.game.sensitivity import uniform
from forgetgauge.game.splits import draw_pair
from forgetgauge.suites.spread import as_random_pairs, as_swap_pairs, lookup_advantages

PAIRS = [draw_pair(60, 0.5, np.random.default_rng(seed)) for seed in range(6)]
WEIGHTS = uniform(60)


@pytest.mark.parametrize("queries", [1, 16, math.inf])
def test_on_swap_pairs_the_look_up_adversary_has_no_advantage(queries):
    assert lookup_advantages(as_swap_pairs(PAIRS), WEIGHTS, queries).tolist() == [0.0] * 6


def test_on_random_splits_it_is_always_right_whatever_was_unlearned():
    assert lookup_advantages(as_random_pairs(PAIRS), WEIGHTS, math.inf).tolist() == [1.0] * 6


def test_with_one_query_it_is_right_as_often_as_a_point_is_in_both_splits():
    groups = as_random_pairs(PAIRS)
    k = len(PAIRS[0].split.forget)
    shared = [len(np.intersect1d(a.forget, b.forget)) + len(np.intersect1d(a.unseen, b.unseen)) for a, b in groups]
    assert lookup_advantages(groups, WEIGHTS, 1) == pytest.approx(np.array(shared) / (2 * k))


def test_random_pairs_are_of_different_swap_pairs():
    assert len(as_random_pairs(PAIRS)) == len(as_swap_pairs(PAIRS)) == 6
    assert as_random_pairs(PAIRS)[1] == (PAIRS[0].split.swapped(), PAIRS[1].split.swapped())
