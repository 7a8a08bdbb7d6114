"""Looking at somebody else's run file runs nothing of theirs; running it says what it is about to import."""

from __future__ import annotations

import os
import sys

import pytest

from tests.conftest import TINY_TOML

EVIL = """
from pathlib import Path
Path({there!r}).write_text("imported")

def method(model, retain, forget, context):
    return model
"""
KEYS = {
    "data": ('[data]\nname = "digits"', '[data]\nname = "{code}"'),
    "learner": ("[learner]\n", '[learner]\nname = "{code}"\n'),
    "unlearner": ("[unlearners.none]", '[unlearners.none]\nmethod = "{code}"'),
    "adversary": ('"entropy"', '"{code}"'),
    "model": ("[learner]\n", '[learner]\nmodel = "{code}"\n'),
}


@pytest.fixture
def evil(tmp_path, monkeypatch):
    """A module that leaves a file when it is imported, and a run file that names it at some place."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]))
    (tmp_path / "evil_code.py").write_text(EVIL.format(there=str(tmp_path / "there")))
    sys.modules.pop("evil_code", None)

    def write(place: str, code: str = "evil_code:method"):
        old, new = KEYS[place]
        assert old in TINY_TOML
        (tmp_path / "evil.toml").write_text(TINY_TOML.replace(old, new.format(code=code)))
        return tmp_path / "evil.toml"

    return write


@pytest.mark.parametrize("place", KEYS)
def test_nothing_that_a_file_names_is_imported_when_it_is_looked_at(evil, call, tmp_path, place):
    path = evil(place)
    code, out, _ = call("validate", path)
    assert code == 0
    assert "'evil_code:method'" in out
    assert str(tmp_path / "evil_code.py") in out
    code, _, err = call("plan", path)
    assert (code, "--allow-code" in err) == (2, True)
    assert not (tmp_path / "there").exists()
    call("validate", path, "--allow-code")
    assert (tmp_path / "there").exists()


@pytest.mark.parametrize("place", KEYS)
@pytest.mark.parametrize("name", ["subprocess:run", "subprocess:Popen", "os:system", "builtins:exec", "json.tool:main"])
def test_what_python_brings_is_refused_everywhere(evil, call, place, name):
    path = evil(place, name)
    for command in (("validate", path), ("validate", path, "--allow-code"), ("plan", path), ("run", path, "--quiet")):
        code, _, err = call(*command)
        assert (code, "standard library" in err) == (2, True), command


def test_what_another_module_has_from_it_is_refused_too(evil, call, tmp_path):
    (tmp_path / "evil_code.py").write_text("from subprocess import run as method\n")
    code, _, err = call("validate", evil("unlearner"), "--allow-code")
    assert (code, "standard library" in err) == (2, True)


def test_a_file_of_ones_own_may_be_called_as_one_of_pythons(evil, call, tmp_path):
    (tmp_path / "antigravity.py").write_text("def method(model, retain, forget, context):\n    return model\n")
    sys.modules.pop("antigravity", None)
    code, out, err = call("validate", evil("unlearner", "antigravity:method"), "--allow-code")
    assert (code, err) == (0, ""), out


@pytest.mark.slow
def test_a_run_says_what_it_is_about_to_import(evil, call, tmp_path):
    code, _, err = call("run", evil("unlearner"), "--quiet", "--executor", "inline")
    assert code == 0
    assert f"importing unlearner 'evil_code:method' ({tmp_path / 'evil_code.py'})" in err
    assert err.count("importing ") == 1
    (tmp_path / "there").unlink()
    sys.modules.pop("evil_code", None)
    assert call("verify", tmp_path / "runs/evil")[0] == 0
    assert call("verify", tmp_path / "runs/evil", "--from", "signals")[0] == 0  # the adversaries are ours
    assert not (tmp_path / "there").exists()
