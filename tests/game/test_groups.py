"""Groups are forgotten together: what is drawn, what an advantage weighs, the unit of every statistic."""

from itertools import combinations

import numpy as np
import pytest

from forgetgauge.game.advantage import (
    Grouped,
    PairOutcome,
    outcome_of_decisions,
    outcome_of_differences,
    signed_advantage,
)
from forgetgauge.game.direction import differ_by_themselves
from forgetgauge.game.intervals import welch_interval
from forgetgauge.game.one_model import groups_test, log_p_of_most_visible
from forgetgauge.game.sensitivity import by_group, uniform
from forgetgauge.game.splits import Split, Units, draw_pair, draw_split

from .simulation import noise_floor


def unequal(n_groups: int, rng: np.random.Generator) -> np.ndarray:
    """(n_points,) groups of one to nine points, shuffled, under any names."""
    groups = np.repeat(7 * np.arange(n_groups) - 20, rng.integers(1, 10, n_groups))
    return rng.permutation(groups)


# -- what is drawn -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_a_split_by_groups_cuts_none_and_has_as_many_groups_in_f_as_in_t(seed):
    rng = np.random.default_rng(seed)
    groups = unequal(30, rng)
    pair = draw_pair(len(groups), 0.25, rng, groups)
    for split in pair.sides:
        parts = [set(groups[part].tolist()) for part in (split.retain, split.forget, split.unseen)]
        assert [len(part) for part in parts] == [18, 6, 6]
        assert set.union(*parts) == set(groups.tolist())
        assert split.n == len(groups)
    assert pair.split.swapped().swapped() == pair.split
    np.testing.assert_array_equal(pair.groups, groups[pair.points])
    np.testing.assert_array_equal(pair.in_forget, np.isin(pair.points, pair.split.forget))


def test_groups_of_one_point_are_drawn_as_points_are():
    plain = draw_split(40, 0.3, np.random.default_rng(3))
    grouped = draw_split(40, 0.3, np.random.default_rng(3), np.arange(40))
    assert plain == grouped


def test_every_group_is_forgotten_as_often():
    groups, rng = np.repeat(np.arange(6), [1, 2, 3, 4, 5, 6]), np.random.default_rng(0)
    times = np.zeros(len(groups))
    for _ in range(3000):
        times[draw_split(len(groups), 0.5, rng, groups).forget] += 1
    assert np.abs(times / 3000 - 1 / 3).max() < 0.04  # two of six groups, whatever their sizes


def test_a_cut_group_is_refused():
    with pytest.raises(ValueError, match="all be in one set"):
        Split(np.array([0]), np.array([1, 2]), np.array([3, 4]), np.array([0, 1, 2, 2, 3]))
    with pytest.raises(ValueError, match="1 and 2 groups"):
        Split(np.array([0]), np.array([1, 2]), np.array([3, 4]), np.array([0, 1, 1, 2, 3]))
    with pytest.raises(ValueError, match="all be in F or all in T"):
        Grouped.of([1, 1, 2], [True, False, True], [1, 1, 1])


def test_units_lead_to_their_points_in_the_order_they_were_drawn_in():
    units = Units.of(6, np.array([5, 9, 5, 2, 9, 5]))
    assert units.n == 3
    np.testing.assert_array_equal(units.points_in(np.array([2, 0])), [1, 4, 3])
    np.testing.assert_array_equal(units.members(np.array([1])), [True, False, True, False, False, True])
    np.testing.assert_array_equal(Units.of(4).points_in(np.array([3, 1])), [3, 1])


# -- what an advantage weighs ------------------------------------------------------------------------------------------


def test_with_equal_weights_every_group_weighs_the_same_and_a_point_its_share_of_it():
    groups = np.array([1, 1, 1, 2, 3, 3])
    np.testing.assert_allclose(by_group(uniform(6), groups), [1 / 9, 1 / 9, 1 / 9, 1 / 3, 1 / 6, 1 / 6])
    weights = by_group(np.array([1, 2, 3, 4, 0, 1.0]), groups)  # a group weighs as its mean point: 2, 4, ½
    np.testing.assert_allclose([weights[groups == one].sum() for one in (1, 2, 3)], np.array([2, 4, 0.5]) / 6.5)


def test_the_advantage_is_the_difference_of_the_mean_rates_of_groups():
    rng = np.random.default_rng(0)
    groups = unequal(8, rng)
    names = np.unique(groups)
    in_forget = np.isin(groups, names[:4])
    first, second = rng.random((2, 3, len(groups), 2)) < 0.4  # (seeds, points, adversaries) each
    found = outcome_of_decisions(first, second, in_forget, by_group(uniform(len(groups)), groups), groups)
    assert found.k == 4
    assert found.differences.shape == (8, 2)
    change = (first * 1.0 - second).mean(axis=0)
    rates = [change[groups == name].mean(axis=0) for name in names]
    np.testing.assert_allclose(found.advantage, (np.mean(rates[:4], axis=0) - np.mean(rates[4:], axis=0)) / 2)


def test_one_answer_for_a_whole_group_has_the_same_advantage_counted_by_points_or_by_groups():
    rng = np.random.default_rng(1)
    groups = unequal(12, rng)
    place = np.unique(groups, return_inverse=True)[1]
    weight = by_group(rng.random(len(groups)), groups)
    says = rng.random(12) < 0.5
    by_point = signed_advantage(says[place], place < 6, weight)
    by_whole = signed_advantage(says, np.arange(12) < 6, np.bincount(place, weights=weight))
    assert by_point == pytest.approx(by_whole)


# -- the group is the unit of every statistic --------------------------------------------------------------------------


def test_the_noise_floor_is_that_of_relabelled_groups_all_listed():
    rng = np.random.default_rng(4)
    groups = unequal(6, rng)
    in_forget = np.isin(groups, np.unique(groups)[:3])
    weight = by_group(rng.random(len(groups)), groups)
    differences = rng.uniform(-1, 1, (len(groups), 2))
    every = []
    for chosen in combinations(np.unique(groups), 3):
        label = np.isin(groups, chosen)
        means = [(weight[s] @ differences[s]) / weight[s].sum() for s in (label, ~label)]
        every.append(np.abs(means[0] - means[1]).max() / 2)
    found = outcome_of_differences(differences, in_forget, weight, groups)
    floor = noise_floor([found], rng, 20_000)
    observed = np.abs(found.advantage).max()
    assert floor.mean == pytest.approx(np.mean(every), rel=0.02)
    assert floor.p_value == pytest.approx(np.mean(np.array(every) >= observed - 1e-12), abs=0.015)


def answers_of_retrained(rng, n_groups=24, size=6) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of both models (1 seed, points, 1 adversary) each, and the groups: models that never saw F or T, whose answers
    are nearly the same for all points of a group; the first half of the groups is in F."""
    groups = np.repeat(np.arange(n_groups), size)
    latent = rng.normal(size=(2, n_groups, 1)) + 0.2 * rng.normal(size=(2, n_groups, size))
    first, second = (latent > 0).reshape(2, 1, -1, 1)
    return first, second, groups


def test_p_is_valid_by_groups_and_would_not_be_by_points():
    """Of 600 retrained pairs, at most about 5 % have p ≤ 0.05; relabelled point by point, about half have."""
    rng, by_groups, by_points = np.random.default_rng(0), [], []
    for _ in range(600):
        first, second, groups = answers_of_retrained(rng)
        in_forget, ones = groups < 12, np.ones(len(groups))
        for found, group in ((by_groups, groups), (by_points, None)):
            found.append(noise_floor([outcome_of_decisions(first, second, in_forget, ones, group)], rng, 99).p_value)
    assert np.mean(np.array(by_groups) <= 0.05) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 600)
    assert np.mean(np.array(by_points) <= 0.05) > 0.25


def test_the_most_visible_model_has_a_valid_p_by_groups_and_would_not_by_points():
    rng, by_groups, by_points = np.random.default_rng(1), [], []
    for _ in range(400):
        first, second, groups = answers_of_retrained(rng)
        in_forget, ones = groups < 12, np.ones(len(groups))
        for found, group in ((by_groups, groups), (by_points, None)):
            log_p, n_models = log_p_of_most_visible([outcome_of_decisions(first, second, in_forget, ones, group)])
            assert n_models == 2
            found.append(np.exp(log_p))
    assert np.mean(np.array(by_groups) <= 0.1) < 0.1 + 3 * np.sqrt(0.1 * 0.9 / 400)
    assert np.mean(np.array(by_points) <= 0.1) > 0.3


def test_the_most_visible_model_is_found_among_all_and_tested_as_one_model_of_groups_is():
    rng = np.random.default_rng(2)
    groups = unequal(10, rng)
    place = np.unique(groups, return_inverse=True)[1]
    in_forget = place < 5
    says = rng.random((2, 3, len(groups), 2)) < 0.5
    says[1, 2, :, 1] = ~in_forget  # one model of the second side, whose F is the first's T, shows it all
    found = outcome_of_decisions(says[0], says[1], in_forget, np.ones(len(groups)), groups)
    log_p, n_models = log_p_of_most_visible([found])
    best = groups_test(says[1, 2, :, 1], ~in_forget, place).log_p
    assert (log_p, n_models) == (pytest.approx(best + np.log(12)), 6)


def test_an_interval_given_the_models_covers_by_groups_and_would_not_by_points():
    """Groups are drawn from a population whose mean change is 0.2; the points of a group change together."""
    rng, held = np.random.default_rng(3), {True: 0, False: 0}
    for _ in range(400):
        groups = np.repeat(np.arange(40), rng.integers(4, 9, 40))
        sign = np.where(groups < 20, 1, -1)
        of_group = rng.choice([0.0, 1.0], 40, p=[0.8, 0.2])[groups]  # 0.2 on average: half of the two sets' distance
        differences = (of_group * sign * (rng.random(len(groups)) < 0.95))[:, None]
        weight = by_group(uniform(len(groups)), groups)
        outcome = outcome_of_differences(differences, groups < 20, weight, groups)
        pointwise = interval_by_points(differences, groups < 20, weight)
        held[True] += holds(welch_interval([outcome], 0), 0.19)
        held[False] += holds(pointwise, 0.19)
    assert held[True] / 400 >= 0.92
    assert held[False] / 400 < 0.75


def interval_by_points(differences, in_forget, weight):
    """As if every point had been drawn by itself; sets of one size are made by leaving points out."""
    k = min(int(in_forget.sum()), int((~in_forget).sum()))
    kept = np.concatenate([np.flatnonzero(in_forget)[:k], np.flatnonzero(~in_forget)[:k]])
    return welch_interval([PairOutcome(differences[kept], in_forget[kept], weight[kept])], 0)


def holds(interval, truth) -> bool:
    return interval.low <= truth <= interval.high


def test_sets_that_differ_by_themselves_are_noticed_by_groups():
    rng = np.random.default_rng(5)
    groups = np.repeat(np.arange(200), 4)
    drawn = (rng.random(200) < 0.5)[groups]
    honest = np.broadcast_to(drawn[None, None, :, None], (2, 1, 800, 1)).copy()
    assert not differ_by_themselves([outcome_of_decisions(*honest, groups < 100, np.ones(800), groups)])
    told = np.broadcast_to((groups < 100)[None, None, :, None], (2, 1, 800, 1)).copy()
    assert differ_by_themselves([outcome_of_decisions(*told, groups < 100, np.ones(800), groups)])
