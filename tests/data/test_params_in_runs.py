"""A data set's parameters travel from the run file to the workers and back from a run folder."""

import pytest

from forgetgauge.errors import UserError
from forgetgauge.plan.jobs import Named
from forgetgauge.run.campaign import Campaign, play
from forgetgauge.run.resolve import resolve
from forgetgauge.store.runfolder import RunFolder
from tests.conftest import TINY

CODE = """
import numpy as np
def noise(n=20, tags=()):
    return np.random.default_rng(n).normal(size=(n, 1, 8, 8)), np.arange(n) % 4
"""


@pytest.fixture
def own_noise(tmp_path, monkeypatch):
    (tmp_path / "own_noise_data.py").write_text(CODE)
    monkeypatch.syspath_prepend(str(tmp_path))
    return "own_noise_data:noise"


def game_on(name, **params):
    raw = {**TINY, "data": {"name": name, "params": params}, "unlearners": ["none"], "adversaries": ["confidence"]}
    return Campaign.plan(resolve(raw, "run.toml"))


def test_a_game_is_played_on_the_data_the_parameters_ask_for(own_noise, tmp_path):
    campaign = game_on(own_noise, n=80, tags=["a", "b"])
    game = campaign.graphs[0].game
    assert (game.n_points, game.data.params) == (80, {"n": 80, "tags": ["a", "b"]})
    ending, result = play(campaign, RunFolder(tmp_path / "run"))
    assert (ending.failed, result.failures) == ({}, [])
    again = Campaign.read(RunFolder(tmp_path / "run"))
    assert again.jobs.keys() == campaign.jobs.keys()
    assert again.resolved.sources.datasets == {game.data_digest: Named(own_noise, game.data.params, game.data.code)}


def test_a_parameter_the_reader_does_not_know_is_one_line_of_the_run_file(own_noise):
    with pytest.raises(UserError, match=r"^run\.toml: data\.params: unknown key 'm'"):
        game_on(own_noise, m=80)
