"""Q along the strength: which values, whose models, what is drawn; the search that chose the tables' values."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from forgetgauge.errors import UserError
from forgetgauge.plan.game import PRICE_RULE
from forgetgauge.plan.runfile import parse_spec
from forgetgauge.results.made import FailureResult
from forgetgauge.results.record import TriedStrength, TuningResult
from forgetgauge.suites.findings import read_findings
from forgetgauge.suites.frontier import Frontier, Measured, joined, read_frontiers, with_table
from forgetgauge.suites.frontier_run import frontiers_of
from forgetgauge.suites.frontier_words import (
    Meeting,
    frontier_rows,
    frontier_text,
    marked_words,
    meeting,
    paper_cells,
)
from forgetgauge.suites.invocation import plan_suite
from forgetgauge.suites.page import render_markdown, render_page
from forgetgauge.suites.paper import PRINTED, paper_table
from forgetgauge.suites.pictures import BOTTOM_PX, TOP_PX, curve_pictures
from forgetgauge.suites.records import Ours
from forgetgauge.suites.searches import read_search, search_rows
from forgetgauge.suites.tables import SCALES, Suite, TableColumn, frontier_game, suite
from tests.suites.conftest import method, result_of

RESULTS = Path(__file__).parents[2] / "results"


@pytest.mark.parametrize("scale", SCALES)
def test_the_game_is_table_1s_with_other_methods(scale):
    game, table1 = frontier_game(SCALES[scale]), suite("table1", scale).columns[-1].raw
    parse_spec(game, "strengths")
    assert {**game, "unlearners": 0} == {**table1, "unlearners": 0}
    assert {"retrain", "none"} < set(game["unlearners"]) < set(table1["unlearners"])


def test_no_model_is_trained_for_it():
    table1 = plan_suite(suite("table1", "smoke"), ["1.0"]).campaign
    column = TableColumn("all", frontier_game(SCALES["smoke"]), frontier=2)
    first = plan_suite(Suite("strengths", "", "", (column,), "quality", "smoke", ())).campaign
    assert set(first.jobs) < set(table1.jobs)  # which has rows of published settings besides


VALUES = {
    "neg-grad": ("lr", 1e-3, (1e-4, 1e-3, 6e-3)),
    "fisher": ("alpha", 1e-6, (1e-8, 1e-6)),
    "salun": ("lr", 0.01, (1e-3, 0.01, 0.05)),
    "ssd": ("alpha", 5.0, (10.0, 5.0, 2.0)),
}
"""Method -> parameter, chosen value, all values, the weakest first."""


def frontier_result(methods, **changed):
    """A result of methods by name, `ssd@2` being SSD at 2 and `ssd` the chosen one."""
    result = result_of({"all": methods})
    spec = {}
    for name in methods:
        of, _, value = name.partition("@")
        if of in VALUES:
            parameter, chosen, _ = VALUES[of]
            spec[name] = {"unlearner": {"name": of, "params": {parameter: float(value or chosen)}}}
            if value:
                spec[name]["variant"] = {"method": of, "parameter": parameter, "value": float(value)}
    game = replace(result.games[0], spec={**result.games[0].spec, "methods": spec})
    return replace(result, games=[game], **changed)


@pytest.fixture
def curves():
    """Q rises and accuracy falls along every strength; NegGrad's last value ruined all its models."""
    methods = {"retrain": method(1.0, (0.9, 1.0)), "none": method(0.5, (0.45, 0.55), utility={"test": 0.8})}
    for name, (parameter, chosen, values) in VALUES.items():
        tried = [TriedStrength(value, 0.0, 0.005) for value in values]
        tuning = TuningResult(parameter, chosen, 0.01, True, "retrained", 4, tried)
        for i, value in enumerate(values):
            quality = 0.5 + 0.1 * i
            made = method(quality, (quality - 0.05, quality + 0.05), utility={"test": 0.8 - 0.1 * i})
            is_chosen = value == chosen
            methods[name if is_chosen else f"{name}@{value:g}"] = replace(made, tuning=tuning if is_chosen else None)
    methods["neg-grad@0.006"] = method(None, None, utility={}, n_pairs=0)
    methods["fisher@1e-08"] = method(0.9, (0.8, 1.0), n_pairs=2)  # the other models diverged
    return frontiers_of(frontier_result(methods), "paper", [])


def test_a_record_of_curves_survives_the_disk(curves, tmp_path):
    path = tmp_path / "strengths.json"
    path.write_text(curves.to_json())
    assert read_frontiers(path) == curves
    path.write_text(curves.to_json().replace('"scale"', '"scalle"'))
    with pytest.raises(UserError, match="scal"):
        read_frontiers(path)


def test_the_tables_value_is_marked_and_a_ruined_one_has_a_dash(curves):
    marked = [row[:2] for row in frontier_rows(curves) if row[-1] == "chosen"]
    assert [row[0] for row in marked] == ["Fisher", "NegGrad", "SalUn", "SSD"]
    assert ["NegGrad", "lr = 0.006", "–", "–", "only 0 of 6 pairs"] in frontier_rows(curves)
    assert "ssd" not in frontier_text(curves)  # the paper's names


def test_the_models_that_survived_a_strength_are_no_measure_of_it(curves):
    assert ["Fisher", "alpha = 1e-08", "–", "–", "only 2 of 6 pairs"] in frontier_rows(curves)


def test_models_that_failed_alike_are_one_line(curves):
    lost = [
        FailureResult(f"signals of ssd@2, pair {pair} side 0 seed 0", "ValueError: NaN", "x.txt") for pair in range(3)
    ]
    methods = {name: method(0.5, (0.4, 0.6)) for name in ("retrain", "none", "ssd", "ssd@2")}
    found = frontiers_of(frontier_result(methods, failures=lost), "paper", [])
    assert found.failures == ["3 × signals of ssd@2: ValueError: NaN"]


def test_where_a_curve_has_the_papers_q():
    def points(*qualities):
        return [Measured(None if q is None else Ours(q, None), a, 6) for q, a in qualities]

    curve = Frontier("lr", 0.01, [0.001, 0.01, 0.1, 1.0], points((0.5, 0.8), (0.6, 0.7), (None, None), (0.9, 0.1)))
    assert meeting(curve, 0.5) == Meeting(0.001, 0.8)
    halfway = meeting(curve, 0.55)
    assert (halfway.value, halfway.accuracy) == (pytest.approx(10**-2.5), pytest.approx(0.75))
    across = meeting(curve, 0.75)  # over the value at which models diverged
    assert (across.value, across.accuracy) == (pytest.approx(0.1), pytest.approx(0.4))
    assert meeting(curve, 0.95) is None
    falls = Frontier("alpha", 5.0, [10.0, 5.0], points((0.9, 0.5), (0.5, 0.5)))
    assert meeting(falls, 0.7).value == pytest.approx(50**0.5)


def test_the_remarks_say_where_the_paper_is_met_and_where_not(curves):
    said = frontier_text(curves)
    for name, curve in curves.curves.items():
        printed = paper_table("table1").rows[name]["1.0"].mean
        met, _, rest = said.partition("Not met within the values that were played:")
        met, _, inside = met.partition("Inside the paper’s ±:")
        cell = next(cell for cell in paper_cells(curves) if cell.method == name)
        assert (cell.how == "met") is (meeting(curve, printed) is not None)
        assert f"{PRINTED[name]} ({printed:.3f}" in {"met": met, "inside": inside, "not met": rest}[cell.how]
    assert "whole curve" not in said
    assert "never" not in said


def table_beside(curves, *, none=0.5):
    """A game of Table 1 on the same originals (unless None is another): published Fisher and a last-layer method."""
    methods = {
        "retrain": method(1.0, (0.9, 1.0)),
        "none": method(none, (0.45, 0.55), utility={"test": 0.8}),
        "fisher": method(0.6, (0.55, 0.65), utility={"test": 0.7}),
        "fisher-published": method(0.786, (0.77, 0.8), utility={"test": 0.63}),
        "retrain-final": method(0.516, (0.5, 0.53), utility={"test": 0.79}),
    }
    (game,) = result_of({"1.0": methods}).games
    params = {"fisher": {"alpha": 1e-6, "labels": "sampled"}, "fisher-published": {"alpha": 1e-5, "labels": "sampled"}}
    spec = {name: {"unlearner": {"params": params.get(name, {})}} for name in methods}
    return replace(game, spec={**game.spec, "methods": spec})


def test_published_settings_on_the_same_originals_join_the_curve(curves):
    found = with_table(curves, table_beside(curves))
    assert found.published["fisher"].value == 1e-5
    assert joined(found, "fisher").values == [1e-8, 1e-6, 1e-5]
    assert ["Fisher", "alpha = 1e-05", "0.786 [0.770,\u00a00.800]", "0.630", "published"] in frontier_rows(found)
    cell = next(cell for cell in paper_cells(found) if cell.method == "fisher")  # the paper: 0.791 ± 0.020
    assert (cell.how, cell.value, cell.ours, cell.accuracy) == ("inside", 1e-5, 0.786, 0.63)
    assert "Fisher (0.791 ± 0.020; ours 0.786 at alpha = 1e-05, at an accuracy of 0.630)" in frontier_text(found)
    assert found.fixed["retrain-final"].quality.value == 0.516
    assert "Retr-final (0.634; ours 0.516, and it has no strength)" in frontier_text(found)
    (fisher,) = [picture for picture in curve_pictures(found) if picture.name == "Fisher"]
    assert len(fisher.dots) == 3


def test_other_originals_or_another_setting_besides_the_strength_join_nothing(curves):
    assert with_table(curves, table_beside(curves, none=0.51)) == curves
    game = table_beside(curves)
    game.spec["methods"]["fisher-published"]["unlearner"]["params"]["labels"] = "all"
    assert with_table(curves, game).published == {}


def test_the_stored_curves_have_the_published_settings_of_table_1():
    found = read_findings(RESULTS).frontiers
    cells = {cell.method: cell for cell in paper_cells(found)}
    assert len(cells) == 7
    assert (cells["fisher"].how, cells["fisher"].value) == ("inside", 1e-6)
    assert cells["salun"].how == "met"
    assert {cells[name].how for name in ("neg-grad", "ssd", "retrain-final", "ft-final")} == {"not met"}


def test_pictures_stand_on_an_axis_from_0_to_1(curves):
    pictures = {picture.name: picture for picture in curve_pictures(curves)}
    assert all(p.retrain == TOP_PX and p.none == (TOP_PX + BOTTOM_PX) / 2 for p in pictures.values())
    ssd = pictures["SSD"]
    heights = [dot.quality for dot in ssd.dots]
    assert heights == sorted(heights, reverse=True)  # upwards is less
    assert [dot.label for dot in ssd.dots if dot.chosen] == ["5"]
    assert all(dot.high < dot.quality < dot.low for dot in ssd.dots)
    assert pictures["NegGrad"].quality_line.count(",") == len(pictures["NegGrad"].dots) - 1


def test_pictures_tell_who_cannot_see_how_many_pairs_there_are(curves, tmp_path):
    curve = curves.curves["ssd"]
    points = [Measured(None, None, n) for n, _ in enumerate(curve.points)]
    (picture,) = curve_pictures(replace(curves, curves={"ssd": replace(curve, points=points)}))
    said = [part.split(": ")[-1] for part in picture.words.split("; ")[:3]]
    assert said == ["no pair completed", "only 1 pair completed", "only 2 pairs completed"]
    (tmp_path / "strengths.json").write_text(replace(curves, curves={"ssd": replace(curve, points=[])}).to_json())
    with pytest.raises(UserError, match="not one point for each value"):
        read_frontiers(tmp_path / "strengths.json")


TUNING = {
    "before": [0.8, 0.9],
    "ssd": {
        "strength": "alpha",
        "params": {},
        "chosen": 2.0,
        "trials": [
            {"value": 5.0, "mean_loss": 0.0, "worst_loss": -0.001},
            {"value": 2.0, "mean_loss": 0.004, "worst_loss": 0.009, "seconds": 3},
        ],
    },
    "fisher": {"strength": "alpha", "params": {"labels": "sampled"}, "chosen": None, "trials": []},
}


@pytest.fixture
def tuned(tmp_path):
    path = tmp_path / "tuning-cifar10/tuning.json"
    path.parent.mkdir()
    path.write_text(json.dumps(TUNING))
    return path


def test_a_search_shows_what_was_tried_and_what_the_rule_chose(tuned):
    found = read_search(tuned)
    assert (found.name, found.before) == ("cifar10", [0.8, 0.9])
    assert search_rows(found)[1:] == [
        ["ssd", "alpha", "5: −0.10, 2: +0.90", "2"],
        ["fisher", "alpha, labels = sampled", "", "none"],
    ]


@pytest.mark.parametrize("text", ["{}", "[1]", '{"before": [0.5], "ssd": {"strength": "alpha"}}', '{"before"'])
def test_a_damaged_search_is_one_line(tuned, text):
    tuned.write_text(text)
    with pytest.raises(UserError) as error:
        read_search(tuned)
    assert str(tuned) in str(error.value)
    assert "\n" not in str(error.value)


def test_the_page_shows_curves_and_search(curves, tuned):
    (tuned.parent / "strengths.json").write_text(curves.to_json())
    found = read_findings(tuned.parents[1])
    page, html = render_markdown(found), render_page(found)
    assert "| Q along the strength | paper scale |" in page
    assert "| SSD | alpha = 5 | 0.600 [0.550,\u00a00.650] | 0.700 | chosen |" in page
    assert "| ssd | alpha | 5: −0.10, 2: +0.90 | 2 |" in page
    assert html.count('<svg class="curve"') == 4
    assert html.count('<line class="chosen"') == 4


def test_by_which_rule_the_marked_strengths_were_chosen_and_what_they_cost_is_said_under_the_map(curves):
    said = marked_words(curves)
    assert "by an earlier rule" in said
    assert said.endswith("None: Fisher −10.0, NegGrad −10.0, SalUn −10.0, SSD −10.0.")  # Retrain has 0.6, they 0.7
    assert "by the rule of today" in marked_words(replace(curves, rule=PRICE_RULE))
    assert marked_words(replace(curves, tuned=False)) == ""
    ssd = curves.curves["ssd"]
    few = replace(ssd, points=[replace(p, accuracy=None, quality=None, pairs=4) for p in ssd.points])
    assert marked_words(replace(curves, curves={"ssd": few})).endswith("None: SSD unknown (4 of 6 pairs).")
    stored = read_findings(RESULTS).frontiers
    assert marked_words(stored)
    assert marked_words(stored) in render_markdown(read_findings(RESULTS))


def test_curves_know_the_rule_of_their_game(curves):
    methods = {"retrain": method(1.0, None), "none": method(0.5, None)}
    result = frontier_result(methods)
    ruled = replace(result.games[0], spec={**result.games[0].spec, "price": {"price": 0.01, "rule": 3}})
    assert frontiers_of(replace(result, games=[ruled]), "paper", []).rule == 3
    assert frontiers_of(result, "paper", []).rule == 1
