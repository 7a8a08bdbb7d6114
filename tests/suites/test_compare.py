"""The paper's table beside ours: the arithmetic, by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import scipy.stats

from forgetgauge.errors import UserError
from forgetgauge.results.record import ComparisonResult
from forgetgauge.suites.compare import (
    cell,
    compare_suite,
    compared_again,
    judged_cells,
    mean_tau_of_columns,
    over_none,
    remarks,
    text_table,
)
from forgetgauge.suites.paper import Value, paper_table
from forgetgauge.suites.pictures import column_pictures
from forgetgauge.suites.readings import BOUND, EXCEEDED, Reading
from forgetgauge.suites.records import AsPaper, Invocation, Ours, read_comparison
from forgetgauge.suites.strengths import remark
from forgetgauge.suites.tables import suite
from tests.suites.conftest import method, result_of

INVOCATIONS = [
    Invocation("forgetgauge reproduce table1", "fcf398c1", "cpu", 10.0, 5),
    Invocation("", "fcf398c1", "cpu", 2.5, 1),
]


@pytest.mark.parametrize(
    ("as_paper", "interval", "inside", "overlaps"),
    [
        (0.51, (0.45, 0.55), True, True),
        (0.4896, (0.48, 0.495), True, True),  # 0.490 as printed
        (0.52, (0.505, 0.54), False, True),
        (0.52, (0.515, 0.54), False, False),
        (0.48, None, False, None),
        (None, (0.45, 0.55), None, True),  # pairs were not stored
    ],
)
def test_a_cell_agrees_when_ours_computed_as_the_papers_is_inside_its_spread(as_paper, interval, inside, overlaps):
    theirs = None if as_paper is None else AsPaper(as_paper, 0.1)
    found = cell(Value(0.5, 0.01), Reading(Ours(0.7, interval), theirs))
    assert (found.inside, found.overlaps) == (inside, overlaps)


def test_nothing_agrees_where_the_paper_gives_no_spread_or_we_did_not_run():
    ours = Reading(Ours(0.01), AsPaper(0.01, None))
    assert cell(Value(0.01, None), ours).inside is None
    assert cell(Value(0.5, 0.01), None).inside is None
    assert cell(None, ours).inside is None


def test_tau_is_taken_over_the_rows_that_both_columns_have():
    one, other = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 0.0}, {"c": 1.0, "b": 2.0, "a": 3.0}
    assert mean_tau_of_columns([one, other]) == pytest.approx(-1)
    assert mean_tau_of_columns([one, one, other]) == pytest.approx((1 - 1 - 1) / 3)
    assert mean_tau_of_columns([one]) is None
    assert mean_tau_of_columns([one, {"a": 1.0, "b": 2.0}]) is None  # two rows are no ranking


@pytest.fixture
def compared():
    """η = 0.1 like the paper's, η = 0.4 its reverse, the rest not run."""
    made = suite("table1", "small")
    printed = paper_table("table1")
    same = {row: method(v["0.1"].mean, (v["0.1"].mean, 1.0)) for row, v in printed.rows.items()}
    reverse = {row: method(1 - v["0.4"].mean, (0.0, 0.9)) for row, v in printed.rows.items()}
    same["none"] = method(0.12, (0.1, 0.2))
    not_run = dict.fromkeys(("0.8", "1.0"), "the time was up")
    return compare_suite(made, made.columns[:2], result_of({"0.1": same, "0.4": reverse}), not_run, INVOCATIONS)


def test_what_a_method_has_over_none_is_the_paired_difference_either_way_round():
    pairs = [
        ComparisonResult("retrain", "none", 0.5, (0.4, 0.6), "retrain"),
        ComparisonResult("ssd", "none", 0.2, (-0.1, 0.5), None),
        ComparisonResult("none", "fisher", -0.3, (-0.4, -0.2), "fisher"),
        ComparisonResult("ssd", "fisher", -0.1, (-0.2, 0.0), None),
    ]
    (game,) = result_of({"1.0": {}}).games
    assert over_none(replace(game, comparisons=pairs)) == {
        "ssd": Ours(0.2, (-0.1, 0.5)),
        "fisher": Ours(0.3, (0.2, 0.4)),
    }


def test_published_settings_stand_beside_the_papers_row_and_are_counted_apart():
    made, printed = suite("table1", "paper"), paper_table("table1").rows
    value = printed["fisher"]["0.1"].mean
    columns = {"0.1": {"fisher": method(0.3, (0.29, 0.31)), "fisher-published": method(value, (value, value))}}
    found = compare_suite(made, made.columns[:1], result_of(columns), {}, [])
    cell = found.rows["fisher-published"]["0.1"]
    assert (cell.paper, cell.inside, cell.overlaps) == (value, True, True)
    assert [len(judged_cells(found, published=which)) for which in (False, True)] == [1, 1]
    said = "\n".join(remarks(found))
    assert "Inside the paper’s ±: 0 of 1 cells" in said
    assert "With published settings, not counted there: 1 of 1 cell." in said
    (picture,) = column_pictures(found)
    assert picture.slopes == []  # one method is no ranking
    assert found.tau["0.1"] is None


def test_rankings_are_compared_with_the_papers_column_by_column(compared):
    assert compared.tau == {"0.1": pytest.approx(1.0), "0.4": pytest.approx(-1.0), "0.8": None, "1.0": None}
    assert compared.tau_between_columns_paper == pytest.approx(1.0)  # over the columns and rows that we have
    assert compared.tau_between_columns < 0


def test_tau_is_shown_with_and_without_retrain_and_older_records_have_only_one(compared):
    assert compared.tau_without_retrain == {**compared.tau, "0.1": pytest.approx(1.0), "0.4": pytest.approx(-1.0)}
    moved = replace(compared, tau={"0.1": 0.49}, tau_without_retrain={"0.1": -0.28})
    line = "Kendall τ of our ranking against the paper’s: 0.49"
    assert f"{line} with Retrain, −0.28 without, at η = 0.1." in remarks(moved)
    assert f"{line} at η = 0.1." in remarks(replace(moved, tau_without_retrain={}))


def test_a_stored_table_says_of_its_scale_what_is_said_today_and_keeps_its_other_notes(compared):
    made = suite("table1", "small")
    columns = {"0.1": {"retrain": method(0.9, None)}, "0.4": {"retrain": method(0.9, None)}}
    old = replace(compared, notes=["Small scale: once put otherwise.", "Strengths are another table’s."])
    again = compared_again(old, result_of(columns))
    assert again.notes == [made.notes[0], "Strengths are another table’s."]
    assert compared_again(replace(old, notes=["Other."]), result_of(columns)).notes == ["Other."]


def test_differences_have_signs_in_brackets_too(compared):
    told = replace(compared, over_none={"0.1": {"ssd": Ours(0.043, (-0.049, 0.101)), "my-own": Ours(-0.1)}})
    line = "Q minus None’s Q, pair by pair, at η = 0.1: SSD +0.043 [−0.049,\u00a0+0.101], my-own −0.100."
    assert line in remarks(told)


def test_retrain_is_grounded_where_its_interval_holds_one(compared):
    assert compared.grounding == {"0.1": True, "0.4": False, "0.8": None, "1.0": None}


def test_rows_are_the_papers_first_and_then_ours(compared):
    assert list(compared.rows) == [*paper_table("table1").rows, "none"]
    assert compared.rows["none"]["0.1"].paper is None
    assert all(row["0.1"].inside for name, row in compared.rows.items() if name != "none")


def test_what_was_not_run_says_so(compared):
    assert compared.rows["ssd"]["1.0"].ours is None
    text = text_table(compared)
    assert "not run" in text
    assert "Not run: 1.0: the time was up." in text


def test_time_is_summed_over_invocations_and_provenance_is_kept(compared):
    assert compared.wall_s == 12.5
    text = text_table(compared)
    for part in (
        "2 invocations",
        "commit fcf398c1",
        "on cpu",
        "`forgetgauge reproduce table1`",
        remark(4),
    ):
        assert part in text


def test_a_comparison_survives_the_disk(compared, tmp_path):
    path = tmp_path / "comparison.json"
    path.write_text(compared.to_json())
    assert read_comparison(path) == compared
    path.write_text(compared.to_json().replace('"schema": 1', '"schema": 7'))
    with pytest.raises(UserError, match="schema 7"):
        read_comparison(path)


def test_table_8_holds_the_advantage_of_one_method_in_each_column():
    made = suite("table8", "paper")
    methods = {name: method(0.99, (0.98, 1.0)) for name in ("certified-0.8", "certified-0.6", "certified-0.4")}
    methods |= {"certified-0.3": method(0.997, (0.99, 1.0)), "retrain": method(0.998, (0.99, 1.0))}
    result = result_of({column.label: methods for column in made.columns})
    found = compare_suite(made, made.columns, result, {}, []).rows["advantage"]
    assert found["0.8"].ours.value == pytest.approx(0.01)
    assert found["0.3"].ours.value == pytest.approx(0.003)
    assert found["Retrain"].ours.interval == pytest.approx((0.0, 0.01))


def test_the_table_beside_table_8_holds_what_each_certificate_says_and_is_compared_with_no_number_of_the_papers():
    made = suite("table8-visible", "paper")
    methods = {"none": method(0.93, (0.9, 0.95), utility={"test": 0.77}), "retrain": method(0.99, (0.98, 1.0))}
    for epsilon, share in ((2.5, 0.0), (2.0, 0.5), (1.5, 1.0)):
        stated = {"claimed_epsilon": epsilon, "claimed_delta": 1e-4, "retrainings": share}
        methods[f"certified-{epsilon}"] = method(0.98, (0.97, 1.0), facts=stated)
    found = compare_suite(made, made.columns, result_of({column.label: methods for column in made.columns}), {}, [])
    assert list(found.rows) == ["advantage", "accuracy", BOUND, EXCEEDED]
    assert found.columns == ["None", "2.5", "2.0", "1.5", "Retrain"]
    assert found.rows["advantage"]["None"].ours.value == pytest.approx(0.07)
    assert found.rows["accuracy"]["None"].ours.value == 0.77
    assert found.rows[BOUND]["2.0"].ours.value == pytest.approx(1 - (1 - 2e-4) * math.exp(-2))
    assert [found.rows[EXCEEDED][label].ours for label in ("None", "2.0", "1.5")] == [None, Ours(0.5), Ours(1.0)]
    assert found.grounding["Retrain"] is True
    assert {cell.paper for row in found.rows.values() for cell in row.values()} == {None}
    assert text_table(found).startswith("Beside Table 8, paper scale: ")


def test_accuracy_is_that_of_the_original_models_on_the_test_set():
    made = suite("table5b", "paper")
    methods = {"none": method(0.9, None, utility={"unseen": 0.5, "test": 0.485}), "retrain": method(1.0, None)}
    found = compare_suite(made, made.columns[:1], result_of({"50": methods}), {}, [])
    assert found.rows["accuracy"]["50"].ours == Ours(0.485)
    assert found.rows["accuracy"]["50"].inside is True


def test_accuracy_has_students_interval_over_pairs():
    made, by_pair = suite("table5b", "paper"), {"unseen": [0.1] * 5, "test": [0.47, 0.48, 0.485, 0.49, 0.5]}
    methods = {"none": method(0.9, None, utility={"unseen": 0.1, "test": 0.485}, utility_by_pair=by_pair)}
    found = compare_suite(made, made.columns[:1], result_of({"50": methods}), {}, []).rows["accuracy"]["50"].ours
    half = scipy.stats.t.ppf(0.975, 4) * scipy.stats.sem(by_pair["test"])
    assert found.interval == pytest.approx((0.485 - half, 0.485 + half))


def test_what_every_method_costs_is_said_however_little_with_published_settings_too():
    made = suite("table2", "paper")
    accuracies = {"none": 0.82, "retrain": 0.8, "salun": 0.7996, "ft-final": 0.803, "salun-published": 0.7}
    methods = {name: method(0.9, None, utility={"test": accuracy}) for name, accuracy in accuracies.items()}
    found = compare_suite(made, made.columns[:1], result_of({"0.1": methods}), {}, [])
    line = "Points of accuracy below the less accurate of Retrain and None, at α = 0.1: "
    assert f"{line}Ft-final −0.3, SalUn 0.0, SalUn, published 10.0." in text_table(found)
    assert "Points of accuracy" not in text_table(compare_suite(made, (), None, {}, []))


def test_tables_of_private_training_say_for_whom_epsilon_holds():
    for name, is_said in (("table3", True), ("table5b", True), ("table1", False), ("table8", False)):
        made = suite(name, "paper")
        assert ("zero-out neighbours" in text_table(compare_suite(made, (), None, {}, []))) is is_said


def test_methods_that_cost_accuracy_are_named_under_a_table_of_q():
    made = suite("table2", "paper")
    methods = {
        "retrain": method(1.0, None, utility={"test": 0.8}),
        "ssd": method(0.9, None, utility={"test": 0.65}),
        "fisher": method(0.6, None, utility={"test": 0.795}),
    }
    found = compare_suite(made, made.columns[:1], result_of({"0.1": methods}), {}, [])
    assert found.lost_accuracy == {"0.1": {"ssd": pytest.approx(0.15)}}
    line = "the test points leave to chance, so that Q is in part damage: SSD by 15.0 at α = 0.1."
    assert line in text_table(found)
