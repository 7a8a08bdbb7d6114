"""Verdicts on a method."""

from __future__ import annotations

from dataclasses import replace

from forgetgauge.results.verdict import INCONCLUSIVE, LIKE_RETRAIN, resolution_on, verdict_on
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
