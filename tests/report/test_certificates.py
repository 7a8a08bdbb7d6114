import dataclasses

import pytest

from forgetgauge.report.certificates import HEADS, UNCERTIFIED, UNCERTIFIED_EXPLAINED, certificates
from forgetgauge.report.html import render_report
from forgetgauge.report.table import render_table
from forgetgauge.results.record import GameResult, Result
from tests.report.test_html import method

SPEC = {"pairs": 8, "seeds": 2, "alpha": 0.1, "level": 0.95, "adversaries": {}}


def claiming(epsilon, quality=0.99, retrainings=0.25, **changes):
    facts = {"claimed_epsilon": epsilon, "claimed_delta": 1e-4, "retrainings": retrainings}
    return method(quality, facts=facts, **changes)


def sweep(*values, **changes):
    games = [
        GameResult(value, SPEC, {"retrain": method(0.998), "cr": claiming(value, **changes)}, None, [], None, None)
        for value in values
    ]
    return Result({}, {}, games, sweep="unlearners.cr.epsilon")


def test_every_claim_is_listed_and_the_methods_beside_it_once():
    found = certificates(sweep(0.8, 0.3))
    assert [(one.method, one.epsilon) for one in found] == [("cr", 0.8), ("cr", 0.3), ("retrain", None)]
    assert found[0].advantage == pytest.approx(0.01)
    assert found[0].interval == pytest.approx((0.0, 0.02))
    assert (found[0].tight, found[0].paper) == pytest.approx((0.55076, 0.76003), abs=1e-4)


@pytest.mark.parametrize(
    ("quality", "width", "verdict"),
    [(0.99, 0.01, "below"), (0.74, 0.1, "not settled"), (0.5, 0.05, "above: the claim is refuted")],
)
def test_the_interval_decides_what_is_said_of_the_claim(quality, width, verdict):
    assert certificates(sweep(0.3, quality=quality, width=width))[0].verdict == verdict


def test_a_claim_is_judged_by_the_bounded_interval_whatever_is_shown():
    """tight_bound(0.3, 1e-4) = 0.259."""
    shown_above = sweep(0.3, quality=0.5, bounded_interval=(0.2, 0.9), advantage_floor=0.15)
    shown_below = sweep(0.3, quality=0.99, bounded_interval=(0.6, 1.0), advantage_floor=0.0)
    for result, interval in ((shown_above, (0.1, 0.8)), (shown_below, (0.0, 0.4))):
        found = certificates(result)[0]
        assert found.interval == pytest.approx(interval)
        assert found.verdict == "not settled"
    one_sided = certificates(sweep(0.3, quality=0.5, bounded_interval=(0.2, 0.75), advantage_floor=0.26))[0]
    assert one_sided.verdict == "above: the claim is refuted"


def test_table_and_report_show_them_only_where_something_is_claimed():
    result = sweep(0.8, 0.3)
    for text in (render_table(result), render_report(result)):
        assert all(head in text for head in HEADS)
        assert "δ = 0.0001" in text
        assert "0.760" in text
    games = [dataclasses.replace(game, methods={"retrain": method(0.998)}) for game in result.games]
    plain = dataclasses.replace(result, games=games)
    assert "claimed" not in render_table(plain)
    assert "certificates" not in render_report(plain)


def test_a_method_without_a_completed_pair_is_left_out():
    result = sweep(0.8, 0.3)
    empty = dataclasses.replace(claiming(0.8), quality=None, interval=None)
    games = [dataclasses.replace(result.games[0], methods={"cr": empty}), result.games[1]]
    assert [one.epsilon for one in certificates(dataclasses.replace(result, games=games))] == [0.3, None]


@pytest.mark.parametrize(("retrainings", "times"), [(0.0, 0), (0.25, 2), (1.0, 0)])
def test_a_row_with_some_models_retrained_is_said_not_to_be_certified(retrainings, times):
    result = sweep(0.8, 0.3, retrainings=retrainings)
    for text in (render_table(result), render_report(result)):
        assert text.count(UNCERTIFIED) == times
        assert text.count(UNCERTIFIED_EXPLAINED) == (times > 0)


def test_retrained_models_are_counted_where_all_of_them_are_there():
    (complete, *_), (short, *_) = certificates(sweep(0.3)), certificates(sweep(0.3, n_pairs=7))
    assert complete.retrained.replace("\u202f", " ") == "8 of 32, 25.0 %"
    assert short.retrained.replace("\u202f", " ") == "25.0 %"
    assert complete.retrained in render_table(sweep(0.3))


def test_a_mean_that_is_off_in_its_last_digit_is_shown_as_the_number_it_is():
    facts = {"claimed_epsilon": 0.5999999999999999, "claimed_delta": 0.00010000000000000002, "retrainings": 0.0}
    result = Result({}, {}, [GameResult(None, SPEC, {"cr": method(0.99, facts=facts)}, None, [], None, None)])
    for text in (render_table(result), render_report(result)):
        assert "0.5999" not in text
        assert "0.00010" not in text
        assert "δ = 0.0001" in text


def test_a_claim_that_lacks_pairs_has_no_verdict():
    (complete, *_), (short, *_) = certificates(sweep(0.3)), certificates(sweep(0.3, n_pairs=7))
    assert complete.verdict in ("below", "above: the claim is refuted", "not settled")
    assert short.verdict == "no verdict: pairs are missing"
