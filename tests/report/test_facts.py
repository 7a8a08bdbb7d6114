import dataclasses

import pytest

from forgetgauge.report.certificates import facts_table, spent_budget
from forgetgauge.report.html import render_report
from forgetgauge.report.table import render_table
from forgetgauge.results.record import GameResult, Result
from tests.report.test_html import method

SPEC = {"pairs": 8, "alpha": 0.1, "level": 0.95, "adversaries": {}}


def swept(facts_of):
    games = [
        GameResult(value, SPEC, {"retrain": method(0.998, facts=facts)}, None, [], None, None)
        for value, facts in facts_of.items()
    ]
    return Result({}, {}, games, sweep="learner.target_epsilon")


def test_one_column_per_fact_and_a_dash_where_nothing_was_told():
    table = facts_table(
        swept({8.0: {"noise_multiplier": 1.7859, "spent_epsilon": 7.99255}, "inf": {"noise_multiplier": 0.0}})
    )
    assert table.heads == ["learner.target_epsilon", "method", "noise_multiplier", "spent_epsilon"]
    assert [row[1:] for row in table.rows] == [["retrain", "1.786", "7.993"], ["retrain", "0", "–"]]


def test_the_report_shows_them_only_where_some_are_told():
    assert "spent_epsilon" in render_report(swept({8.0: {"spent_epsilon": 7.99}, 50.0: {"spent_epsilon": 49.99}}))
    assert facts_table(swept({8.0: {}})) is None
    assert 'id="facts"' not in render_report(swept({8.0: {}, 50.0: {}}))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.5999999999999999, "0.6"),
        (15.9975, "15.998"),
        (545.0, "545"),
        (1e-4, "0.0001"),
        (0.00253, "0.00253"),
        (0, "0"),
    ],
)
def test_facts_have_three_decimals_or_three_digits_that_say_something(value, shown):
    assert facts_table(swept({8.0: {"fact": value}})).rows[0][-1] == shown


def private(spent, target=8.0, noise=1.786):
    return {"target_epsilon": target, "spent_epsilon": spent, "noise_multiplier": noise}


def played(**facts_of):
    methods = {name.replace("_", "-"): method(0.99, facts=facts) for name, facts in facts_of.items()}
    return GameResult(None, SPEC, methods, None, [], None, None)


def test_the_spent_budget_is_told_once_for_originals_and_once_for_retrained_models():
    game = played(retrain=private(7.99199), neg_grad=private(7.99255), none=private(7.99255))
    line = (
        "Privacy budget ε that the training of a model spent: 7.993 original, 7.992 retrained; target 8. "
        "It holds for one point’s gradients, there or not, at a public number of points."
    )
    assert spent_budget(game) == line
    assert line in render_table(Result({}, {}, [game])).splitlines()


def test_who_trains_anew_is_told_by_the_game_and_not_by_a_name():
    methods = {"none": {"uses_original": True}, "gold": {"uses_original": False}}
    game = dataclasses.replace(played(none=private(1.5), gold=private(2.5)), spec={**SPEC, "methods": methods})
    assert spent_budget(game).startswith(
        "Privacy budget ε that the training of a model spent: 1.500 original, 2.500 retrained; target 8. It holds"
    )


def test_without_noise_there_is_no_bound_and_without_a_book_no_line():
    assert (
        spent_budget(played(none={"noise_multiplier": 0.0}))
        == "Privacy budget ε that the training of a model spent: ∞ original."
    )
    assert spent_budget(played(retrain={}, none={"retrainings": 0.5})) is None
