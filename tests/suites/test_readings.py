"""Our numbers as the paper computes its own: counted by hand, by enumeration, and from stored decisions."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import sqrt
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
import pytest

from forgetgauge.game.quality import quality_by_pair, quality_plugin
from forgetgauge.results.decisions import unpack_decisions
from forgetgauge.results.record import AdversaryResult, read_result
from forgetgauge.suites.compare import as_paper_text, cell, compare_suite, compared_again
from forgetgauge.suites.findings import read_findings
from forgetgauge.suites.paper import Value, paper_table
from forgetgauge.suites.readings import Reading, column_readings
from forgetgauge.suites.records import AsPaper, Ours
from forgetgauge.suites.tables import suite
from tests.suites.conftest import method, metric, result_of

RESULTS = Path(__file__).parents[2] / "results"

COUNTS = {
    "confidence": [2, -2, 6, -1, -4, 9],
    "correctness": [-13, 8, 4, 6, 3, 7],
    "modified-entropy": [1, -4, 8, -1, -5, 10],
    "shadow": [7, 1, 2, 0, -10, 8],
}
"""Retrain at η = 0.1, when Table 1 was first stored: how many more of 2 · 227 decisions were right than wrong, by pair.

The largest |·| of the six pairs are 13, 8, 8, 6, 10 and 10, 55 in all: the paper's form of Q is 1 − 55/6/454 = 0.980.
The largest |sum| of an adversary is 15 (correctness), so ours is 1 − 15/6/454 = 0.9945.
"""


def table_of(counts: dict[str, list[int]]) -> np.ndarray:
    return np.array(list(counts.values())).T / 454


def test_retrain_at_a_tenth_of_the_data_is_0_980_per_pair_and_0_9945_with_signs():
    by_pair = table_of(COUNTS)
    assert quality_by_pair(by_pair) == pytest.approx([1 - n / 454 for n in (13, 8, 8, 6, 10, 10)])
    assert quality_by_pair(by_pair).mean() == pytest.approx(1 - 55 / 6 / 454)
    assert round(float(quality_by_pair(by_pair).mean()), 3) == 0.980
    assert round(quality_plugin(by_pair.mean(axis=0)), 4) == 0.9945


def test_the_mean_of_single_pairs_is_never_above_q_of_the_mean():
    values = (-0.5, -0.1, 0.0, 0.2)
    for chosen in product(values, repeat=6):  # three pairs, two adversaries
        by_pair = np.reshape(chosen, (3, 2))
        assert quality_by_pair(by_pair).mean() <= quality_plugin(by_pair.mean(axis=0)) + 1e-12


def test_two_models_that_guess_look_like_an_advantage_to_the_papers_form_however_many_pairs_there_are():
    """Enumerated: one point in F, one in T, two models that say either with ½; the truth is Q = 1.

    Of the 16 equally likely answers |Adv_s + Adv_s'|/2 is 0 in 6, ½ in 8 and 1 in 2, so the paper's form is 1 − 3/8.
    """
    gained = [Fraction((a - b) + (d - c), 2) for a, b, c, d in product((0, 1), repeat=4)]
    assert sum(abs(one) for one in gained) / 16 == Fraction(3, 8)
    assert sum(gained) == 0
    by_pair = np.array([[float(one)] for one in gained])
    assert quality_by_pair(by_pair).mean() == 5 / 8
    assert quality_plugin(by_pair.mean(axis=0)) == 1.0


def read(name: str, methods: dict, label: str = "0.1"):
    made = suite(name, "paper")
    (column,) = [column for column in made.columns if column.label == label]
    (game,) = result_of({label: methods}).games
    return column_readings(made.layout, column, game, paper_table(name).spread)


def counted(counts: dict[str, list[int]], **fields):
    attacks = {name: AdversaryResult(0.0, (0.0, 1.0), (np.array(n) / 454).tolist()) for name, n in counts.items()}
    return method(1 - 15 / 6 / 454, (0.98, 1.0), by_adversary=attacks, **fields)


def test_the_spread_is_a_deviation_or_a_standard_error_as_in_the_papers_table():
    pairs = [1 - n / 454 for n in (13, 8, 8, 6, 10, 10)]
    assert paper_table("table1").spread == "standard deviation"
    found = read("table1", {"retrain": counted(COUNTS)})["retrain"]
    assert found.ours == Ours(1 - 15 / 6 / 454, (0.98, 1.0))
    assert found.as_paper == AsPaper(pytest.approx(fmean(pairs)), pytest.approx(stdev(pairs)))
    assert paper_table("table3").spread == "standard error"
    found = read("table3", {"retrain": counted(COUNTS)}, "50")["retrain"]
    assert found.as_paper == AsPaper(pytest.approx(fmean(pairs)), pytest.approx(stdev(pairs) / sqrt(6)))
    assert paper_table("table8").spread is None
    found = read("table8", {"certified-0.8": counted(COUNTS)}, "0.8")["advantage"]
    assert found.as_paper == AsPaper(pytest.approx(55 / 6 / 454), None)
    assert found.ours.value == pytest.approx(15 / 6 / 454)


def test_scores_and_accuracies_are_means_over_pairs_either_way():
    scored = method(0.5, None, metrics={"ic": metric(0.7, (0.6, 0.8))})
    assert read("table4a", {"ssd": scored}, "50")["ssd"] == Reading(
        Ours(0.7, (0.6, 0.8)), AsPaper(pytest.approx(0.7), pytest.approx(0.0))
    )
    none = method(0.5, None, utility_by_pair={"test": [0.5, 0.7]})
    assert read("table5b", {"none": none}, "50")["accuracy"].as_paper == AsPaper(
        pytest.approx(0.6), pytest.approx(0.2 / sqrt(2) / sqrt(2))
    )


def test_the_accuracy_of_the_ic_test_is_that_on_the_test_set_and_has_its_own_name():
    both = {"ic_accuracy": metric(0.4, (0.3, 0.5)), "ic_test_accuracy": metric(0.6, (0.5, 0.7))}
    assert read("table5a", {"none": method(0.5, None, metrics=both)}, "50")["accuracy"].ours.value == 0.6
    unseen = {"ic_accuracy": both["ic_accuracy"]}  # embedded digits have no official test set
    assert read("table5a", {"none": method(0.5, None, metrics=unseen)}, "50")["accuracy"].ours.value == 0.4
    assert read("table5a", {"none": method(0.5, None)}, "50") == {}


def test_a_cell_says_what_is_not_stored():
    paper = Value(0.5, 0.01)
    assert as_paper_text(cell(paper, None)) == "not run"
    assert as_paper_text(cell(paper, Reading(Ours(0.5), None))) == "pairs not stored"
    assert as_paper_text(cell(paper, Reading(Ours(0.5), AsPaper(0.5, None)))) == "0.500 ± not stored"
    assert as_paper_text(cell(paper, Reading(Ours(0.5), AsPaper(0.5, 0.02)))) == "0.500 ± 0.020"
    assert as_paper_text(cell(Value(0.01), Reading(Ours(0.5), AsPaper(0.5, None)))) == "0.500"  # as Table 8


def test_a_stored_table_is_compared_again_by_the_rules_of_today(tmp_path):
    made = suite("table1", "paper")
    result = result_of({"0.1": {"retrain": counted(COUNTS)}})
    not_run = dict.fromkeys(("0.4", "0.8", "1.0"), "not asked for")
    found = compare_suite(made, made.columns[:1], result, not_run, [])
    old = {
        row: {label: cell(None, None) for label in found.columns} for row in found.rows
    }  # as a version without the paper's form left it
    assert compared_again(replace(found, rows=old, notes=["kept"]), result) == replace(found, notes=["kept"])


def test_the_page_has_what_the_stored_decisions_say_counted_one_by_one():
    """Table 1 at η = 0.1 from single decisions: no code of ours but what unpacks the bits."""
    (stored,) = [one.comparison for one in read_findings(RESULTS).every("table1") if not one.by_price]
    (game,) = [
        g for g in read_result(RESULTS / "reproduce/paper/table1-one-strength/result.json").games if g.value == "0.1"
    ]
    for name, pairs in unpack_decisions(game.decisions).items():
        qualities = []
        for pair in pairs.values():
            gained = []
            for attack in range(len(game.decisions.adversaries)):
                sides = []
                for side, forget in enumerate((pair.in_forget, ~pair.in_forget)):
                    said = pair.decisions[side, 0, :, attack]
                    yes_f, yes_t = sum(said[forget].tolist()), sum(said[~forget].tolist())
                    sides.append(Fraction(yes_f, int(forget.sum())) - Fraction(yes_t, int((~forget).sum())))
                gained.append(abs(sum(sides)) / 2)
            qualities.append(float(1 - max(gained)))
        shown = stored.rows[name]["0.1"].as_paper
        assert shown == AsPaper(pytest.approx(fmean(qualities)), pytest.approx(stdev(qualities))), name
