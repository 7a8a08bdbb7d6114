import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forgetgauge.game.advantage import (
    PairOutcome,
    advantage_of_differences,
    outcome_of_decisions,
    paired_differences,
    signed_advantage,
    swap_advantage,
)
from forgetgauge.game.quality import quality_plugin
from forgetgauge.game.splits import draw_pair

HALVES = np.array([True, True, False, False])


def test_a_perfect_adversary_has_advantage_one_and_its_opposite_minus_one():
    assert signed_advantage(HALVES, HALVES, np.ones(4)) == 1.0
    assert signed_advantage(~HALVES, HALVES, np.ones(4)) == -1.0
    assert signed_advantage(np.full(4, 0.3), HALVES, np.ones(4)) == 0.0


def test_weights_replace_the_plain_means():
    # F: (1·3 + 0·1)/4, T: (0.5·1 + 1·1)/2
    assert signed_advantage([1, 0, 0.5, 1], HALVES, [3, 1, 7, 7]) == pytest.approx(0.75 - 0.75)
    assert signed_advantage([1, 0, 0.5, 0], HALVES, [3, 1, 7, 7]) == pytest.approx(0.75 - 0.25)


def test_weights_count_like_repeated_points():
    rng = np.random.default_rng(0)
    accepted, side, counts = rng.random(8), np.repeat([True, False], 4), rng.integers(1, 5, 8)
    repeated = signed_advantage(np.repeat(accepted, counts), np.repeat(side, counts), np.ones(counts.sum()))
    assert signed_advantage(accepted, side, counts) == pytest.approx(repeated, abs=1e-14)


cases = st.tuples(st.integers(0, 2**32), st.integers(1, 40), st.booleans(), st.booleans())


def random_case(case):
    seed, k, as_bits, weighted = case
    rng = np.random.default_rng(seed)
    first, second = rng.random((2, 2 * k))
    if as_bits:
        first, second = first >= 0.5, second >= 0.5
    weight = rng.lognormal(sigma=2, size=2 * k) if weighted else np.ones(2 * k)
    return first, second, rng.permutation(np.repeat([True, False], k)), weight


@given(cases)
def test_the_paired_form_is_the_mean_of_the_two_sides(case):
    first, second, in_forget, weight = random_case(case)
    two_sides = swap_advantage(first, second, in_forget, weight)
    paired = advantage_of_differences(paired_differences(first, second), in_forget, weight)
    assert float(paired) == pytest.approx(two_sides, abs=1e-12)
    assert abs(two_sides) <= 1


@given(cases)
def test_with_equal_weights_it_is_the_mean_of_in_minus_out_over_all_points(case):
    first, second, in_forget, _ = random_case(case)
    difference = np.asarray(first, float) - np.asarray(second, float)
    expected = np.where(in_forget, difference, -difference).mean()
    assert swap_advantage(first, second, in_forget, np.ones(len(in_forget))) == pytest.approx(expected, abs=1e-12)


@given(cases)
def test_exchanging_the_sides_of_the_pair_changes_nothing(case):
    first, second, in_forget, weight = random_case(case)
    there = swap_advantage(first, second, in_forget, weight)
    assert swap_advantage(second, first, ~in_forget, weight) == pytest.approx(there, abs=1e-12)


@given(cases, st.floats(1e-6, 1e6))
def test_the_scale_of_the_weights_and_the_order_of_the_points_do_not_matter(case, scale):
    first, second, in_forget, weight = random_case(case)
    expected = swap_advantage(first, second, in_forget, weight)
    order = np.random.default_rng(case[0]).permutation(len(weight))
    shuffled = swap_advantage(first[order], second[order], in_forget[order], scale * weight[order])
    assert shuffled == pytest.approx(expected, abs=1e-12)


@pytest.mark.slow
@settings(max_examples=3000, deadline=None)
@given(
    n=st.integers(3, 80),
    alpha=st.sampled_from([0.1, 0.25, 0.5, 0.67, 0.9]),
    seed=st.integers(0, 2**32),
    rule=st.integers(0, 3),
    weighted=st.booleans(),
)
def test_zero_grounding_any_rule_that_sees_only_the_retain_set_gains_nothing(n, alpha, seed, rule, weighted):
    rng = np.random.default_rng(seed)
    try:
        pair = draw_pair(n, alpha, rng)
    except ValueError:
        pair = draw_pair(n, 0.5, rng)
    weight = rng.lognormal(sigma=2, size=n) if weighted else np.ones(n)

    def decide(side):
        """A function of (R, x) alone: the model is what its retain set made of it, the rule is anything."""
        fingerprint = np.random.default_rng([seed, rule, *side.retain.tolist()])
        accepted = fingerprint.random(n)
        return (accepted if rule == 0 else accepted >= (0.5, 0.5, 0.1, 0.9)[rule])[pair.points]

    first, second = (decide(side) for side in pair.sides)
    assert abs(swap_advantage(first, second, pair.in_forget, weight[pair.points])) <= 1e-12
    outcome = outcome_of_decisions(first[None, :, None], second[None, :, None], pair.in_forget, weight[pair.points])
    assert outcome.advantage == pytest.approx([0.0], abs=1e-12)


def test_an_outcome_averages_seeds_and_keeps_adversaries_apart():
    rng = np.random.default_rng(0)
    first, second = rng.random((2, 3, 10, 4))  # seeds, points, adversaries
    in_forget, weight = np.repeat([True, False], 5), rng.random(10)
    outcome = outcome_of_decisions(first, second, in_forget, weight)
    by_hand = [
        np.mean([swap_advantage(first[s, :, a], second[s, :, a], in_forget, weight) for s in range(3)])
        for a in range(4)
    ]
    assert outcome.advantage == pytest.approx(by_hand, abs=1e-12)
    assert (outcome.k, outcome.n_adversaries) == (5, 4)
    with pytest.raises(ValueError, match="read-only"):
        outcome.differences[0, 0] = 0


@pytest.mark.parametrize(
    ("accepted", "in_forget", "weight", "message"),
    [
        ([1.2, 0, 0, 0], HALVES, np.ones(4), r"probabilities in \[0, 1\]"),
        ([-0.1, 0, 0, 0], HALVES, np.ones(4), r"probabilities in \[0, 1\]"),
        ([np.nan, 0, 0, 0], HALVES, np.ones(4), "finite"),
        ([1, 0, 0], HALVES, np.ones(4), "one entry per point"),
        ([1, 0, 0, 0], HALVES, np.ones(3), "one entry per point"),
        ([[1, 0, 0, 0]] * 4, HALVES, np.ones(4), "must be a list"),
        ([1, 0, 0, 0], [1, 1, 0, 0], np.ones(4), "booleans, not int64"),
        ([1, 0, 0, 0], HALVES, [1, 1, 1, -1], "not be negative"),
        ([1, 0, 0, 0], HALVES, [0, 0, 1, 1], "forget set has no mass"),
        ([1, 0, 0, 0], HALVES, [1, 1, 0, 0], "unseen set has no mass"),
        ([1, 0, 0, 0], np.ones(4, bool), np.ones(4), "unseen set has no mass"),
        ([], np.array([], bool), [], "no mass"),
    ],
)
def test_decisions_that_make_no_sense_are_refused(accepted, in_forget, weight, message):
    with pytest.raises(ValueError, match=message):
        signed_advantage(accepted, in_forget, weight)


@pytest.mark.parametrize(
    ("differences", "in_forget", "message"),
    [
        (np.zeros(4), HALVES, "points, adversaries"),
        (np.zeros((4, 0)), HALVES, "points, adversaries"),
        (np.full((4, 1), 1.5), HALVES, r"\[-1, 1\]"),
        (np.zeros((4, 1)), np.array([True, False, False, False]), "half of the 4 points must be in forget, but 1 are"),
        (np.zeros((0, 1)), np.array([], bool), "no mass"),
    ],
)
def test_outcomes_that_make_no_sense_are_refused(differences, in_forget, message):
    with pytest.raises(ValueError, match=message):
        PairOutcome(differences, in_forget, np.ones(len(in_forget)))


def test_sides_that_disagree_about_the_points_are_refused():
    with pytest.raises(ValueError, match="same points"):
        paired_differences([1, 0], [1, 0, 0])
    with pytest.raises(ValueError, match="seeds, points, adversaries"):
        outcome_of_decisions(np.zeros((4, 1)), np.zeros((4, 1)), HALVES, np.ones(4))


@pytest.mark.parametrize("seed", range(20))
def test_an_adversary_that_is_always_right_has_an_advantage_of_one_whatever_the_weights(seed):
    """Weighted means of ones are off by rounding, and Q = 1 − 1.0000000000000002 would be refused."""
    labels, weight = np.repeat([True, False], 1000), np.random.default_rng(seed).lognormal(size=2000)
    outcome = PairOutcome(np.where(labels, 1.0, -1.0)[:, None], labels, weight)
    assert 1 - 1e-12 <= outcome.advantage[0] <= 1
    assert quality_plugin(outcome.advantage) >= 0


def test_an_outcome_keeps_what_it_was_given_and_lets_nobody_change_it():
    d, in_forget, weight = np.full((4, 1), 0.5), np.array([True, True, False, False]), np.ones(4)
    outcome = PairOutcome(d, in_forget, weight)
    for array in (d, in_forget, weight):
        array[:] = 0
    assert outcome.differences.tolist() == [[0.5]] * 4
    assert (outcome.in_forget.tolist(), outcome.weight.tolist()) == ([True, True, False, False], [1.0] * 4)
    says = np.zeros((1, 4, 1), dtype=bool)
    decided = outcome_of_decisions(says, ~says, outcome.in_forget, np.ones(4))
    for array in (outcome.differences, outcome.in_forget, outcome.weight, outcome.advantage, decided.decisions):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 1


def test_an_advantage_is_never_beyond_one_whatever_rounding_makes_of_the_weights():
    in_forget = np.arange(20) < 10
    for seed in range(50):
        weight = np.random.default_rng(seed).lognormal(size=20)
        for sign in (1.0, -1.0):
            outcome = PairOutcome(np.where(in_forget, sign, -sign)[:, None], in_forget, weight)
            assert abs(outcome.advantage[0]) <= 1
            assert outcome.advantage[0] == pytest.approx(sign)


def test_a_single_decision_beyond_a_probability_and_no_seeds_are_refused():
    for value in (1.5, -0.5):
        with pytest.raises(ValueError, match="probabilities in"):
            paired_differences([value], [0.0])
    with pytest.raises(ValueError, match="seeds, points, adversaries"):
        outcome_of_decisions(np.zeros((0, 4, 1)), np.zeros((0, 4, 1)), np.arange(4) < 2, np.ones(4))
