"""Accuracy on all training images: two kinds of models, each trained once."""

from __future__ import annotations

import pytest

from forgetgauge.errors import UserError
from forgetgauge.learn.augment import Augment
from forgetgauge.suites import accuracy
from forgetgauge.suites.accuracy import (
    KINDS,
    RECIPES,
    FullData,
    Recipe,
    Trained,
    accuracy_text,
    paper_accuracy,
    play_accuracy,
    read_accuracy,
)
from forgetgauge.suites.findings import read_findings
from forgetgauge.suites.page import render_markdown
from forgetgauge.suites.tables import SCALES


@pytest.fixture
def quick(monkeypatch):
    small = Recipe("digits", {"model": "mlp", "epochs": 1, "batch_size": 128}, 2)
    monkeypatch.setitem(RECIPES, "smoke", small)


def test_kinds_are_the_recipes_augmentations_and_every_scale_has_a_recipe():
    assert set(KINDS) == set(Augment.__args__)
    assert list(RECIPES) == list(SCALES)
    assert (paper_accuracy("none"), paper_accuracy("flip-crop")) == (0.8534, 0.9113)
    assert RECIPES["paper"].n_models == 3


def test_both_kinds_are_trained_stored_and_shown(quick, call, tmp_path):
    how = ("--out", tmp_path / "out", "--results", tmp_path / "kept", "--device", "cpu", "--quiet")
    code, out, err = call("reproduce", "accuracy", *how)
    assert (code, err) == (0, "")
    assert "85.34 %" in out
    found = read_accuracy(tmp_path / "kept/reproduce/smoke/accuracy/accuracy.json")
    assert list(found.kinds) == ["none", "flip-crop"]
    assert (found.n_train, found.n_test) == (1437, 360)  # every fifth of 1,797 is held out
    for trained in found.kinds.values():
        first, second = trained.accuracies
        assert first != second  # two trainings
        assert (trained.device, trained.command[:27]) == ("cpu", "forgetgauge reproduce accur")
    assert accuracy_text(found) + "\n" == (tmp_path / "out/accuracy/table.txt").read_text()
    page = render_markdown(read_findings(tmp_path / "kept"))
    assert "| accuracy on all images | smoke scale |" in page
    assert "- Smoke scale: 1437 images of digits to learn from, 360 to test on." in page


def test_what_is_stored_is_not_trained_again_unless_the_recipe_changed(quick, tmp_path, monkeypatch):
    first, missing = play_accuracy("smoke", tmp_path, only=["none"], device="cpu")
    assert (list(first.kinds), missing) == (["none"], [])
    asked = []
    monkeypatch.setattr(accuracy, "_train", lambda kind, *_: asked.append(kind) or first.kinds["none"])
    both, _ = play_accuracy("smoke", tmp_path, device="cpu")
    assert asked == ["flip-crop"]
    assert both.kinds["none"] == first.kinds["none"]
    monkeypatch.setitem(RECIPES, "smoke", Recipe("digits", {"model": "mlp", "epochs": 2}, 2))
    play_accuracy("smoke", tmp_path, device="cpu")
    assert asked == ["flip-crop", "none", "flip-crop"]


def test_a_kind_is_not_begun_where_the_other_took_longer_than_is_left(quick, tmp_path, monkeypatch):
    first, _ = play_accuracy("smoke", tmp_path, only=["none"], device="cpu")
    slow = accuracy.replace(first.kinds["none"], wall_s=400.0)
    (tmp_path / "accuracy/accuracy.json").write_text(accuracy.replace(first, kinds={"none": slow}).to_json())
    monkeypatch.setattr(accuracy, "_train", lambda *_: slow)
    assert play_accuracy("smoke", tmp_path, device="cpu", time_limit_s=420)[1] == ["flip-crop"]
    assert play_accuracy("smoke", tmp_path, device="cpu", time_limit_s=480)[1] == []


def test_a_kind_that_was_kept_of_another_machine_stays_where_the_recipe_is_the_same(quick, call, tmp_path, monkeypatch):
    kept = tmp_path / "kept/reproduce/smoke/accuracy/accuracy.json"

    def play(machine, kind):
        how = ("--out", tmp_path / machine, "--results", tmp_path / "kept", "--device", "cpu", "--quiet")
        assert call("reproduce", "accuracy", "--column", kind, *how)[0] == 0
        return read_accuracy(kept)

    first = play("one", "flip-crop")
    both = play("other", "none")
    assert list(both.kinds) == ["none", "flip-crop"]
    assert both.kinds["flip-crop"] == first.kinds["flip-crop"]
    monkeypatch.setitem(RECIPES, "smoke", Recipe("digits", {"model": "mlp", "epochs": 2}, 2))
    assert list(play("third", "none").kinds) == ["none"]
    kept.write_text("{")
    code, _, err = call("reproduce", "accuracy", "--out", tmp_path / "third", "--results", tmp_path / "kept", "--quiet")
    assert (code, err.count("\n"), kept.read_text()) == (2, 1, "{")


@pytest.mark.filterwarnings("error")
def test_one_model_has_no_deviation_and_a_learner_may_not_tell_its_epochs(tmp_path):
    record = FullData("paper", "cifar10", "0", 9, 9, {}, 1, {"none": Trained([0.85], 1.0, "cpu", "solo", "", "")})
    path = tmp_path / "accuracy.json"
    path.write_text(record.to_json())
    page = render_markdown(read_findings(tmp_path))
    assert "| all images | 85.34 % | 85.00 % | – | 1 | – | 1\u202fs |" in page
    for kinds, said in (
        ({"cutout": record.kinds["none"]}, "unknown kind 'cutout'"),
        ({"none": NOBODY}, "not one model"),
    ):
        path.write_text(accuracy.replace(record, kinds=kinds).to_json())
        with pytest.raises(UserError, match=said):
            read_accuracy(path)


NOBODY = Trained([], 1.0, "cpu", "solo", "", "")


def test_mistakes_are_one_line(tmp_path, monkeypatch):
    with pytest.raises(UserError, match="did you mean 'flip-crop'"):
        play_accuracy("smoke", tmp_path, only=["flip-crops"])
    monkeypatch.setenv("FORGETGAUGE_DATA", str(tmp_path))
    with pytest.raises(UserError, match="forgetgauge data get cifar10"):
        play_accuracy("paper", tmp_path)
