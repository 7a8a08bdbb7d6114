"""Q of every replicate and frontiers along strengths, played for real at smoke scale with few methods."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

from forgetgauge.errors import UserError
from forgetgauge.results.record import read_result
from forgetgauge.run.scheduler import Ending
from forgetgauge.store.runfolder import RunFolder
from forgetgauge.suites import frontier_run, replicates, tables
from forgetgauge.suites.accuracy import FullData
from forgetgauge.suites.frontier import read_frontiers
from forgetgauge.suites.frontier_words import frontier_text
from forgetgauge.suites.replicates import read_replicates, replicates_of, replicates_of_run, replicates_text


@pytest.fixture(scope="module")
def patched():
    """SSD along its weight; one pair and one adversary for the replicates."""
    with pytest.MonkeyPatch.context() as patch:
        curve = tables.frontier_game(tables.SCALES["smoke"])
        curve["unlearners"] = {"retrain": {}, "none": {}, "ssd": {"strength": "auto"}}
        patch.setattr(frontier_run, "frontier_game", lambda scale: curve)
        game = tables.replicates_game(tables.SCALES["smoke"])
        game["game"]["pairs"] = 1
        game |= {"unlearners": {"retrain": {}, "none": {}}, "adversaries": ["confidence"]}
        del game["tuning"]
        patch.setattr(replicates, "replicates_game", lambda scale: game)
        yield


@pytest.fixture(scope="module")
def played(patched, tmp_path_factory):
    """(folder, Q along the strength, the same game with three replicates)."""
    folder = tmp_path_factory.mktemp("further")
    return (
        folder,
        frontier_run.play_frontiers("smoke", folder, command="one"),
        replicates.play_replicates("smoke", folder),
    )


@pytest.mark.slow
def test_the_same_commands_find_nothing_left_to_do(played, patched, call):
    folder, (_, curves), (_, found) = played
    how = ("--out", folder, "--scale", "smoke", "--executor", "inline", "--quiet", "--results", folder / "kept")
    code, out, err = call("reproduce", "strengths", "replicates", *how)
    assert (code, err) == (0, "")
    assert frontier_text(curves) in out
    assert replicates_text(found) in out
    assert read_frontiers(folder / "kept/reproduce/smoke/strengths/strengths.json") == curves


@pytest.mark.slow
def test_curves_are_what_the_result_says(played):
    folder, (_, curves), _ = played
    result = read_result(folder / "strengths/result.json")
    methods = result.methods
    (curve,) = curves.curves.values()
    names = ["ssd" if value == curve.chosen else f"ssd@{value:g}" for value in curve.values]
    assert set(methods) == {"none", "retrain", *names}
    assert [point.quality.value for point in curve.points] == [methods[name].quality_plugin for name in names]
    assert curves.none.accuracy == methods["none"].utility["unseen"]
    assert "chosen" in (folder / "strengths/table.txt").read_text()
    assert "<svg" in (folder / "strengths/report.html").read_text()


@pytest.mark.slow
def test_with_one_replicate_its_quality_is_the_pairs(played):
    """From decisions here, from `result.json` there."""
    folder, (first, _), _ = played
    found = replicates_of(first.campaign.graphs[0], first.folder)
    for name, method in read_result(folder / "strengths/result.json").methods.items():
        by_pair = np.array([attack.by_pair for attack in method.by_adversary.values()])
        assert np.ravel(found.quality[name]) == pytest.approx(1 - np.abs(by_pair).max(axis=0))


@pytest.mark.slow
def test_replicates_average_to_the_result_and_share_the_first_models(played):
    folder, (first, _), (again, found) = played
    assert found.n_replicates == 3
    assert read_replicates(folder / "replicates/replicates.json") == found
    for name, method in read_result(folder / "replicates/result.json").methods.items():
        ((mean,),) = [attack.by_pair for attack in method.by_adversary.values()]
        advantages = 1 - np.array(found.quality[name][0])  # without their signs
        signs = [np.array(s) for s in np.ndindex(2, 2, 2)]
        assert any(abs(mean) == pytest.approx(abs(np.mean((2 * s - 1) * advantages))) for s in signs)
    trained = {key for key, job in again.campaign.jobs.items() if job.kind == "train"}
    assert len(trained & set(first.campaign.jobs)) == 2 + 2  # the pair's two sides, and the shadow models


@pytest.mark.slow
def test_a_finished_run_tells_the_same_through_the_command_line(played, call, tmp_path):
    folder, _, (_, found) = played
    run = json.loads((folder / "replicates/run.json").read_text())
    del run["format"], run["sha256"]
    (tmp_path / "run").mkdir()
    for part in ("objects", "ledger.jsonl"):
        (tmp_path / "run" / part).symlink_to(folder / part)
    RunFolder(tmp_path / "run").write_run(run)
    code, out, _ = call("reproduce", "replicates", "--run", tmp_path / "run", "--results", tmp_path / "kept")
    assert code == 0
    assert "Q over 3 replicates: digits, small-cnn, α = 0.1." in out
    assert read_replicates(tmp_path / "kept/run/replicates.json") == found
    values = [{**run["games"][0], "value": value} for value in (0.1, 0.2)]
    RunFolder(tmp_path / "run").write_run({**run, "games": values, "sweep": "game.alpha"})
    code, _, err = call("reproduce", "replicates", "--run", tmp_path / "run")
    assert (code, err.count("\n")) == (2, 1)
    assert "run: a sweep of 2 games; replicates are of one" in err
    run["games"][0]["seeds"] = 2
    RunFolder(tmp_path / "run").write_run(run)
    with pytest.raises(UserError, match="2 replicates of a split"):
        replicates_of_run(tmp_path / "run")
    run["games"][0]["seeds"] = 1
    RunFolder(tmp_path / "run").write_run(run)
    with pytest.raises(UserError, match="1 replicate of a split"):
        replicates_of_run(tmp_path / "run")


def test_a_record_with_holes_is_refused(tmp_path):
    path = tmp_path / "replicates.json"
    whole = {"data": "d", "model": "m", "alpha": 0.1, "adversaries": [], "schema": 1}
    for quality in ({}, {"a": [[0.1, 0.2]], "b": [[0.1]]}, {"a": [[0.1, 0.2], [0.1]]}):
        path.write_text(json.dumps({**whole, "quality": quality}))
        with pytest.raises(UserError, match="not as many pairs and replicates"):
            read_replicates(path)


def test_a_run_goes_with_replicates_alone(call, tmp_path):
    for name in ("table1", "list", "page"):
        code, out, err = call("reproduce", name, "--run", tmp_path)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert "--run goes with replicates alone" in err
    code, _, err = call("reproduce", "replicates", "--run", tmp_path / "nowhere")
    assert (code, err.count("\n")) == (2, 1)


@pytest.mark.parametrize("name", ["strengths", "replicates", "swap-vs-random", "accuracy"])
def test_a_record_of_an_earlier_command_is_not_kept_for_one_that_found_nothing(name, call, tmp_path, monkeypatch):
    """Perhaps it is of other settings."""
    (tmp_path / "out" / name).mkdir(parents=True)
    (tmp_path / "out" / name / f"{name}.json").write_text("old")
    ending = Ending(n_run=3, n_missing=4, failed={}, out_of_time=True)
    for play in ("frontier_run.play_frontiers", "replicates.play_replicates", "swap_vs_random.play_splitting"):
        monkeypatch.setattr(f"forgetgauge.suites.{play}", lambda *_, **__: (SimpleNamespace(ending=ending), None))
    nothing = FullData("smoke", "digits", "0", 9, 9, {}, 2, {})
    monkeypatch.setattr("forgetgauge.suites.accuracy.play_accuracy", lambda *_, **__: (nothing, ["none"]))
    how = ("--out", tmp_path / "out", "--results", tmp_path / "kept", "--executor", "inline", "--quiet")
    code, out, err = call("reproduce", name, *how)
    assert (code, err) == (0, f"{name}: not finished; what is kept stays as it is\n")
    assert "stopped at the time limit" in out
    assert not (tmp_path / "kept").exists()
