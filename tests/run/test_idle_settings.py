"""What is set and would change nothing is refused, or said, rather than left out without a word."""

import sys

import numpy as np
import pytest

import forgetgauge
from forgetgauge.cli import main
from forgetgauge.errors import UserError
from forgetgauge.run.resolve import resolve

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


def test_a_csv_file_is_told_how_it_is_brought():
    for name in ("my.csv", "folder/my.parquet"):
        with pytest.raises(UserError, match=r"files are read as \.npz.*module:function"):
            forgetgauge.evaluate(data=name, **TINY)
