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


GARBAGE = {
    "no section": b"garbage without a section\n",
    "no equals sign": b"[forgetgauge.unlearner]\nthis is not an entry\n",
    "bytes": b"\xff\xfe\x00[forgetgauge.unlearner]\n\x80 = x\n",
    "an open bracket": b"[forgetgauge.unlearner\nx = y\n",
}


@pytest.fixture
def installs(tmp_path, monkeypatch):
    """Puts a package's dist-info folder on the path."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    def install(name: str, content: bytes, metadata: bytes | None = None) -> None:
        folder = tmp_path / f"{name}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_bytes(metadata or f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode())
        (folder / "entry_points.txt").write_bytes(content)
        importlib.invalidate_caches()

    return install


@pytest.mark.parametrize("content", GARBAGE.values(), ids=list(GARBAGE))
@pytest.mark.parametrize("metadata", [None, b"", b"\xff"], ids=["named", "empty", "bytes"])
def test_another_package_that_is_malformed_is_left_out_and_ours_work(installs, call, tiny_file, content, metadata):
    installs("odd_package", content, metadata)
    installs("good_package", b"[forgetgauge.unlearner]\nmore-grad = json:loads\n")
    code, out, err = call("validate", tiny_file)
    assert (code, err) == (0, "")
    code, out, err = call("ls", "unlearners")
    assert code == 0
    assert "neg-grad" in out
    assert "installed: json:loads" in out
    assert err.count("\n") <= 1
    assert not err or (err.startswith("the installed package ") and err.endswith("entry_points.txt cannot be read\n"))
    tiny_file.write_text(tiny_file.read_text().replace("[unlearners.none]", "[unlearners.nonne]"))
    code, _, err = call("validate", tiny_file)
    assert (code, err.count("\n")) == (2, 1)
    assert "did you mean 'none'?" in err


def test_the_malformed_package_is_named(installs, call):
    installs("odd_package", GARBAGE["no equals sign"])
    assert call("ls", "unlearners")[2].startswith("the installed package 'odd_package' is left out: ")


@pytest.mark.parametrize(
    "target", ["no_such_module:x", "json", "json:no_such_name", ":", "", "!!", "json:decoder:x", "leaving:method"]
)
def test_a_target_that_cannot_be_imported_is_one_line(installs, call, tiny_file, tmp_path, target):
    (tmp_path / "leaving.py").write_text("raise SystemExit(0)\n")
    installs("odd_package", f"[forgetgauge.unlearner]\nodd-one = {target}\n\x1b[31m name = {target}\n".encode())
    assert call("ls", "unlearners")[0] == 0
    tiny_file.write_text(f"{tiny_file.read_text()}[unlearners.odd-one]\n")
    code, out, err = call("validate", tiny_file)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "odd-one" in err or "cannot be imported" in err
