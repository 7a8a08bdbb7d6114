"""What the references say against a run, and what is not shown without them: told wherever numbers are told."""

from __future__ import annotations

import importlib
import json
import warnings
from dataclasses import replace

import numpy as np
import pytest

import forgetgauge
from forgetgauge.errors import DoubtfulResult
from forgetgauge.report.erasure_record import model_card
from forgetgauge.report.erasure_test import ACCURACY_KEPT, NO_WARNING, what_was_tested
from forgetgauge.report.html import render_report
from forgetgauge.report.interactive import Result as ShownResult
from forgetgauge.report.table import render_table
from forgetgauge.results.gate import Conditions, check_result, overall, warnings_in
from forgetgauge.results.one_model import is_from_before
from forgetgauge.results.record import nearly_reference, reference_named, role_of
from forgetgauge.results.verdict import (
    CONTROLS_HOLD,
    LIKE_RETRAIN,
    STILL_VISIBLE,
    lacks_controls,
    no_controls,
    reservations,
)
from forgetgauge.run.scheduler import Ending
from tests.report.test_html import NO_PAIR, game, method, result
from tests.test_audit_warnings import generalising, scored

FINE = {"retrain": method(0.995), "none": method(0.85)}
LEAKS = {"retrain": method(0.6), "none": method(0.6)}
SILENT = {"retrain": method(0.995), "none": method(0.995)}


def passing(**changes):
    return method(0.995, verdict=LIKE_RETRAIN, resolution=0.03, p_value=0.6, **changes)


def run(references, **changes):
    made = game({**references, "mine": passing(**changes)})
    return replace(made, spec={**made.spec, "n_forget": 500})


def audit_of(references, mine="mine"):
    """The same, of models of somebody's own."""
    made = game({**references, mine: passing()})
    spec = {key: value for key, value in made.spec.items() if key not in ("methods", "data_digest")}
    return replace(made, spec=spec)


SEEN_T = {name: replace(found, utility={"unseen": 0.6}) for name, found in FINE.items()}
KNEW_LESS = {name: replace(found, utility={"unseen": 0.9, "retain": 1.0}) for name, found in FINE.items()}


# -- who is a reference ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["retrain", "Retrain", "RETRAIN", "retrained", " Retrained"])
def test_a_retrained_model_is_one_in_any_case_of_letters(name):
    assert reference_named(name) == "retrain"
    assert nearly_reference(name) is None
    assert role_of(audit_of({name: method(0.9)}), name) == "retrain"


@pytest.mark.parametrize("name", ["none", "None", "NONE", "before", "Before", "original", "Original"])
def test_a_model_from_before_is_one_for_audits_of_both_kinds(name):
    assert reference_named(name) == "none"
    assert is_from_before(name)
    assert role_of(audit_of({name: method(0.9)}), name) == "none"


@pytest.mark.parametrize(
    ("name", "near"),
    [("retrain_v2", "retrain"), ("re-trained", "retrain"), ("orginal", "none"), ("model before", "none"),
     ("fine-tune", None), ("ssd", None), ("neg-grad", None), ("m", None), ("model", None), ("scrub", None)],
)  # fmt: skip
def test_a_name_that_is_near_to_a_reference_is_none_but_told_of(name, near):
    assert reference_named(name) is None
    assert nearly_reference(name) == near
    lines = no_controls(audit_of({}, name))
    assert [f"call it {near}" in line for line in lines] == [near == "none", near == "retrain"]


def test_a_run_knows_its_references_by_their_unlearner():
    made = game({"retrained": method(0.9)})
    made = replace(made, spec={**made.spec, "methods": {"retrained": {"unlearner": {"name": "fine-tune"}}}})
    assert role_of(made, "retrained") == "tested"


# -- what they say -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "lacking", "told"),
    [
        (run(FINE), [], ""),
        (run(LEAKS), [], "Retrain never saw the forgotten points, so its Q should be 1"),
        (run(SILENT), [], "Even None, which unlearns nothing"),
        (run({**FINE, "none": replace(NO_PAIR, n_pairs=8)}), ["none"], "Nothing was measured of None"),
        (run({}), ["retrain", "none"], "it is not shown that these attackers"),
        (audit_of({}), ["retrain", "none"], "it is not shown that these rows would tell a model that remembers"),
        (audit_of({"retrained": FINE["retrain"]}), ["none"], "it is not shown that these rows would tell"),
        (audit_of({"Before": FINE["none"]}), ["retrain"], "nothing checks that Q is 1"),
        (replace(run(FINE), spec={**run(FINE).spec, "share_retrain": True}), ["retrain"], "Retrain"),
    ],
)
def test_a_record_passes_only_beside_references_that_are_there_and_hold(made, lacking, told):
    test = what_was_tested(result(made), "mine", "here")
    holds = not told
    assert lacks_controls(made) == lacking
    assert test.checks[CONTROLS_HOLD] == ("PASSED" if holds else "WARNED")
    assert test.outcome == ("PASSED" if holds else "WARNED")
    assert (test.checks[NO_WARNING] == "PASSED") == (not reservations(made))
    assert any(told in line for line in test.warnings) != holds
    card = model_card(test, "m", "5d" * 32, None)
    assert ("Warning:" in card) != holds


def test_a_record_warns_of_what_its_own_method_has_seen_or_lost_and_of_no_other():
    seen = run(SEEN_T, utility={"unseen": 0.99})
    test = what_was_tested(result(seen), "mine", "here")
    assert (test.checks[NO_WARNING], test.outcome) == ("WARNED", "WARNED")
    assert "More accurate on the unseen points T" in model_card(test, "m", "5d" * 32, None)
    lost = run(KNEW_LESS, utility={"unseen": 0.9, "retain": 0.7})
    test = what_was_tested(result(lost), "mine", "here")
    assert (test.checks[ACCURACY_KEPT], test.checks[NO_WARNING]) == ("WARNED", "PASSED")
    assert any("on the points that stay: mine" in line for line in test.warnings)
    other = replace(seen, methods={**seen.methods, "fine": passing(utility={"unseen": 0.6})})
    assert what_was_tested(result(other), "fine", "here").outcome == "PASSED"


@pytest.mark.parametrize("references", [LEAKS, SILENT, {**FINE, "none": replace(NO_PAIR, n_pairs=8)}])
def test_nothing_holds_beside_references_that_fail(references):
    asked = Conditions(min_quality=0.85)
    findings = check_result(result(run(references)), asked, "r")
    assert findings[0].state == "holds"
    assert overall(findings) == "inconclusive"
    assert findings[-1].condition == CONTROLS_HOLD
    made = run(references)
    visible = replace(made, methods={**made.methods, "mine": method(0.5)})
    assert overall(check_result(result(visible), asked, "r")) == "does not hold"
    assert overall(check_result(result(run(FINE)), asked, "r")) == "holds"
    alone = check_result(result(run({**references, "none": FINE["none"]})), replace(asked, methods=["none"]), "r")
    assert [found.method for found in alone] == ["none"]  # a reference that is asked about by name is no control


def test_check_tells_what_no_reference_shows():
    assert warnings_in(result(audit_of({}))) == no_controls(audit_of({}))
    assert len(no_controls(audit_of({}))) == 2
    assert warnings_in(result(audit_of({"Retrained": FINE["retrain"], "original": FINE["none"]}))) == []


def test_a_model_that_is_visible_shows_that_the_rows_tell():
    made = audit_of({"retrain": FINE["retrain"]})
    visible = replace(made, methods={**made.methods, "mine": replace(method(0.5), verdict=STILL_VISIBLE)})
    assert no_controls(visible) == []
    assert no_controls(made)[0].startswith("No model that unlearns nothing is in the file")


# -- where it is told --------------------------------------------------------------------------------------------------


def test_what_speaks_against_an_audit_is_told_in_every_place(tmp_path, call):
    """A retrained model that remembers: in Python, in every format, in the table, on the page, and when it is shown."""
    raw = scored(methods=("Retrain", "x"))
    np.savez(tmp_path / "file.npz", **raw)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = forgetgauge.audit(tmp_path / "file.npz", progress=False)
    told = reservations(found.games[0])
    assert [str(one.message) for one in caught if one.category is DoubtfulResult] == told
    assert any("Retrain never saw the forgotten points" in line for line in told)
    where = tmp_path / "out"
    for form in ("csv", "markdown", "latex", "json"):
        code, out, err = call("audit", tmp_path / "file.npz", "--out", where, "--format", form)
        assert (code, all(line in err for line in told)) == (0, True)
        assert not any(line in out for line in told)
        assert all(line in call("report", where, "--format", form)[2] for line in told)
    assert all(f"warning: {line}" in render_table(found) for line in told)
    assert f"{len(told)} warning" in repr(forgetgauge.read_result(where))
    assert told[0] in render_report(found)
    assert call("check", where, "--min-q", "0")[0] == 3
    call("record", where, "--out", tmp_path / "record", "--method", "x")
    statement = json.loads((tmp_path / "record/statement.json").read_text())["predicate"]
    assert CONTROLS_HOLD in statement["warnedTests"]


def test_an_audit_without_references_says_what_is_not_shown(tmp_path, call):
    """Rows that lost their order within classes look like perfect forgetting."""
    raw, rng = generalising(), np.random.default_rng(3)
    rows = np.arange(len(raw["side"]))
    for key in np.unique(np.stack([raw["side"], raw["pair"], raw["label"]]), axis=1).T:
        its = np.flatnonzero((key == np.stack([raw["side"], raw["pair"], raw["label"]]).T).all(axis=1))
        rows[its] = rng.permutation(its)
    np.savez(tmp_path / "file.npz", **raw | {"logits": raw["logits"][rows]})
    line = "it is not shown that these rows would tell a model that remembers the points"
    code, out, _ = call("audit", tmp_path / "file.npz", "--out", tmp_path / "out")
    assert (code, line in out) == (0, True)
    assert line in call("report", tmp_path / "out", "--format", "csv")[2]
    assert line in " ".join(repr(forgetgauge.read_result(tmp_path / "out")).split())
    assert line in (tmp_path / "out/report.html").read_text()
    assert line in call("check", tmp_path / "out", "--min-q", "0.5")[2]


def test_a_stored_result_that_is_shown_counts_what_follows_from_it():
    assert "1 warning: see .table()" in repr(ShownResult.of(result(run(LEAKS))))
    assert "warning" not in repr(ShownResult.of(result(run(FINE))))


def test_results_side_by_side_name_those_whose_numbers_are_doubtful():
    found = forgetgauge.compare({"sound": result(run(FINE)), "leaks": result(run(LEAKS))})
    assert [line for line in found.remarks if "warning" in line] == [
        "leaks: 1 warning about its numbers: see its own table"
    ]


def test_the_frontier_tells_what_speaks_against_its_result(tmp_path, call, monkeypatch):
    module = importlib.import_module("forgetgauge.cli.frontier")  # the package has the command by this name
    found = result(run(LEAKS))
    monkeypatch.setattr(module, "play_shown", lambda *_, **__: (Ending(0, 0, {}, False), found))
    code, out, _ = call("frontier", "--out", tmp_path)
    assert code == 0
    assert all(f"warning: {line}" in out for line in reservations(found.games[0]))
    err = call("frontier", "--out", tmp_path, "--format", "csv")[2]
    assert all(line in err for line in reservations(found.games[0]))
