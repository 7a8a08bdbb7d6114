"""How a run is done is said once: the options, and executors that nobody knows."""

from __future__ import annotations

import inspect
import sys

import pytest

import forgetgauge
from forgetgauge import plugins
from forgetgauge.errors import UserError
from forgetgauge.run.campaign import Campaign, play
from forgetgauge.run.options import RunOptions
from forgetgauge.store.runfolder import RunFolder
from tests.run.test_campaign import campaign


@pytest.mark.parametrize("name", plugins.executors.entries)
def test_every_executor_of_the_catalogue_is_an_option(name):
    assert RunOptions(name).executor == name
    assert callable(plugins.executors.load(name))


@pytest.mark.parametrize(("name", "nearest"), [("inlin", "inline"), ("process", "processes"), ("Inline", "inline")])
def test_an_unknown_executor_is_refused_with_the_nearest_one(name, nearest):
    with pytest.raises(UserError, match=f"unknown executor '{name}'; did you mean '{nearest}'"):
        RunOptions(name)


def test_an_executor_of_the_users_own_is_named_by_module_and_attribute():
    assert RunOptions("my_module:Mine").executor == "my_module:Mine"


def test_evaluate_refuses_an_unknown_executor_before_it_looks_at_the_data():
    with pytest.raises(UserError, match="did you mean 'inline'"):
        forgetgauge.evaluate(executor="inlin", data="no-such-data")


@pytest.mark.parametrize("command", [("run",), ("reproduce", "toy"), ("reproduce", "list"), ("reproduce", "table1")])
def test_every_command_that_takes_an_executor_refuses_an_unknown_one(call, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, err = call(*command, "--executor", "proceses")
    assert code == 2
    assert "unknown executor 'proceses'; did you mean 'processes'?" in err
    assert not list(tmp_path.iterdir())


def test_playing_does_not_repeat_the_options():
    parameters = inspect.signature(play).parameters
    assert parameters["options"].default == RunOptions()
    assert not set(parameters) & set(inspect.signature(RunOptions).parameters)


def test_what_is_not_an_executor_is_refused_in_a_line(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, err = call("run", "--executor", "numpy:get_include")
    assert code == 2
    assert err == "forgetgauge: executor 'numpy:get_include' has no has_room, so it is not an executor\n"
    with pytest.raises(UserError, match="'numpy:get_include' has no has_room"):
        forgetgauge.evaluate(executor="numpy:get_include")


def test_an_executor_of_the_users_own_does_the_work(tmp_path, monkeypatch):
    """One file of the user's; what the run makes of it is what the one that ships makes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "counting_executor.py").write_text(
        "from forgetgauge.run.executors import Inline\n"
        "N_STARTED = []\n"
        "class Mine(Inline):\n"
        "    def start(self, assignment, digests):\n"
        "        N_STARTED.append(assignment)\n"
        "        super().start(assignment, digests)\n"
    )
    how = {"unlearner": "none", "adversaries": ["confidence"], "pairs": 1, "shadows": 2, "fraction": 0.2}
    how["learner"] = {"model": "linear", "epochs": 1}
    theirs, ours = (forgetgauge.evaluate(executor=name, **how) for name in ("counting_executor:Mine", "inline"))
    assert sys.modules.pop("counting_executor").N_STARTED
    assert theirs.methods["none"].quality == ours.methods["none"].quality


def test_a_run_that_is_taken_up_again_keeps_its_limit_of_a_job(tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.create()
    folder.write_run(campaign("limits.job_seconds=7").to_json())
    assert Campaign.read(folder).resolved.job_seconds == 7
    assert campaign().resolved.job_seconds is None
