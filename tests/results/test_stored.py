"""Results that are kept beside the code are read by the code as it is."""

from pathlib import Path

import pytest

from forgetgauge.auditing import audit_one_model
from forgetgauge.records import read_record
from forgetgauge.report.table import render_table
from forgetgauge.results.one_model import OneModelResult
from forgetgauge.results.record import read_result
from forgetgauge.results.verdict import LIKE_RETRAIN, STILL_VISIBLE
from forgetgauge.results.verified import verify_evidence, verify_result

pytestmark = pytest.mark.slow
RESULTS = Path(__file__).parents[2] / "results"
STORED = sorted(RESULTS.rglob("result.json"))


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


EVIDENCE = sorted(RESULTS.rglob("evidence.json"))


def test_there_is_evidence_to_read():
    assert EVIDENCE


@pytest.mark.parametrize("path", EVIDENCE, ids=lambda path: path.parent.name)
def test_every_stored_piece_of_evidence_is_what_its_tests_say(path):
    found = verify_evidence(path)
    assert found.problems == ()
    assert found.n_values > 0


def test_the_evidence_beside_the_tiny_run_is_that_of_the_losses_which_lie_there():
    folder = RESULTS / "tiny-lm/persons"
    found = audit_one_model(folder / "both.csv", folder / "draw.json", points=folder / "records.csv", states=["all"])
    stored = read_record(folder / "evidence.json", OneModelResult)
    assert found.models == stored.models
    assert (found.models["before"].verdict, found.models["retrain"].verdict) == (STILL_VISIBLE, LIKE_RETRAIN)
