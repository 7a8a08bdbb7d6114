"""Results that are kept beside the code are read by the code as it is."""

from pathlib import Path

import pytest

from forgetgauge.report.table import render_table
from forgetgauge.results.record import read_result
from forgetgauge.results.verified import verify_result
from forgetgauge.suites.evidence import carries_decisions

pytestmark = pytest.mark.slow
RESULTS = Path(__file__).parents[2] / "results"
STORED = sorted(RESULTS.rglob("result.json"))


def folder_of(result: Path) -> str:
    return result.parent.relative_to(RESULTS).as_posix()


@pytest.mark.parametrize("path", STORED, ids=folder_of)
def test_every_stored_result_is_read_and_shown(path):
    result = read_result(path)
    assert all(name in render_table(result) for game in result.games for name in game.methods)


WITHOUT_DECISIONS = {
    "dp-cifar10",
    "reproduce/paper/table3",
    "reproduce/paper/table4a",
    "reproduce/paper/table4b",
    "reproduce/paper/table5a",
    "reproduce/paper/table5b",
}
"""Folders of results from before results carried their decisions. The list may only shrink: nothing new is stored like
that, and what was played again or is gone is taken off it."""
CARRY = [path for path in STORED if folder_of(path) not in WITHOUT_DECISIONS]


@pytest.mark.parametrize("path", CARRY, ids=folder_of)
def test_every_stored_result_that_carries_its_decisions_is_what_they_say(path):
    """On whatever machine this is: numbers may differ in their last digits alone."""
    found = verify_result(path)
    assert found.problems == ()
    assert found.n_values > 1000


def test_results_that_cannot_be_verified_are_these_and_no_others():
    without = {folder_of(path) for path in STORED if not carries_decisions(path)}
    assert without - WITHOUT_DECISIONS == set(), "played again, these would carry their decisions"
    assert WITHOUT_DECISIONS - without == set(), "take these off the list: they carry their decisions, or are gone"
