"""What others wrote cannot steer the terminal that shows it, and no alphabet is a reason to stop."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import forgetgauge
from forgetgauge.wording import visible
from tests.conftest import TINY_TOML

EVIL = "\x1b]0;title\x07\x1b[2J\x9b31m\r\u202eetad"


@given(st.text())
@settings(max_examples=200, deadline=None)
def test_no_control_character_is_left_but_tabs_and_ends_of_lines(text):
    shown = visible(text)
    assert not any((ord(letter) < 32 and letter not in "\n\t") or 127 <= ord(letter) < 160 for letter in shown)
    assert visible(shown) == shown
    if not any(ord(letter) < 32 or 127 <= ord(letter) < 160 or not letter.isprintable() for letter in text):
        assert shown == text


def is_calm(text: str) -> bool:
    return not any(letter in text for letter in "\x1b\x07\x9b\r\u202e")


def test_names_of_methods_columns_and_files_are_shown_calmly(tmp_path, call, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil.toml").write_text(TINY_TOML + f'[unlearners.{json.dumps(EVIL)}]\nmethod = "none"\n')
    np.savez(tmp_path / "x.npz", **{EVIL: np.zeros(3)})
    (tmp_path / f"{EVIL.replace('/', '')}.csv").write_text("a")
    for command in (
        ("validate", "evil.toml"), ("plan", "evil.toml"), ("audit", "x.npz"), ("verify", EVIL), ("report", EVIL),
        ("run", "evil.toml", "--set", f"{EVIL}=1"), ("ls", EVIL), ("draw", f"{EVIL}.csv", "--forget", "1"),
    ):  # fmt: skip
        _, out, err = call(*command)
        assert is_calm(out + err), command


@pytest.mark.slow
def test_a_failing_methods_own_words_are_shown_calmly(tmp_path, call, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loud.py").write_text(f"def method(model, retain, forget, context):\n    raise ValueError({EVIL!r})\n")
    (tmp_path / "loud.toml").write_text(TINY_TOML + '[unlearners.loud]\nmethod = "loud:method"\n')
    code, out, err = call("run", "loud.toml", "--executor", "inline", "--no-trial")
    assert code == 1
    assert "\\x1b" in err
    assert is_calm(out + err)


def test_an_alphabet_without_our_letters_stops_nothing():
    program = "import sys; sys.argv = ['forgetgauge', 'ls']; from forgetgauge.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        check=False,
        env={"PYTHONPATH": ":".join(sys.path), "PYTHONIOENCODING": "latin-1", "PATH": ""},
    )
    assert done.returncode == 0, done.stderr
    assert b"retrain" in done.stdout


def test_every_page_that_is_written_allows_no_script():
    """Whatever stands in a name: a page fetches nothing and runs nothing."""
    root = Path(forgetgauge.__file__).parent
    pages = [path for path in root.rglob("*.html.j2") if "<!doctype html>" in path.read_text("utf-8").lower()]
    assert len(pages) == 6
    policy = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    with_points = policy.replace('">', '{{ "; img-src data:" if has_pictures }}">')
    texts = {path.name: path.read_text("utf-8") for path in pages}
    assert all((with_points if name == "report.html.j2" else policy) in text for name, text in texts.items())


@pytest.mark.slow
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_stop_nothing(tmp_path, closed):
    (tmp_path / "tiny.toml").write_text(TINY_TOML)
    line = f'exec "$0" -m forgetgauge run tiny.toml --out run {closed}'
    shell = ["sh", "-c", line, sys.executable]
    ended = subprocess.run(shell, cwd=tmp_path, capture_output=True, check=False, timeout=90)
    assert ended.returncode == 0, ended.stderr
    assert ("Q" in ended.stdout.decode()) == (" >&-" not in f" {closed}")
    assert (tmp_path / "run" / "report.html").exists()
    assert not (tmp_path / "run" / "output.txt").exists()
