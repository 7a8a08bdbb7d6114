"""A folder that is used again loses nothing without a word."""

from __future__ import annotations

import json
import sys
import warnings

import pytest

import forgetgauge
from forgetgauge.errors import DoubtfulResult, UserError
from forgetgauge.plan.runfile import apply_settings, read_run_file
from forgetgauge.run.campaign import Campaign, add_adversaries, play
from forgetgauge.run.resolve import resolve
from forgetgauge.store.runfolder import RunFolder
from tests.conftest import TINY_TOML

TINY = {
    "pairs": 2,
    "shadows": 2,
    "fraction": 0.2,
    "learner": {"epochs": 1, "batch_size": 64, "model": "linear"},
    "adversaries": ["correctness", "confidence"],
}


@pytest.fixture
def run_file(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(TINY_TOML)

    def run(*settings, file=path):
        raw, source = read_run_file(file)
        folder = RunFolder(tmp_path / "run")
        return play(Campaign.plan(resolve(apply_settings(raw, ["game.pairs=1", *settings]), source)), folder)

    return run


def adversaries_of(folder):
    return set(json.loads((folder / "result.json").read_text())["games"][0]["spec"]["adversaries"])


def test_what_score_added_is_kept_by_a_later_run_and_said(run_file, tmp_path):
    run_file()
    before = adversaries_of(tmp_path / "run")
    folder = RunFolder(tmp_path / "run")
    play(add_adversaries(folder, ["loss"]), folder)
    assert adversaries_of(tmp_path / "run") == before | {"loss"}
    ending, result = run_file()
    assert adversaries_of(tmp_path / "run") == before | {"loss"}
    assert all("loss" in method.by_adversary for method in result.methods.values())
    assert ending.notes == ["also attacked by loss, which score added to this folder"]
    ending, _ = run_file("game.pairs=2")
    assert adversaries_of(tmp_path / "run") == before | {"loss"}


def test_a_second_run_file_does_not_replace_the_result_of_the_first(run_file, tmp_path):
    run_file()
    kept = (tmp_path / "run" / "result.json").read_bytes()
    other = tmp_path / "other.toml"
    other.write_text(TINY_TOML.replace("alpha = ", "alpha = 0.1 # "))
    with pytest.raises(UserError, match=r"run: holds the run of tiny\.toml; give other\.toml a folder of its own"):
        run_file(file=other)
    assert (tmp_path / "run" / "result.json").read_bytes() == kept


def test_the_same_run_under_another_name_goes_on(run_file, tmp_path):
    run_file()
    (tmp_path / "renamed.toml").write_text(TINY_TOML)
    ending, _ = run_file("game.pairs=2", file=tmp_path / "renamed.toml")
    assert ending.notes == []


def test_a_result_that_changed_settings_would_replace_is_kept_and_said(run_file, tmp_path):
    run_file()
    first = (tmp_path / "run" / "result.json").read_bytes()
    for number, alpha in enumerate((0.2, 0.3), 1):
        ending, _ = run_file(f"game.alpha={alpha}")
        assert ending.notes == [f"the settings changed; the result before that is kept as result-{number}.json"]
    assert (tmp_path / "run" / "result-1.json").read_bytes() == first
    ending, _ = run_file("game.alpha=0.3", "game.pairs=2", "unlearners.ssd.alpha=2.0")
    assert ending.notes == [], "what is only added to replaces nothing"


def test_from_python_it_is_a_warning(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", DoubtfulResult)
        forgetgauge.evaluate(unlearner="none", out=tmp_path / "run", **TINY)
        forgetgauge.evaluate(unlearner=["none", "retrain"], out=tmp_path / "run", **TINY)
    with pytest.warns(UserWarning, match=r"the result before that is kept as result-1\.json"):
        forgetgauge.evaluate(unlearner="none", out=tmp_path / "run", alpha=0.3, **TINY)


def test_a_run_that_chooses_its_own_number_of_pairs_can_be_repeated(tmp_path):
    until = {"half_width": 0.2, "max_pairs": 6}
    arguments = {**TINY, "pairs": 5, "until": until, "adversaries": ["confidence"], "out": tmp_path / "run"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", DoubtfulResult)
        for _ in range(2):
            forgetgauge.evaluate(unlearner="none", **arguments)
    assert not list((tmp_path / "run").glob("result-*.json"))


OWN = """
import numpy as np
from forgetgauge.attack.signals import NEGATIVE_LOSS
from forgetgauge.attack.threshold import ThresholdAttack
from forgetgauge.game.adversary import Access

class Attack:
    access, needs = Access.BLACK_BOX, frozenset()
    def fit(self, shadows, target):
        scores = NEGATIVE_LOSS(shadows.rows[0])
        return self.load({"thresholds": np.full(target.n_classes, np.quantile(scores, 0.5))})
    def load(self, arrays):
        return ThresholdAttack(NEGATIVE_LOSS, arrays["thresholds"])
"""


def test_a_scored_adversary_of_ones_own_that_was_edited_attacks_again(run_file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    folder, name = RunFolder(tmp_path / "run"), "scored_own:Attack"

    def edited(text):
        (tmp_path / "scored_own.py").write_text(text)
        sys.modules.pop("scored_own", None)

    run_file()
    edited(OWN)
    _, scored = play(add_adversaries(folder, [name]), folder)
    edited(OWN.replace("0.5)", "0.3)"))
    _, again = run_file()
    _, fresh = play(add_adversaries(folder, [name]), folder)
    first, second, third = (result.methods["none"].by_adversary[name].by_pair for result in (scored, again, fresh))
    assert first != second
    assert second == third


def test_a_refused_attempt_sets_nothing_aside(run_file, tmp_path):
    run_file()

    def broken(model, retain, forget, context):
        return None

    from forgetgauge import plugins

    name = plugins.unlearners.bind(broken, "broken-one")
    with pytest.raises(UserError, match="gave back a NoneType"):
        run_file("game.alpha=0.2", f"unlearners.mine.method={name}")
    assert not list((tmp_path / "run").glob("result-*.json"))
