"""What is set and would change nothing is refused, or said, rather than left out without a word."""

import sys
from pathlib import Path

import numpy as np
import pytest

import forgetgauge
from forgetgauge.cli import main
from forgetgauge.errors import UserError
from forgetgauge.plan.runfile import read_run_file, sweep_games
from forgetgauge.run.resolve import _decided, idle_settings, resolve
from forgetgauge.suites.tables import OUTLINES, SCALES, suite

TINY = {"pairs": 1, "shadows": 2, "fraction": 0.2, "adversaries": ["confidence"], "unlearner": "none"}


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"job_seconds": 5}, "limits.job_seconds = 5 has no effect with executor 'inline', which cannot end a job"),
        ({"metrics": {"ic_classes": [3, 5]}}, "metrics.ic_classes has no effect without metrics.ic = true"),
        ({"scorers": 4}, "scorers = 4 has no effect unless hardest is below 1"),
        ({"adversaries": ["loss", "loss"]}, "the name 'loss' is given to more than one adversary: give them as a mapp"),
    ],
)
def test_an_argument_without_effect_is_refused(arguments, line):
    with pytest.raises(UserError, match=f"^evaluate: {line}"):
        forgetgauge.evaluate(**{**TINY, **arguments})


ADAM = {"model": "linear", "optimiser": "adamw", "epochs": 1}


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            {"learner": {**ADAM, "momentum": 0.99}},
            "learner.momentum = 0.99 has no effect with optimiser = 'adamw': leav",
        ),
        ({"learner": {"milestones": [0.1]}}, "learner.milestones = .* has no effect with schedule = 'cosine'"),
        ({"learner": {"preset": "bert", "model": "linear", "momentum": 0.5}}, "learner.momentum = 0.5 has no effect"),
        (
            {"learner": ADAM, "sweep": ("learner.momentum", [0.1, 0.99])},
            "learner.momentum = 0.1 has no effect with optimiser = 'adamw'",
        ),
        ({"learner": {"schedule": "steps"}}, "learner: the schedule steps has no effect without milestones"),
        ({"learner": {"schedule": "steps", "milestones": [100, 150]}}, "learner: milestones are fractions"),
        (
            {"unlearner": {"sisa": {"learner": {"optimiser": "adamw", "momentum": 0.1}}}},
            "unlearners.sisa.learner.momentum = 0.1 has no effect with optimiser = 'adamw'",
        ),
        *(
            (
                {"unlearner": {"x": {"method": name, "optimiser": "adamw", "momentum": 0.5}}},
                "unlearners.x.momentum = 0.5",
            )
            for name in ("fine-tune", "neg-grad", "neg-grad-plus")
        ),
        (
            {"unlearner": {"ssd": {"importance": "per-sample", "batch_size": 64}}},
            "unlearners.ssd.batch_size = 64 has no effect with importance = 'per-sample': leave it out, or at 128",
        ),
        ({"unlearner": {"scrub": {"msteps": 0, "forget_batch_size": 8}}}, "unlearners.scrub.forget_batch_size = 8 has"),
    ],
)
def test_a_setting_of_a_shipped_recipe_without_effect_is_refused(arguments, line):
    """It would enter the keys, and so draw every model anew."""
    with pytest.raises(UserError, match=f"^evaluate: {line}"):
        forgetgauge.evaluate(**{**TINY, **arguments})


@pytest.mark.parametrize("budget", ["inf", 8.0])
def test_a_clip_norm_without_a_budget_has_no_effect(budget):
    pytest.importorskip("opacus")
    learner = {
        "name": "dp-sgd",
        "model": "small-cnn",
        "model_params": {"norm": "group"},
        "target_epsilon": budget,
        "clip_norm": 0.3,
    }
    raw = {"learner": learner, "unlearners": {"none": {}}, "adversaries": {"confidence": {}}}
    swept = resolve({**raw, "sweep": {"key": "learner.target_epsilon", "values": [8.0, "inf"]}}, "a test")
    assert [game.learner.params["clip_norm"] for game in swept.games] == [0.3, 0.3]
    if budget == 8.0:
        assert resolve(raw, "a test").games[0].learner.params["clip_norm"] == 0.3
        return
    with pytest.raises(UserError, match=r"learner\.clip_norm = 0\.3 has no effect with target_epsilon = 'inf'"):
        resolve(raw, "a test")


@pytest.mark.parametrize(
    "learner",
    [
        {**ADAM, "momentum": 0.9},  # the default
        {"preset": "cifar-resnet", "model": "linear", "schedule": "cosine"},  # its milestones are the preset's
        {"schedule": "steps", "milestones": [0.5]},
    ],
)
def test_what_changes_no_key_or_comes_with_a_recipe_is_taken(learner):
    resolve({"learner": learner, "unlearners": {"none": {}, "sisa": {}}, "adversaries": {"confidence": {}}}, "a test")


EVERY = {path.name: read_run_file(path)[0] for path in (Path(__file__).parents[2] / "examples").glob("*.toml")} | {
    f"{name} {scale} {column.label}": column.raw
    for name in OUTLINES
    for scale in SCALES
    for column in suite(name, scale).columns
}


def test_no_shipped_run_sets_what_has_no_effect(monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[2] / "examples")
    monkeypatch.syspath_prepend(Path.cwd())
    monkeypatch.setattr("forgetgauge.run.algorithms.checkpoint_files", lambda params: [])  # perhaps they are not here
    for name, raw in EVERY.items():
        specs = [spec for _, spec in sweep_games(raw, name)]
        choices = [_decided(spec) for spec in specs]
        idle = [
            idle_settings(spec, made["learner"], made["methods"]) for spec, made in zip(specs, choices, strict=True)
        ]
        assert not set.intersection(*map(set, idle)), name


def test_a_run_file_is_a_recipe_whose_parts_may_be_turned_off():
    raw = {"shadows": {"scorers": 4, "references": 4}, "unlearners": {"none": {}}, "adversaries": {"confidence": {}}}
    assert resolve(raw, "a test").games[0].hardest == 1


def test_a_limit_that_an_executor_cannot_keep_is_said(tmp_path, monkeypatch, capsys):
    text = 'adversaries = ["confidence"]\n[game]\npairs = 1\n[data]\nname = "digits"\nfraction = 0.2\n'
    text += "[shadows]\ncount = 2\n"
    text += '[learner]\nmodel = "linear"\nepochs = 1\n[limits]\njob_seconds = 60\n[unlearners.none]\n'
    (tmp_path / "run.toml").write_text(text, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["forgetgauge", "run", "run.toml", "--executor", "inline", "--quiet"])
    with pytest.raises(SystemExit):
        main()
    assert "limits.job_seconds = 60 has no effect with executor 'inline'" in capsys.readouterr().err


def test_weights_that_are_no_weights_are_named_as_the_argument():
    for weights, why in ((-np.ones(1797), "weights must be finite"), (np.ones(5), r"\(5,\) weights, but the data set")):
        with pytest.raises(UserError, match=f"^evaluate: sensitivity: {why}"):
            forgetgauge.evaluate(sensitivity=weights, **TINY)


def test_weights_that_are_masked_are_no_number_per_point():
    with pytest.raises(UserError, match=r"^evaluate: sensitivity is neither .* nor a number per point"):
        forgetgauge.evaluate(sensitivity=np.ma.masked_array(np.ones(1797), np.arange(1797) < 3), **TINY)


def test_a_csv_file_is_told_how_it_is_brought():
    for name in ("my.csv", "folder/my.parquet"):
        with pytest.raises(UserError, match=r"files are read as \.npz.*module:function"):
            forgetgauge.evaluate(data=name, **TINY)
