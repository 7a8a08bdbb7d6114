"""What other installed packages offer: found by entry point, imported only when named."""

from __future__ import annotations

import importlib.metadata
import sys

import pytest

from forgetgauge import cli, plugins
from forgetgauge.errors import UserError


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A package that offers an unlearner, and one that breaks when it is imported."""
    (tmp_path / "offering.py").write_text("def method(model, retain, forget, context):\n    return model\n")
    (tmp_path / "breaking.py").write_text("raise RuntimeError('not for import')\n")
    points = {
        "forgetgauge.unlearner": [
            importlib.metadata.EntryPoint("offered", "offering:method", "forgetgauge.unlearner"),
            importlib.metadata.EntryPoint("broken", "breaking:method", "forgetgauge.unlearner"),
            importlib.metadata.EntryPoint("none", "breaking:method", "forgetgauge.unlearner"),
        ]
    }
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: points.get(group, []))
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    yield
    for name in ("offering", "breaking"):
        sys.modules.pop(name, None)


def test_an_installed_method_is_found_by_its_name(installed):
    assert plugins.unlearners.load("offered").__name__ == "method"


def test_nothing_is_imported_that_was_not_named(installed, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["forgetgauge", "ls", "unlearners"])
    with pytest.raises(SystemExit):
        cli.main()
    assert "installed: offering:method" in capsys.readouterr().out
    assert not {"offering", "breaking"} & set(sys.modules)


def test_a_name_of_ours_is_ours(installed):
    assert plugins.unlearners.load("none").__module__ == "forgetgauge.unlearn.none"


def test_an_installed_method_that_breaks_is_one_line(installed):
    with pytest.raises(UserError, match="RuntimeError: not for import"):
        plugins.unlearners.load("broken")


def test_a_misspelt_name_is_answered_with_an_installed_one(installed):
    with pytest.raises(UserError, match="did you mean 'offered'"):
        plugins.unlearners.load("offred")
