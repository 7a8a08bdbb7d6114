"""Strengths: which values are tried, which comes next, and what the plan makes of a method whose strength is open."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import takewhile

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from forgetgauge import plugins
from forgetgauge.plan.game import Method, Price, game_from_json, game_to_json
from forgetgauge.plan.graph import RETRAINED, UNTREATED, build_graph
from forgetgauge.plan.jobs import UTILITY, Named, SignalsJob, TrainJob, UnlearnJob
from forgetgauge.plan.strength import Published, Strength, Tuning, Variant, between, between_each
from forgetgauge.plan.subjects import Shadow
from tests.plan.test_graph import GAME

ENDS = st.floats(1e-8, 1e4)


@given(ENDS, ENDS, st.integers(2, 30))
@example(3041.0, 3040.5, 3)
def test_values_are_at_equal_ratios_from_end_to_end(weakest, strongest, n):
    if weakest == strongest:
        return
    values = Strength("lr", weakest, strongest).values(n)
    assert values[0] == weakest
    assert values[-1] == strongest
    assert list(values) == sorted(values, reverse=weakest > strongest)
    if len(values) == n:
        assert np.allclose(np.log(values), np.linspace(math.log(weakest), math.log(strongest), n), atol=6e-3)


def test_whole_ends_give_whole_numbers_each_once():
    assert Strength("epochs", 1, 8).values(8) == (1, 2, 3, 4, 6, 8)
    assert all(isinstance(value, int) for value in Strength("epochs", 1, 8).values(8))
    assert between(3, 4, 5, ends=False) == between(3041.0, 3040.5, 5, ends=False) == ()
    assert between(2.0, 2.0, 5) == (2.0,)


@pytest.mark.parametrize("ends", [(0, 1), (1, 1), (-1, 2), (float("nan"), 1), (1, float("inf"))])
def test_ends_that_are_none_are_refused(ends):
    with pytest.raises(ValueError, match="two different ends above 0"):
        Strength("lr", *ends)


def search(tuning, price, cost):
    """The whole search, given what each value costs."""
    while tuning.chosen is None:
        holding = list(takewhile(lambda value: cost(value) <= price, tuning.tried))
        beyond = tuning.tried[len(holding) : len(holding) + 1]
        is_cliff = any(cost(value) == math.inf for value in beyond)
        tuning = tuning.after(holding[-1] if holding else None, is_cliff=is_cliff)
    return tuning


@given(st.floats(0.001, 0.999), st.booleans())
def test_the_strongest_value_that_holds_is_found_to_within_a_step_of_the_second_round(share, falls):
    strength = Strength("lr", 1.0, 1e-6) if falls else Strength("lr", 1e-6, 1.0)
    limit = 10 ** (-6 * (share if falls else 1 - share))

    def cost(value):
        return limit / value if falls else value / limit

    found = search(Tuning.begin(strength, 8), 1.0, cost)
    assert cost(found.chosen) <= 1
    assert cost(found.chosen) >= 10 ** (-6 / 7 / 5) * 0.99  # a fifth of a step of the first round
    assert found.round == 2
    assert len(found.tried) == 12


def test_the_search_ends_at_the_ends():
    tuning = Tuning.begin(Strength("lr", 1e-3, 1.0), 4)
    assert search(tuning, 1, lambda value: 0).chosen == 1.0
    assert search(tuning, 1, lambda value: 0).tried == tuning.tried
    assert search(tuning, 1, lambda value: 2).chosen == 1e-3
    assert search(tuning, 1, lambda value: 2).tried == tuning.tried


def test_where_costs_fall_again_the_search_stays_before_they_rose():
    tuning = Tuning.begin(Strength("lr", 1e-3, 1.0), 4)
    assert tuning.tried == (1e-3, 0.01, 0.1, 1.0)
    assert search(tuning, 1, lambda value: 2 if value == 0.1 else 0).chosen == 0.0464


@given(st.floats(0.001, 0.999), st.booleans())
def test_where_models_diverge_a_step_of_the_second_round_is_kept_from_there(share, falls):
    strength = Strength("lr", 1.0, 1e-6) if falls else Strength("lr", 1e-6, 1.0)
    limit = 10 ** (-6 * (share if falls else 1 - share))
    found = search(Tuning.begin(strength, 8), 1.0, lambda value: math.inf if (value < limit) == falls else 0)
    at = found.tried.index(found.chosen)
    steps = [abs(math.log10(found.tried[i] / found.tried[i + 1])) for i in (at, at + 1)]
    if at:
        assert steps == pytest.approx([6 / 35] * 2, abs=0.01)
    assert len(found.tried) <= 13


def test_a_cliff_right_after_the_weakest_leaves_it():
    found = search(Tuning.begin(Strength("n", 1, 3), 3), 1, lambda value: math.inf if value > 1 else 0)
    assert found.chosen == 1
    found = search(Tuning.begin(Strength("n", 1, 3), 3), 1, lambda value: math.inf if value > 2 else 0)
    assert found.chosen == 1  # there is no whole number between


def test_several_ranges_share_the_values_the_wider_the_more():
    assert between_each([(0.001, 1.0)], 4) == between(0.001, 1.0, 4)
    assert between_each([(0.001, 0.001), (0.5, 0.5)], 8) == (0.001, 0.5)
    found = between_each([(1e-4, 1e-2), (0.1, 1.0)], 8)
    assert len(found) == 8
    assert {1e-4, 1e-2, 0.1, 1.0} < set(found)
    assert sum(value <= 0.01 for value in found) == 5
    assert len(between_each([(1, 2), (4, 5), (7, 8)], 2)) == 6


# -- declared by methods -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(plugins.unlearners.entries))
def test_what_a_method_declares_is_a_parameter_of_it_that_it_takes(name):
    method = plugins.unlearners.load(name)
    strength, published = (getattr(method, key, None) for key in ("strength", "published"))
    if strength is None:
        assert published is None
        return
    assert isinstance(strength, Strength)
    for value in strength.values(5):
        assert getattr(method(**{strength.parameter: value}), strength.parameter) == value
    if published is None:  # then strength = "published" is refused
        return
    assert isinstance(published, Published)
    assert published.source
    made = method(**published.params)
    assert all(getattr(made, key) == value for key, value in published.params.items())
    ends = sorted([strength.weakest, strength.strongest])
    assert ends[0] <= published.params[strength.parameter] <= ends[1]


# -- in the plan -------------------------------------------------------------------------------------------------------

STRENGTH = Strength("lr", 1e-4, 0.1)


def tuned_game(chosen=None):
    game = GAME
    tuning = replace(Tuning.begin(STRENGTH, 4), chosen=chosen)
    method = Method(Named("neg-grad", {"epochs": 2}), tuning=Tuning.begin(STRENGTH, 4)).as_asked.tuned(tuning)
    price = Price(0.01, 3, Method(Named("retrain"), uses_original=False))
    return replace(game, methods={**game.methods, "tuned": method}, price=price)


def test_a_method_whose_strength_is_open_has_the_jobs_of_the_search_alone():
    game = tuned_game()
    graph, before = build_graph(game), build_graph(GAME)
    assert not any(cell.method == "tuned" for cell in graph.cells)
    assert set(before.jobs) <= set(graph.jobs)
    assert set(graph.costs) == {
        ("tuned", which, at) for which in range(3) for at in (*STRENGTH.values(4), UNTREATED, RETRAINED)
    }
    fresh = [job for key, job in graph.jobs.items() if key not in before.jobs]
    assert all(isinstance(job.subject, Shadow) for job in fresh)  # F and T of the game are not looked at
    signals = [job for job in fresh if isinstance(job, SignalsJob)]
    assert {job.look_at for job in signals} == {UTILITY}
    assert all(job.subject.forget == game.sizes[1] for job in signals)
    tried = [job for job in fresh if isinstance(job, UnlearnJob) and job.unlearner.name == "neg-grad"]
    assert sorted({job.unlearner.params["lr"] for job in tried}) == sorted(STRENGTH.values(4))
    assert all(isinstance(graph.jobs[job.inputs["model"]], TrainJob) for job in tried)


def test_choosing_a_strength_adds_jobs_and_changes_none():
    before, after = build_graph(tuned_game()), build_graph(tuned_game(0.01))
    assert set(before.jobs) < set(after.jobs)
    cells = [jobs for cell, jobs in after.cells.items() if cell.method == "tuned"]
    assert cells
    assert {after.jobs[jobs.unlearn].unlearner.params["lr"] for jobs in cells} == {0.01}


def test_a_game_with_strengths_goes_through_json_and_back():
    for game in (tuned_game(), tuned_game(0.01), replace(tuned_game(), frontier={"points": 8})):
        assert game_from_json(game_to_json(game)) == game
    variant = replace(tuned_game().methods["tuned"], tuning=None, variant=Variant("tuned", "lr", 0.1), source="a paper")
    game = replace(tuned_game(), methods={"tuned@0.1": variant})
    assert game_from_json(game_to_json(game)) == game


def test_as_asked_forgets_what_was_found():
    asked = tuned_game().methods["tuned"]
    assert tuned_game(0.01).methods["tuned"].as_asked == asked == asked.as_asked
    further = asked.tuned(asked.tuning.after(0.001))
    assert further.tuning.round == 2
    assert further.as_asked == asked


@pytest.mark.parametrize("change", [{"tried": []}, {"tried": [0.1, 0.01]}, {"chosen": 3.0}])
def test_a_forged_search_is_refused(change):
    record = game_to_json(tuned_game(0.01))
    record["methods"]["tuned"]["tuning"].update(change)
    with pytest.raises(ValueError, match="among those that were tried"):
        game_from_json(record)
