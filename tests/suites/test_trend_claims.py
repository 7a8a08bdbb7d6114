"""What the paper says falls or rises, judged on tables made by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from forgetgauge.suites.compare import compare_suite
from forgetgauge.suites.findings import Stored
from forgetgauge.suites.records import Ours
from forgetgauge.suites.tables import suite
from forgetgauge.suites.trend_claims import (
    falling_claim,
    removal_claim,
    rising_accuracy_claim,
    rival_claim,
    trend_of,
)
from tests.suites.conftest import by_budget, method, played, result_of

HALVES = ("table5a", "table5b")


@pytest.mark.parametrize(
    ("values", "half", "holds"),
    [
        ((0.9, 0.8, 0.7, 0.5), 0.01, "yes"),
        ((0.9, 0.7, 0.8, 0.5), 0.01, "no"),
        ((0.9, 0.895, 0.898, 0.5), 0.01, "yes"),  # a rise inside the intervals is none
        ((0.9, 0.8, 0.7, 0.5), 0.3, "open"),
    ],
)
def test_quality_falls_with_the_budget_where_intervals_say_so(values, half, holds):
    assert falling_claim(played("table3", by_budget(*values), half=half, by_price=False)).holds == holds


def test_a_fall_is_told_with_its_ends_and_scale():
    found = falling_claim(played("table3", by_budget(0.9, 0.8, 0.7, 0.5), scale="small", published=True))
    assert found.short == "Q is lower the larger the ε of training, from 0.900 to 0.500 for None (small scale)"
    assert found.finding == (
        "7 of 7 methods are lower at ε = ∞ than at ε = 50 beyond their intervals, and none rises beyond them in between"
    )


def test_one_method_that_rises_is_named_and_refutes_whatever_is_missing():
    columns = by_budget(0.9, 0.8, 0.7, 0.5)
    columns["150"]["ssd"] = 0.95
    found = falling_claim(played("table3", columns, by_price=False))
    assert (found.holds, found.short) == ("no", "")
    assert "and SSD from 50 to 150 rise beyond them" in found.finding
    del columns["600"]["fisher"]
    assert falling_claim(played("table3", columns, by_price=False)).holds == "no"


def test_what_a_column_lacks_leaves_it_open_and_what_was_never_played_does_not():
    columns = by_budget(0.9, 0.8, 0.7, 0.5)
    ends = falling_claim(played("table3", {label: columns[label] for label in ("50", "inf")}, by_price=False))
    assert (ends.holds, ends.finding.partition("; missing: ")[2]) == ("open", "ε = 150, ε = 600")
    del columns["150"]["ssd"]
    found = falling_claim(played("table3", columns, by_price=False))
    assert (found.holds, found.finding[-21:]) == ("open", "; missing: SSD at 150")
    without = {label: {m: q for m, q in c.items() if m != "ssd"} for label, c in columns.items()}
    found = falling_claim(played("table3", without, by_price=False))
    assert (found.holds, found.finding[-20:]) == ("yes", "; SSD was not played")


def test_a_column_with_other_models_is_shown_and_decides_nothing_alone():
    flat = played("table3", by_budget(0.95, 0.949, 0.948, 0.5), by_price=False)
    assert falling_claim(flat).holds == "yes"
    found = falling_claim(flat, ["inf"])
    assert (found.holds, found.short) == ("open", "")
    assert found.finding.endswith(
        "; our models at ε = ∞ are not the paper’s, and without these 0 of 7 methods are lower at ε = 600 than at "
        "ε = 50 beyond their intervals"
    )
    steep = played("table3", by_budget(0.95, 0.9, 0.8, 0.5), by_price=False)
    assert falling_claim(steep, ["inf"]).holds == "yes"
    labels = ["50", "150", "600", "inf"]
    for others in (labels, labels[1:]):
        nothing = falling_claim(steep, others)
        assert (nothing.holds, nothing.finding.endswith(" are not the paper’s")) == ("open", True)
        assert rising_accuracy_claim([accurate(name, 0.4, 0.5, 0.6, 0.7) for name in HALVES], others).holds == "open"
    scores = played("table4a", by_budget(0.95, 0.949, 0.948, 0.5), published=True)
    assert rival_claim("", "", "IC score", scores, ["inf"]).holds == "open"


def test_without_both_ends_nothing_falls_and_one_column_is_no_run():
    columns = by_budget(0.9, 0.8, 0.7, 0.5)
    middle = {label: columns[label] for label in ("150", "600")}
    assert falling_claim(played("table3", middle, by_price=False)).holds == "open"
    assert falling_claim(played("table3", {"150": columns["150"]}, by_price=False)).holds == "not run"
    assert falling_claim(None).holds == "not run"


def test_retrain_may_do_what_it_likes():
    columns = by_budget(0.9, 0.8, 0.7, 0.5)
    columns["50"]["retrain"] = 0.1
    assert trend_of(played("table3", columns, by_price=False).comparison).all_fall


def test_intervals_for_the_models_at_hand_decide_nothing():
    table = played("table3", by_budget(0.9, 0.8, 0.7, 0.5), by_price=False)
    table = replace(table, comparison=replace(table.comparison, basis=["given these models"]))
    assert falling_claim(table).holds == "open"


@pytest.mark.parametrize(
    ("values", "half", "holds"),
    [
        ((0.9, 0.8, 0.7, 0.5), 0.01, "no"),  # the rival falls like Q
        ((0.8, 0.9, 0.7, 0.5), 0.01, "yes"),
        ((0.8, 0.9, 0.7, 0.5), 0.2, "open"),
    ],
)
def test_a_rival_is_said_not_to_fall(values, half, holds):
    found = rival_claim("", "", "IC score", played("table4a", by_budget(*values), half=half, published=True))
    assert found.holds == holds
    assert (found.short == "the IC score, too, is lower the larger ε is") == (holds == "no")


def accurate(table: str, *values: float, half: float = 0.01) -> Stored:
    """A half of Table 5 with these accuracies and intervals over pairs."""
    made = suite(table, "paper")
    labels = ("50", "150", "600", "inf")
    columns = {label: {"none": method(0.5, None, utility={"test": v})} for label, v in zip(labels, values, strict=True)}
    compared = compare_suite(made, made.columns, result_of(columns), {}, [])
    cells = {
        label: replace(compared.rows["accuracy"][label], ours=Ours(v, (v - half, v + half)))
        for label, v in zip(labels, values, strict=True)
    }
    return Stored(replace(compared, rows={"accuracy": cells}))


@pytest.mark.parametrize(
    ("values", "half", "holds"),
    [
        ((0.4, 0.5, 0.6, 0.7), 0.01, "yes"),
        ((0.4, 0.5, 0.6, 0.5), 0.01, "no"),
        ((0.4, 0.5, 0.6, 0.7), 0.2, "open"),
    ],
)
def test_accuracy_rises_where_both_halves_of_the_table_say_so(values, half, holds):
    rising = accurate("table5a", 0.4, 0.5, 0.6, 0.7)
    assert rising_accuracy_claim([rising, accurate("table5b", *values, half=half)]).holds == holds
    alone = rising_accuracy_claim([rising, None])
    assert (alone.holds, "missing: a half of the table" in alone.finding) == ("open", True)
    assert rising_accuracy_claim([None, None]).holds == "not run"


def test_accuracy_must_rise_without_a_column_of_other_models_too():
    halves = [accurate(name, 0.4, 0.401, 0.402, 0.7) for name in HALVES]
    assert rising_accuracy_claim(halves).holds == "yes"
    assert rising_accuracy_claim(halves, ["inf"]).holds == "open"
    steep = [accurate(name, 0.4, 0.5, 0.6, 0.7) for name in HALVES]
    assert rising_accuracy_claim(steep, ["inf"]).holds == "yes"


@pytest.mark.parametrize(
    ("qualities", "holds"),
    [
        ((0.90, 0.92, 0.94, 0.96, 0.999), "yes"),
        ((0.90, 0.92, 0.94, 0.90, 0.999), "no"),
        ((0.990, 0.991, 0.992, 0.993, 0.5), "open"),  # Retrain, the last, is no ε
    ],
)
def test_the_advantage_falls_with_the_budget_of_certified_removal(qualities, holds):
    made = suite("table8", "paper")
    names = [column.method for column in made.columns]
    methods = {name: method(q, (q - 0.005, q + 0.005)) for name, q in zip(names, qualities, strict=True)}
    result = result_of({column.label: methods for column in made.columns})
    assert removal_claim(Stored(compare_suite(made, made.columns, result, {}, []))).holds == holds


def test_columns_with_the_same_models_are_told_apart_by_no_number_of_runs():
    made = suite("table8", "paper")
    exceeded = {"certified-0.8": 0.0, "certified-0.6": 0.0, "certified-0.4": 0.0, "certified-0.3": 1.0}
    methods = {
        name: method(0.99, (0.985, 0.995), facts={"retrainings": share, "claimed_epsilon": 0.5, "claimed_delta": 1e-4})
        for name, share in exceeded.items()
    }
    result = result_of({column.label: {**methods, "retrain": method(0.99, None)} for column in made.columns})
    table = compare_suite(made, made.columns, result, {}, [])
    found = removal_claim(Stored(table, games={game.value: game for game in result.games}))
    assert found.holds == "open"
    assert found.finding.endswith("; at ε = 0.8, 0.6 and 0.4 the models are the same, so nothing can fall there")
