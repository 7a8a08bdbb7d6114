"""Verdicts on a method."""

from __future__ import annotations

from dataclasses import replace

import pytest

from forgetgauge.report.table import render_table
from forgetgauge.results.verdict import INCONCLUSIVE, LIKE_RETRAIN, failed_controls, resolution_on, verdict_on
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
