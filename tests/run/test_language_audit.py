"""A person asks to be forgotten: runs of a tiny language model by person, and audits of what its models say."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

import forgetgauge
from forgetgauge.auditing import audit_file, audit_one_model, write_audit_file
from forgetgauge.auditing.reading import read_audit_file
from forgetgauge.errors import UserError

TINY = {
    "model": "causal-lm",
    "model_params": {"hidden": 32, "vocab": 512},
    "optimiser": "adamw",
    "lr": 0.01,
    "batch_size": 16,
}
PEOPLE = {"vocab": 512, "people": 48}


# -- an exact test of one model ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """16 of 48 persons drawn to be forgotten, 16 kept unseen; a model that learnt R and F, and one that learnt R."""
    folder = tmp_path_factory.mktemp("persons")
    example = runpy.run_path(str(Path(__file__).parents[2] / "examples/audit_persons.py"))
    example["main"](folder, people=48, n_forget=16, **TINY, epochs=15)
    return folder


def test_one_model_that_learnt_its_persons_by_heart_shows_them_and_a_retrained_one_does_not(drawn, call, tmp_path):
    verdicts = {}
    for model in ("none", "retrain"):
        code, out, err = call(
            "audit", drawn / f"{model}.csv", "--draw", drawn / "draw.json", "--states", "all", "--out", tmp_path / model
        )
        assert (code, err) == (0, "")
        assert "F is 16 groups of points drawn at random" in out
        verdicts[model] = out.splitlines()[0]
    assert verdicts["none"] == "model: still visible"
    assert verdicts["retrain"].startswith("model: inconclusive")  # 16 persons: little can be ruled out


def test_the_mean_of_a_persons_records_tells_more_than_single_records(drawn):
    tests = audit_one_model(drawn / "none.csv", drawn / "draw.json").models["model"].tests
    assert tests["own loss, mean of each person"].advantage > tests["own loss"].advantage
    assert tests["own loss, mean of each person"].log10_p < -4


# -- a run by person, and an audit of its outputs ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "run"
    result = forgetgauge.evaluate(
        data="people",
        data_params=PEOPLE,
        by="group",
        learner={"name": "minibatch", **TINY, "epochs": 20},
        adversaries=["confidence", "lira-offline"],
        alpha=0.5,
        pairs=2,
        shadows=2,
        out=folder,
        executor="inline",
    )
    return folder, result.games[0]


def test_an_attack_on_classes_is_refused_by_name_where_a_finished_run_is_scored(played, call):
    code, _, err = call("score", played[0], "--adversary", "entropy")
    assert code == 2
    assert "entropy: it reads the signal 'entropy', which the task of this run, causal-lm, does not have" in err
    code, _, err = call("score", played[0], "--adversary", "min-k", "--adversary", "zlib-ratio")
    assert code == 0, err


def test_in_a_run_by_person_none_is_seen_and_retrain_is_not(played):
    _, game = played
    assert game.methods["none"].quality_plugin < 0.5 < 0.8 < game.methods["retrain"].quality_plugin


@pytest.mark.parametrize("suffix", [".npz", ".csv"])
def test_an_audit_of_a_runs_losses_is_of_persons(played, tmp_path, suffix):
    folder, game = played
    write_audit_file(folder, tmp_path / f"audit{suffix}")
    audited = audit_file(tmp_path / f"audit{suffix}").games[0]
    assert list(audited.methods) == list(game.methods)
    assert audited.spec["n_forget"] == game.spec["n_forget"]
    seen = {name: method.by_adversary["own loss"].advantage for name, method in audited.methods.items()}
    assert seen["none"] > 0.5
    assert abs(seen["retrain"]) < 0.3


def test_one_model_of_a_run_has_its_shadow_models_for_references(played, tmp_path, call):
    folder, game = played
    write_audit_file(folder, tmp_path / "one.csv", model=("none", 1, 0))
    file = read_audit_file(tmp_path / "one.csv", requests=True)
    assert len(file.outputs) == 2 * game.spec["n_forget"]
    assert file.references.scores["loss"].shape == (2, len(file.outputs))
    assert not file.references.member.any()
    code, out, _ = call("audit", tmp_path / "one.csv", "--requests", "--out", tmp_path / "out")
    assert code == 0
    assert "points is a person, judged by the mean of what the model says of their records" in out
    assert "F was not drawn at random" in out
    with pytest.raises(UserError, match="it has no model of none, pair 9, side 0"):
        write_audit_file(folder, tmp_path / "one.csv", model=("none", 9, 0))
