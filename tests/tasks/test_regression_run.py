"""The game on a task without classes: it is played, and what needs classes is refused by name."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest
import torch

import forgetgauge
from forgetgauge import plugins
from forgetgauge.auditing import audit_file, write_audit_file
from forgetgauge.data.dataset import Dataset
from forgetgauge.errors import UserError
from forgetgauge.report.html import render_report
from forgetgauge.report.table import render_table
from forgetgauge.run.verify import verify
from forgetgauge.store.runfolder import RunFolder
from forgetgauge.tasks.regression import Regression
from tests.methods import FOR_ALL

EXAMPLE = Path(__file__).parents[2] / "examples" / "regression-diabetes.toml"
SCALAR = ["loss", "lira-online", "lira-offline", "quantile", "u-lira", "gradient-norm", "loss-landscape"]
SCALAR += ["bavaria", "relearning"]
SMALL = {"alpha": 0.3, "pairs": 3, "shadows": 3}
MLP = {"name": "minibatch", "model": "mlp", "model_params": {"hidden": [16]}, "epochs": 60}


@pytest.fixture(scope="module")
def played():
    return forgetgauge.evaluate(data="diabetes", learner=MLP, adversaries=SCALAR, references=4, **SMALL)


def test_none_has_a_lower_quality_than_retrain(played):
    none, retrain = played.methods["none"], played.methods["retrain"]
    assert none.quality_plugin < 0.85 < retrain.quality_plugin
    assert set(none.by_adversary) == set(SCALAR)
    assert none.utility["forget"] > none.utility["unseen"] + 0.2
    assert abs(retrain.utility["forget"] - retrain.utility["unseen"]) < 0.2


def test_the_table_and_the_report_speak_of_r_squared(played):
    assert "R² unseen" in render_table(played)
    assert "Mean R² of the unlearned models" in render_report(played)
    assert "acc unseen" not in render_table(played)


def test_a_forget_set_of_one_point_has_no_r_squared_and_all_else(tmp_path):
    learner = {"name": "minibatch", "model": "linear", "epochs": 1}
    one = {**SMALL, "alpha": 0.005, "pairs": 2}
    result = forgetgauge.evaluate(data="diabetes", learner=learner, adversaries="loss", out=tmp_path / "run", **one)
    assert result.games[0].spec["n_forget"] == 1
    for method in result.methods.values():
        assert method.quality is not None
        assert set(method.utility) == set(method.utility_by_pair) == {"retain"}
    assert "R² retain" in render_table(result)
    assert "R² unseen" not in render_table(result)
    assert "Mean R² of the unlearned models" in render_report(result)
    assert verify(tmp_path / "run").problems == ()
    assert verify(tmp_path / "run", "signals").problems == ()


@pytest.mark.parametrize("name", sorted(set(plugins.adversaries.entries) - set(SCALAR)))
def test_an_adversary_that_did_not_play_is_refused_by_name(name):
    with pytest.raises(UserError, match=rf"adversaries\.{name}: it reads the signal .*'diabetes', regression.*loss"):
        forgetgauge.evaluate(data="diabetes", learner=MLP, adversaries=["loss", name], **SMALL)


NEED_CLASSES = ["bad-teacher", "certified-removal", "fisher", "random-relabel", "salun", "scrub", "sisa"]


@pytest.mark.parametrize("name", NEED_CLASSES)
def test_a_method_that_needs_classes_is_refused_by_name(name):
    with pytest.raises(UserError, match=rf"unlearners\.{name}: it needs classes"):
        forgetgauge.evaluate(data="diabetes", unlearner=name, learner=MLP, adversaries="loss", **SMALL)


def test_every_other_method_unlearns():
    """In one short game; what a method makes of it is another question."""
    others = [name for name in FOR_ALL if name not in NEED_CLASSES]
    learner = {**MLP, "epochs": 5}
    result = forgetgauge.evaluate(data="diabetes", unlearner=others, learner=learner, adversaries="loss", **SMALL)
    assert all(np.isfinite(method.utility["retain"]) for method in result.methods.values())
    assert set(result.methods) == set(others)


@pytest.mark.parametrize(
    ("asked", "refused"),
    [
        ({"metrics": "ic"}, "metrics.ic"),
        ({"metrics": "distances"}, "metrics.distances"),
        ({"sensitivity": {0: 2.0}}, "game.sensitivity.by_class"),
        ({"learner": {"name": "sisa", "model": "mlp"}}, "learner"),
    ],
)
def test_what_needs_classes_is_refused_by_its_key(asked, refused):
    with pytest.raises(UserError, match=rf"{refused}: it needs classes, which the task of data 'diabetes', regression"):
        forgetgauge.evaluate(data="diabetes", adversaries="loss", **{"learner": MLP, **SMALL, **asked})


def test_arrays_of_ones_own_say_their_task():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 6)).astype(np.float32)
    y = x[:, 0] + 0.3 * rng.normal(size=120)
    how = {"learner": MLP, "adversaries": "loss", **SMALL}
    with pytest.raises(UserError, match=r'labels must be one whole number.*say task = "regression"'):
        forgetgauge.evaluate(data=(x, y), **how)
    result = forgetgauge.evaluate(data=(x, y), task="regression", **how)
    assert result.games[0].utility_name == "R²"
    with pytest.raises(UserError, match="unknown task 'regresion'; did you mean 'regression'"):
        forgetgauge.evaluate(data=(x, y), task="regresion", **how)


def test_a_file_of_arrays_says_its_task_in_the_run_file(tmp_path, call):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(120, 6)).astype(np.float32)
    np.savez(tmp_path / "mine.npz", x=x, y=x[:, 0] + 0.3 * rng.normal(size=120))
    text = f"""
        adversaries = ["loss"]
        data = {{ name = "{tmp_path / "mine.npz"}", task = "regression" }}
        learner = {{ model = "mlp", epochs = 5 }}
        game = {{ pairs = 2, alpha = 0.3 }}
        shadows = {{ count = 2 }}
    """
    (tmp_path / "run.toml").write_text(text)
    code, out, _ = call("run", tmp_path / "run.toml", "--out", tmp_path / "run", "--executor", "inline")
    assert code == 0
    assert "R² unseen" in out
    write_audit_file(tmp_path / "run", tmp_path / "audit.npz")
    assert list(audit_file(tmp_path / "audit.npz").games[0].methods["none"].by_adversary) == ["own loss"]


def test_a_data_set_that_knows_its_task_cannot_be_given_another():
    with pytest.raises(UserError, match="data 'digits' is of the task classification: it cannot be one of regression"):
        forgetgauge.evaluate(data="digits", task="regression", adversaries="loss", **SMALL)


class Doubled(Regression):
    """A task of the user's own that borrows a name of ours."""

    name = "classification"


def test_a_task_of_ones_own_is_never_taken_for_one_of_ours_of_the_same_name():
    x, y = np.zeros((60, 2), dtype=np.float32), np.arange(60, dtype=np.float32)
    mine = Dataset.of("mine", torch.from_numpy(x), torch.from_numpy(y), task=Doubled())
    with pytest.raises(UserError, match=r"data 'mine' is of a task of its own, 'classification': name it in data.task"):
        forgetgauge.evaluate(data=mine, learner=MLP, adversaries="loss", **SMALL)


def test_the_result_of_somebody_elses_run_is_put_together_without_loading_its_task(tmp_path):
    folder = RunFolder(tmp_path / "run")
    forgetgauge.evaluate(data="diabetes", learner={**MLP, "epochs": 1}, adversaries="loss", out=folder.path, **SMALL)
    run = json.loads(folder.run_file.read_text().replace('"regression"', '"no_such_module:TASK"'))
    folder.write_run({name: value for name, value in run.items() if name not in ("format", "sha256")})
    (line,) = verify(folder.path).problems
    assert "spec/task" in line


def test_the_example_names_nobody_who_is_refused(tmp_path):
    spec = tomllib.loads(EXAMPLE.read_text("utf-8"))
    assert set(spec["adversaries"]) <= set(SCALAR)
    assert not set(spec["unlearners"]) & set(NEED_CLASSES)
