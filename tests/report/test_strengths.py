"""What is said of strengths: only what is true of each method."""

from __future__ import annotations

from dataclasses import replace

import pytest

from forgetgauge.plan.game import PRICE_RULE
from forgetgauge.report.chart import frontier_chart, quality_chart
from forgetgauge.report.erasure_test import what_was_tested
from forgetgauge.report.rows import rows_of, unlike
from forgetgauge.report.strengths import frontier_rows, gap_lines, map_legend, map_of, price_line, strength_note
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
    game = result_of({"all": methods}).games[0]
    return replace(game, spec={**game.spec, "price": {"rule": PRICE_RULE}})


def test_a_choice_by_an_earlier_rule_is_said_to_be_one():
    game = game_of(one=replace(tuned(0.2), tried=[*TRIED, TriedStrength(0.8, None, None, diverged=True)]))
    for spec in ({**game.spec, "price": {"rule": 1}}, {k: v for k, v in game.spec.items() if k != "price"}):
        said = price_line(replace(game, spec=spec))
        assert "is the strongest that was tried and is shown, on 8 shadow models" in said
        assert said.endswith("(an earlier rule, decision 0043).")


def test_the_price_is_claimed_of_those_alone_that_keep_it():
    assert price_line(game_of()) is None
    said = price_line(game_of(one=tuned(0.2), other=tuned(0.1, holds=False)))
    assert "the strength of one (lr = 0.2) is the strongest up to which every value that was tried" in said
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


def test_one_that_was_taken_a_step_before_where_models_diverge_is_named():
    tried = [*TRIED, TriedStrength(0.8, None, None, diverged=True)]
    assert "is the value before" not in price_line(game_of(one=replace(tuned(0.4), tried=tried)))
    said = price_line(game_of(one=replace(tuned(0.2), tried=tried)))
    assert said.endswith("Of one it is the value before that, since at the next one a model gave no numbers.")


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
        (tuned(0.2), "one; lr = 0.2, chosen by price: it cost 8 shadow models no more than 1.0 points"),
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


# -- the frontier ------------------------------------------------------------------------------------------------------


RUINOUS = TriedStrength(0.3, 0.5, 0.6)


def frontier_of(*, price_tried=(), published="", accuracies=(0.8, 0.79, 0.78), values=(0.1, 0.2, 0.4)):
    """Retrain, None, `one` along its strength and as the run file has it (0.2), and `other`, which has no strength."""
    game = game_of(**{"one@price": replace(tuned(values[0]), tried=list(price_tried))})
    points = dict(zip(values, accuracies, strict=True))
    methods = {f"one@{value}": method(0.7, (0.6, 0.8), utility={"test": at}) for value, at in points.items()}
    methods["one"], methods["other"] = methods.pop("one@0.2"), method(0.65, (0.6, 0.7), utility={"test": 0.77})
    variants = {name: {"method": "one", "parameter": "lr", "value": float(name[4:])} for name in methods if "@" in name}
    variants["one@price"] = {"method": "one", "parameter": "lr", "value": values[0]}
    spec = {name: {"variant": variant, "unlearner": {"name": "salun"}} for name, variant in variants.items()}
    spec["one"] = {"unlearner": {"name": "salun", "params": {"lr": 0.2}}, "source": published}
    spec["other"] = {"unlearner": {"name": "ft-final", "params": {}}}
    del methods["one@0.1"], spec["one@0.1"]
    return replace(game, methods={**game.methods, **methods}, spec={**game.spec, "methods": spec})


def test_between_values_that_ruin_models_no_line_is_drawn_and_the_gap_is_said():
    for tried, n_lines in (([*TRIED], 2), ([*TRIED, RUINOUS], 1), ([TriedStrength(0.3, None, None, True)], 1)):
        game = frontier_of(price_tried=sorted(tried, key=lambda one: one.value))
        picture, _ = map_of(game)
        (curve,) = [series for series in picture.series if series.name == "one"]
        assert (len(curve.points), len(curve.segments)) == (3, n_lines)
        (drawn,) = [curve for curve in frontier_chart(result_with(game)).curves if curve.name == "one"]
        assert sum(len(line) - 1 for line in drawn.lines) == n_lines
        assert [f"at {tried[-1].value:g} shadow models may lose" in line for line in gap_lines(game)] == [True] * (
            2 - n_lines
        )
    assert gap_lines(game)[0].startswith("one was not played between lr = 0.2 and 0.4: at 0.3 shadow models may lose")
    assert gap_lines(game)[0] in map_legend(game, 0)


def test_no_line_is_drawn_past_a_point_that_the_map_leaves_out():
    game = frontier_of(price_tried=TRIED, accuracies=(0.8, 0.5, 0.78))
    picture, n_left = map_of(game)
    (curve,) = [series for series in picture.series if series.name == "one"]
    assert (n_left, len(curve.points), len(curve.segments)) == (1, 2, 0)
    (drawn,) = [curve for curve in frontier_chart(result_with(game)).curves if curve.name == "one"]
    assert (len(drawn.marks), drawn.lines) == (2, [])


def test_no_line_crosses_a_swept_value_at_which_a_method_has_no_q():
    columns = {0.1: {"one": method(0.7, (0.6, 0.8))}, 0.2: {}, 0.3: {"one": method(0.8, (0.7, 0.9))}}
    columns |= {at: {"one": method(0.9, (0.8, 1.0))} for at in (0.4, 0.5)}
    (curve,) = quality_chart(result_of(columns)).curves
    assert [[mark.x for mark in line] for line in curve.lines] == [[0.3, 0.4, 0.5]]
    assert len(curve.marks) == 4


def test_a_method_without_a_strength_is_a_point_of_the_map_and_a_row_of_the_table():
    game = frontier_of(price_tried=TRIED)
    assert frontier_rows(game)[-1][:3] == ["other", "–", "0.650"]
    assert frontier_rows(game)[-1][-1] == "no strength"
    picture, _ = map_of(game)
    assert [len(series.points) for series in picture.series if series.name == "other"] == [1]
    assert len(picture.rings) == 2  # what the price chose and what the run file has


@pytest.mark.parametrize(
    ("source", "remark"),
    [
        ("", "as the run file has it"),
        ("A. Author 2024", "as published"),
        ("A. Author 2024; but epochs = 1", "as published, but epochs = 1"),
    ],
)
def test_a_point_says_whose_setting_it_is(source, remark):
    game = frontier_of(price_tried=TRIED, published=source)
    assert [row[-1] for row in frontier_rows(game) if row[1] == "lr = 0.2"] == [remark]


def test_the_data_have_every_strength_that_the_table_has_and_what_each_point_costs():
    found = rows_of([("", result_with(frontier_of(price_tried=TRIED)))])
    names, cells = found.flat()
    rows = {row[0]: dict(zip(names, row, strict=True)) for row in cells}
    assert (rows["one"]["strength"], rows["one"]["strength_value"], rows["one"]["price"]) == ("lr = 0.2", 0.2, None)
    assert rows["other"]["strength"] is None
    below = {name: (row["accuracy_below_retrain"], row["accuracy_below_none"]) for name, row in rows.items()}
    assert below["other"] == pytest.approx((0.08, 0.03))
    assert below["retrain"] == pytest.approx((0.0, -0.05))


def result_with(game):
    return replace(result_of({"all": {}}), games=[game], sweep=None)
