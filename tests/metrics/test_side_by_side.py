"""What the side-by-side table makes of fabricated results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from forgetgauge.report.html import render_report
from forgetgauge.report.side_by_side import METRICS, check_rows, checks_of, on_order, score_rows, sweep_checks
from forgetgauge.report.table import render_table
from forgetgauge.results.record import AdversaryResult, GameResult, MethodResult, MetricResult, Result
from tests.report.test_html import Page


def metric(value: float, width: float = 0.02, adversary: str | None = None) -> MetricResult:
    return MetricResult(value, (value - width, value + width), [value - width, value + width], adversary)


def method(quality: float, **metrics: float | MetricResult) -> MethodResult:
    advantage = 1 - quality
    return MethodResult(
        quality=quality,
        quality_plugin=quality,
        chosen_on="over pairs",
        interval=(quality - 0.01, min(1.0, quality + 0.01)),
        interval_basis="over pairs",
        epsilon=None,
        adversary="loss",
        by_adversary={"loss": AdversaryResult(advantage, (advantage, advantage), [advantage] * 5)},
        p_value=0.5,
        noise_floor=0.01,
        n_pairs=5,
        utility={},
        n_gradients=None,
        seconds=None,
        metrics={name: found if isinstance(found, MetricResult) else metric(found) for name, found in metrics.items()},
    )


def game(methods: dict[str, MethodResult], value: Any = None) -> GameResult:
    return GameResult(value, {"level": 0.95}, methods, None, [], None, "over pairs")


def result(*games: GameResult, sweep: str | None = None) -> Result:
    return Result({}, {}, list(games), sweep=sweep)


METHODS = {
    "retrain": method(0.995, ic=0.9, mia=0.45, kl_forget=0.2, gap_forget=0.0),
    "good": method(0.9, ic=0.5, mia=0.4, kl_forget=0.3, gap_forget=0.1),
    "none": method(0.8, ic=0.6, mia=0.3, kl_forget=0.4, gap_forget=0.2),
}


def test_without_rivals_nothing_is_shown():
    plain = {name: method(0.9) for name in ("retrain", "none")}
    assert score_rows(game(plain), list(plain)) == []
    assert check_rows(game(plain)) == []
    assert "IC" not in render_table(result(game(plain)))
    assert "Beside Q" not in render_report(result(game(plain)))


def test_grounding_is_judged_by_retrains_interval_and_each_metrics_ideal():
    checks = {check.metric.key: check for check in checks_of(game(METHODS))}
    assert checks["quality"].grounded is True
    assert checks["ic"].grounded is False
    assert checks["mia"].grounded is False
    assert checks["kl_forget"].grounded is False
    assert "gap_forget" not in checks


def test_tau_with_q_turns_metrics_round_where_lower_is_better():
    checks = {check.metric.key: check for check in checks_of(game(METHODS))}
    assert checks["mia"].tau == 1
    assert checks["kl_forget"].tau == 1
    assert checks["ic"].tau == pytest.approx(1 / 3)
    assert checks["quality"].tau is None


def test_an_offset_is_called_built_in():
    methods = {"retrain": method(1.0, offset_mia=0.0), "none": method(0.8, offset_mia=0.1)}
    (row,) = [row for row in check_rows(game(methods)) if row[0] == "offset MIA"]
    assert "by construction" in row


def test_a_method_that_lacks_a_metric_has_a_dash():
    methods = {**METHODS, "failed": method(0.7)}
    rows = score_rows(game(methods), list(methods))
    assert rows[-1] == ["failed", "0.700 [0.690, 0.710]", "–", "–", "–"]
    assert [check.metric.key for check in checks_of(game(methods))] == ["quality", "ic", "mia", "kl_forget"]


def swept(*values: Any) -> Result:
    """Q falls and IC rises with the value; MIA turns the methods round at the last."""
    games = [
        game(
            {
                "retrain": method(0.99, ic=0.9, mia=0.5 if i < len(values) - 1 else 0.2),
                "none": method(0.9 - 0.1 * i, ic=0.1 + 0.2 * i, mia=0.3),
            },
            value,
        )
        for i, value in enumerate(values)
    ]
    return result(*games, sweep="learner.target_epsilon")


def test_a_sweep_counts_rises_and_falls_beyond_intervals():
    checks = {check.metric.key: check for check in sweep_checks(swept(1.0, 8.0, "inf"))}
    assert (checks["quality"].steps.sure_rises, checks["quality"].steps.sure_falls) == (0, 2)
    assert (checks["ic"].steps.sure_rises, checks["ic"].steps.sure_falls) == (2, 0)
    assert checks["quality"].tau == checks["ic"].tau == 1
    assert checks["mia"].tau == pytest.approx(-1 / 3)


def test_a_method_that_one_metric_lacks_somewhere_is_left_out_for_all():
    found = swept(1.0, 8.0, "inf")
    found.games[0].methods["partly"] = method(0.7, ic=0.5, mia=0.4)
    found.games[1].methods["partly"] = method(0.9, mia=0.4)
    found.games[2].methods["partly"] = method(0.95, ic=0.5, mia=0.4)
    assert sweep_checks(found) == sweep_checks(swept(1.0, 8.0, "inf"))


def test_values_are_put_in_order_with_infinity_last():
    shuffled = swept(1.0, 8.0, "inf")
    turned = Result({}, {}, shuffled.games[::-1], sweep=shuffled.sweep)
    assert sweep_checks(turned) == sweep_checks(shuffled)


def test_the_report_of_a_sweep_says_what_to_expect_of_a_privacy_budget():
    found = swept(1.0, 8.0, "inf")
    assert "should not rise" in on_order(found)
    assert "should not rise" in render_table(found)
    assert "rises beyond intervals" in render_report(found)
    assert on_order(result(game(METHODS))) == ""


def test_every_metric_says_what_it_misses_and_stands_in_the_documentation():
    text = (Path(__file__).parents[2] / "docs/metrics.md").read_text()
    for one in METRICS:
        assert one.misses.endswith(".")
        assert f"`{one.key}`" in text


@pytest.mark.parametrize("shown", [result(game(METHODS)), swept(1.0, 8.0, "inf")], ids=["one game", "a sweep"])
def test_the_page_stays_well_formed_and_escapes_names(shown):
    page = Page(render_report(shown))
    assert page.open == []
    assert "Beside Q: what other metrics say, and miss" in page.text
    evil = {"<b>retrain": METHODS["retrain"], **METHODS}
    assert "<b>retrain" not in render_report(result(game(evil)))
