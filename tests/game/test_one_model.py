"""The exact test of one model: against scipy's tails, by enumeration of every draw, and by simulation."""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np
import pytest
from scipy import special, stats

from forgetgauge.game.advantage import PairOutcome, outcome_of_decisions
from forgetgauge.game.one_model import (
    N_ANSWERS,
    ModelTest,
    group_epsilon,
    groups_test,
    half_test,
    log10_p_of_best,
    log_p_of_most_visible,
    pairs_test,
    point_epsilon,
    ranks_test,
    top_test,
)
from forgetgauge.game.one_model import _tails_over_choice as tails_over_choice
from forgetgauge.results.resolution import resolution_of


def draw(n: int, n_forget: int, rng: np.random.Generator) -> np.ndarray:
    forget = np.zeros(n, dtype=bool)
    forget[rng.choice(n, n_forget, replace=False)] = True
    return forget


# -- tails -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "n_forget"), [(8, 4), (31, 10), (600, 300), (4546, 2273)])
@pytest.mark.parametrize("rate", [0.0, 0.3, 0.5, 1.0])
def test_the_tails_of_a_half_are_scipys(n, n_forget, rate):
    rng = np.random.default_rng(n)
    forget = draw(n, n_forget, rng)
    says = rng.random(n) < np.where(forget, min(1.0, rate + 0.2), rate)
    found = half_test(says, forget)
    x, law = (says & forget).sum(), stats.hypergeom(n, n_forget, says.sum())
    assert found.log_p_above == pytest.approx(law.logsf(x - 1), rel=1e-6, abs=1e-9)
    assert found.log_p_below == pytest.approx(law.logcdf(x), rel=1e-6, abs=1e-9)
    assert found.n_right == (says == forget).sum()
    assert found.advantage == pytest.approx(says[forget].mean() - says[~forget].mean())


def test_a_tail_below_the_smallest_number_of_a_computer_is_still_told():
    forget = np.arange(10_000) % 2 == 0
    exact = -math.log(math.comb(10_000, 5_000))  # all answers right: one draw of that many
    assert half_test(forget, forget).log_p_above == pytest.approx(exact, rel=1e-9)
    assert exact < math.log(np.finfo(float).tiny)


@pytest.mark.parametrize("n_pairs", [1, 9, 400])
def test_the_tails_of_pairs_are_binomial_over_those_told_apart(n_pairs):
    rng = np.random.default_rng(n_pairs)
    pair, forget = np.repeat(np.arange(n_pairs), 2), np.tile([True, False], n_pairs)
    says = rng.random(2 * n_pairs) < np.where(forget, 0.6, 0.4)
    found = pairs_test(says, forget, pair)
    first, second = says[::2], says[1::2]
    n_told, right = (first != second).sum(), (first & ~second).sum()
    assert (found.n_right, found.n_asked) == (right, n_told)
    law = stats.binom(n_told, 0.5)
    assert found.log_p_above == pytest.approx(law.logsf(right - 1), rel=1e-6, abs=1e-9)
    assert found.log_p_below == pytest.approx(law.logcdf(right), rel=1e-6, abs=1e-9)
    assert found.advantage == pytest.approx(first.mean() - second.mean())


def by_enumeration(means: np.ndarray, chosen: np.ndarray) -> tuple[float, float]:
    observed = means[chosen].sum()
    sums = [means[list(some)].sum() for some in combinations(range(len(means)), int(chosen.sum()))]
    return np.mean([s >= observed - 1e-9 for s in sums]), np.mean([s <= observed + 1e-9 for s in sums])


@pytest.mark.parametrize("seed", range(20))
def test_the_tails_of_groups_are_those_over_every_choice_of_groups(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 7, 10)  # means are sixtieths, which nothing rounds
    group = np.repeat(np.arange(10), sizes)
    says, chosen = rng.random(len(group)) < 0.4, draw(10, 5, rng)
    found = groups_test(says, chosen[group], group)
    means = np.array([says[group == g].mean() for g in range(10)])
    above, below = by_enumeration(means, chosen)
    assert math.exp(found.log_p_above) == pytest.approx(above, abs=1e-9)
    assert math.exp(found.log_p_below) == pytest.approx(below, abs=1e-9)
    assert found.advantage == pytest.approx(means[chosen].mean() - means[~chosen].mean())


def test_groups_of_one_point_are_points():
    rng = np.random.default_rng(0)
    forget, says = draw(80, 40, rng), rng.random(80) < 0.4
    alone, grouped = half_test(says, forget), groups_test(says, forget, np.arange(80))
    assert grouped.log_p_above == pytest.approx(alone.log_p_above, rel=1e-9)
    assert grouped.log_p_below == pytest.approx(alone.log_p_below, rel=1e-9)


def test_the_top_scores_are_tested_like_answers():
    rng = np.random.default_rng(0)
    forget, scores = draw(60, 30, rng), rng.normal(size=60)
    found = top_test(scores, forget, 7)
    top = np.argsort(-scores)[:7]
    assert (found.n_right, found.n_asked) == (forget[top].sum(), 7)
    assert found.log_p_above == pytest.approx(stats.hypergeom(60, 30, 7).logsf(forget[top].sum() - 1), rel=1e-9)


def test_the_ranks_of_a_score_are_those_of_mann_and_whitney():
    rng = np.random.default_rng(0)
    for n, n_forget in [(2, 1), (8, 4), (13, 5), (40, 20), (60, 5)]:
        forget, scores = draw(n, n_forget, rng), rng.normal(size=n)
        found = ranks_test(scores, forget)
        exact = stats.mannwhitneyu(scores[forget], scores[~forget], alternative="greater", method="exact")
        assert found.n_right == exact.statistic
        assert found.n_asked == n_forget * (n - n_forget)
        assert math.exp(found.log_p_above) == pytest.approx(exact.pvalue, abs=1e-9)  # n ≤ 60: nothing is rounded


def test_the_ranks_of_a_score_with_ties_are_those_over_every_draw():
    rng = np.random.default_rng(1)
    for _ in range(5):
        forget, scores = draw(10, 5, rng), rng.integers(0, 4, 10).astype(float)
        middle = stats.rankdata(scores) - 1
        above, below = by_enumeration(middle, forget)
        found = ranks_test(scores, forget)
        assert math.exp(found.log_p_above) == pytest.approx(above, abs=1e-9)
        assert math.exp(found.log_p_below) == pytest.approx(below, abs=1e-9)
        assert ranks_test(np.zeros(10), forget).log_p == 0  # a score that says nothing


def test_ranks_see_more_than_answers_and_in_large_draws_at_least_as_much():
    rng = np.random.default_rng(2)
    for n in (200, 4000):
        forget = draw(n, n // 2, rng)
        scores = rng.normal(size=n) + (0.5 if n == 200 else 0.15) * forget
        top = np.zeros(n, dtype=bool)
        top[np.argsort(-scores)[: n // 2]] = True
        assert ranks_test(scores, forget).log_p_above <= half_test(top, forget).log_p_above + 1e-6


def test_ranks_of_a_large_draw_see_what_wilcoxon_sees_whichever_side_is_small():
    """By his normal law, which for so many points is within a few per cent of the exact p."""
    rng = np.random.default_rng(4)
    for n, n_forget in [(1000, 500), (2000, 1000), (6000, 3000), (1000, 900), (1000, 100)]:
        forget = draw(n, n_forget, rng)
        for shift in (0.0, 0.1, 0.2):
            scores = rng.normal(size=n) + shift * forget
            found = ranks_test(scores, forget)
            expected = stats.mannwhitneyu(scores[forget], scores[~forget], method="asymptotic").pvalue
            assert found.log_p == pytest.approx(math.log(expected), rel=0.05, abs=0.1)
            assert found.told == 1


def test_the_advantage_that_is_stated_of_a_large_draw_is_seen_four_times_of_five():
    rng = np.random.default_rng(0)
    n, n_games = 800, 120
    advantage, forget = resolution_of([("ranks", 1.0)], n, 0.95), np.arange(2 * n) < n
    shift = 2**0.5 * special.ndtri((1 + advantage) / 2)
    seen = [ranks_test(rng.normal(size=2 * n) + shift * forget, forget).log_p <= math.log(0.05) for _ in range(n_games)]
    assert 0.72 <= np.mean(seen) <= 0.9


def test_levels_that_are_too_few_for_what_ranks_tell_are_counted_as_ties(monkeypatch):
    monkeypatch.setattr("forgetgauge.game.one_model._LARGEST_GRID", 500)
    forget = np.arange(100) % 2 == 0
    assert ranks_test(np.arange(100.0), forget).told == pytest.approx(1 - 1 / 6**2, abs=1e-3)  # six levels
    assert ranks_test(np.arange(60.0), forget[:60]).told > ranks_test(np.arange(200.0), np.arange(200) < 100).told


# -- the level, over every draw ----------------------------------------------------------------------------------------


def exceeds_its_level(p_values: list[float]) -> bool:
    """Whether P(p ≤ t) > t for some t, over equally likely draws."""
    ordered = np.sort(p_values)
    return bool((np.arange(1, len(ordered) + 1) / len(ordered) > ordered + 1e-9).any())


@pytest.mark.parametrize(("seed", "largest"), [(0, 1e9), (1, 1e9), (2, 1e9), (3, 1e9), (0, 0)])
def test_whatever_a_blind_model_answers_p_keeps_its_level_over_all_draws(seed, largest, monkeypatch):
    monkeypatch.setattr("forgetgauge.game.one_model._LARGEST_TABLE", largest)
    rng = np.random.default_rng(seed)
    answers, scores = rng.random((3, 10)) < rng.random((3, 1)), rng.normal(size=10)
    tests: dict[str, list[float]] = {"one": [], "best": [], "top": [], "ranks": [], "groups": []}
    group = rng.integers(0, 10, 30)
    group[:10] = np.arange(10)
    of_groups = rng.random(30) < 0.5
    for some in combinations(range(10), 5):
        forget = np.isin(np.arange(10), some)
        each = [half_test(says, forget) for says in answers]
        tests["one"].append(math.exp(each[0].log_p))
        tests["best"].append(10 ** log10_p_of_best([one.log10_p for one in each]))
        tests["top"].append(math.exp(top_test(scores, forget, 3).log_p))
        tests["ranks"].append(math.exp(ranks_test(scores, forget).log_p))
        tests["groups"].append(math.exp(groups_test(of_groups, forget[group], group).log_p))
    assert {name for name, found in tests.items() if exceeds_its_level(found)} == set()


def test_whatever_a_blind_model_answers_p_of_pairs_keeps_its_level_over_all_coins():
    rng = np.random.default_rng(0)
    pair = np.repeat(np.arange(7), 2)
    for _ in range(5):
        says, found = rng.random(14) < 0.5, []
        for coins in product([0, 1], repeat=7):
            forget = np.zeros(14, dtype=bool)
            forget[2 * np.arange(7) + np.array(coins)] = True
            found.append(math.exp(pairs_test(says, forget, pair).log_p))
        assert not exceeds_its_level(found)


# -- ε -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, 0.01, 0.2])
def test_epsilon_stays_below_the_truth_for_a_mechanism_whose_epsilon_is_known(share):
    """It names F with this chance, else a random half: with N halves, ε = ln(1 + share · (N − 1)), δ = 0."""
    rng = np.random.default_rng(0)
    n_points, n_draws = 12, 2000
    truth = math.log(1 + share * (math.comb(n_points, n_points // 2) - 1))
    too_high = 0
    for _ in range(n_draws):
        forget = draw(n_points, n_points // 2, rng)
        says = forget if rng.random() < share else draw(n_points, n_points // 2, rng)
        too_high += group_epsilon(half_test(says, forget).log_p) > truth + 1e-9
    assert too_high / n_draws <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / n_draws)


@pytest.mark.parametrize("epsilon", [0.0, 0.2, 0.7])
def test_epsilon_of_a_point_stays_below_the_truth_for_independent_coins(epsilon):
    """Each pair is answered rightly with the largest chance that 2ε allows: e^{2ε}/(1 + e^{2ε})."""
    rng = np.random.default_rng(1)
    rate, n_draws = math.exp(2 * epsilon) / (1 + math.exp(2 * epsilon)), 2000
    pair, forget = np.repeat(np.arange(60), 2), np.tile([True, False], 60)
    too_high, found = 0, []
    for _ in range(n_draws):
        right = rng.random(60) < rate
        says = np.where(np.repeat(right, 2), forget, ~forget)
        seen = pairs_test(says, forget, pair)
        found.append(point_epsilon(seen.n_right, seen.n_asked))
        too_high += found[-1] > epsilon + 1e-12
    assert too_high / n_draws <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / n_draws)
    assert epsilon < 0.5 or np.mean(found) > 0.5 * epsilon  # it says something


def test_epsilon_is_the_logarithm_of_what_p_leaves_and_zero_where_it_leaves_nothing():
    assert group_epsilon(math.log(1e-6)) == pytest.approx(math.log(0.05 / 1e-6))
    assert group_epsilon(math.log(1e-6), delta=0.01) == pytest.approx(math.log(0.04 / 1e-6))
    assert group_epsilon(math.log(1e-6), delta=0.01, n_models=3) == pytest.approx(math.log(0.02 / 1e-6))
    assert group_epsilon(math.log(0.2)) == 0
    assert group_epsilon(-500.0, delta=0.05) == 0
    assert group_epsilon(-2000.0) == pytest.approx(math.log(0.05) + 2000)


def test_the_published_table_of_one_run_is_met():
    """Balanced answers, 299 and 2,273 points in each set, at the advantages whose p was computed elsewhere."""
    for n, advantage, p in [(299, 0.1, 0.011), (299, 0.2, 1e-6), (2273, 0.05, 4.5e-4), (2273, 0.1, 1e-11)]:
        hits = round(n * (1 + advantage) / 2)
        forget = np.arange(2 * n) < n
        says = np.concatenate([np.arange(n) < hits, np.arange(n) < n - hits])
        assert half_test(says, forget).log_p_above == pytest.approx(math.log(p), abs=0.6)


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda: half_test(np.ones(4, bool), np.ones(4, bool)), "points in F and points in T"),
        (lambda: half_test(np.ones(3, bool), np.array([True, False])), "do not fit"),
        (lambda: half_test(np.ones(2), np.array([True, False])), "must be booleans"),
        (lambda: pairs_test(np.ones(3, bool), np.array([1, 0, 1], bool), np.array([0, 0, 1])), "two points"),
        (
            lambda: groups_test(np.ones(3, bool), np.array([1, 0, 1], bool), np.array([0, 0, 1])),
            "all be in F or all in T",
        ),
        (lambda: top_test(np.zeros(4), np.array([1, 0, 1, 0], bool), 5), "top 5 of 4"),
        (lambda: log10_p_of_best([]), "nobody"),
    ],
)
def test_what_is_no_test_is_refused(call, why):
    with pytest.raises(ValueError, match=why):
        call()


def test_a_two_sided_p_is_at_most_one():
    assert ModelTest(2, 4, 0.0, math.log(0.8), math.log(0.7)).log_p == 0


def test_the_top_scores_of_unequal_halves_are_scipys_and_their_counts_are_told():
    rng = np.random.default_rng(3)
    in_forget = draw(30, 8, rng)
    scores = rng.normal(size=30) + in_forget
    for n_top in (1, 7, 30):
        top = np.argsort(-scores)[:n_top]
        n_right = int(in_forget[top].sum())
        found = top_test(scores, in_forget, n_top)
        assert (found.n_right, found.n_asked, found.by) == (n_right, n_top, "top")
        assert found.advantage == pytest.approx(n_right / 8 - (n_top - n_right) / 22)
        law = stats.hypergeom(30, 8, n_top)
        assert found.log_p_above == pytest.approx(law.logsf(n_right - 1), abs=1e-12)
        assert found.log_p_below == pytest.approx(law.logcdf(n_right), abs=1e-12)
    for n_top in (0, -1, 31):
        with pytest.raises(ValueError, match="cannot be taken"):
            top_test(scores, in_forget, n_top)


@pytest.mark.parametrize("seed", range(4))
def test_right_answers_of_points_and_of_groups_are_those_counted_one_by_one(seed):
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(10), 3)
    in_forget = np.repeat(draw(10, 4, rng), 3)
    says = rng.random(30) < 0.6
    right = sum(bool(a) == bool(b) for a, b in zip(says, in_forget, strict=True))
    for found in (half_test(says, in_forget), groups_test(says, in_forget, group)):
        assert (found.n_right, found.n_asked) == (right, 30)
        assert found.advantage == pytest.approx(says[in_forget].mean() - says[~in_forget].mean())


def rank_sum_tails(levels: list[int], chosen: np.ndarray) -> tuple[float, float]:
    """Over every choice, by counting how often each sum occurs, in whole numbers."""
    ways, n = {(0, 0): 1}, int(chosen.sum())
    for level in levels:
        after = dict(ways)
        for (n_chosen, total), count in ways.items():
            if n_chosen < n:
                after[n_chosen + 1, total + level] = after.get((n_chosen + 1, total + level), 0) + count
        ways = after
    seen = sum(level for level, one in zip(levels, chosen, strict=True) if one)
    of_all = {total: count for (n_chosen, total), count in ways.items() if n_chosen == n}
    whole = sum(of_all.values())
    return (
        math.log(sum(count for total, count in of_all.items() if total >= seen) / whole),
        math.log(sum(count for total, count in of_all.items() if total <= seen) / whole),
    )


@pytest.mark.parametrize("seed", range(3))
def test_more_ranks_than_levels_are_dealt_evenly_and_their_sum_is_exact(seed):
    rng = np.random.default_rng(seed)
    n = 122  # two ranks a level
    in_forget = draw(n, 5, rng)
    scores = rng.permutation(n).astype(float)
    found = ranks_test(scores, in_forget)
    expected = rank_sum_tails([int(score) // 2 for score in scores], in_forget)
    assert (found.log_p_above, found.log_p_below) == pytest.approx(expected)
    above = sum(f > u for f in scores[in_forget] for u in scores[~in_forget])
    assert (found.n_right, found.n_asked) == (above, 5 * (n - 5))


@pytest.mark.parametrize(("n", "n_chosen"), [(9, 7), (9, 2), (9, 5)])
def test_sums_over_large_choices_are_exact_however_coarse_the_levels(n, n_chosen, monkeypatch):
    rng = np.random.default_rng(n_chosen)
    monkeypatch.setattr("forgetgauge.game.one_model._LARGEST_GRID", 1)  # as if there were millions: yes or no
    group = np.repeat(np.arange(n), 3)
    chosen = draw(n, n_chosen, rng)
    says = rng.random(3 * n) < 0.6
    rounded = [round(says[group == one].mean()) for one in range(n)]
    found = groups_test(says, np.repeat(chosen, 3), group)
    expected = rank_sum_tails(rounded, chosen)
    assert (found.log_p_above, found.log_p_below) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("n", "n_chosen", "most"), [(9, 4, 3), (12, 11, 4), (40, 20, 7), (60, 50, 20), (100, 50, 60)])
@pytest.mark.parametrize("shift", [0.0, 0.3, 3.0, 30.0])
def test_sums_by_waves_are_those_counted_in_whole_numbers(n, n_chosen, most, shift, monkeypatch):
    """Their tails, down to that of the only choice of the largest values."""
    monkeypatch.setattr("forgetgauge.game.one_model._LARGEST_TABLE", 0)
    rng = np.random.default_rng(n)
    values = np.append(rng.integers(0, most + 1, n - 1), most)
    chosen = np.isin(np.arange(n), np.argsort(-rng.normal(size=n) - shift * values / most)[:n_chosen])
    for side in (chosen, ~chosen):
        assert tails_over_choice(values, side) == pytest.approx(rank_sum_tails(values.tolist(), side), abs=1e-9)


def test_scores_that_are_no_list_or_a_draw_without_both_sorts_are_refused():
    with pytest.raises(ValueError, match="points in F and points in T"):
        ranks_test(np.arange(4.0), np.ones(4, dtype=bool))
    with pytest.raises(ValueError, match="do not fit"):
        ranks_test(np.arange(4.0), np.ones(3, dtype=bool))


def outcome_of(says: np.ndarray) -> PairOutcome:
    return outcome_of_decisions(says[0], says[1], np.arange(says.shape[2]) < says.shape[2] // 2, np.ones(says.shape[2]))


@pytest.mark.parametrize("last", [False, True])
def test_the_most_visible_model_is_found_among_many_that_answer_otherwise(last):
    """Of 3 × 2 models and 8 adversaries one shows F by the few points it does not name: nearer to half, but rarer."""
    says = np.zeros((2, 3, 40, 8), dtype=bool)
    in_forget = np.arange(40) < 20
    says[0, :, :15] = says[0, :, 20:25] = True  # 24 tests name half of the points, 15 of them rightly
    seed, adversary = (2, 7) if last else (0, 0)
    says[1, seed, :, adversary] = True
    says[1, seed, :9, adversary] = False  # of the other side's T, which is F here
    outcome = outcome_of(says)
    every = [
        half_test(side[seed, :, which], forget).log_p
        for side, forget in ((says[0], in_forget), (says[1], ~in_forget))
        for seed in range(3)
        for which in range(8)
    ]
    assert min(every) == half_test(says[1, seed, :, adversary], ~in_forget).log_p
    for n_looks in (1, 2):
        log_p, n_models = log_p_of_most_visible([outcome], n_looks)
        assert log_p == pytest.approx(min(0.0, math.log(n_looks * 48) + min(every)))
        assert n_models == 6


@pytest.mark.parametrize("seed", range(8))
def test_the_most_visible_of_random_models_is_the_one_of_the_smallest_p(seed):
    rng = np.random.default_rng(seed)
    outcomes = []
    for n in (20, 40, 80):
        rates = rng.choice([0.05, 0.5, 0.95], (2, 2, 1, 6))
        outcomes.append(outcome_of(rng.random((2, 2, n, 6)) < rates))
    every = [
        half_test(says[one, :, which], forget).log_p
        for outcome in outcomes
        for says, forget in zip(outcome.decisions, outcome.sides, strict=True)
        for one in range(2)
        for which in range(6)
    ]
    log_p, n_models = log_p_of_most_visible(outcomes)
    assert (log_p, n_models) == (pytest.approx(min(0.0, math.log(72) + min(every))), 12)


def test_a_corrected_p_is_at_most_one():
    dull = half_test(np.arange(8) % 2 == 0, np.arange(8) < 4)
    assert log10_p_of_best([dull.log10_p] * 3) == 0
    assert log_p_of_most_visible([outcome_of(np.zeros((2, 1, 8, 2), dtype=bool))]) == (0, 2)


@pytest.mark.parametrize(("n_right", "n_asked"), [(0, 0), (5, 10), (9, 10), (1, 10), (40, 50), (26, 50), (7, 7)])
def test_epsilon_of_a_point_is_that_of_clopper_and_pearsons_limit(n_right, n_asked):
    expected = 0.0
    if n_asked:
        right = max(n_right, n_asked - n_right)
        rate = stats.binomtest(right, n_asked).proportion_ci(0.9, "exact").low
        expected = max(0.0, 0.5 * math.log(rate / (1 - rate)))
    assert point_epsilon(n_right, n_asked, level=0.9) == pytest.approx(expected)


def test_as_many_answers_have_the_variance_of_each_test_by_chance():
    rng = np.random.default_rng(10)
    n, found = 60, {kind: [] for kind in N_ANSWERS}
    says, scores = np.arange(2 * n) % 2 == 0, rng.normal(size=2 * n)
    pair, group = np.arange(2 * n) // 2, np.arange(4 * n) // 2
    for _ in range(300):
        in_forget, coins = draw(2 * n, n, rng), rng.random(n) < 0.5
        found["answers"].append(half_test(says, in_forget).advantage)
        found["ranks"].append(ranks_test(scores, in_forget).n_right / n**2 * 2 - 1)
        found["pairs"].append(pairs_test(says, np.stack([coins, ~coins], axis=1).ravel(), pair).advantage)
        found["groups"].append(groups_test(np.repeat(says, 2), np.repeat(in_forget, 2), group).advantage)
    for kind in ("answers", "ranks", "pairs", "groups"):
        assert N_ANSWERS[kind] * n * np.var(found[kind]) == pytest.approx(1, abs=0.25), kind
    assert N_ANSWERS["top"] == N_ANSWERS["ranks"]


def test_the_best_of_several_adversaries_pays_for_the_choice():
    rng = np.random.default_rng(11)
    in_forget = draw(40, 20, rng)
    tests = [half_test(in_forget ^ (rng.random(40) < share), in_forget) for share in (0.1, 0.3, 0.5)]
    log10_ps = [test.log10_p for test in tests]
    assert 10 ** log10_p_of_best(log10_ps) == pytest.approx(3 * min(math.exp(test.log_p) for test in tests))
    assert log10_p_of_best(log10_ps[:1]) == log10_ps[0]


def test_the_advantage_of_ranks_is_twice_the_auc_minus_one_with_and_without_ties():
    rng = np.random.default_rng(12)
    for scores in (rng.permutation(20).astype(float), np.repeat(np.arange(10.0), 2), rng.integers(0, 3, 100) + 0.0):
        in_forget = draw(len(scores), len(scores) // 4, rng)
        couples = [(a > b) + 0.5 * (a == b) for a in scores[in_forget] for b in scores[~in_forget]]
        found = ranks_test(scores, in_forget)
        assert found.advantage == pytest.approx(2 * np.mean(couples) - 1)
        assert found.n_right == round(sum(couples))


def test_ranks_of_scores_that_tie_in_couples_are_exact():
    rng = np.random.default_rng(13)
    scores = np.repeat(np.arange(6.0), [2, 1, 2, 1, 2, 3])
    for _ in range(4):
        in_forget = draw(11, 4, rng)
        found = ranks_test(scores, in_forget)
        expected = rank_sum_tails([int(2 * rank) for rank in stats.rankdata(scores)], in_forget)
        assert (found.log_p_above, found.log_p_below) == pytest.approx(expected)


def test_no_tail_is_above_one_whatever_rounding_makes_of_the_sum():
    for n in range(2, 120):
        in_forget = np.arange(n) < n // 2
        for says in (np.zeros(n, dtype=bool), in_forget, ~in_forget, np.arange(n) % 3 == 0):
            found = half_test(says, in_forget)
            assert max(found.log_p_above, found.log_p_below) <= 0
