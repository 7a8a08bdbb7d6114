import itertools
import math

import numpy as np
import pytest

from forgetgauge.game import strong
from forgetgauge.game.advantage import swap_advantage
from forgetgauge.game.strong import WHOLE_SET, draw_queries, strong_advantage, strong_threshold


def queries(weight, n_queries, seed=0, n_draws=500):
    return draw_queries(weight, [n_queries], n_draws, np.random.default_rng(seed))


def acceptance(shown, margins, n_queries, threshold):
    """Of one adversary."""
    return shown.acceptance(margins[:, None], {n_queries: np.array([threshold])})[n_queries][0]


def advantage(first, second, side, n_queries, threshold, of_forget, of_unseen):
    """Of one adversary."""
    thresholds = {n_queries: np.array([threshold])}
    return strong_advantage(first[:, None], second[:, None], side, thresholds, of_forget, of_unseen)[n_queries][0]


def exact_acceptance(margins, probabilities, n_queries, threshold):
    """Every sequence of q points with its probability."""
    return sum(
        math.prod(probabilities[list(seen)])
        for seen in itertools.product(range(len(margins)), repeat=n_queries)
        if np.mean(margins[list(seen)]) >= threshold
    )


@pytest.mark.parametrize("n_queries", [2, 3, 5])
def test_monte_carlo_agrees_with_enumerating_every_play(n_queries):
    margins, weight = np.array([-1.0, 0.25, 0.5, 2.0]), np.array([1.0, 3.0, 2.0, 0.5])
    expected = exact_acceptance(margins, weight / weight.sum(), n_queries, 0.3)
    found = acceptance(queries(weight, n_queries, n_draws=40_000), margins, n_queries, 0.3)
    assert found == pytest.approx(expected, abs=4 * math.sqrt(0.25 / 40_000))


def test_one_query_and_the_whole_set_need_no_draws():
    margins, weight = np.array([-1.0, 0.25, 0.5, 2.0]), np.array([1.0, 3.0, 2.0, 0.0])
    one, whole = queries(weight, 1), queries(weight, WHOLE_SET)
    assert one.drawn.size == whole.drawn.size == 0
    assert acceptance(one, margins, 1, 0.25) == pytest.approx(5 / 6)
    assert acceptance(whole, margins, WHOLE_SET, 0.12) == 1  # the weighted mean is 0.125
    assert acceptance(whole, margins, WHOLE_SET, 0.13) == 0


def test_a_point_without_weight_is_never_drawn():
    drawn = queries([0.0, 1.0, 0.0, 2.0, 0.0], 3, n_draws=5000).drawn
    assert set(np.unique(drawn)) == {1, 3}


def test_equal_generators_draw_alike_and_more_queries_begin_with_fewer():
    weight = np.arange(1.0, 8.0)
    few, more = queries(weight, 3, seed=5), queries(weight, 10, seed=5)
    assert np.array_equal(few.drawn, queries(weight, 3, seed=5).drawn)
    assert np.array_equal(few.drawn, more.drawn[:3])


def test_points_are_found_as_a_binary_search_finds_them():
    rng = np.random.default_rng(1)
    for weight in (np.ones(299), rng.lognormal(sigma=3, size=50), np.array([0.0, 1, 0, 0, 2, 0]), np.ones(1)):
        steps = np.cumsum(weight) / weight.sum()
        uniforms = np.concatenate([rng.random(998), [0.0], np.nextafter(steps, 0), steps[steps < 1]])
        expected = np.searchsorted(steps, uniforms, side="right")
        assert np.array_equal(strong._steps_passed(steps, uniforms.reshape(1, -1)), expected[None])


@pytest.mark.parametrize("chunk", [2_000_000, 700])
def test_many_attacks_and_queries_at_once_are_each_play_by_itself(monkeypatch, chunk):
    monkeypatch.setattr(strong, "_CHUNK_ENTRIES", chunk)  # 700: one attack at a time
    rng, k, n_attacks, n_draws = np.random.default_rng(2), 12, 3, 500
    first, second = rng.normal(size=(2, 2 * k, n_attacks))
    side, weight = rng.permuted(np.arange(2 * k) < k), rng.uniform(0.5, 2, 2 * k)
    thresholds = {q: rng.normal(scale=0.3, size=n_attacks) for q in (16, 1, WHOLE_SET, 4)}
    shown = [
        draw_queries(weight[members], list(thresholds), n_draws, np.random.default_rng(3)) for members in (side, ~side)
    ]

    def accepted(margins, members, set_shown, q, threshold):
        if q == 1:
            return np.average(margins[members] >= threshold, weights=weight[members])
        if q == WHOLE_SET:
            return np.average(margins[members], weights=weight[members]) >= threshold
        plays = set_shown.drawn[:q].T
        return np.mean([margins[members][play].mean() >= threshold for play in plays])

    found = strong_advantage(first, second, side, thresholds, *shown)
    assert list(found) == list(thresholds)
    for q, n in itertools.product(thresholds, range(n_attacks)):
        of_forget, of_unseen = (
            float(accepted(first[:, n], members, of, q, thresholds[q][n]))
            - float(accepted(second[:, n], members, of, q, thresholds[q][n]))
            for members, of in zip((side, ~side), shown, strict=True)
        )
        assert found[q][n] == pytest.approx((of_forget - of_unseen) / 2)


@pytest.mark.parametrize("n_queries", [1, 2, 7, 50, WHOLE_SET])
@pytest.mark.parametrize("seed", range(3))
def test_one_model_shared_by_both_sides_gives_exactly_zero(n_queries, seed):
    rng, k = np.random.default_rng(seed), 11
    margins, weight, side = rng.normal(size=2 * k), rng.uniform(0.1, 2, 2 * k), rng.permuted(np.arange(2 * k) % 2 == 0)
    of_forget, of_unseen = (queries(weight[members], n_queries, seed=9) for members in (side, ~side))
    assert advantage(margins, margins, side, n_queries, 0.1, of_forget, of_unseen) == 0.0


def test_exchanging_the_sides_with_their_models_changes_nothing():
    rng, k = np.random.default_rng(2), 9
    first, second, side = rng.normal(size=2 * k), rng.normal(size=2 * k), np.arange(2 * k) < k
    of_forget, of_unseen = queries(np.ones(k), 4, seed=1), queries(np.ones(k), 4, seed=2)
    one = advantage(first, second, side, 4, 0.1, of_forget, of_unseen)
    assert one == advantage(second, first, ~side, 4, 0.1, of_unseen, of_forget)


def test_one_query_is_the_weak_adversary():
    rng, k = np.random.default_rng(3), 20
    first, second, side = rng.normal(size=2 * k), rng.normal(size=2 * k), rng.permuted(np.arange(2 * k) < k)
    weight = rng.uniform(0.5, 2, 2 * k)
    weak = swap_advantage(first >= 0.2, second >= 0.2, side, weight)
    found = advantage(first, second, side, 1, 0.2, queries(weight[side], 1), queries(weight[~side], 1))
    assert found == pytest.approx(weak)


def test_more_queries_see_a_faint_memory_better():
    rng, k = np.random.default_rng(4), 200
    base, side = rng.normal(size=2 * k), np.arange(2 * k) < k
    first, second = base + 0.5 * side, base + 0.5 * ~side
    gains = [
        advantage(first, second, side, q, 0.25, queries(np.ones(k), q, seed=1), queries(np.ones(k), q, seed=2))
        for q in (1, 10, 100)
    ]
    assert gains[0] < gains[1] - 0.2 < gains[2] - 0.3
    assert gains[2] > 0.9


@pytest.mark.parametrize(("n_queries", "low", "high"), [(1, -0.2, 1.2), (20, 0.3, 0.7), (WHOLE_SET, 0.3, 0.7)])
def test_the_threshold_separates_the_shadows(n_queries, low, high):
    rng = np.random.default_rng(5)
    members, others = ([rng.normal(shift, 1, 300) for _ in range(4)] for shift in (1.0, 0.0))
    assert low < strong_threshold(members, others, n_queries, 500, rng) < high


def test_the_threshold_lies_midway_and_accepts_all_when_nothing_helps():
    rng = np.random.default_rng(6)
    assert strong_threshold([np.array([2.0, 3.0])], [np.array([0.0, 1.0])], 1, 1, rng) == 1.5
    assert strong_threshold([np.array([0.0, 1.0])], [np.array([2.0, 3.0])], 1, 1, rng) == 0.0
    assert strong_threshold([np.array([1.0, 3.0])], [np.array([2.0, 0.0, 4.0])], 1, 1, rng) == 0.5
    assert strong_threshold([np.array([1.0])], [np.array([1.0])], 5, 10, rng) == 1.0


def test_shadow_models_that_differ_are_not_pooled():
    """Whole-set means of the shadows are ±10 whatever the membership: pooling would see members and others apart."""
    members, others = [np.array([10.1]), np.array([-9.9])], [np.array([10.0]), np.array([-10.0])]
    threshold = strong_threshold(members, others, WHOLE_SET, 1, np.random.default_rng(7))
    assert threshold == pytest.approx(-9.95)


@pytest.mark.parametrize("n_queries", [0, -1, 1.5, math.nan, -math.inf])
def test_a_number_of_queries_that_makes_no_sense_is_refused(n_queries):
    with pytest.raises(ValueError, match="whole number of queries"):
        queries(np.ones(3), n_queries)


def test_nonsense_is_refused():
    rng = np.random.default_rng(8)
    with pytest.raises(ValueError, match="one play"):
        draw_queries(np.ones(3), [2], 0, rng)
    with pytest.raises(ValueError, match="not all be zero"):
        draw_queries(np.zeros(3), [2], 5, rng)
    with pytest.raises(ValueError, match="finite"):
        acceptance(queries(np.ones(2), 1), np.array([0.0, np.inf]), 1, 0.0)
    with pytest.raises(ValueError, match="a set of"):
        acceptance(queries(np.ones(2), 1), np.zeros(3), 1, 0.0)
    with pytest.raises(ValueError, match="only 3 queries"):
        acceptance(queries(np.ones(2), 3), np.zeros(2), 4, 0.0)
    with pytest.raises(ValueError, match="both sorts"):
        strong_threshold([], [np.ones(2)], 1, 1, rng)
    with pytest.raises(ValueError, match="same points"):
        advantage(np.zeros(3), np.zeros(4), np.ones(4, bool), 1, 0.0, queries(np.ones(2), 1), queries(np.ones(2), 1))


@pytest.mark.parametrize("copies", [1, 3])
def test_shadow_models_of_a_sort_share_its_weight_however_many_there_are(copies):
    members = [np.array([0.0, 1.0, 2.0, 2.0])] * copies
    others = [np.array([0.0, 0.0, 1.0, 1.5])]
    found = strong_threshold(members, others, 1, 1, np.random.default_rng(0))
    assert found == 1.75  # ½ of the members and none of the others; the share of neither is counted by the model


def test_a_threshold_is_the_best_of_all_there_are():
    rng = np.random.default_rng(3)
    members = [rng.integers(0, 12, 7) + 1.0 for _ in range(3)]
    others = [rng.integers(0, 12, 7) + 0.0 for _ in range(2)]

    def gain(threshold):
        mine, theirs = (np.mean([(each >= threshold).mean() for each in sets]) for sets in (members, others))
        return mine - theirs

    found = strong_threshold(members, others, 1, 1, rng)
    best = max(gain(threshold) for threshold in np.arange(-1, 15, 0.25))
    assert gain(found) == pytest.approx(best)
    seen = np.concatenate([*members, *others])
    assert not any(gain(lower) > best - 1e-9 for lower in seen[seen < found])  # the smallest of the best
