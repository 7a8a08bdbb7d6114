"""Where scores tell F from T and the thresholds that shadow models taught do not, nothing says that F is forgotten."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from forgetgauge.errors import UserError
from forgetgauge.report.table import render_table
from forgetgauge.results.gate import Conditions, check_result, overall
from forgetgauge.results.record import Result
from forgetgauge.results.verdict import LIKE_RETRAIN, STILL_VISIBLE, controls_that_fail, sweep_verdict, verdict
from forgetgauge.results.verified import verify_result
from tests.test_audit_warnings import audited, scored


def judged(tmp_path, *, memory, away, others=0.0, seed=0) -> Result:
    """`model`, which gives F higher scores by `memory` and lies far below all thresholds; and another method."""
    raw = scored(memory=memory, seed=seed, methods=("model", "other", "retrain", "none"))
    rng = np.random.default_rng(seed + 1)
    is_forget = raw["set"] == "forget"
    for name, gain in (("other", others), ("retrain", 0.0), ("none", 1.5)):
        at = raw["method"] == name
        raw["score"][at] = rng.standard_normal(at.sum()) + gain * is_forget[at]
    at = raw["method"] == "model"
    raw["score"][at] -= away
    raw["score"][np.flatnonzero(at)[0]] = 10  # else every answer is the same, and nothing is measured
    return audited(raw, tmp_path)


@pytest.mark.parametrize("memory", [0.8, -0.8], ids=["remembered", "over-forgotten"])
def test_such_a_method_is_visible_and_holds_nothing(tmp_path, memory):
    result = judged(tmp_path, memory=memory, away=6)
    (game,) = result.games
    found = game.methods["model"]
    assert found.quality > 0.95
    assert found.p_value > 0.05  # its answers are none but chance
    assert found.missed == ["own score"]
    assert found.verdict == STILL_VISIBLE
    assert "Still visible: model (in the scores of own score, which thresholds miss)." in render_table(result)
    for asked in (Conditions(min_quality=0.9), Conditions(chance_margin=0.3)):
        findings = check_result(result, dataclasses.replace(asked, methods=["model"]), "scores.npz")
        assert overall(findings) == "inconclusive"
        assert "the scores of own score tell forgotten points from unseen ones" in findings[0].evidence
    low = check_result(result, Conditions(min_quality=1.0, methods=["model"]), "scores.npz")
    assert overall(low) != "holds"


def test_nor_is_one_forgotten_of_which_every_answer_is_the_same(tmp_path):
    raw = scored(memory=-0.8, methods=("model", "retrain"))
    raw["score"] -= 6
    raw["score"][raw["method"] == "retrain"] = np.random.default_rng(5).standard_normal(
        (raw["method"] == "retrain").sum()
    )
    result = audited(raw, tmp_path)
    (game,) = result.games
    assert game.methods["model"].quality is None
    assert game.methods["model"].verdict == STILL_VISIBLE
    assert any("so no Q shows it" in line for line in game.warnings)
    assert "Still visible: model (in the scores of own score, which thresholds miss)." in render_table(result)
    with pytest.raises(UserError, match="an adversary told any points apart"):
        check_result(result, Conditions(min_quality=0.5, methods=["model"]), "scores.npz")


def test_it_does_not_lead_the_table_in_words(tmp_path):
    (game,) = judged(tmp_path, memory=0.8, away=6).games
    assert game.methods["model"].quality > game.methods["other"].quality - 0.05
    said = verdict(game)
    assert said.headline.startswith("other ")
    assert "Of model thresholds miss what scores tell, so its Q is too high." in said.remarks


def with_retrain_that_leaks(tmp_path, others=0.0) -> Result:
    raw = scored(memory=0.0, methods=("model", "retrain", "none"))
    rng = np.random.default_rng(7)
    is_forget = raw["set"] == "forget"
    for name, gain, away in (("model", others, 6.0 if others else 0.0), ("retrain", 0.8, 6.0), ("none", 1.5, 0.0)):
        at = raw["method"] == name
        raw["score"][at] = rng.standard_normal(at.sum()) + gain * is_forget[at] - away
        if away:
            raw["score"][np.flatnonzero(at)[0]] = 10
    return audited(raw, tmp_path)


def test_a_retrain_of_which_thresholds_miss_a_leak_is_no_control(tmp_path):
    result = with_retrain_that_leaks(tmp_path)
    (game,) = result.games
    assert game.methods["retrain"].quality > 0.95
    assert list(controls_that_fail(game)) == ["retrain"]
    findings = check_result(result, Conditions(min_quality=0.5, methods=["model"]), "scores.npz")
    assert overall(findings) == "inconclusive"
    assert any("the scores of own score tell them from unseen ones" in line for line in verdict(game).remarks)
    swept = dataclasses.replace(result, sweep="game.alpha", games=[dataclasses.replace(game, value=0.5)])
    assert any("do not rely on these" in line for line in sweep_verdict(swept).remarks)


def test_where_thresholds_miss_every_method_none_is_praised(tmp_path):
    (game,) = with_retrain_that_leaks(tmp_path, others=0.8).games
    said = verdict(game)
    assert said.headline.startswith("Of every method tested thresholds miss what scores tell")
    assert not any("better than None" in line or "found nothing they could rely on" in line for line in said.remarks)


def test_nor_does_it_lead_a_sweep(tmp_path):
    result = judged(tmp_path, memory=0.8, away=6)
    swept = dataclasses.replace(result, sweep="game.alpha", games=[dataclasses.replace(result.games[0], value=0.5)])
    said = sweep_verdict(swept)
    assert said.headline.startswith("other has the highest Q")
    assert "Left out where thresholds miss what scores tell, so that Q is too high: model." in said.remarks


@pytest.mark.parametrize("seed", range(5))
def test_an_honest_method_keeps_its_verdict(tmp_path, seed):
    (game,) = judged(tmp_path, memory=0.0, away=6, seed=seed).games
    for name in ("other", "retrain"):
        assert game.methods[name].missed == []
        assert game.methods[name].verdict == LIKE_RETRAIN or game.methods[name].p_value <= 0.05
    assert game.methods["none"].missed == []  # its answers show it


def test_verify_takes_it_from_the_result(tmp_path):
    result = judged(tmp_path, memory=0.8, away=6)
    path = tmp_path / "result.json"
    path.write_text(result.to_json())
    found = verify_result(path)
    assert found.problems == ()
    changed = dataclasses.replace(result.games[0].methods["model"], verdict=LIKE_RETRAIN)
    games = [dataclasses.replace(result.games[0], methods={**result.games[0].methods, "model": changed})]
    path.write_text(dataclasses.replace(result, games=games).to_json())
    assert any("verdict" in problem for problem in verify_result(path).problems)
