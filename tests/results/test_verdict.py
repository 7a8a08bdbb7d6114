"""Verdicts on a method."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from forgetgauge.game.advantage import outcome_of_decisions
from forgetgauge.game.assessment import assess_all
from forgetgauge.report.table import render_table
from forgetgauge.results.assessed import adversary_result, assessed_fields
from forgetgauge.results.resolution import resolution_on
from forgetgauge.results.verdict import INCONCLUSIVE, LIKE_RETRAIN, failed_controls, verdict, verdict_on
from tests.suites.conftest import method, result_of


def test_where_both_sides_are_answered_alike_nothing_would_have_been_seen():
    """No relabelling gives an advantage then: a Q of 1 is certain, and says nothing."""
    found = {}
    for floor in (0.0, 0.05):
        mine = replace(method(1.0, (1.0, 1.0)), noise_floor=floor, p_value=1.0, adversary="loss")
        game = result_of({"all": {"retrain": method(1.0, (0.9, 1.0)), "mine": mine}}).games[0]
        found[floor] = verdict_on(game, "mine"), resolution_on(game, "mine")
    assert found[0.0] == (INCONCLUSIVE, 1.0)
    assert found[0.05][0] == LIKE_RETRAIN


@pytest.mark.parametrize(
    ("retrain", "none", "said"),
    [
        (
            (0.93, (0.89, 0.98)),
            (0.5, (0.4, 0.6)),
            "Retrain never saw the forgotten points, so its Q should be 1, but it is 0.93",
        ),
        ((0.99, (0.95, 1.0)), (0.98, (0.94, 1.0)), "Even None, which unlearns nothing, has a Q of 0.98"),
        ((0.99, (0.95, 1.0)), (0.5, (0.4, 0.6)), None),
    ],
)
def test_a_control_that_failed_is_told_under_the_table(retrain, none, said):
    known = {"retrain": method(*retrain), "none": method(*none), "mine": method(0.9, (0.8, 0.95))}
    result = result_of({"all": known})
    lines = failed_controls(result.games[0])
    assert [line.startswith(said) for line in lines] == ([] if said is None else [True])
    assert all(f"warning: {line}" in render_table(result) for line in lines)


@pytest.mark.parametrize(("floor", "resolution"), [(0.001, 0.08), (0.039, 0.08), (0.041, 0.041), (0.1, 0.1)])
def test_attackers_who_hardly_speak_are_not_said_to_see_more_than_those_of_retrain(floor, resolution):
    retrain = replace(method(1.0, (0.9, 1.0)), noise_floor=0.08)
    mine = replace(method(1.0, (1.0, 1.0)), noise_floor=floor, p_value=1.0, adversary="loss")
    with_it, without = (
        result_of({"all": known}).games[0] for known in ({"retrain": retrain, "mine": mine}, {"mine": mine})
    )
    assert resolution_on(with_it, "mine") == pytest.approx(resolution)
    assert resolution_on(without, "mine") == pytest.approx(floor)


def played(outcomes, level=0.95, seed=0, interval="student"):
    """A game of one method, `mine`."""
    (found,) = assess_all([outcomes], np.random.default_rng(seed), level=level, interval=interval)
    names = [f"adversary {which}" for which in range(found.by_pair.shape[1])]
    each = {name: adversary_result(found, which, None) for which, name in enumerate(names)}
    mine = replace(
        method(found.quality, (0.0, 1.0)),
        **assessed_fields(found, names),
        by_adversary=each,
        n_pairs=len(outcomes),
    )
    game = result_of({"all": {"mine": mine}}).games[0]
    spec = {**game.spec, "level": level, "pairs": len(outcomes), "n_forget": outcomes[0].k, "interval": interval}
    return replace(game, spec=spec)


def answered(rng, n_pairs, k, n_adversaries, often, advantage=0.0):
    """Pairs of which each point is called forgotten that often, and F more often by one of the adversaries."""
    side = np.repeat([True, False], k)
    chance = np.full((2, 1, 2 * k, n_adversaries), often)
    chance[..., 0] += advantage * np.stack([side, ~side])[:, None]
    return [outcome_of_decisions(*(rng.random(chance.shape) < chance), side, np.ones(2 * k)) for _ in range(n_pairs)]


CORNERS = [(1, 100, 4, 0.5, 0.95), (8, 50, 9, 0.5, 0.99), (5, 50, 4, 0.004, 0.95), (5, 20, 9, 0.01, 0.95)]


@pytest.mark.parametrize(("n_pairs", "k", "n_adversaries", "often", "level"), CORNERS)
def test_an_advantage_that_would_have_been_seen_is_seen_four_times_of_five(n_pairs, k, n_adversaries, often, level):
    rng = np.random.default_rng(0)
    nothing = [played(answered(rng, n_pairs, k, n_adversaries, often), level) for _ in range(30)]
    stated = np.mean([resolution_on(game, "mine") for game in nothing])
    leaking = [played(answered(rng, n_pairs, k, n_adversaries, often, stated), level) for _ in range(100)]
    seen = np.mean([game.methods["mine"].p_value <= 1 - level + 1e-12 for game in leaking])
    assert seen > 0.8 - 2.5 * 0.04


@pytest.mark.parametrize("n_pairs", [1, 2, 4])
def test_what_a_few_pairs_would_have_shown_does_not_depend_on_the_kind_of_their_interval(n_pairs):
    """The bounded one is as wide for a few pairs as if nothing were known of their points; the test is the same."""
    outcomes = answered(np.random.default_rng(0), n_pairs, 100, 4, 0.5)
    usual, bounded = (played(outcomes, interval=kind) for kind in ("student", "bounded"))
    assert resolution_on(bounded, "mine") == pytest.approx(resolution_on(usual, "mine"), rel=0.1)
    assert verdict_on(bounded, "mine") == verdict_on(usual, "mine") == LIKE_RETRAIN


def always_right(n_pairs, k):
    side = np.repeat([True, False], k)
    return [outcome_of_decisions(side[None, :, None], ~side[None, :, None], side, np.ones(2 * k))] * n_pairs


@pytest.mark.parametrize(("n_pairs", "k", "level"), [(8, 100, 0.9999), (1, 2, 0.95), (1, 3, 0.95)])
def test_where_not_even_an_attacker_who_is_always_right_is_visible_nothing_is_said_to_be_like_retraining(
    n_pairs, k, level
):
    game = played(always_right(n_pairs, k), level)
    assert game.methods["mine"].p_value > 1 - level
    assert verdict_on(game, "mine") == INCONCLUSIVE
    assert any("nothing can be visible" in line for line in verdict(game).remarks) == (level > 0.9995)
    silent = [
        replace(one, differences=one.differences * (np.arange(2 * k) == 0)[:, None]) for one in always_right(n_pairs, k)
    ]
    assert verdict_on(played(silent, level), "mine") == INCONCLUSIVE


@pytest.mark.parametrize("level", [0.9, 0.99, 0.9995])
def test_what_lies_above_chance_at_the_level_of_the_game_is_visible(level):
    rng = np.random.default_rng(3)
    for seed in range(20):
        outcomes = answered(rng, 5, 30, 2, 0.5, 0.1)
        (found,) = assess_all([outcomes], np.random.default_rng(seed), level=level)
        is_above = np.abs(found.advantage).max() > found.noise.at_level + 1e-12
        assert is_above == (found.noise.p_value <= 1 - level + 1e-12)
