"""What is said of strengths: only what is true of each method."""

from __future__ import annotations

from dataclasses import replace

import pytest

from forgetgauge.report.erasure_test import what_was_tested
from forgetgauge.report.rows import unlike
from forgetgauge.report.strengths import map_of, price_line, strength_note
from forgetgauge.results.record import TriedStrength, TuningResult
from tests.suites.conftest import method, result_of

TRIED = [TriedStrength(value, 0.0, 0.005) for value in (0.1, 0.2, 0.4)]


def tuned(chosen, *, holds=True, price=0.01):
    return TuningResult("lr", chosen, price, holds, "retrained", 8, TRIED)


def game_of(**tuning):
    """Retrain, None and methods whose strengths were chosen."""
    methods = {
        "retrain": method(1.0, (0.9, 1.0), utility={"test": 0.85}),
        "none": method(0.5, (0.45, 0.55), utility={"test": 0.8}),
    }
    for name, found in tuning.items():
        methods[name] = replace(method(0.7, (0.6, 0.8), utility={"test": 0.79}), tuning=found)
    return result_of({"all": methods}).games[0]


def test_the_price_is_claimed_of_those_alone_that_keep_it():
    assert price_line(game_of()) is None
    said = price_line(game_of(one=tuned(0.2), other=tuned(0.1, holds=False)))
    assert "the strength of one (lr = 0.2) is the strongest that cost 8 shadow models no more than that" in said
    assert said.endswith("No strength that was tried keeps other within it: the weakest is shown.")
    said = price_line(game_of(other=tuned(0.1, holds=False, price=0.02)))
    assert said == "Q at a price of 2 points: no strength that was tried keeps other within it: the weakest is shown."


def test_of_a_point_of_the_frontier_the_line_tells_its_q():
    game = game_of(**{"one@price": tuned(0.2)})
    variant = {"method": "one", "parameter": "lr", "value": 0.2}
    game = replace(game, spec={**game.spec, "methods": {"one@price": {"variant": variant}}})
    assert "the strength of one (lr = 0.2: Q = 0.700 [0.600,\u00a00.800]) is the strongest" in price_line(game)


def test_the_end_of_a_range_is_named():
    assert "ends there" not in price_line(game_of(one=tuned(0.2)))
    assert price_line(game_of(one=tuned(0.4))).endswith("The range of one ends there: a wider one may forget more.")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("", ""),
        ("A. Author 2024", "published settings"),
        ("A. Author 2024; but lr = 0.1", "published settings, but lr = 0.1"),
    ],
)
def test_published_settings_are_called_so_where_they_are(source, said):
    game = game_of()
    game = replace(game, spec={**game.spec, "methods": {"none": {"source": source}}})
    assert strength_note(game, "none") == said


def test_the_line_of_the_price_stands_where_the_price_is():
    picture, _ = map_of(game_of(one=tuned(0.2, price=0.05)))
    assert picture.values.low <= 0.75  # 0.05 below None, the lower of the two
    assert picture.limit == picture.values.percent(0.75)
    assert picture.values.percent(0.74) < picture.limit or picture.values.low == 0.75


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (tuned(0.2), "one; lr = 0.2, the strongest that cost 8 shadow models no more than 1.0 points"),
        (
            tuned(0.1, holds=False),
            "one; lr = 0.1, the weakest that was tried; all cost shadow models more than 1.0 points",
        ),
    ],
)
def test_a_record_names_the_strength_that_was_tested(found, said):
    game = game_of(one=found)
    result = replace(result_of({"all": {}}), games=[game], sweep=None)
    assert what_was_tested(result, "one", "result.json").scope["method"] == said


def test_results_at_other_prices_are_hard_to_compare():
    game = game_of(one=tuned(0.2))
    one, other = (
        replace(result_of({"all": {}}), games=[replace(game, spec={**game.spec, "price": {"price": price}})])
        for price in (0.01, 0.02)
    )
    assert "not the same price: a 0.01; b 0.02" in unlike([("a", one), ("b", other)])
