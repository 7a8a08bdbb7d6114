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


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.parent.name)
def test_every_stored_result_is_what_its_decisions_say(path):
    """On whatever machine this is: numbers may differ in their last digits alone."""
    found = verify_result(path)
    assert found.problems == ()
    assert found.n_values > 1000
