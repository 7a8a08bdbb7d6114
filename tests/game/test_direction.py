"""Which way a score points, against counting by hand and against every draw there is."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from forgetgauge.game.advantage import PairOutcome, outcome_of_decisions
from forgetgauge.game.diagnostics import swap_auc
from forgetgauge.game.direction import (
    DECIDED,
    Lean,
    chance_spread,
    decides_nothing,
    differ_by_themselves,
    membership_lean,
    mid_ranks,
    rank_differences,
    rarer_than,
    z_by_pair,
    z_over_pairs,
)

IN_FORGET = np.arange(8) < 4


def relabellings(n: int) -> list[np.ndarray]:
    """Every half of n points."""
    return [np.isin(np.arange(n), half) for half in combinations(range(n), n // 2)]


def lean_by_hand(scores, member, classes, points) -> tuple[float, float]:
    """Couples are counted one by one; of each class the rows' shares in the sum are added up point by point."""
    above, couples, by_point = 0.0, 0.0, dict.fromkeys(points.tolist(), 0.0)
    for own in sorted(set(classes.tolist())):
        rows = [row for row in range(len(scores)) if classes[row] == own]
        mine, others = [r for r in rows if member[r]], [r for r in rows if not member[r]]
        if not mine or not others:
            continue
        wins = sum((scores[a] > scores[b]) + 0.5 * (scores[a] == scores[b]) for a in mine for b in others)
        above += wins / (len(rows) + 1)
        couples += len(mine) * len(others) / (len(rows) + 1)
        ranks = stats.rankdata([scores[r] for r in rows])
        for row, rank in zip(rows, ranks, strict=True):
            centred = (rank - ranks.mean()) * (member[row] - len(mine) / len(rows))
            by_point[points[row].item()] += centred / (len(rows) + 1)
    return above / couples, sum(by_point.values()) / math.sqrt(sum(value**2 for value in by_point.values()))


@pytest.mark.parametrize("seed", range(6))
def test_a_lean_is_what_counting_couples_within_classes_gives(seed):
    rng = np.random.default_rng(seed)
    scores, member = rng.integers(0, 12, 40).astype(float), rng.random(40) < 0.4
    classes, points = rng.integers(0, 3, 40), rng.integers(0, 15, 40)
    classes[:3], member[:3] = 7, True  # of a class without others nothing can be said
    found = membership_lean(scores, member, classes, points)
    assert (found.auc, found.z) == pytest.approx(lean_by_hand(scores, member, classes, points))
    alone = membership_lean(scores, member, classes)
    assert (alone.auc, alone.z) == pytest.approx(lean_by_hand(scores, member, classes, np.arange(40)))


def test_where_no_class_has_both_sorts_or_all_scores_are_equal_there_is_no_lean():
    member = np.array([True, True, False, False])
    assert membership_lean(np.arange(4.0), member, np.array([0, 0, 1, 1])) == Lean(0.5, 0.0)
    assert membership_lean(np.ones(4), member, np.zeros(4, dtype=np.int64)) == Lean(0.5, 0.0)


def test_a_direction_is_decided_from_three_deviations_on():
    assert 2 * stats.norm.sf(DECIDED) == pytest.approx(0.003, abs=5e-4)
    signs = [Lean(0.5, z).sign for z in (-9.0, -3.0, -2.99, 0.0, 2.99, 3.0, 9.0)]
    assert signs == [-1, -1, 0, 0, 0, 1, 1]


def test_mid_ranks_are_scipys():
    values = np.random.default_rng(0).integers(0, 6, 30).astype(float)
    np.testing.assert_allclose(mid_ranks(values), stats.rankdata(values))


def test_differences_of_ranks_give_the_auc_of_a_pair():
    rng = np.random.default_rng(1)
    first, second = rng.integers(0, 5, (2, 3, 8)).astype(float)
    d = rank_differences(first, second)
    aucs = [swap_auc(a, b, IN_FORGET, np.ones(8)) for a, b in zip(first, second, strict=True)]
    assert (d[IN_FORGET].mean() - d[~IN_FORGET].mean()) / 2 == pytest.approx(np.mean(aucs) - 0.5)


def random_outcome(seed: int, weight: np.ndarray | None = None) -> PairOutcome:
    rng = np.random.default_rng(seed)
    return PairOutcome(rng.uniform(-1, 1, (8, 3)), IN_FORGET, np.ones(8) if weight is None else weight)


@pytest.mark.parametrize("scale", [1.0, 5.0])
def test_the_spread_by_chance_is_that_over_all_halves(scale):
    outcome = random_outcome(2, np.full(8, scale))
    every = [PairOutcome(outcome.differences, half, outcome.weight).advantage for half in relabellings(8)]
    np.testing.assert_allclose(chance_spread(outcome), np.std(every, axis=0))


def test_the_spread_by_chance_of_nearly_equal_weights_is_nearly_that_over_all_halves():
    outcome = random_outcome(3, 1 + 0.02 * np.random.default_rng(4).normal(size=8))
    every = [PairOutcome(outcome.differences, half, outcome.weight).advantage for half in relabellings(8)]
    np.testing.assert_allclose(chance_spread(outcome), np.std(every, axis=0), rtol=0.01)


def test_advantages_are_measured_in_deviations_of_chance_alone_and_over_pairs():
    outcomes = [random_outcome(5), random_outcome(6)]
    still = PairOutcome(np.zeros((8, 3)), IN_FORGET, np.ones(8))
    every = [[PairOutcome(o.differences, h, o.weight).advantage for h in relabellings(8)] for o in outcomes]
    spreads = np.std(every, axis=1)
    np.testing.assert_allclose(z_by_pair(outcomes), [o.advantage for o in outcomes] / spreads)
    together = np.std([a + b for a in every[0] for b in every[1]], axis=0)  # all couples of halves
    np.testing.assert_allclose(z_over_pairs(outcomes), sum(o.advantage for o in outcomes) / together)
    np.testing.assert_array_equal(z_by_pair([still]), np.zeros((1, 3)))
    np.testing.assert_array_equal(z_over_pairs([still]), np.zeros(3))


def test_rarity_is_the_normal_tail():
    assert [rarer_than(chance) for chance in (0.5, 0.1, 1e-9)] == pytest.approx(stats.norm.isf([0.5, 0.1, 1e-9]))


def test_f_and_t_differ_by_themselves_where_the_sum_over_both_models_does_as_seldom_as_is_said():
    rng = np.random.default_rng(7)
    outcomes = []
    for _ in range(2):
        says = rng.random((2, 3, 8, 2)) < np.where(IN_FORGET, 0.7, 0.3)[:, None]
        outcomes.append(outcome_of_decisions(says[0], says[1], IN_FORGET, np.ones(8)))
    largest = 0.0
    for outcome in outcomes:
        total = outcome.decisions.sum(axis=(0, 1))
        every = np.array([total[half].mean(axis=0) - total[~half].mean(axis=0) for half in relabellings(8)])
        seen = total[IN_FORGET].mean(axis=0) - total[~IN_FORGET].mean(axis=0)
        largest = max(largest, np.abs(seen / every.std(axis=0)).max())
    chance = 2 * 4 * stats.norm.sf(largest)  # two sides, two pairs and two adversaries
    assert differ_by_themselves(outcomes, 1.001 * chance)
    assert not differ_by_themselves(outcomes, 0.999 * chance)
    assert chance > 1e-3
    assert not differ_by_themselves(outcomes)
    told = np.broadcast_to((np.arange(40) < 20)[None, :, None], (1, 40, 1))
    apart = outcome_of_decisions(told, told, np.arange(40) < 20, np.ones(40))
    assert differ_by_themselves([apart])
    assert not differ_by_themselves([random_outcome(8)])  # no decisions, nothing to see


def test_who_answers_the_same_of_all_points_of_each_model_decides_nothing():
    says = np.zeros((2, 2, 6, 3), dtype=bool)
    says[1, 0, :, 1] = True  # of one model yes, of the others no
    says[0, 1, 4, 2] = True
    assert decides_nothing([says]).tolist() == [True, True, False]
    assert decides_nothing([says, says[..., [2, 1, 0]]]).tolist() == [False, True, False]
