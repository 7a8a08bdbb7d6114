"""Results that are kept beside the code are read by the code as it is."""

from pathlib import Path

import pytest

from forgetgauge.report.table import render_table
from forgetgauge.results.record import read_result
from forgetgauge.results.verified import verify_result

pytestmark = pytest.mark.slow
STORED = sorted((Path(__file__).parents[2] / "results").rglob("result.json"))


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.parent.name)
def test_every_stored_result_is_read_and_shown(path):
    result = read_result(path)
    assert all(name in render_table(result) for game in result.games for name in game.methods)


CARRY = [path for path in STORED if '"in_forget"' in path.read_text("utf-8")]


@pytest.mark.parametrize("path", CARRY, ids=lambda path: path.parent.name)
def test_every_stored_result_that_carries_its_decisions_is_what_they_say(path):
    """On whatever machine this is: numbers may differ in their last digits alone."""
    found = verify_result(path)
    assert found.problems == ()
    assert found.n_values > 1000


def test_some_results_carry_their_decisions():
    assert {"table1", "dp-digits", "certified-digits"} <= {path.parent.name for path in CARRY}
