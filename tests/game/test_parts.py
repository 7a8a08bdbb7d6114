"""Q of parts of the points: against a direct computation, and its simultaneous intervals by simulation."""

import numpy as np
import pytest

from forgetgauge.game.advantage import PairOutcome, outcome_of_decisions, signed_advantage
from forgetgauge.game.parts import advantage_by_part, restricted
from forgetgauge.game.quality import best_adversary


def game(rng, n_pairs=8, k=30, n_parts=4, leak=(), n_adversaries=1):
    """Decisions of adversaries; points of the parts in `leak` are seen more often where they are forgotten."""
    outcomes, parts = [], []
    for _ in range(n_pairs):
        side = rng.permutation(np.repeat([True, False], k))
        part = rng.integers(n_parts, size=2 * k)
        chance = 0.4 + 0.4 * np.isin(part, leak) * np.stack([side, ~side])
        first, second = rng.random((2, 2 * k, n_adversaries)) < chance[..., None]
        outcomes.append(outcome_of_decisions(first[None], second[None], side, np.ones(2 * k)))
        parts.append(part)
    return outcomes, [[part == which for part in parts] for which in range(n_parts)]


def test_a_part_is_the_mean_of_its_two_sides_computed_one_by_one():
    rng = np.random.default_rng(0)
    outcomes, members = game(rng, leak=(2,))
    for which, found in enumerate(advantage_by_part(outcomes, members, 0)):
        by_hand = []
        for outcome, own in zip(outcomes, members[which], strict=True):
            (first,), (second,) = outcome.decisions
            sides = ((first, outcome.in_forget), (second, ~outcome.in_forget))
            by_hand.append(
                np.mean([signed_advantage(said[own, 0], side[own], np.ones(own.sum())) for said, side in sides])
            )
        assert found.by_pair == pytest.approx(np.array(by_hand))
        assert found.n_points == sum(own.sum() for own in members[which])
        assert found.interval.low <= found.advantage <= found.interval.high


def test_the_only_part_is_the_whole():
    outcomes, _ = game(np.random.default_rng(1))
    whole = [[np.ones(len(outcome.weight), dtype=bool) for outcome in outcomes]]
    (found,) = advantage_by_part(outcomes, whole, 0)
    assert found.by_pair == pytest.approx(np.array([outcome.advantage[0] for outcome in outcomes]))


def test_a_pair_without_such_points_on_both_sides_is_left_out():
    outcome = PairOutcome(np.array([[1.0], [0.0], [-1.0], [0.0]]), np.array([True, True, False, False]), np.ones(4))
    assert restricted(outcome, np.array([True, False, False, False])) is None
    kept = restricted(outcome, np.array([True, False, True, False]))
    assert kept.advantage == pytest.approx([1.0])
    members = [np.array([True, False, False, False])], [np.array([True, False, True, False])]
    nothing, something = advantage_by_part([outcome], members, 0)
    assert nothing is None
    assert len(something.by_pair) == 1


def test_more_looks_make_wider_intervals():
    outcomes, members = game(np.random.default_rng(2))
    few, many = (advantage_by_part(outcomes, members, 0, n_looks=n)[0].interval for n in (4, 40))
    assert many.low < few.low
    assert few.high < many.high
    assert advantage_by_part(outcomes, members, 0)[0].interval == few


def test_all_parts_are_covered_together_as_often_as_it_says():
    """Where nothing leaks, and where one part alone does."""
    rng = np.random.default_rng(3)
    together, alone = [], []
    for run in range(300):
        leak = (0,) if run % 2 else ()
        outcomes, members = game(rng, n_parts=6, k=40, leak=leak)
        found = advantage_by_part(outcomes, members, 0)
        hits = [one.interval.low <= 0.4 * (which in leak) <= one.interval.high for which, one in enumerate(found)]
        together.append(all(hits))
        single = advantage_by_part(outcomes, members, 0, n_looks=1)
        alone.append(all(one.interval.low <= 0.4 * (i in leak) <= one.interval.high for i, one in enumerate(single)))
    assert np.mean(together) > 0.93
    assert np.mean(alone) < 0.85  # what a reader of six intervals would be told without the adjustment


def test_all_parts_are_covered_together_although_the_adversary_was_chosen_on_the_same_pairs():
    rng, covered = np.random.default_rng(5), []
    for _ in range(400):
        outcomes, members = game(rng, k=100, n_parts=2, n_adversaries=9)
        best = best_adversary(np.mean([outcome.advantage for outcome in outcomes], axis=0))
        found = [one.interval for one in advantage_by_part(outcomes, members, best)]
        covered.append(all(one.low <= 0 <= one.high for one in found))
    assert np.mean(covered) > 0.93


def test_where_groups_are_drawn_a_part_is_of_points_and_its_unit_the_group():
    rng = np.random.default_rng(4)
    outcomes, members, by_hand = [], [], []
    for _ in range(6):
        group = np.repeat(np.arange(20), 3)
        side, part, weight = (group % 2 == 0), rng.integers(2, size=60) == 0, rng.uniform(0.5, 2, size=60)
        first, second = rng.random((2, 1, 60, 1)) < 0.5
        outcomes.append(outcome_of_decisions(first, second, side, weight, group))
        members.append(part)
        sides = ((first[0, :, 0], side), (second[0, :, 0], ~side))
        by_hand.append(np.mean([signed_advantage(said[part], of[part], weight[part]) for said, of in sides]))
    (found,) = advantage_by_part(outcomes, [members], 0)
    assert found.by_pair == pytest.approx(np.array(by_hand))
    assert found.n_points == sum(part.sum() for part in members)
    kept = restricted(outcomes[0], members[0])
    assert len(kept.weight) == 20
