"""Warnings that rest on chance: at most one honest game in a hundred is warned of, and what they are for is seen."""

from __future__ import annotations

import numpy as np
import pytest

from forgetgauge.auditing.checks import near_copies
from forgetgauge.game.advantage import PairOutcome, outcome_of_decisions
from forgetgauge.game.diagnostics import swap_auc
from forgetgauge.game.direction import (
    Lean,
    chance_spread,
    decides_nothing,
    membership_lean,
    mid_ranks,
    rank_differences,
    z_over_pairs,
)
from forgetgauge.results.margin_warnings import MarginEvidence, is_copy, margin_warnings, silence

UP = Lean(0.7, 20.0)


def evidence(rng, *, pairs, k, adversaries=4, memory=0.0, threshold=0.0, shadows=UP) -> MarginEvidence:
    """Margins that share what the point and the model add; of the forgotten they are larger by `memory`.

    `memory` is one number, or one for each pair; `threshold` is where decisions are made.
    """
    memory = np.broadcast_to(memory, pairs)
    in_forget = np.repeat([True, False], k)
    decided, ranked = [], []
    for pair in range(pairs):
        shared = rng.standard_normal(2 * k) + rng.standard_normal((2, 1))  # (sides, points)
        margins = shared[..., None] + rng.standard_normal((2, 2 * k, adversaries))
        for side, forgotten in enumerate((in_forget, ~in_forget)):
            margins[side, forgotten] += memory[pair]
        says = margins[:, None] >= threshold
        decided.append(outcome_of_decisions(says[0], says[1], in_forget, np.ones(2 * k)))
        ranks = margins.argsort(axis=1).argsort(axis=1)  # no two margins are equal
        ranked.append(PairOutcome((ranks[0] - ranks[1]) / (2 * k), in_forget, np.ones(2 * k)))
    names = [f"a{one}" for one in range(adversaries)]
    return MarginEvidence(names, list(range(pairs)), decided, ranked, [shadows] * adversaries)


@pytest.mark.parametrize(
    ("pairs", "k", "n_games"),
    [(1, 20, 300), (2, 6, 300), (5, 10, 150), (8, 40, 100), pytest.param(20, 10, 300, marks=pytest.mark.slow)],
)
def test_honest_games_are_not_warned_of(pairs, k, n_games):
    """Retrain and a method that leaks a little, with pairs that differ: 2 methods, 4 adversaries."""
    rng = np.random.default_rng(pairs)
    leaks = [rng.normal(0.4, 0.1, pairs) for _ in range(n_games)]
    alarms = sum(
        bool(margin_warnings({"r": evidence(rng, pairs=pairs, k=k), "m": evidence(rng, pairs=pairs, k=k, memory=leak)}))
        for leak in leaks
    )
    assert alarms <= 0.01 * n_games + 2 * np.sqrt(0.01 * n_games)


def test_over_forgetting_is_seen_where_the_shadows_say_the_opposite_and_only_there():
    rng = np.random.default_rng(0)
    (line,) = margin_warnings({"mine": evidence(rng, pairs=5, k=40, memory=-0.8)})
    assert line.startswith(
        "mine: the shadow models and the models under test point in opposite directions. To a0, a1, a2 and a3"
    )
    assert "over-forgets" in line
    assert "swapped" in line
    assert margin_warnings({"mine": evidence(rng, pairs=5, k=40, memory=-0.8, shadows=Lean(0.3, -20.0))}) == []
    (line,) = margin_warnings({"mine": evidence(rng, pairs=5, k=40, memory=-0.8, shadows=None)})
    assert line.startswith("mine: the answers point the wrong way")  # decisions have no shadow models
    assert margin_warnings({"mine": evidence(rng, pairs=5, k=40, memory=0.8)}) == []


@pytest.mark.parametrize("pairs", [2, 6, 20])
def test_pairs_of_which_half_is_mislabelled_are_seen(pairs):
    """Advantages of ±0.4, one after the other."""
    rng = np.random.default_rng(1)
    found = evidence(rng, pairs=pairs, k=60, memory=np.where(np.arange(pairs) % 2 == 0, 2.2, -2.2))
    assert np.abs([outcome.advantage for outcome in found.decided]).mean() == pytest.approx(0.4, abs=0.1)
    (line,) = margin_warnings({"mine": found})
    assert "mine: the pairs contradict each other" in line
    assert "pairs 0, 2 and 4 and below 0 on pairs 1, 3 and 5" in line or pairs != 6


def test_a_threshold_far_from_the_margins_is_seen():
    rng = np.random.default_rng(2)
    (line,) = margin_warnings({"mine": evidence(rng, pairs=5, k=60, memory=1.0, threshold=6.0)})
    assert "miss it" in line


def test_silence_is_grouped_by_who_is_silent():
    lines = silence({"a": ["x"], "b": ["x"], "c": [], "d": ["x", "y"]}, ["x", "y"])
    assert [line.split(":")[0] for line in lines] == ["a and b", "d"]
    assert "nothing was measured" in lines[1]
    assert "nothing was measured" not in lines[0]


# -- the arithmetic --------------------------------------------------------------------------------------------------


def test_ranks_give_the_area_under_the_curve():
    rng = np.random.default_rng(3)
    in_forget = rng.permutation(np.repeat([True, False], 15))
    first, second = rng.integers(0, 9, (2, 30)).astype(float)  # with ties
    outcome = PairOutcome(rank_differences(first[None], second[None])[:, None], in_forget, np.ones(30))
    assert 0.5 + outcome.advantage[0] == pytest.approx(swap_auc(first, second, in_forget, np.ones(30)), abs=1e-12)
    assert mid_ranks(np.array([3.0, 1.0, 3.0, 2.0])).tolist() == [3.5, 1.0, 3.5, 2.0]


@pytest.mark.parametrize("weighted", [False, True])
def test_the_spread_of_chance_is_that_of_relabellings(weighted):
    rng = np.random.default_rng(4)
    n = 80
    differences = rng.integers(-1, 2, (n, 3)).astype(float)
    weight = rng.uniform(0.5, 2, n) if weighted else np.ones(n)
    labels = [rng.permutation(np.repeat([True, False], n // 2)) for _ in range(2000)]
    drawn = np.std([PairOutcome(differences, label, weight).advantage for label in labels], axis=0)
    outcome = PairOutcome(differences, labels[0], weight)
    assert chance_spread(outcome) == pytest.approx(drawn, rel=0.06)
    assert z_over_pairs([outcome, outcome]) == pytest.approx(np.sqrt(2) * outcome.advantage / chance_spread(outcome))


@pytest.mark.parametrize("same_members", [False, True])
def test_a_block_of_shadow_models_without_a_signal_rarely_has_a_direction(same_members):
    """Also where all models were trained on one half, so that their rows are not independent."""
    rng = np.random.default_rng(5)
    n_points, n_models, n_blocks = 60, 6, 800
    decided = 0
    for _ in range(n_blocks):
        scores = (rng.standard_normal(n_points) + 0.3 * rng.standard_normal((n_models, n_points))).ravel()
        member = rng.random((1 if same_members else n_models, n_points)) < 0.5
        rows = np.broadcast_to(member, (n_models, n_points)).ravel()
        points = np.tile(np.arange(n_points), n_models)
        decided += membership_lean(scores, rows, points % 3, points).sign != 0
    assert decided <= 0.003 * n_blocks + 2 * np.sqrt(0.003 * n_blocks)


def test_one_direction_is_found_for_all_classes_whatever_their_level():
    rng = np.random.default_rng(6)
    member, classes = rng.random(600) < 0.5, rng.integers(0, 3, 600)
    member |= (classes == 2) & (rng.random(600) < 0.6)  # a class of many members, at low scores
    scores = rng.standard_normal(600) + member - 10.0 * (classes == 2)
    lean = membership_lean(scores, member, classes)
    assert lean.sign == 1
    assert membership_lean(-scores, member, classes).auc == pytest.approx(1 - lean.auc)
    assert membership_lean(scores, np.ones(600, dtype=bool), classes) == Lean(0.5, 0.0)


def test_who_answers_the_same_of_all_points_of_each_model_decides_nothing():
    says = np.zeros((2, 3, 8, 3), dtype=bool)  # sides, seeds, points, adversaries
    says[0, :, :, 1] = True  # differs between models, not between points
    says[1, 2, 4, 2] = True
    assert decides_nothing([says, says]).tolist() == [True, True, False]


@pytest.mark.parametrize(("n_pairs", "k", "n_points"), [(2, 6, 18), (8, 20, 60), (8, 30, 1000), (20, 40, 80)])
def test_independent_pairs_are_not_called_copies(n_pairs, k, n_points):
    """Also where all points are in every pair."""
    rng = np.random.default_rng(n_points)
    signs = np.repeat([1.0, -1.0], k).astype(np.float32)

    def game():
        side = np.zeros((n_pairs, n_points), dtype=np.float32)
        for row in side:
            row[rng.permutation(n_points)[: 2 * k]] = signs
        return side

    assert sum(bool(near_copies(game())) for _ in range(300)) <= 3 + 2 * np.sqrt(3)


@pytest.mark.parametrize("jitter", [0.0, 1e-6, 1e-4])
def test_margins_of_one_model_are_a_copy_up_to_rounding_and_those_of_two_are_not(jitter):
    rng = np.random.default_rng(0)
    first = rng.standard_normal((2, 200))
    assert is_copy(first, first + jitter * rng.standard_normal(first.shape))
    assert not is_copy(first, first + 0.05 * rng.standard_normal(first.shape))
    assert not is_copy(np.round(first), np.round(first))  # too coarse to tell one model from two
    huge = np.where(first > 1, 1e300, first)
    assert not is_copy(huge, huge + 0.05 * rng.standard_normal(first.shape))
