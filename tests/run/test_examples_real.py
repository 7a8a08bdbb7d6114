"""The examples on real data, as a user runs them, at a size for two cores: every method plays, every Q is a Q."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from forgetgauge.plan.runfile import parse_spec, read_run_file

EXAMPLES = Path(__file__).parents[2] / "examples"
PAPERS_METHODS = {"none", "retrain", "neg-grad", "ft-final", "retrain-final", "fisher", "salun", "ssd"}
SMALL = [
    "learner.epochs=1",
    "game.pairs=1",
    "shadows.count=2",
    *(f"unlearners.{name}.epochs=1" for name in ("neg-grad", "ft-final", "retrain-final", "salun")),
]
WORDS = [
    'data.params={tokenizer = "words", max_length = 32}',
    "learner.model_params={layers = 2, hidden = 32, heads = 2, vocab = 8192}",
    "learner.lr=1e-3",
]


def data_is_there(name: str) -> bool:
    from forgetgauge.data.files import known_set
    from forgetgauge.data.folders import find

    folder = os.environ.get("FORGETGAUGE_DATA")
    return folder is not None and find(known_set(name), Path(folder)) is not None


def skip_without(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not data_is_there(name), reason=f"data: FORGETGAUGE_DATA holds no {name}")


def play(example: str, folder: Path, *settings: str) -> dict[str, dict[str, float]]:
    options = [part for setting in (*SMALL, *settings) for part in ("--set", setting)]
    command = [sys.executable, "-m", "forgetgauge", "run", EXAMPLES / example, "--out", folder, "--executor", "inline"]
    done = subprocess.run([*map(str, command), "--quiet", *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "result.json").read_text())["games"][0]["methods"]


def check(methods: dict[str, dict[str, float]]) -> None:
    assert methods.keys() == PAPERS_METHODS
    assert all(0 <= method["quality"] <= 1 for method in methods.values())


@pytest.mark.slow
@skip_without("mnist")
def test_the_mnist_example_plays_at_a_hundredth_of_the_data(tmp_path):
    # A ResNet-20 takes 20 s to predict the 10,000 test images on one core, and there are 20 models.
    check(play("mnist.toml", tmp_path / "run", "data.fraction=0.01", "learner.model=small-cnn"))


@pytest.mark.slow
@skip_without("sst5")
@pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="transformers is not installed ([text])")
def test_the_sst5_example_plays_with_words_and_a_small_random_bert(tmp_path):
    check(play("sst5-bert.toml", tmp_path / "run", "data.fraction=0.03", *WORDS))


@pytest.mark.parametrize("example", sorted(path.name for path in EXAMPLES.glob("*.toml")))
def test_every_example_is_a_valid_run_file(example):
    parse_spec(*read_run_file(EXAMPLES / example))


@pytest.mark.parametrize("example", ["mnist.toml", "sst5-bert.toml"])
def test_the_examples_name_the_papers_eight_methods(example):
    import tomllib

    assert tomllib.loads((EXAMPLES / example).read_text())["unlearners"].keys() == PAPERS_METHODS


@skip_without("cifar10")
@pytest.mark.skipif(importlib.util.find_spec("opacus") is None, reason="opacus is not installed ([dp])")
@pytest.mark.parametrize("table", ["table3", "table4b", "table5b"])
def test_the_dp_example_has_the_models_of_the_papers_tables(table):
    """At every ε that is a budget; at ε = ∞ the tables have batch norms, which DP-SGD knows not."""
    import tomllib

    from forgetgauge.run.campaign import Campaign
    from forgetgauge.run.resolve import resolve
    from forgetgauge.suites.invocation import plan_suite
    from forgetgauge.suites.tables import suite

    played = Campaign.plan(resolve(tomllib.loads((EXAMPLES / "dp-cifar10.toml").read_text()), "dp-cifar10.toml"))
    jobs = plan_suite(suite(table, "paper"), ["50", "150", "600"]).campaign.jobs
    assert {key for key, job in jobs.items() if job.kind == "train"} <= played.jobs.keys()
