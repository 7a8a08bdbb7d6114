import tracemalloc
from itertools import combinations, product

import numpy as np
import pytest

from forgetgauge.game import permutation
from forgetgauge.game.advantage import PairOutcome, advantage_of_differences
from forgetgauge.game.permutation import noise_floors

from .simulation import noise_floor


def outcome(rng, k=6, n_adversaries=3, effect=0.0, weighted=False):
    in_forget = np.repeat([True, False], k)
    differences = rng.uniform(-0.5, 0.5, (2 * k, n_adversaries)) + effect * np.where(in_forget, 1, -1)[:, None]
    weight = rng.lognormal(size=2 * k) if weighted else np.ones(2 * k)
    return PairOutcome(differences, in_forget, weight)


def all_statistics(outcomes, over_pairs=lambda advantages: np.mean(advantages, axis=0)) -> np.ndarray:
    """Every relabelling of every pair, written out: what the random ones are drawn from."""
    by_pair = []
    for one in outcomes:
        advantages = []
        for chosen in combinations(range(2 * one.k), one.k):
            label = np.isin(np.arange(2 * one.k), chosen)
            advantages.append(advantage_of_differences(one.differences, label, one.weight))
        by_pair.append(advantages)
    return np.array([np.abs(over_pairs(combination)).max() for combination in product(*by_pair)])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_pairs", [1, 2])
def test_random_relabellings_agree_with_listing_all_of_them(n_pairs, weighted):
    rng = np.random.default_rng(0)
    outcomes = [outcome(rng, k=3, effect=0.1, weighted=weighted) for _ in range(n_pairs)]
    every = all_statistics(outcomes)
    floor = noise_floor(outcomes, rng, 20_000)
    observed = np.abs(np.mean([one.advantage for one in outcomes], axis=0)).max()
    assert floor.mean == pytest.approx(every.mean(), rel=0.02)
    assert floor.q95 == pytest.approx(np.quantile(every, 0.95), rel=0.05)
    assert floor.p_value == pytest.approx((every >= observed - 1e-12).mean(), abs=0.015)
    single = all_statistics(outcomes, over_pairs=np.asarray)
    assert floor.pair_q95 == pytest.approx(np.quantile(single, 0.95), rel=0.05)


def test_chunks_do_not_change_the_result(monkeypatch):
    outcomes = [outcome(np.random.default_rng(1), weighted=True) for _ in range(2)]
    whole = noise_floor(outcomes, np.random.default_rng(2), 500)
    monkeypatch.setattr(permutation, "_CHUNK_ENTRIES", 84)  # seven rows of twelve points
    chunked = noise_floor(outcomes, np.random.default_rng(2), 500)
    assert chunked.p_value == whole.p_value
    assert (chunked.mean, chunked.q95) == pytest.approx((whole.mean, whole.q95), rel=1e-12)


def test_kinds_of_points_are_numpys_unique_rows_in_their_order():
    rng = np.random.default_rng(0)
    for rows in (rng.integers(-1, 2, (300, 4)) / 2.0, rng.normal(size=(20, 3)), np.zeros((5, 2)), np.ones((1, 1))):
        for found, expected in zip(
            permutation._distinct(rows), np.unique(rows, axis=0, return_counts=True), strict=True
        ):
            assert np.array_equal(found, expected)


def test_the_same_generator_gives_the_same_floor():
    outcomes = [outcome(np.random.default_rng(1))]
    first, second = (noise_floor(outcomes, np.random.default_rng(3), 100) for _ in range(2))
    assert first == second


def one_by_one(outcomes, rng, n_relabellings) -> tuple[float, float, float]:
    """(mean, 95 % quantile, p-value) of one method by itself, every relabelling written out point by point."""
    total = 0
    for one in outcomes:
        rows = np.column_stack([one.weight / one.weight.sum(), one.differences])
        _, kind, counts = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
        if len(counts) > len(rows) // 8:
            keys = rng.random((n_relabellings, len(rows)))
            labels = [np.isin(np.arange(len(rows)), np.argsort(each)[: one.k]) for each in keys]
        else:
            rank = [np.sum(kind[:i] == kind[i]) for i in range(len(rows))]  # within its kind
            labels = [rank < each[kind] for each in rng.multivariate_hypergeometric(counts, one.k, n_relabellings)]
        total = total + np.array([advantage_of_differences(one.differences, label, one.weight) for label in labels])
    statistic = np.abs(total / len(outcomes)).max(axis=1)
    observed = np.abs(np.mean([one.advantage for one in outcomes], axis=0)).max()
    p_value = (1 + np.sum(statistic >= observed - 1e-12)) / (1 + n_relabellings)
    return statistic.mean(), np.quantile(statistic, 0.95), p_value


def test_several_methods_together_are_each_of_them_alone(monkeypatch):
    """Few kinds of points and many, both in turn, and a method that lost its last pair."""
    rng, k = np.random.default_rng(11), 40

    def coarse_to_a(step, n_adversaries=2):
        differences = np.round(rng.uniform(-1, 1, (2 * k, n_adversaries)) / step) * step
        return PairOutcome(differences, np.repeat([True, False], k), np.ones(2 * k))

    fine, finer = [coarse_to_a(1e-3) for _ in range(4)], [coarse_to_a(1e-4, 3) for _ in range(4)]
    bits = [coarse_to_a(1.0, 1) for _ in range(4)]
    mixed = [coarse_to_a(step, 1) for step in (1e-3, 1.0, 1e-3)]
    methods = [fine, bits, finer, bits, fine[:-1], mixed]
    n_kinds, draw = [], permutation._random_counts
    monkeypatch.setattr(permutation, "_random_counts", lambda *given: n_kinds.append(len(given[0])) or draw(*given))
    together = noise_floors(methods, np.random.default_rng(12), 50)
    for each, found in zip(methods, together, strict=True):
        assert (found.mean, found.q95, found.p_value) == pytest.approx(one_by_one(each, np.random.default_rng(12), 50))
    drawn_once = 4 * [2 * k] + 4 * [3]  # by fine, finer and fine[:-1]; by bits and bits
    assert sorted(n_kinds) == sorted([*drawn_once, 3, 2 * k])  # and by mixed, after its first pair


def test_a_clear_effect_gets_the_smallest_p_value():
    outcomes = [outcome(np.random.default_rng(4), k=20, effect=0.5) for _ in range(2)]
    floor = noise_floor(outcomes, np.random.default_rng(5), 999)
    assert floor.p_value == 1 / 1000
    assert np.abs(np.mean([one.advantage for one in outcomes], axis=0)).max() > floor.q95 > floor.mean > 0


def test_no_difference_at_all_is_no_evidence():
    flat = PairOutcome(np.zeros((8, 2)), np.repeat([True, False], 4), np.ones(8))
    floor = noise_floor([flat], np.random.default_rng(6), 50)
    assert (floor.mean, floor.q95, floor.p_value) == (0.0, 0.0, 1.0)


def test_one_relabelling_serves_all_adversaries_of_a_pair():
    one = outcome(np.random.default_rng(7), k=10, n_adversaries=1)
    twice = PairOutcome(np.hstack([one.differences, -one.differences]), one.in_forget, one.weight)
    alone, both = (noise_floor([each], np.random.default_rng(8), 300) for each in (one, twice))
    assert both.p_value == alone.p_value
    assert both.mean == pytest.approx(alone.mean, rel=1e-12)


def test_weights_of_zero_may_leave_a_set_empty_without_a_warning():
    one = PairOutcome(np.full((4, 1), 0.5), np.array([True, True, False, False]), np.array([1.0, 0, 1, 0]))
    floor = noise_floor([one], np.random.default_rng(9), 200)
    assert 0 < floor.p_value <= 1
    assert np.isfinite(floor.mean)


def test_a_large_run_stays_small_in_memory():
    rng = np.random.default_rng(10)
    outcomes = [outcome(rng, k=2500, n_adversaries=8)]
    tracemalloc.start()
    noise_floor(outcomes, rng, 1000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6


def test_a_test_without_pairs_or_relabellings_is_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="at least one pair"):
        noise_floor([], rng)
    with pytest.raises(ValueError, match="same adversaries"):
        noise_floor([outcome(rng), outcome(rng, n_adversaries=2)], rng)
    with pytest.raises(ValueError, match="at least one relabelling"):
        noise_floor([outcome(rng)], rng, 0)


def test_every_relabelling_calls_exactly_half_of_the_points_forgotten_and_each_point_as_often():
    rng = np.random.default_rng(5)
    for counts in (np.ones(60, dtype=np.int64), np.array([40, 15, 5])):
        n_forget = int(counts.sum()) // 2
        drawn = permutation._random_counts(counts, n_forget, 2000, rng)
        assert (drawn.sum(axis=1) == n_forget).all()
        assert drawn.mean(axis=0) == pytest.approx(counts / 2, abs=0.2)
