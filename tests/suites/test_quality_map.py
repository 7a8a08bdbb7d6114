"""The map of Q against accuracy lost: whose points stand where, and where the paper's cells are met."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from forgetgauge.suites.findings import read_findings
from forgetgauge.suites.frontier import Frontier, Frontiers, Measured, Published
from forgetgauge.suites.page import render_markdown, render_page
from forgetgauge.suites.quality_map import BOTTOM_PX, LEFT_PX, RIGHT_PX, TOP_PX, map_svg, quality_map
from forgetgauge.suites.records import Ours

RESULTS = Path(__file__).parents[2] / "results"


def at(quality: float, accuracy: float) -> Measured:
    return Measured(Ours(quality, (quality - 0.01, quality + 0.01)), accuracy, 6)


@pytest.fixture
def curves() -> Frontiers:
    """SalUn meets the paper's 0.748; SSD stays below 0.928; published Fisher is inside 0.791 ± 0.020."""
    along = {
        "salun": Frontier("lr", 0.01, [0.01, 0.1], [at(0.6, 0.80), at(0.896, 0.70)]),
        "ssd": Frontier("alpha", 5.0, [5.0, 2.0], [at(0.5, 0.80), at(0.7, 0.75)]),
        "fisher": Frontier("alpha", 1e-8, [1e-9, 1e-8], [at(0.5, 0.80), at(0.55, 0.79)]),
    }
    return Frontiers(
        "paper", True, along, none=at(0.5, 0.81), retrain=at(0.992, 0.80), accuracy_on="test", basis="over pairs",
        notes=[], invocations=[], work_s=0.0, environment={}, digests={},
        published={"fisher": Published(1e-6, at(0.786, 0.68))}, fixed={"ft-final": at(0.51, 0.81)},
    )  # fmt: skip


def test_what_is_lost_is_counted_from_the_less_accurate_of_retrain_and_none(curves):
    drawn = quality_map(curves)
    ways = {way.name: way for way in drawn.ways}
    assert set(ways) == {"Retrain", "None", "Ft-final", "SalUn", "SSD", "Fisher"}
    zero = next(x for x, label in drawn.ticks_x if label == "0")
    assert [ways[name].marks[0].x for name in ("Retrain", "SalUn")] == [zero, zero]
    assert ways["None"].marks[0].x < zero < ways["SSD"].marks[-1].x < ways["SalUn"].marks[-1].x
    assert "None: Q 0.500, 1.0 points gained" in ways["None"].marks[0].words
    fisher = ways["Fisher"].marks
    assert [mark.published for mark in fisher] == [False, False, True]
    assert [mark.chosen for mark in fisher] == [False, True, False]
    every = [mark for way in drawn.ways for mark in way.marks]
    assert all(LEFT_PX <= mark.x <= RIGHT_PX and TOP_PX <= mark.y <= BOTTOM_PX for mark in every)


def test_each_of_the_papers_cells_is_met_or_said_not_to_be(curves):
    levels = {level.name: level for level in quality_map(curves).levels}
    assert set(levels) == {"Retrain", "Ft-final", "SalUn", "SSD", "Fisher"}  # nothing was played of the others
    assert levels["SalUn"].words == "met: lr = 0.032, 5.0 points lost"
    assert levels["SalUn"].at_y == pytest.approx(levels["SalUn"].y)
    assert levels["Fisher"].words == "inside its ±: alpha = 1e-06, 12.0 points lost"
    assert levels["SSD"].words == "not met within the values played"
    assert levels["SSD"].x is None
    assert levels["Ft-final"].words == "not met; it has no strength"
    assert levels["Retrain"].words == "inside its ±"
    heights = [level.label_y for level in levels.values()]
    assert min(b - a for a, b in pairwise(heights)) >= 30  # two lines of text each


def test_the_file_is_well_formed_loads_nothing_and_marks_what_is_met(curves):
    text = map_svg(curves)
    root = ET.fromstring(text)
    classes = [part.get("class") for part in root.iter()]
    assert (classes.count("met"), classes.count("inside")) == (1, 2)
    assert "href" not in text
    assert map_svg(replace(curves, none=Measured(None, None, 0))) is None


def test_the_stored_map_is_that_of_the_stored_curves_and_stands_in_both_pages():
    found = read_findings(RESULTS)
    assert found.map_path == RESULTS / "reproduce/paper/strengths/quality-map.svg"
    assert found.map_path.read_text("utf-8") == map_svg(found.frontiers), "run `forgetgauge reproduce page`"
    assert len(quality_map(found.frontiers).levels) == 7
    assert "](../results/reproduce/paper/strengths/quality-map.svg)" in render_markdown(found)
    assert render_page(found).count('class="map"') == 1


def test_the_page_links_the_map_from_where_it_lies(curves, call, tmp_path):
    (tmp_path / "results/strengths").mkdir(parents=True)
    (tmp_path / "results/strengths/strengths.json").write_text(curves.to_json())
    code, out, _ = call("reproduce", "page", "--results", tmp_path / "results", "--out", tmp_path / "a/b/page.md")
    assert code == 0
    assert "](../../results/strengths/quality-map.svg)" in (tmp_path / "a/b/page.md").read_text("utf-8")
    assert (tmp_path / "results/strengths/quality-map.svg").exists()
    assert "quality-map.svg" in out
