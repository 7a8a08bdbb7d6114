"""Evidence from one model whose scores tie: what they cannot tell apart is no evidence that nothing was there."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from forgetgauge.auditing.one_model import _larger_half
from forgetgauge.errors import UserError
from forgetgauge.game.one_model import half_test, pairs_test, ranks_test
from forgetgauge.results.resolution import is_blunt, resolution_of
from tests.test_one_model_audit import audited, listed, make, outputs  # noqa: F401

FORGET = np.arange(200) < 100


def of_pairs(draw, columns):
    """One number for each pair, at both of its points."""
    numbers = {unit: place for place, unit in enumerate(sorted(set(draw.unit_of.values())))}
    return np.array([float(numbers[draw.unit_of[point]]) for point in columns["point"]])


def test_pairs_that_score_alike_measure_nothing(listed):  # noqa: F811
    draw = make(listed, 0, pairs="pair")
    columns = outputs(draw, 0.0)
    alike = of_pairs(draw, columns)
    with pytest.raises(UserError, match="the same for all points, or for both of each pair, so nothing was measured"):
        audited(listed, columns | {"score": alike})
    with pytest.raises(UserError, match="nothing was measured"):
        audited(listed, {"point": columns["point"], "decision": alike > 10})
    found = audited(listed, columns | {"loss": alike})
    assert list(found.models["model"].tests) == ["own score"]
    assert found.warnings == ["model: own loss tells no pair apart, which measures nothing: left out."]


def test_a_pair_that_ties_counts_for_no_pair(listed):  # noqa: F811
    draw = make(listed, 0, pairs="pair")
    columns = outputs(draw, 0.0)
    pair = of_pairs(draw, columns)
    model = audited(listed, columns | {"score": np.where(pair < 60, columns["score"], pair)}).models["model"]
    assert (model.tests["own score"].n_asked, model.tests["own score"].told) == (60, 0.5)
    assert model.resolution == pytest.approx(resolution_of([("pairs", 1.0)], 60, 0.95))


@pytest.mark.parametrize("kind", ["points", "groups"])
def test_scores_that_nearly_all_tie_are_inconclusive(listed, kind):  # noqa: F811
    draw = make(listed, 60) if kind == "points" else make(listed, 30, by="person")
    columns = outputs(draw, 0.0)
    nearly = {"score": (np.arange(len(columns["point"])) == 7).astype(float)}
    model = audited(listed, columns | nearly).models["model"]
    assert (model.verdict, model.resolution) == ("inconclusive", None)


def test_a_score_that_ties_is_tested_but_says_nothing_of_the_resolution(listed):  # noqa: F811
    columns = outputs(make(listed), 0.0)
    alone = audited(listed, columns)
    loss = np.where(np.arange(120) < 6, np.arange(120), 50.0)
    found = audited(listed, columns | {"loss": loss}, delta=0.0)
    assert "own loss" in found.models["model"].tests
    assert found.models["model"].resolution < 1.2 * alone.models["model"].resolution
    assert [line for line in found.warnings if "own loss says the same of so many points that it sees little" in line]


def test_decisions_that_are_nearly_all_alike_are_inconclusive(listed):  # noqa: F811
    columns = {"point": outputs(make(listed), 0.0)["point"], "decision": np.arange(120) == 3}
    assert audited(listed, columns).models["model"].verdict == "inconclusive"


def test_how_much_ties_leave_is_computed_by_a_second_way():
    """By as much ties shrink the variance of the ranks of a random draw."""
    rng = np.random.default_rng(0)
    score = rng.integers(0, 4, 40).astype(float)
    forget = np.arange(40) < 20
    drawn = [ranks_test(score, rng.permutation(forget)).advantage for _ in range(3000)]
    untied = (40 + 1) / (3 * 20 * 20)
    assert np.var(drawn) / untied == pytest.approx(ranks_test(score, forget).told, rel=0.1)
    assert ranks_test(np.arange(40.0), forget).told == 1
    assert half_test(score > 1, forget).told == pytest.approx(4 * np.mean(score > 1) * np.mean(score <= 1))


TIES = {
    "ranks": [0.0, 0.3, 0.6, 0.8],
    "values": [2, 3, 10],
    "answers": [0.5, 0.3, 0.1],
    "pairs": [0.0, 0.5, 0.7],
}
"""What ties: a share of the lowest scores; all but so many values; answers, of which a share is "forgotten"; pairs."""


def tied(how, much, score, right):
    """The test of the scores of 100 points of F and 100 of T, or of 100 pairs, told rightly or wrongly."""
    if how == "ranks":
        return ranks_test(np.maximum(score, np.sort(score)[round(200 * much)]), FORGET)
    if how == "values":
        return ranks_test(np.floor(score.argsort().argsort() * much / 200), FORGET)
    if how == "answers":
        return half_test(score > np.sort(score)[199 - round(200 * much)], FORGET)
    told = np.arange(100) >= 100 * much
    return pairs_test(np.append(told & right, told & ~right), FORGET, np.tile(np.arange(100), 2))


def ahead(shift):
    """By how much a point of F is more often above one of T than below, where a logistic law is shifted."""
    odds = math.exp(shift)
    return 2 * odds * (odds - 1 - shift) / (odds - 1) ** 2 - 1


def seen_with(how, much, n_games, seed=1):
    """(how much ties leave, the resolution, how often it is seen) where F is shifted so that without ties a test of
    this kind would have that advantage; ties do not depend on F."""
    rng, kind = np.random.default_rng(seed), "ranks" if how == "values" else how
    left = tied(how, much, rng.logistic(size=200), FORGET[:100]).told
    advantage = resolution_of([(kind, left)] * 2, 100, 0.95)
    shift = brentq(lambda one: ahead(one) - advantage, 1e-3, 40) if kind == "ranks" else 4 * math.atanh(advantage)
    games = (
        tied(how, much, rng.logistic(size=200) + shift * FORGET, rng.random(100) < (1 + advantage) / 2)
        for _ in range(n_games)
    )
    return left, advantage, np.mean([test.log_p <= math.log(0.05 / 2) for test in games])


@pytest.mark.parametrize(("how", "much"), [(how, much) for how, shares in TIES.items() for much in shares])
def test_a_resolution_is_seen_four_times_of_five_with_ties(how, much):
    """By simulation, 200 games of two tests each."""
    _, advantage, seen = seen_with(how, much, 200)
    assert 0.7 <= seen <= 0.9
    assert advantage < 0.6


def test_ties_blunt_a_test_but_few_points_do_not():
    assert is_blunt(("ranks", 0.01), 2, 100, 0.95)
    assert not is_blunt(("ranks", 0.5), 2, 100, 0.95)
    assert not is_blunt(("ranks", 0.01), 2, 5, 0.95)
    sharp, blunt = ("ranks", 1.0), ("ranks", 0.01)
    assert resolution_of([sharp, blunt], 100, 0.95) == resolution_of([sharp, sharp], 100, 0.95)
    assert resolution_of([blunt, ("top", 1.0)], 100, 0.95) == np.inf
    assert resolution_of([("pairs", 0.0)], 100, 0.95) == np.inf


def test_equal_scores_are_answered_alike_and_others_by_the_half():
    rng = np.random.default_rng(0)
    for n in (2, 7, 40):
        score = rng.normal(size=n)
        assert _larger_half(score).sum() == n // 2
        assert score[_larger_half(score)].min() > score[~_larger_half(score)].max()
    assert _larger_half(np.array([0.0, 0, 0, 0, 1])).tolist() == [False] * 4 + [True]
    assert _larger_half(np.array([1.0, 1, 1, 0, 1])).tolist() == [True, True, True, False, True]


def test_by_chance_ties_change_nothing_of_p():
    """Of 2,000 draws with half of the pairs tied, p ≤ 0.05 in no more than 5 %."""
    rng, pair = np.random.default_rng(2), np.arange(200) // 2
    says = np.where(np.arange(200) < 100, np.arange(200) % 2 == 0, False)
    alarms = 0
    for _ in range(2000):
        coins = rng.random(100) < 0.5
        alarms += pairs_test(says, np.stack([coins, ~coins], axis=1).ravel(), pair).log_p <= math.log(0.05)
    assert alarms <= 0.05 * 2000 + 3 * math.sqrt(2000 * 0.05)
