"""How a run is done is said once: the options, and executors that nobody knows."""

from __future__ import annotations

import inspect

import pytest

import forgetgauge
from forgetgauge import plugins
from forgetgauge.errors import UserError
from forgetgauge.run.campaign import play
from forgetgauge.run.options import RunOptions


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
