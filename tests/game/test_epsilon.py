import math

import numpy as np
import pytest

from forgetgauge.game.advantage import outcome_of_decisions
from forgetgauge.game.bounds import least_epsilon, tight_epsilon_floor
from forgetgauge.game.intervals import advantage_floor
from forgetgauge.game.one_model import half_test, log_p_of_most_visible


def test_it_is_the_larger_of_two_bounds_that_share_the_error():
    assert least_epsilon(0.6, 0.0, delta=1e-3, level=0.9) == pytest.approx(math.log((1 - 2e-3) / 0.4))
    by_model = math.log((0.05 - 4e-3) / 1e-9)
    assert least_epsilon(0.6, math.log(1e-9), n_models=4, delta=1e-3, level=0.9) == pytest.approx(by_model)
    assert least_epsilon(0.0, 0.0) == 0
    assert least_epsilon(0.3, -50.0, delta=0.5) == 0


# -- the mean over pairs -----------------------------------------------------------------------------------------------


def one_bit_games(epsilon, n_pairs, n_games, rng):
    """Signed advantages, (n_games, n_pairs, 1): every answer of a model is right, or every one is wrong."""
    right = rng.random((n_games, n_pairs, 2)) < 1 - math.exp(-epsilon) / 2
    return (2.0 * right - 1).mean(axis=2)[..., None]


@pytest.mark.parametrize("epsilon", [0.5, 1, 2, 3])
@pytest.mark.parametrize("n_pairs", [5, 8, 20])
def test_one_random_bit_per_model_is_not_said_to_prove_more_than_is_true(epsilon, n_pairs):
    rng = np.random.default_rng([n_pairs, int(2 * epsilon)])
    floors = [float(advantage_floor(game)) for game in one_bit_games(epsilon, n_pairs, 400, rng)]
    found = np.array([tight_epsilon_floor(floor, 0.0) for floor in floors])
    assert np.mean(found > epsilon) <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 400)


# -- the most visible model --------------------------------------------------------------------------------------------


def play(n_pairs, k, n_adversaries, rng, *, names_forget=0.0, n_seeds=1):
    """Models that name F with some chance, else a random half of all points, of which adversaries see a part."""
    outcomes = []
    for _ in range(n_pairs):
        forget = rng.permutation(np.arange(2 * k) < k)
        sides = []
        for own in (forget, ~forget):
            each = []
            for _ in range(n_seeds):
                said = own if rng.random() < names_forget else rng.permutation(own)
                each.append(np.stack([said, *(rng.random((n_adversaries - 1, 2 * k)) < 0.3)], axis=1))
            sides.append(each)
        outcomes.append(outcome_of_decisions(*np.array(sides), forget, np.ones(2 * k)))
    return outcomes


def test_p_is_the_smallest_of_all_models_and_adversaries_times_their_number():
    rng = np.random.default_rng(0)
    outcomes = play(3, 40, 4, rng, n_seeds=2)
    every = [
        half_test(says[seed, :, which], forget).log_p
        for outcome in outcomes
        for says, forget in zip(outcome.decisions, outcome.sides, strict=True)
        for seed in range(2)
        for which in range(4)
    ]
    assert log_p_of_most_visible(outcomes) == (pytest.approx(min(0.0, math.log(len(every)) + min(every))), 12)
    named = play(3, 40, 4, rng, names_forget=1.0)
    assert log_p_of_most_visible(named)[0] == pytest.approx(math.log(6 * 4 * 2) - math.log(math.comb(80, 40)))


def test_without_single_decisions_there_is_nothing_to_test():
    probabilities = np.full((1, 4, 1), 0.5)
    outcome = outcome_of_decisions(probabilities, probabilities, np.array([1, 1, 0, 0], bool), np.ones(4))
    assert outcome.decisions is None
    assert log_p_of_most_visible([outcome]) == (0.0, 0)


@pytest.mark.parametrize("chance", [0.0, 0.01, 0.2])
def test_epsilon_of_a_game_stays_below_the_truth_for_a_mechanism_whose_epsilon_is_known(chance):
    """With N halves to name, ε = ln(1 + chance · (N − 1)), δ = 0; both bounds together."""
    rng = np.random.default_rng(int(100 * chance))
    k, n_games, above = 6, 400, 0
    truth = math.log(1 + chance * (math.comb(2 * k, k) - 1))
    for _ in range(n_games):
        outcomes = play(5, k, 2, rng, names_forget=chance)
        floor = float(advantage_floor(np.array([one.advantage for one in outcomes]), 0.975))
        log_p, n_models = log_p_of_most_visible(outcomes)
        above += least_epsilon(floor, log_p, n_models=n_models, delta=0.0) > truth + 1e-9
    assert above / n_games <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / n_games)


def test_pairs_that_were_added_after_a_look_cost_half_of_the_error():
    outcomes = play(3, 40, 2, np.random.default_rng(1), names_forget=1.0)
    once, twice = (log_p_of_most_visible(outcomes, n_looks)[0] for n_looks in (1, 2))
    assert twice == pytest.approx(once + math.log(2))
