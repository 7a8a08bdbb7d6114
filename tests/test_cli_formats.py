"""`--format` and `compare` on the command line: standard output is the format and nothing else."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

from forgetgauge.auditing import make_draw
from tests.report.evidence import evidence
from tests.report.test_html import game, result


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "run").mkdir()
    result().save(tmp_path / "run/result.json")
    (tmp_path / "other").mkdir()
    result(game(seed=8)).save(tmp_path / "other/result.json")
    (tmp_path / "unlike").mkdir()
    result(game(n_forget=50, level=0.9)).save(tmp_path / "unlike/result.json")
    (tmp_path / "one").mkdir()
    (tmp_path / "one/evidence.json").write_text(evidence().to_json())
    return tmp_path


def test_report_writes_what_can_be_piped_into_a_file(folder, call):
    code, out, err = call("report", folder / "run", "--format", "csv", "--unverified")
    assert code == 0
    rows = list(csv.DictReader(io.StringIO(out)))
    assert {row["method"] for row in rows} == {"retrain", "none", "neg-grad"}
    assert "report.html" in err
    assert (folder / "run/report.html").exists()
    code, out, err = call("report", folder / "run", "--format", "json", "--unverified")
    assert {row["method"] for row in json.loads(out)} == {"retrain", "none", "neg-grad"}


def test_report_without_a_format_says_where_it_is_as_before(folder, call):
    assert call("report", folder / "run", "--unverified") == (0, f"report: {folder / 'run/report.html'}\n", "")
    assert call("report", folder / "run", "--format", "table", "--unverified")[1].startswith("method")
    code, _, err = call("report", folder / "run")
    assert (code, "carries no decisions" in err) == (2, True)


def test_report_of_evidence_from_one_model(folder, call):
    code, out, _ = call("report", folder / "one", "--format", "latex")
    assert code == 0
    assert out.startswith(r"\begin{tabular}")
    assert "still visible" in (folder / "one/evidence.html").read_text()
    assert call("report", folder / "one")[1] == f"report: {folder / 'one/evidence.html'}\n"


@pytest.mark.parametrize("form", ["csv", "json", "latex", "markdown", "table"])
def test_results_are_set_side_by_side(folder, call, form, monkeypatch):
    monkeypatch.chdir(folder)
    code, out, err = call("compare", folder / "run", folder / "other/result.json", "--format", form)
    assert code == 0
    assert out.count("neg-grad") == 2
    assert ("share no pairs" in out) == (form == "table")
    assert ("share no pairs" in err) == (form != "table")
    assert (folder / "comparison.html").exists() == (form == "table")


def test_a_page_is_written_where_it_is_asked_for_and_over_nothing_else(folder, call, monkeypatch):
    monkeypatch.chdir(folder)
    both = folder / "run", folder / "other"
    assert call("compare", *both, "--to", "mine.html", "--format", "csv")[2].endswith("page: mine.html\n")
    assert "results side by side" in (folder / "mine.html").read_text()
    (folder / "comparison.html").write_text("a page of my own")
    code, out, err = call("compare", *both)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert "comparison.html: there is a file of another kind" in err
    (folder / "comparison.html").write_bytes((folder / "mine.html").read_bytes())
    assert call("compare", *both)[0] == 0


def test_results_of_different_games_are_refused_with_a_line_for_each_reason(folder, call, monkeypatch):
    monkeypatch.chdir(folder)
    code, out, err = call("compare", folder / "run", folder / "unlike")
    assert (code, out) == (2, "")
    lines = err.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("forgetgauge: compare: not the same ") for line in lines)
    assert not (folder / "comparison.html").exists()


@pytest.mark.parametrize(
    ("what", "why"),
    [
        (["run"], "two results or more"),
        (["run", "one"], "evidence from one model has no Q"),
        (["run", "run"], "named twice"),
        (["run", "nowhere"], "no such file or folder"),
        (["run", "empty"], "neither a result.json nor an evidence.json"),
        (["run", "both"], "both a result.json and an evidence.json"),
        (["run", "list.json"], "neither a result of a run or an audit nor evidence"),
        (["run", "text.json"], "cannot be read"),
    ],
)
def test_what_cannot_be_compared_is_one_line(folder, call, what, why):
    (folder / "empty").mkdir()
    (folder / "both").mkdir()
    for name in ("result.json", "evidence.json"):
        (folder / "both" / name).write_text("{}")
    (folder / "list.json").write_text("[1, 2]")
    (folder / "text.json").write_bytes(b"\xff\xfe no")
    code, out, err = call("compare", *(folder / name for name in what))
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert why in err


@pytest.mark.parametrize("command", [["run"], ["audit", "x.npz"], ["report", "x"], ["compare", "x", "y"]])
def test_an_unknown_format_is_refused_before_anything_is_done(call, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = call(*command, "--format", "cvs")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert "did you mean 'csv'" in err
    assert not list(tmp_path.iterdir())


def test_an_audit_of_swap_pairs_prints_the_format_alone(tmp_path, call):
    points = np.arange(40)
    rows = [
        (pair, side, point, (point < 20) == (side == 0)) for pair in range(2) for side in (0, 1) for point in points
    ]
    pair, side, point, forgotten = (np.array(column) for column in zip(*rows, strict=True))
    rng = np.random.default_rng(0)
    np.savez(
        tmp_path / "file.npz", pair=pair, side=side, point=point + 100 * pair,
        set=np.where(forgotten, "forget", "unseen"), decision=rng.random(len(pair)) < 0.5,
    )  # fmt: skip
    code, out, err = call("audit", tmp_path / "file.npz", "--out", tmp_path / "out", "--format", "csv")
    assert code == 0
    (row,) = csv.DictReader(io.StringIO(out))
    stored = json.loads((tmp_path / "out/result.json").read_text())["games"][0]["methods"]["model"]
    assert float(row["q"]) == stored["quality"]
    assert "report.html" in err


def test_an_audit_of_one_model_writes_its_page_and_prints_the_format_alone(tmp_path, call):
    (tmp_path / "points.txt").write_text("\n".join(f"p{i}" for i in range(100)))
    drawn = make_draw(tmp_path / "points.txt", 40, tmp_path / "draw.json", seed="s")
    points = np.array([*drawn.forget, *drawn.unseen])
    np.savez(tmp_path / "file.npz", point=points, score=np.random.default_rng(0).normal(size=80))
    where = ("audit", tmp_path / "file.npz", "--draw", tmp_path / "draw.json", "--out", tmp_path / "out")
    code, out, err = call(*where, "--format", "json")
    assert code == 0
    stored = json.loads((tmp_path / "out/evidence.json").read_text())
    assert {row["test"] for row in json.loads(out)} == set(stored["models"]["model"]["tests"])
    assert "evidence.html" in err
    page = (tmp_path / "out/evidence.html").read_text()
    assert stored["commitment"] in page
    table = call(*where)[1]
    assert "evidence.json" in table
    assert "evidence.html" in table
