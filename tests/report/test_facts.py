from forgetgauge.report.facts import told_facts
from forgetgauge.report.html import render_report
from forgetgauge.report.result import GameResult, Result
from tests.report.test_html import method

SPEC = {"pairs": 8, "alpha": 0.1, "level": 0.95, "adversaries": {}}


def swept(facts_of):
    games = [
        GameResult(value, SPEC, {"retrain": method(0.998, facts=facts)}, None, [], None, None)
        for value, facts in facts_of.items()
    ]
    return Result({}, {}, games, sweep="learner.target_epsilon")


def test_one_column_per_fact_and_a_dash_where_nothing_was_told():
    table = told_facts(
        swept({8.0: {"noise_multiplier": 1.7859, "spent_epsilon": 7.99255}, "inf": {"noise_multiplier": 0.0}})
    )
    assert table.heads == ["learner.target_epsilon", "method", "noise_multiplier", "spent_epsilon"]
    assert [row[1:] for row in table.rows] == [["retrain", "1.786", "7.993"], ["retrain", "0", "–"]]


def test_the_report_shows_them_only_where_some_are_told():
    assert "spent_epsilon" in render_report(swept({8.0: {"spent_epsilon": 7.99}, 50.0: {"spent_epsilon": 49.99}}))
    assert told_facts(swept({8.0: {}})) is None
    assert 'id="facts"' not in render_report(swept({8.0: {}, 50.0: {}}))
