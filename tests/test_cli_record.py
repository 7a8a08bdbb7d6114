"""`record` on the command line: what it writes, and how it answers to mistakes."""

from __future__ import annotations

import dataclasses
import hashlib
import json

import pytest

from tests.report.evidence import CLEAN, SEEN, evidence
from tests.report.test_html import game, method, result

FILES = {"record.html", "statement.json", "statement-forgetgauge.json", "model-card.md"}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "run").mkdir()
    result().save(tmp_path / "run/result.json")
    (tmp_path / "evidence.json").write_text(evidence().to_json())
    (tmp_path / "model.pt").write_bytes(b"weights")
    return tmp_path


def test_a_run_folder_gives_a_record_of_its_method(folder, call):
    code, out, err = call("record", folder / "run", "--out", folder / "record", "--unverified")
    assert code == 0
    assert out.startswith("neg-grad: ")
    assert {path.name for path in (folder / "record").iterdir()} == FILES
    assert "every-eval-ever.json is not written: it is of one named model" in err
    statement = json.loads((folder / "record/statement.json").read_text())
    digest = hashlib.sha256((folder / "run/result.json").read_bytes()).hexdigest()
    assert statement["subject"] == [{"name": "result.json", "digest": {"sha256": digest}}]
    assert digest in (folder / "record/record.html").read_text()


def test_evidence_gives_every_file_where_everything_is_stated(folder, call):
    code, out, err = call(
        "record", folder / "evidence.json", "--out", folder / "new/record", "--asked", "Erase <b>them</b>.",
        "--by", "Me", "--model", folder / "model.pt", "--model-id", "me/m", "--relationship", "first_party",
        "--url", "https://example.org",
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "model: still visible (FAILED)"
    assert {path.name for path in (folder / "new/record").iterdir()} == FILES | {"every-eval-ever.json"}
    page = (folder / "new/record/record.html").read_text()
    assert "Erase &lt;b&gt;them&lt;/b&gt;." in page
    digest = hashlib.sha256(b"weights").hexdigest()
    assert digest in page
    own = json.loads((folder / "new/record/statement-forgetgauge.json").read_text())
    assert own["subject"][1] == {"name": "model.pt", "digest": {"sha256": digest}}
    assert own["predicate"]["stated"] == {"asked": "Erase <b>them</b>.", "by": "Me"}


def test_another_record_in_the_same_folder_does_not_take_the_place_of_the_first(folder, call):
    out, whole = folder / "record", ("--by", "Me", "--model-id", "a/b", "--relationship", "first_party")
    assert call("record", folder / "evidence.json", "--out", out, *whole)[0] == 0
    first = {path.name: path.read_text() for path in out.iterdir()}
    code, _, err = call("record", folder / "evidence.json", "--out", out, "--asked", "Something else.")
    assert (code, f"this folder held another record, which is kept: {out / 'earlier-1'}" in err) == (0, True)
    assert {path.name: path.read_text() for path in (out / "earlier-1").iterdir()} == first
    assert set(first) == FILES | {"every-eval-ever.json"}
    assert {path.name for path in out.iterdir()} == FILES | {"earlier-1"}


def test_what_the_file_says_of_other_models_stands_in_the_record(folder, call):
    (folder / "evidence.json").write_text(evidence({"before": SEEN, "after": CLEAN}).to_json())
    code, out, _ = call("record", folder / "evidence.json", "--out", folder / "record", "--method", "after")
    assert (code, out.startswith("after: not distinguishable")) == (0, True)
    page = (folder / "record/record.html").read_text()
    assert "other models of the same file" in page
    assert "before (still visible)" in page


@pytest.mark.parametrize(("before", "outcome"), [(SEEN, "PASSED"), (CLEAN, "WARNED")])
def test_a_record_passes_only_where_the_model_from_before_the_deletion_was_visible(folder, call, before, outcome):
    whole = evidence({"before": before, "after": CLEAN}, list_shown=True)
    (folder / "evidence.json").write_text(whole.to_json())
    code, out, _ = call("record", folder / "evidence.json", "--out", folder / "record", "--method", "after")
    assert (code, f"({outcome})" in out) == (0, True)
    page = (folder / "record/record.html").read_text()
    assert ("says nothing about a deletion" in page) == (outcome == "WARNED")
    statement = json.loads((folder / "record/statement.json").read_text())["predicate"]
    passed = "the model from before the deletion is still visible" in statement["passedTests"]
    assert passed == (outcome == "PASSED")


def test_two_files_of_one_name_keep_their_paths_apart(folder, call):
    (folder / "b").mkdir()
    (folder / "b/model.pt").write_bytes(b"others")
    models = ["--model", folder / "model.pt", "--model", folder / "b/model.pt"]
    assert call("record", folder / "evidence.json", "--out", folder / "record", *models)[0] == 0
    subject = json.loads((folder / "record/statement.json").read_text())["subject"]
    assert [one["name"] for one in subject[1:]] == [str(folder / "model.pt"), str(folder / "b/model.pt")]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["nowhere", "--out", "record"], "no such file or folder"),
        (["model.pt", "--out", "record"], "cannot be read"),
        (["list.json", "--out", "record"], "neither a result of a run or an audit nor evidence"),
        (["half.json", "--out", "record"], "half.json"),
        (["deep.json", "--out", "record"], "deep.json: cannot be read"),
        (["bare.json", "--out", "record"], "without a single game"),
        (["changed.json", "--out", "record"], "was changed after it was written"),
        (["run", "--out", "model.pt"], "cannot make this folder"),
        (["run", "--out", "taken"], "cannot be written"),
        (["run", "--out", "record", "--method", "neggrad"], "did you mean 'neg-grad'"),
        (["two.json", "--out", "record"], "name the method that the record is of with --method: a and b"),
        (["odd.json", "--out", "record"], "odd.json: the verdict on a is one of"),
        (["run", "--out", "record", "--model", "nowhere.pt"], "nowhere.pt: cannot be read"),
        (["run", "--out", "record", "--model", "run"], "run: cannot be read"),
        (["run", "--out", "record", "--relationship", "third"], "did you mean 'third_party'"),
        (["run", "--out", "record", "--asked", "x" * 601], "at most 600"),
        (["run"], "--out"),
    ],
)
def test_mistakes_are_one_line(folder, call, monkeypatch, arguments, why):
    monkeypatch.chdir(folder)
    (folder / "list.json").write_text("[]")
    (folder / "half.json").write_text('{"games": []}')
    (folder / "deep.json").write_text("[" * 100_000)
    dataclasses.replace(result(), games=[]).save(folder / "bare.json")
    (folder / "changed.json").write_text(result().to_json().replace("0.029", "0.028", 1))
    (folder / "taken/record.html").mkdir(parents=True)
    result(game({"a": method(0.9), "b": method(0.8)})).save(folder / "two.json")
    result(game({"a": method(0.9, verdict="x")})).save(folder / "odd.json")
    code, out, err = call("record", *arguments, "--unverified")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert why in err
    assert not (folder / "record").exists()


def test_text_that_is_no_text_is_shown_as_question_marks(folder, call):
    assert call("record", folder / "run", "--out", folder / "record", "--by", "caf\udce9", "--unverified")[0] == 0
    assert "caf?" in (folder / "record/record.html").read_text()
