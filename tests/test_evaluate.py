"""`evaluate` with names, with the user's own functions, models, learners and arrays, and with their mistakes."""

from __future__ import annotations

import copy
import functools
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import forgetgauge
from forgetgauge.data.digits import load_digits
from forgetgauge.errors import DoubtfulResult, UserError
from forgetgauge.learn.minibatch import Minibatch
from forgetgauge.version import VERSION
from tests.own_code import TINY, Constant

QUALITIES = ["retrain", "none"]


def qualities(result):
    return {name: found.quality for name, found in result.methods.items()}


@pytest.fixture(scope="module")
def named():
    return forgetgauge.evaluate(unlearner=QUALITIES, **TINY)


@pytest.mark.filterwarnings("ignore:.*unless that is only a record")
def test_an_own_function_is_scored_like_a_named_method(named):
    calls = []

    def my_identity(model, retain, forget, context):
        calls.append((len(retain), len(forget)))
        return copy.deepcopy(model)

    result = forgetgauge.evaluate(unlearner=["retrain", my_identity], **TINY)
    assert result.methods["my_identity"].by_adversary == named.methods["none"].by_adversary
    assert calls[-4:] == [(60, 60)] * 4


def test_utility_by_pair_averages_to_accuracy(named):
    for found in named.methods.values():
        assert found.utility_by_pair.keys() == found.utility.keys()
        for part, by_pair in found.utility_by_pair.items():
            assert len(by_pair) == TINY["pairs"]
            assert np.mean(by_pair) == pytest.approx(found.utility[part], abs=1e-12)
    first, second = named.methods["none"].utility_by_pair["unseen"]
    assert first != second


def test_one_function_with_two_settings_is_two_methods():
    def scaled(model, retain, forget, context, factor):
        model = copy.deepcopy(model)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(factor)
        return model

    how = {"kept": functools.partial(scaled, factor=1.0), "ruined": functools.partial(scaled, factor=0.0)}
    result = forgetgauge.evaluate(unlearner={**how, "none": "none"}, **TINY)
    assert result.methods["kept"].by_adversary == result.methods["none"].by_adversary
    assert result.methods["ruined"].quality == 1.0
    assert result.methods["ruined"].utility["retain"] < 0.3


def test_parameters_may_be_given_by_id():
    result = forgetgauge.evaluate(
        unlearner={"off": {"method": "neg-grad", "lr": 0.0}, "on": {"method": "neg-grad", "lr": 0.1}, "none": {}},
        **TINY,
    )
    assert qualities(result)["off"] == qualities(result)["none"]
    assert result.methods["on"].utility != result.methods["none"].utility


def test_arrays_give_what_the_named_data_set_gives(named):
    points = load_digits().points
    for data in (load_digits(), (points.whole_inputs.numpy(), points.whole_labels.numpy())):
        result = forgetgauge.evaluate(unlearner=QUALITIES, data=data, **TINY)
        assert qualities(result) == qualities(named)


def test_own_models_learners_and_adversaries_take_the_places_of_names():
    class Linear(nn.Module):
        def __init__(self, input_shape, n_classes):
            super().__init__()
            self.head = nn.Linear(int(np.prod(input_shape)), n_classes)

        def forward(self, x):
            return self.head(x.flatten(1))

    learner = {**TINY["learner"], "model": Linear}
    result = forgetgauge.evaluate(
        unlearner=["none"], **{**TINY, "adversaries": [Constant(), "confidence"], "learner": learner}
    )
    assert set(result.methods["none"].by_adversary) == {"Constant", "confidence"}
    assert result.methods["none"].by_adversary["Constant"].advantage == 0.0
    # An own object has another name, so other random streams: the same distribution, not the same numbers.
    own = {**TINY, "learner": Minibatch(epochs=1, batch_size=64)}
    assert qualities(forgetgauge.evaluate(**own)) == qualities(forgetgauge.evaluate(**own))


def test_weights_by_class_or_by_point_say_the_same_thing():
    labels = load_digits().points.whole_labels.numpy()
    by_class = forgetgauge.evaluate(unlearner="none", sensitivity={3: 5.0}, **TINY)
    by_point = forgetgauge.evaluate(unlearner="none", sensitivity=np.where(labels == 3, 5.0, 1.0), **TINY)
    assert by_class.methods["none"].by_adversary == by_point.methods["none"].by_adversary
    uniform = forgetgauge.evaluate(unlearner="none", **TINY)
    assert by_class.methods["none"].by_adversary != uniform.methods["none"].by_adversary


def test_a_sweep_returns_its_games():
    result = forgetgauge.evaluate(unlearner="none", sweep=("game.alpha", [0.2, 0.5]), **TINY)
    assert [(game.value, game.spec["n_forget"]) for game in result.games] == [(0.2, 30), (0.5, 60)]


def test_the_bounded_interval_is_shown_where_it_is_asked_for_and_is_there_anyway(named):
    bounded = forgetgauge.evaluate(unlearner=QUALITIES, interval="bounded", **TINY)
    assert bounded.games[0].spec["interval"] == "bounded"
    assert bounded.games[0].interval_basis == "over pairs"
    for name, found in bounded.methods.items():
        assert found.interval == found.bounded_interval == named.methods[name].bounded_interval
        assert found.interval != named.methods[name].interval
        assert found.quality == named.methods[name].quality
    assert bounded.digests == named.digests


def test_rival_metrics_stand_beside_an_unchanged_quality(named):
    result = forgetgauge.evaluate(unlearner=QUALITIES, metrics=["mia", "distances"], **TINY)
    assert qualities(result) == qualities(named)
    assert {"mia", "mia_swap", "kl_forget", "gap_unseen"} <= set(result.methods["none"].metrics)
    assert named.methods["none"].metrics == {}


def test_metrics_and_parameters_of_the_data_are_those_of_a_run_file(monkeypatch):
    seen = []

    def stop(raw, source):
        seen.append(raw)
        raise UserError("enough")

    monkeypatch.setattr("forgetgauge.evaluation.resolve", stop)
    for metrics in ("ic", ("ic", "mia"), {"ic": True, "ic_classes": [3, 5]}):
        with pytest.raises(UserError, match="enough"):
            forgetgauge.evaluate(data="mnist", data_params={"size": 28}, metrics=metrics)
    assert [raw["metrics"] for raw in seen] == [{"ic": True}, {"ic": True, "mia": True}, metrics]
    assert {raw["data"]["name"]: raw["data"]["params"] for raw in seen} == {"mnist": {"size": 28}}


def test_nothing_is_left_behind_without_out_and_a_run_folder_with_it(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr("tempfile.tempdir", None)
    first = forgetgauge.evaluate(unlearner="none", out=tmp_path / "run", **TINY)
    assert list((tmp_path / "scratch").iterdir()) == []
    assert (tmp_path / "run/result.json").exists()
    told = []
    again = forgetgauge.evaluate(unlearner="none", out=tmp_path / "run", progress=told.append, **TINY)
    assert told == []
    assert again == first


def test_a_time_limit_raises_and_the_same_call_goes_on(tmp_path):
    with pytest.raises(TimeoutError, match="jobs are left"):
        forgetgauge.evaluate(unlearner="none", out=tmp_path / "run", time_limit_s=0.0, **TINY)
    assert forgetgauge.evaluate(unlearner="none", out=tmp_path / "run", **TINY).failures == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"alpha": 1.0}, "game.alpha"),
        ({"unlearner": "nome"}, "did you mean 'none'?"),
        ({"unlearner": [copy.copy, copy.copy]}, "the name 'copy' is given to more than one unlearner"),
        ({"data": 3}, "neither a Dataset nor a pair"),
        ({"sensitivity": np.ones(5)}, "1797 points"),
        ({"metrics": "mai"}, "metrics: unknown key 'mai'; did you mean 'mia'?"),
        ({"metrics": {"ic": "yes"}}, "metrics.ic = 'yes'"),
        ({"metrics": 3}, "metrics = 3 are neither names nor a mapping"),
        ({"metrics": ["distances"], "unlearner": "none"}, "it is not among the unlearners"),
        ({"data_params": {"size": 28}}, "data.params: 'digits' takes no parameters, but size is given"),
        ({"data": "mnist", "data_params": {"sise": 28}}, "data.params: unknown key 'sise'; did you mean 'size'?"),
        ({"data_params": 28}, "data.params = 28"),
        ({"interval": "normal"}, "statistics.interval = 'normal'"),
        ({"queries": 5}, "strong.queries = 5"),
        ({"until": 3}, "until = 3"),
        ({"sweep": "a"}, "sweep must be a key and its values"),
        ({"sweep": ("game.alpha", 3)}, "sweep.values = 3"),
        ({"time_limit_s": float("nan")}, "time_limit_s must be a number of seconds, not nan"),
        ({"time_limit_s": "8m"}, "time_limit_s must be a number of seconds, not '8m'"),
        ({"time_limit_s": -1}, "time_limit_s must be a number of seconds, not -1"),
        ({"out": ""}, "out must name a folder or a file, not ''"),
        ({"out": 5}, "out must name a folder or a file, not 5"),
        ({"progress": "x"}, "progress must be True, False or a function, not 'x'"),
        ({"progress": None}, "progress must be True, False or a function, not None"),
    ],
)
def test_mistakes_are_one_line(arguments, words):
    with pytest.raises(UserError) as caught:
        forgetgauge.evaluate(**{**TINY, **arguments})
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_version_stands_in_one_place():
    project = (Path(__file__).parents[1] / "pyproject.toml").read_text()
    citation = (Path(__file__).parents[1] / "CITATION.cff").read_text()
    assert re.search(r'^version = "(.+)"$', project, re.M)[1] == VERSION == forgetgauge.__version__
    assert re.findall(r"^ *version: (.+)$", citation, re.M) == [VERSION, VERSION]  # of the software, twice


def test_an_unknown_attribute_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'absent'"):
        _ = forgetgauge.absent
    assert forgetgauge.Result.__name__ == "Result"


def test_python_is_warned_of_what_the_table_warns_of():
    """Of a ruined model attackers learn nothing: a Q of 1 that nobody should take home."""

    def ruin(model, retain, forget, context):
        model = copy.deepcopy(model)
        with torch.no_grad():
            for weight in model.parameters():
                weight.zero_()
        return model

    with pytest.warns(DoubtfulResult) as said:
        forgetgauge.evaluate(unlearner=["retrain", "none", ruin], **TINY | {"learner": {"epochs": 6}})
    assert any("Less accurate than Retrain and None: ruin" in str(one.message) for one in said)
