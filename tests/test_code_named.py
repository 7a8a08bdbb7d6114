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


OWN_ADVERSARY = """
from dataclasses import dataclass

import numpy as np

from forgetgauge.attack.adversary import Access


@dataclass(frozen=True)
class Constant:
    access = Access.BLACK_BOX
    needs = frozenset()

    def fit(self, shadows, target):
        return self

    def load(self, arrays):
        return self

    def arrays(self):
        return {}

    def decide(self, signals):
        return np.arange(len(signals)) % 2 == 0
"""


def test_an_honest_run_with_an_adversary_of_ones_own_is_not_called_forged(tmp_path, monkeypatch, call):
    """Asking such an adversary again runs code: that is refused, as long as nobody allows it, and found by nobody."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "my_adversary.py").write_text(OWN_ADVERSARY)
    (tmp_path / "own.toml").write_text(TINY_TOML.replace('"entropy"', '"my_adversary:Constant"'))
    assert call("run", "own.toml", "--out", "own", "--executor", "inline", "--quiet")[0] == 0
    assert call("verify", "own")[0] == 0
    code, out, err = call("verify", "own", "--from", "signals")
    assert (code, out) == (2, "")
    assert "it names code, which would be imported and run: adversary 'my_adversary:Constant'" in err
    assert "--allow-code does so" in err
    code, out, _ = call("verify", "own", "--from", "signals", "--allow-code")
    assert (code, out.startswith("verified: ")) == (0, True)
    (tmp_path / "my_adversary.py").rename(tmp_path / "elsewhere.py")
    sys.modules.pop("my_adversary", None)
    code, out, err = call("verify", "own", "--from", "signals", "--allow-code")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "my_adversary" in err
    (tmp_path / "my_adversary.py").write_text(
        OWN_ADVERSARY.replace("return np.arange", "raise OSError('no licence') #")
    )
    sys.modules.pop("my_adversary", None)
    code, out, err = call("verify", "own", "--from", "signals", "--allow-code")
    assert code == 1
    assert "cannot be asked once more: OSError: no licence" in out
    assert "holds what no job makes" not in out
