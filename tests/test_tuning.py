from __future__ import annotations

import numpy as np
import pytest
import torch

from forgetgauge import tuning
from forgetgauge.data.dataset import Dataset
from forgetgauge.data.digits import load_digits
from forgetgauge.errors import UserError
from forgetgauge.learn.predict import known_utility_of
from forgetgauge.plan.draws import draw_halves
from forgetgauge.run.campaign import Campaign, play
from forgetgauge.run.resolve import resolve
from forgetgauge.store.runfolder import RunFolder
from forgetgauge.tasks.regression import REGRESSION
from forgetgauge.tuning import Tuner, tune

SMALL = {"alpha": 0.5, "fraction": 0.3, "n_models": 2, "learner": {"epochs": 5}}


def test_the_strongest_harmless_value_is_chosen():
    found = tune("neg-grad", "lr", [0.0, 1e-7, 10.0], **SMALL)
    assert found.chosen == 1e-7
    assert found.trials[0].worst_loss == 0.0
    assert found.trials[2].worst_loss > 0.1


def test_where_every_value_harms_none_is_chosen():
    assert tune("neg-grad", "lr", [10.0], **SMALL).chosen is None


def test_the_target_half_is_never_looked_at(monkeypatch):
    dataset = load_digits()
    target, _ = draw_halves(dataset.digest, len(dataset.points), 0, 0.3)
    seen = []
    real = tuning.outputs_of_many

    def watched(models, points):
        seen.extend(p.index for p in points)
        return real(models, points)

    monkeypatch.setattr(tuning, "outputs_of_many", watched)
    tune("none", "x", [], **SMALL)
    assert seen
    assert not np.isin(np.concatenate(seen), target).any()


def test_an_unknown_strength_is_one_line():
    with pytest.raises(UserError, match="did you mean 'lr'"):
        tune("neg-grad", "lrr", [1.0], **SMALL)


@pytest.fixture
def swept(tmp_path):
    """Plays a sweep that keeps its weights, and gives its folder."""

    def played(key, values, method="none"):
        tables = {
            "keep": "weights",
            "adversaries": ["correctness"],
            "data": {"name": "digits", "fraction": 0.2},
            "game": {"pairs": 1},
            "learner": {"epochs": 1},
            "shadows": {"count": 2},
            "unlearners": {method: {}},
            "sweep": {"key": key, "values": values},
        }
        play(Campaign.plan(resolve(tables, "here")), RunFolder(tmp_path / "run"))
        return tmp_path / "run"

    return played


def test_the_shadow_models_of_all_games_of_a_sweep_are_taken(swept):
    tuner = Tuner.from_run(swept("learner.lr", [1e-9, 0.1]))
    assert [learner.lr for learner in tuner.learners] == [1e-9, 1e-9, 0.1, 0.1]
    assert len(tuner.before) == 4
    assert np.array_equal(tuner.sets[1].forget.index, tuner.sets[3].forget.index)  # the same draws at every value
    assert not np.array_equal(tuner.sets[0].forget.index, tuner.sets[1].forget.index)
    assert tuner.before[:2].max() < tuner.before[2:].min()  # so low a rate teaches nothing


def test_a_model_that_several_games_share_is_taken_once(swept):
    folder = swept("unlearners.neg-grad.lr", [1e-4, 1e-3], method="neg-grad")
    assert len(Tuner.from_run(folder).models) == 2


def test_games_on_different_data_are_one_line(swept):
    folder = swept("data.name", ["digits", "digits-3-8"])
    with pytest.raises(UserError, match="different data"):
        Tuner.from_run(folder)


def test_points_that_cannot_show_the_utility_are_one_line():
    points = Dataset.of("flat", torch.zeros(4, 2), torch.ones(4), task=REGRESSION).points
    with pytest.raises(UserError, match="R² is not defined on the points that were set aside"):
        known_utility_of(np.zeros((4, 1), dtype=np.float32), points)
