"""What the paper says of rankings, judged on tables made by hand: one that holds, one that fails, one left open."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from forgetgauge.suites.claims import all_of, claims
from forgetgauge.suites.findings import read_findings
from forgetgauge.suites.paper import paper_table
from forgetgauge.suites.ranking_claims import (
    best_claim,
    left_out,
    paper_tau,
    quality_columns,
    ranked_rows,
    ranking_claim,
    rival_ranking_claim,
    score_columns,
    small_predicts_large,
)
from tests.suites.conftest import DOWN, SIX, TUNED, UP, at_sizes, by_budget, findings, played

RESULTS = Path(__file__).parents[2] / "results"
FIVE = SIX[1:]


def judged(table: str, columns: dict[str, dict[str, float]], **how):
    return ranking_claim("", "", played(table, columns, **how), "columns")


def test_columns_that_rank_alike_hold_and_reversed_ones_do_not():
    same = judged("table1", at_sizes(UP, UP, UP, UP))
    assert same.holds == "yes"
    assert same.finding.startswith(
        "mean τ is 1.00 [1.00, 1.00] for 5 methods with published settings, NegGrad apart, in "
    )
    assert same.alike == "columns (τ 1.00)"
    assert same.source == "Table 1, paper scale, published settings, η = 0.1, 0.4, 0.8 and 1.0"
    turned = judged("table1", at_sizes(UP, DOWN, UP, DOWN))
    assert turned.holds == "no"
    assert "Retr-final and Ft-final, " in turned.finding
    assert " and 7 other couples change places beyond chance" in turned.finding
    assert turned.alike == ""


def test_a_ranking_is_of_published_settings_and_of_methods_that_need_none():
    table = played("table1", at_sizes(UP, UP, UP, UP))
    assert ranked_rows(table) == ["retrain-final", "ft-final", "fisher-published", "salun-published", "ssd-published"]
    turned = {label: dict(column) for label, column in table.columns.items()}
    turned["0.4"]["fisher"] = turned["0.4"]["ssd"]  # by price, which is not what is ranked
    assert ranking_claim("", "", replace(table, columns=turned), "").holds == "yes"
    alone = played("table3", by_budget(0.9, 0.8, 0.7, 0.5), published=True)
    assert set(quality_columns(alone)["50"]) == set(SIX)


def test_strengths_from_elsewhere_decide_no_ranking():
    for columns in ((UP, UP, UP), (UP, DOWN, UP)):
        labels = dict(zip(("CIFAR100", "MNIST", "SST5"), columns, strict=True))
        found = judged("table7", labels, by_price=False)
        assert found.holds == "open"
        assert "for 6 methods with strengths chosen for another setting" in found.finding


def test_without_a_column_nothing_is_decided_and_without_two_nothing_was_run():
    part = judged("table1", {"0.1": UP, "0.4": UP})
    assert (part.holds, part.finding.partition("; missing: ")[2]) == ("open", "η = 0.8, η = 1.0")
    assert judged("table1", {"0.1": UP}).holds == "not run"
    assert ranking_claim("", "", None, "").holds == "not run"


def test_a_ranking_drowned_in_noise_is_open():
    near = dict(zip(SIX, (0.50, 0.51, 0.52, 0.53, 0.60, 0.61), strict=True))
    found = judged("table2", dict.fromkeys(("0.1", "0.25", "0.4", "0.67"), near), noise=0.05)
    assert found.holds == "open"


def test_methods_too_close_to_rank_are_not_called_ranked_differently():
    near = dict(zip(SIX, (0.500, 0.501, 0.502, 0.503, 0.504, 0.505), strict=True))
    back = dict(zip(SIX, reversed(near.values()), strict=True))
    found = judged("table1", at_sizes(near, back, near, back), noise=0.006)
    assert found.holds == "open"
    assert "; no two methods change places beyond chance" in found.finding


def test_retrain_and_none_raise_no_tau():
    ends = {"retrain": 0.99, "none": 0.01}
    found = judged("table1", at_sizes(*({**column, **ends} for column in (UP, DOWN, UP, DOWN))))
    assert found.finding.startswith("mean τ is −0.33")


def test_methods_that_change_places_are_named_though_the_others_agree():
    first = dict(zip(SIX, (0.1, 0.2, 0.3, 0.4, 0.5, 0.6), strict=True))
    other = {**first, "fisher": 0.5, "salun": 0.4}
    found = judged("table1", at_sizes(first, first, first, other))
    assert found.holds == "yes"
    assert (
        "; 9 of 10 couples keep their order beyond chance in every column; Fisher and SalUn change places beyond"
        in (found.finding)
    )


def test_an_order_that_is_that_of_ruined_models_alone_is_told(tmp_path):
    low = {"none": 0.1, **dict.fromkeys(SIX, 0.2)}
    columns = at_sizes(*[{**low, "fisher": 0.7, "salun": 0.8}] * 4)
    damaged = {"0.1": ["fisher-published"], "0.4": ["salun-published"]}
    found = ranking_claim("", "", played("table1", columns, damaged=damaged), "")
    assert (
        "; 7 of 10 couples keep their order beyond chance in every column, all with a method that damages models"
        in (found.finding)
    )
    assert found.only_harmed
    whole = ranking_claim("", "", played("table1", columns, damaged={"0.1": ["fisher-published"]}), "")
    assert not whole.only_harmed
    assert "in every column; models are damaged by Fisher" in whole.finding


def test_damage_and_what_is_left_at_a_price_stand_beside_a_ranking():
    damaged = {"0.1": ["fisher-published", "fisher"], "0.4": ["fisher-published"]}
    nothing = {(at, m, "none"): None for at in ("0.1", "0.4", "0.8", "1.0") for m in ("neg-grad", "ssd")}
    columns = at_sizes(*[{**UP, "none": 0.1}] * 4)
    table = played("table1", columns, damaged=damaged, better=nothing)
    assert left_out(table) == {"fisher", "fisher-published", "neg-grad", "ssd"}
    found = ranking_claim("", "", table, "")
    assert (found.holds, found.harmed) == ("yes", ("Fisher",))
    assert found.finding.endswith(
        "; models are damaged by Fisher in 2 columns; at a price of one point only Retr-final, Ft-final and SalUn "
        "forget without damage in every column, too few to rank"
    )
    enough = judged("table1", columns)
    assert enough.finding.endswith(
        "; of NegGrad, Retr-final, Ft-final, Fisher, SalUn and SSD at a price of one point 1.00 [1.00, 1.00]"
    )


def test_a_strength_that_kept_no_price_is_left_out_at_a_price():
    table = played("table1", at_sizes(*[{**UP, "none": 0.1}] * 4))
    game = table.games["0.4"]
    weakest = replace(game.methods["salun"], tuning=replace(TUNED, holds=False))
    games = {**table.games, "0.4": replace(game, methods={**game.methods, "salun": weakest})}
    assert left_out(replace(table, games=games)) == {"salun"}


def test_small_data_are_compared_with_all_of_them_and_not_with_each_other():
    assert small_predicts_large(played("table1", at_sizes(UP, UP, UP, UP))).holds == "yes"
    turned = small_predicts_large(played("table1", at_sizes(UP, UP, UP, DOWN)))
    assert (turned.holds, turned.finding[:17]) == ("no", "mean τ is −1.00 [")
    assert small_predicts_large(played("table1", {"0.1": UP, "0.4": UP})).holds == "not run"
    assert small_predicts_large(None).holds == "not run"


def test_the_papers_tau_is_over_the_same_methods_and_columns():
    rows, labels = paper_table("table1").rows, ["0.1", "0.4", "0.8", "1.0"]
    columns = [[rows[m][label].mean for m in FIVE] for label in labels]
    theirs = np.mean([scipy.stats.kendalltau(one, other)[0] for one, other in combinations(columns, 2)])
    assert paper_tau("table1", FIVE, labels) == pytest.approx(theirs)
    assert (
        f", NegGrad apart, in the paper {theirs:.2f} (0.85 with all six)"
        in judged("table1", at_sizes(UP, UP, UP, UP)).finding
    )


# -- scores that Q is compared with ----------------------------------------------------------------------------------


def test_a_rival_is_inconsistent_where_its_columns_rank_differently():
    columns = dict(zip(("50", "150", "600", "inf"), (UP, DOWN, UP, DOWN), strict=True))
    found = rival_ranking_claim("", "", "ic", played("table4a", columns, published=True))
    assert (found.holds, found.finding[:15]) == ("yes", "mean τ is −0.33")
    same = rival_ranking_claim("", "", "mia", played("table4b", dict.fromkeys(columns, UP), published=True))
    assert (same.holds, same.short) == ("no", "the MIA score ranks methods alike at every ε (τ 1.00)")
    five = {m: q for m, q in UP.items() if m != "neg-grad"}  # which the paper's examples are of
    part = rival_ranking_claim("", "", "mia", played("table4b", dict.fromkeys(columns, five), published=True))
    assert part.holds == "open"
    assert rival_ranking_claim("", "", "mia", None).holds == "not run"


def test_scores_are_ranked_highest_first():
    table = played("table4a", dict.fromkeys(("50", "150", "600", "inf"), UP), published=True)
    (column, *_) = score_columns(table, "ic").values()
    assert {m: 1 - values.mean() for m, values in column.items()} == pytest.approx(UP)


# -- the best --------------------------------------------------------------------------------------------------------


def test_ssd_is_best_where_it_beats_all_and_not_where_most_columns_have_a_better_one(tmp_path):
    best = best_claim(findings(tmp_path, played("table1", at_sizes(*[{**UP, "none": 0.1}] * 4))))
    assert best.holds == "yes"
    assert best.finding == (
        "with published settings SSD is above another method in 16 of 16 comparisons; of 4 columns above SSD beyond "
        "chance are none; SSD is not above None beyond chance in 0; at a price of one point its Q is the highest in 4 "
        "of 4 columns, in none of which it damages its models"
    )
    turned = [{**column, "none": 0.1} for column in (UP, DOWN, DOWN, DOWN)]
    beaten = best_claim(findings(tmp_path, played("table1", at_sizes(*turned))))
    assert beaten.holds == "no"
    assert "above SSD beyond chance are Retr-final in 3, Ft-final in 3, Fisher in 3 and SalUn in 3" in beaten.finding
    assert beaten.short == "SSD as published, the paper’s best method, is beaten by another one in 3 of 4 columns"
    half = [{**column, "none": 0.1} for column in (UP, UP, DOWN, DOWN)]
    assert best_claim(findings(tmp_path, played("table1", at_sizes(*half)))).holds == "open"


def test_ssd_that_does_nothing_is_called_that_and_none_is_no_rival(tmp_path):
    column = {**DOWN, "none": 0.9}
    found = best_claim(findings(tmp_path, played("table1", at_sizes(*[column] * 4))))
    assert found.short == "SSD as published, the paper’s best method, beats None beyond chance in no column of 4"
    assert "None in 4" not in found.finding.partition("; SSD is not above")[0]


def test_where_ssd_is_first_at_a_price_and_ruins_its_models_stands_beside_its_published_setting(tmp_path):
    up, down = ({**column, "none": 0.1} for column in (UP, DOWN))
    sizes = played("table1", at_sizes(up, up, down, up), damaged={"0.1": ["ssd"], "0.8": ["ssd"]})
    found = best_claim(
        findings(
            tmp_path,
            sizes,
            played("table2", {"0.25": {**up, "ssd": 0.75}, "0.4": {**down, "ssd": 0.15}}, scale="small"),
        )
    )
    assert "; of 6 columns (4 at the paper’s scale) above SSD" in found.finding
    assert found.finding.endswith(
        "; at a price of one point its Q is the highest in 4 of 6 columns, in 1 of which it damages its models"
    )
    assert (
        best_claim(findings(tmp_path, played("table3", by_budget(0.9, 0.8, 0.7, 0.5), published=True))).finding[-2:]
        == " 4"
    )


def test_one_game_in_two_tables_counts_once_and_borrowed_strengths_do_not(tmp_path):
    column = {**UP, "none": 0.1}
    one, two = played("table1", {"1.0": column}), played("table2", {"0.1": column})
    assert "of 1 column " in best_claim(findings(tmp_path, one, two)).finding
    assert best_claim(findings(tmp_path, played("table1", {"1.0": column}, by_price=False))).holds == "not run"


# -- what is stored ----------------------------------------------------------------------------------------------------


def test_the_stored_rankings_by_published_settings():
    found = {claim.statement.name: claim for claim in all_of(claims(read_findings(RESULTS)))}
    sizes = found["Methods rank alike at every size of the data"]
    assert sizes.finding.startswith(
        "mean τ is 0.67 [0.57, 0.80] for 5 methods with published settings, NegGrad apart, in the paper 0.97"
    )
    assert found["Methods rank alike at every α"].holds == "yes"
    assert found["Methods rank alike on every data set"].holds == "open"
    assert "is not above None beyond chance in 13" in found["SSD is the best method"].finding
