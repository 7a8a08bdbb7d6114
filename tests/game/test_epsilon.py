import math

import numpy as np
import pytest

from forgetgauge.game.bounds import empirical_epsilon
from forgetgauge.game.intervals import advantage_floor

from .supremum_simulation import draw_pairs


def test_it_is_the_tight_bound_at_the_floor_of_the_advantage():
    by_pair = draw_pairs(np.array([0.0, -0.9]), 0.0, (20,), np.random.default_rng(0))
    floor = float(advantage_floor(by_pair, 0.9))
    assert 0.5 < floor < 0.9
    assert empirical_epsilon(by_pair, 1e-3, 0.9) == pytest.approx(math.log((1 - 2e-3) / (1 - floor)))


def test_it_is_absent_below_five_pairs():
    assert empirical_epsilon(np.ones((5, 1))) is not None
    assert empirical_epsilon(np.ones((4, 1))) is None


def test_no_advantage_bounds_nothing_and_five_pairs_that_agree_on_one_bound_little():
    assert empirical_epsilon(np.zeros((5, 2))) == 0
    found = empirical_epsilon(np.ones((5, 1)), delta=0)
    # a share p of pairs at −1 is missed by all five with (1 − p)^5 = 0.05, and leaves an advantage of 1 − 2p
    assert 0 <= found <= -math.log(2 * (1 - 0.05 ** (1 / 5)) if 0.05 ** (1 / 5) > 0.5 else 1)
    assert 0 < empirical_epsilon(np.ones((20, 1)), delta=0) < -math.log(2 * (1 - 0.05 ** (1 / 20)))
    assert empirical_epsilon(np.full((5, 1), 0.3), delta=0.5) == 0


def one_bit_games(epsilon, n_pairs, n_games, rng):
    """Signed advantages, (n_games, n_pairs, 1): every answer of a model is right, or every one is wrong."""
    right = rng.random((n_games, n_pairs, 2)) < 1 - math.exp(-epsilon) / 2
    return (2.0 * right - 1).mean(axis=2)[..., None]


@pytest.mark.parametrize("epsilon", [0.5, 1, 2, 3])
@pytest.mark.parametrize("n_pairs", [5, 8, 20])
def test_one_random_bit_per_model_is_not_said_to_prove_more_than_is_true(epsilon, n_pairs):
    rng = np.random.default_rng([n_pairs, int(2 * epsilon)])
    found = [empirical_epsilon(game, delta=0) for game in one_bit_games(epsilon, n_pairs, 400, rng)]
    assert np.mean(np.array(found) > epsilon) <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 400)
