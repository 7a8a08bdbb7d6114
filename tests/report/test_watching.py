"""Progress is seen where somebody looks: a bar on a terminal and in a notebook, lines of a command, else nothing."""

from __future__ import annotations

import io
import re
import sys
from types import ModuleType, SimpleNamespace

import pytest

import forgetgauge
from forgetgauge.auditing import make_draw
from forgetgauge.progress import Progress, steps
from forgetgauge.report import watching
from tests.own_code import TINY

STEPS = [Progress(0, 4, 0, 2, None, "train a model"), Progress(4, 4, 2, 2, 0.0, "decide", "2 workers " * 20)]


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")

    def opened():  # in the test itself: between its parts pytest sets the streams again
        monkeypatch.setattr(sys, "stderr", Terminal())
        return sys.stderr

    return opened


@pytest.fixture
def notebook(monkeypatch):
    """The part of IPython that is asked, and what it was given to show."""
    shown = []

    def display(picture, display_id):
        assert display_id is True
        shown.append(picture)
        return SimpleNamespace(update=shown.append)

    module, of_display = ModuleType("IPython"), ModuleType("IPython.display")
    module.get_ipython = lambda: SimpleNamespace(kernel=object())
    of_display.display = display
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setitem(sys.modules, "IPython.display", of_display)
    return shown


def test_on_a_terminal_there_is_a_bar_that_goes_away(terminal):
    screen = terminal()
    with watching.watched(True) as watch:
        for step in STEPS:
            watch(step)
    text = screen.getvalue()
    assert "2/2 models" in text
    assert "4/4 jobs" in text
    plain = re.sub(r"\x1b\[[?\d;]*[a-zA-Z]", "", text)
    assert max(len(line) for line in re.split(r"[\r\n]", plain)) <= 80


def test_in_a_notebook_there_is_a_bar_that_ends_in_a_line(notebook):
    with watching.watched(True) as watch:
        for step in STEPS:
            watch(step)
    first, *_, full, last = notebook
    assert repr(first) == "starting"
    assert '<progress value="4" max="4"></progress>' in full._repr_html_()
    assert "2/2 models, 4/4 jobs, 0:00, about 0:00 left: decide, 2 workers 2" in repr(full)
    assert repr(last) == "2/2 models, 4/4 jobs in 0:00"
    assert "<progress" not in last._repr_html_()


def test_what_a_job_is_called_cannot_write_html(notebook):
    with watching.watched(True) as watch:
        watch(Progress(0, 1, doing="<script>"))
    assert not any("<script>" in picture._repr_html_() for picture in notebook)


@pytest.mark.parametrize("progress", [True, False])
def test_where_nobody_looks_nothing_is_shown(progress, capsys):
    with watching.watched(progress) as watch:
        watch(STEPS[0])
    assert capsys.readouterr() == ("", "")


def test_false_is_silence_on_a_terminal_and_a_function_is_called(terminal):
    screen = terminal()
    with watching.watched(False) as watch:
        watch(STEPS[0])
    heard = []
    with watching.watched(heard.append) as watch:
        watch(STEPS[0])
    assert (screen.getvalue(), heard) == ("", STEPS[:1])


def test_an_audit_counts_no_models(capsys):
    with watching.shown_progress(verbose=True) as watch:
        tell = steps(watch, 2)
        for doing in ("first", "second", "more than was said"):
            tell(doing)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split("] ")[1] for line in lines] == [
        "0/2 jobs: first",
        "1/2 jobs: second",
        "2/2 jobs: more than was said",
    ]


def test_evaluate_and_audit_show_their_progress_in_a_notebook(notebook, tmp_path):
    forgetgauge.evaluate(unlearner="none", **TINY)
    assert "models, " in repr(notebook[-1])
    (tmp_path / "points.txt").write_text("\n".join(map(str, range(60))))
    drawn = make_draw(tmp_path / "points.txt", 20, tmp_path / "draw.json", seed="s")
    rows = [f"{point},{point in drawn.forget:d}.{point}" for point in drawn.forget + drawn.unseen]
    (tmp_path / "outputs.csv").write_text("\n".join(["point,score", *rows]))
    found = forgetgauge.audit(tmp_path / "outputs.csv", tmp_path / "draw.json", out=tmp_path / "kept")
    assert repr(notebook[-1]) == "1/1 jobs in 0:00"
    assert forgetgauge.read_result(tmp_path / "kept") == found
